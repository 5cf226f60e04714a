# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be asked for about containerd, and the words for what may not."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import policy

SUM = "0" * 63 + "1"
REPOSITORY = {"url": "https://mirror.local/docker", "fingerprint": "A" * 40}
PART = {"version": "v2.3.4", "url": "https://mirror.local/c.tar.gz", "sha256": SUM.upper()}


def test_an_archive_in_its_plain_form() -> None:
    runc = {**PART, "version": "1.4.0-rc.2"}
    checked = policy.validate({"gpu_containerd_archive": {"containerd": PART, "runc": runc}})
    assert checked["gpu_containerd_archive"]["containerd"] == {**PART, "version": "2.3.4", "sha256": SUM}


def test_registry_hosts_in_their_plain_form() -> None:
    host = {"url": "https://m.local", "ca": "/etc/ssl/m.pem", "skip_verify": False, "override_path": True}
    checked = policy.validate(
        {
            "gpu_containerd_registry_hosts": {
                "_default": {"hosts": [host]},
                "r.local:5000": {"server": "http://r.local:5000"},
            }
        }
    )["gpu_containerd_registry_hosts"]
    assert checked["_default"] == {"server": None, "hosts": [{**host, "capabilities": ["pull", "resolve"]}]}
    assert checked["r.local:5000"] == {"server": "http://r.local:5000", "hosts": []}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("archive", "x", "a mapping"),
        ("archive", {"runc": PART}, "gpu_containerd_archive.containerd"),
        ("archive", {"containerd": PART, "crun": PART}, "one of containerd, runc, cni"),
        ("archive", {"containerd": {**PART, "version": 2.3}}, "quote it"),
        ("archive", {"containerd": {**PART, "version": "2.3"}}, "a release"),
        ("archive", {"containerd": {**PART, "url": "ftp://x/y"}}, "gpu_containerd_archive.containerd.url"),
        ("archive", {"containerd": {**PART, "url": "https://u:p@x/y"}}, "without credentials"),
        ("archive", {"containerd": {**PART, "sha256": "abc"}}, "64 hex digits"),
        ("archive", {"containerd": {**PART, "md5": "abc"}}, "one of version, url and sha256"),
        ("sandbox_image", "pause", "with its tag or digest"),
        ("sandbox_image", "registry:5000/pause", "with its tag or digest"),
        ("registry_config_path", "certs.d", "an absolute folder"),
        ("registry_config_path", "/a:b", "an absolute folder"),
        ("registry_hosts", {"docker.io": {}}, "server, hosts or both"),
        ("registry_hosts", {"../x": {"server": "https://x"}}, "the name of a registry"),
        ("registry_hosts", {"docker.io": {"hosts": "https://x"}}, "a list"),
        ("registry_hosts", {"docker.io": {"hosts": [{"url": "https://x", "header": {}}]}}, "pull secrets"),
        ("registry_hosts", {"docker.io": {"hosts": [{"url": "https://x", "capabilities": ["all"]}]}}, "pull, resolve"),
        ("registry_hosts", {"docker.io": {"hosts": [{"url": "https://x", "capabilities": [{}]}]}}, "pull, resolve"),
        ("repository", {**REPOSITORY, "components": 5}, "gpu_containerd_repository.components"),
        ("repository", {**REPOSITORY, "components": {"main": 1}}, "a list of names"),
        ("repository", {**REPOSITORY, "components": ["a\nTrusted: yes"]}, "a list of names"),
        ("repository", {**REPOSITORY, "suite": "a\nTrusted: yes"}, "gpu_containerd_repository.suite"),
        ("repository", {**REPOSITORY, "key_url": 5}, "gpu_containerd_repository.key_url"),
        ("registry_hosts", {"docker.io": {"hosts": [{"url": "https://x", "skip_verify": "no"}]}}, "true or false"),
        ("registry_hosts", {"docker.io": {"server": "https://u:p@x"}}, "without credentials"),
        ("default_runtime", "a\"\nb", "the name of a runtime"),
        ("default_runtime", "  ", "the name of a runtime"),
        ("default_runtime", 1.0, "quote it"),
        ("source", "apt", "auto, distro, docker, archive"),
        ("state", "gone", "present, absent"),
        ("version", 1.7, "quote it"),
        ("repository", {"url": "https://x", "fingerprint": "0EBFCD88"}, "40 hex digits"),
    ],
)
def test_what_cannot_be_meant_is_named(name: str, value: Any, words: str) -> None:
    with pytest.raises(policy.PolicyError, match=words) as caught:
        policy.validate({f"gpu_containerd_{name}": value})
    assert f"gpu_containerd_{name}" in str(caught.value)


def test_images_with_tag_or_digest() -> None:
    for image in ("registry.k8s.io/pause:3.10", "r.local:5000/a/pause@sha256:" + "0" * 64):
        assert policy.validate({"gpu_containerd_sandbox_image": image})["gpu_containerd_sandbox_image"] == image
