# SPDX-License-Identifier: GPL-3.0-or-later
"""The .repo files of dnf and zypper: key first, signatures stay on, one file for one repository."""
from __future__ import annotations

import pathlib
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers import openpgp, repo_files
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers.package_source import (
    Key,
    PackageSource,
    SourceError,
    Wish,
)
from test_openpgp import fingerprint, key
from test_package_source import snapshot, write

PATH = "/etc/yum.repos.d/baremetal-nvidia-cuda.repo"
KEY = "/etc/pki/rpm-gpg/RPM-GPG-KEY-baremetal-nvidia-cuda"
URL = "https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64"
CONTENT = (f"[baremetal-nvidia-cuda]\nname=NVIDIA CUDA repository (rhel9)\nbaseurl={URL}\nenabled=1\ngpgcheck=1\n"
           f"gpgkey=file://{KEY}\nmodule_hotfixes=1\n")
THEIRS = """# their own
[cuda-rhel9-x86_64]
name=cuda
baseurl=https://developer.download.nvidia.com/compute/cuda/repos/rhel$releasever/$basearch/
enabled=1
gpgcheck=0

[epel]
name=EPEL
metalink=https://mirrors.fedoraproject.org/metalink?repo=epel-9
"""


class Rpm:
    """rpm and its keys."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root, self.keys, self.calls = root, b"", 0

    def __call__(self, argv: list[str], **_options: Any) -> SimpleNamespace:
        self.calls += 1
        if argv[1] == "--import":
            self.keys += pathlib.Path(argv[2]).read_bytes()
            return SimpleNamespace(rc=0, out="", err="")
        return SimpleNamespace(rc=0 if self.keys else 1, out=self.keys.decode(), err="")


def wish(**changed: object) -> Wish:
    given = {"path": PATH, "content": CONTENT, "key": Key(KEY, fingerprint(b"one"), "https://example.net/key")}
    return Wish(**{**given, **changed})  # type: ignore[arg-type]


@pytest.fixture
def rpm(tmp_path: pathlib.Path) -> Rpm:
    write(tmp_path, "/etc/os-release", 'ID="rocky"\nVERSION_ID="9.6"\n')
    write(tmp_path, "/etc/dnf/vars/basearch", "x86_64\n")
    return Rpm(tmp_path)


@pytest.fixture
def source(tmp_path: pathlib.Path, rpm: Rpm) -> PackageSource:
    return PackageSource(lambda url: key(b"one"), str(tmp_path), run=rpm)


def test_fresh_host_then_nothing_more(source: PackageSource, rpm: Rpm, tmp_path: pathlib.Path) -> None:
    before = snapshot(tmp_path)
    planned = source.set(wish(), check=True)
    assert planned.changed and snapshot(tmp_path) == before and not rpm.keys
    outcome = source.set(wish(), check=False)
    assert outcome.actions == planned.actions
    assert (tmp_path / PATH.lstrip("/")).read_text() == CONTENT
    written = (tmp_path / KEY.lstrip("/")).read_bytes()
    assert written.startswith(b"-----BEGIN PGP PUBLIC KEY BLOCK-----"), "rpm takes text alone"
    assert openpgp.fingerprints(rpm.keys) == [fingerprint(b"one")]
    again = source.set(wish(), check=False)
    assert not again.changed, again.actions


def test_an_old_key_among_rpms_own_changes_nothing(source: PackageSource, rpm: Rpm) -> None:
    rpm.keys = openpgp.armored(key(b"old", version=3))
    assert source.set(wish(), check=False).changed
    again = source.set(wish(), check=False)
    assert not again.changed, again.actions


def test_a_key_that_rpm_does_not_take_is_told(tmp_path: pathlib.Path, rpm: Rpm) -> None:
    def refusing(argv: list[str], **_options: Any) -> SimpleNamespace:
        return SimpleNamespace(rc=1, out="", err="error: key 1 import failed.")

    with pytest.raises(SourceError, match=r"rpm does not take the key .*import failed"):
        PackageSource(lambda url: key(b"one"), str(tmp_path), run=refusing).set(wish(), check=False)


def test_a_wrong_key_ends_it_before_anything_is_written(tmp_path: pathlib.Path, rpm: Rpm) -> None:
    write(tmp_path, "/etc/yum.repos.d/cuda.repo", THEIRS)
    before = snapshot(tmp_path)
    with pytest.raises(openpgp.KeyFault):
        PackageSource(lambda url: key(b"two"), str(tmp_path), run=rpm).set(wish(), check=False)
    assert snapshot(tmp_path) == before and not rpm.keys


def test_a_second_name_for_the_repository_is_switched_off(source: PackageSource, tmp_path: pathlib.Path) -> None:
    write(tmp_path, "/etc/yum.repos.d/cuda.repo", THEIRS)
    outcome = source.set(wish(), check=False)
    assert outcome.removed == ["/etc/yum.repos.d/cuda.repo"] and len(outcome.backups) == 1
    text = (tmp_path / "etc/yum.repos.d/cuda.repo").read_text()
    assert "# their own" in text and "[epel]" in text, "the others stay"
    assert repo_files.named(text) == ["https://mirrors.fedoraproject.org/metalink?repo=epel-9"]
    assert not source.set(wish(), check=False).changed


def test_the_repository_of_another_release_is_replaced(source: PackageSource, tmp_path: pathlib.Path) -> None:
    old = URL.replace("rhel9", "rhel8")
    write(tmp_path, "/etc/yum.repos.d/cuda-rhel8.repo", f"[cuda-rhel8]\nbaseurl={old}/\n")
    assert source.set(wish(), check=True).removed == []
    outcome = source.set(wish(replaces=(old,)), check=False)
    assert outcome.removed == ["/etc/yum.repos.d/cuda-rhel8.repo"]
    assert repo_files.named((tmp_path / "etc/yum.repos.d/cuda-rhel8.repo").read_text()) == []


@pytest.mark.parametrize(("changed", "words"), [
    ({"content": CONTENT.replace("gpgcheck=1", "gpgcheck=0")}, "gpgcheck=0.*switches signature checks off"),
    ({"content": CONTENT + "sslverify=0\n"}, "sslverify=0.*lets anybody answer"),
    ({"content": "[x]\nname=x\n"}, "names no repository"),
    ({"content": CONTENT.replace(KEY, "/elsewhere")}, "has no gpgkey=file:///etc/pki"),
    ({"path": "/etc/apt/x.repo"}, r"\.repo files lie in /etc/yum\.repos\.d or /etc/zypp/repos\.d"),
    ({"path": "/etc/yum.repos.d/x.txt"}, r"\.sources .*\.repo"),
])
def test_what_would_weaken_the_host_is_refused(source: PackageSource, tmp_path: pathlib.Path,
                                               changed: dict[str, Any], words: str) -> None:
    before = snapshot(tmp_path)
    with pytest.raises(SourceError, match=words):
        source.set(wish(**changed), check=False)
    assert snapshot(tmp_path) == before


def test_signed_metadata_alone_is_enough() -> None:
    assert repo_files.fault(CONTENT.replace("gpgcheck=1", "gpgcheck=0\nrepo_gpgcheck=1"), PATH) is None
