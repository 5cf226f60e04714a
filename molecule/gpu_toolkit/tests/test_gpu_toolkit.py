# SPDX-License-Identifier: GPL-3.0-or-later
"""What apt and dpkg themselves say of a host with the toolkit."""

from __future__ import annotations

import re
from typing import Any

import pytest

PACKAGES = ("nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container-tools",
            "libnvidia-container1")
SOURCE = "/etc/apt/sources.list.d/baremetal-nvidia-container-toolkit.sources"


@pytest.fixture(scope="module")
def versions(host: Any) -> dict[str, str]:
    return {name: host.package(name).version for name in PACKAGES if host.package(name).is_installed}


def test_all_four_are_there_at_one_version(versions: dict[str, str]) -> None:
    assert set(versions) == set(PACKAGES)
    assert len(set(versions.values())) == 1


def test_they_are_held(host: Any) -> None:
    assert set(PACKAGES) <= set(host.check_output("apt-mark showhold").split())


def test_an_upgrade_leaves_them(host: Any) -> None:
    with host.sudo():
        simulated = host.check_output("apt-get -s dist-upgrade")
    assert not re.search(r"^Inst (lib)?nvidia-container", simulated, re.MULTILINE)


def test_the_repository_is_trusted_by_one_key_of_its_own(host: Any) -> None:
    text = host.file(SOURCE).content_string
    keyring = re.search(r"^Signed-By: (\S+)$", text, re.MULTILINE)
    assert keyring is not None
    assert host.file(keyring[1]).exists and host.file(keyring[1]).mode == 0o644
    assert "trusted" not in text.lower()


def test_the_keyring_holds_the_expected_key(host: Any) -> None:
    repositories = host.ansible.get_variables().get("lab_repositories") or {}
    expected = repositories.get("toolkit", {}).get("fingerprint", "C95B321B61E88C1809C4F759DDCAE044F796ECB0")
    keyring = re.search(r"^Signed-By: (\S+)$", host.file(SOURCE).content_string, re.MULTILINE)
    assert keyring is not None
    if not host.exists("gpg"):
        pytest.skip("gpg is not on the host")
    told = host.check_output(f"gpg --show-keys --with-colons {keyring[1]}")
    assert next(line.split(":")[9] for line in told.splitlines() if line.startswith("fpr:")) == expected


def test_apt_reads_its_sources_without_complaint(host: Any) -> None:
    with host.sudo():
        told = host.run("apt-get update -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=/dev/null "
                        f"-o Dir::Etc::sourcelist={SOURCE} -o APT::Get::List-Cleanup=0")
    assert told.rc == 0 and "NO_PUBKEY" not in told.stderr and not re.search(r"^[EW]:", told.stderr, re.MULTILINE), told


def test_the_runtime_runs(host: Any) -> None:
    assert host.run("/usr/bin/nvidia-ctk --version").rc == 0
    assert host.file("/usr/bin/nvidia-container-runtime").exists
