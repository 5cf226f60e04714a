# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy of one repository: what each manager is told, and that it goes again."""
from __future__ import annotations

import os
import pathlib

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers import openpgp, proxies, sources
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers.package_source import (
    Key,
    PackageSource,
    SourceError,
    Wish,
)
from test_openpgp import fingerprint, key

PROXY = "http://proxy.local:3128"
PATH = "/etc/apt/sources.list.d/baremetal-nvidia-cuda.sources"
CONF = "etc/apt/apt.conf.d/51baremetal-nvidia-cuda-proxy"
TEXT = "Types: deb\nURIs: https://mirror.local/cuda/\nSuites: /\nSigned-By: /etc/apt/keyrings/x.asc\n"


def wish(proxy: str | None) -> Wish:
    signed = Key("/etc/apt/keyrings/x.asc", fingerprint(b"one"), "https://mirror.local/key")
    return Wish(PATH, TEXT, signed, proxy=proxy)


def test_apt_gets_it_for_that_host_and_loses_it_again(tmp_path: pathlib.Path) -> None:
    seen: list[str | None] = []

    def fetch(url: str) -> bytes:
        seen.append(os.environ.get("https_proxy"))
        return openpgp.armored(key(b"one"))

    source = PackageSource(fetch, str(tmp_path))
    assert source.set(wish(PROXY), check=False).changed and seen == [PROXY]
    assert f'Acquire::https::Proxy::mirror.local "{PROXY}";' in (tmp_path / CONF).read_text()
    assert not source.set(wish(PROXY), check=False).changed
    assert source.set(wish(None), check=False).changed and not (tmp_path / CONF).exists()


def test_a_proxy_that_refuses_is_named(tmp_path: pathlib.Path) -> None:
    def fetch(url: str) -> bytes:
        raise OSError("Tunnel connection failed: 403 Forbidden")

    with pytest.raises(SourceError, match=rf"through the proxy {PROXY}: Tunnel connection failed: 403.*nothing was"):
        PackageSource(fetch, str(tmp_path)).set(wish(PROXY), check=False)
    assert not (tmp_path / "etc").exists()


def test_dnf_and_zypper_have_it_in_their_file() -> None:
    text = "[a]\nname=a\nbaseurl=https://mirror.local/el9\ngpgcheck=1\n"
    assert "baseurl=https://mirror.local/el9\nproxy=http://proxy.local:3128\n" in proxies.repo_text(
        text, "/etc/yum.repos.d/a.repo", PROXY)
    zypper = proxies.repo_text(text, "/etc/zypp/repos.d/a.repo", PROXY)
    assert "baseurl=https://mirror.local/el9?proxy=proxy.local&proxyport=3128\n" in zypper
    assert sources.uri_key("https://mirror.local/el9?proxy=proxy.local") == sources.uri_key("https://mirror.local/el9")


def test_the_environment_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "mirror.local")
    with proxies.through(PROXY):
        assert os.environ["http_proxy"] == PROXY and "no_proxy" not in os.environ
    assert os.environ["no_proxy"] == "mirror.local" and "http_proxy" not in os.environ
