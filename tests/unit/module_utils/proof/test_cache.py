# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds that are kept: used again when they are what they were, refused when anything about them changed."""

from __future__ import annotations

import pathlib
import shutil
import tarfile

import pytest
from proof_host import KERNEL, Host


@pytest.fixture
def two(tmp_path: pathlib.Path) -> tuple[Host, Host]:
    """Two hosts of one shape over one cache; the first has built."""
    first, second = Host(tmp_path / "a"), Host(tmp_path / "b")
    second.cache = first.cache
    for host in (first, second):
        host.headers()
    first.prover().prove()
    return first, second


def tarball(host: Host) -> pathlib.Path:
    (found,) = host.cache.glob("*.tar.gz")
    return found


def test_the_second_host_of_a_shape_builds_nothing(two: tuple[Host, Host]) -> None:
    first, second = two
    assert second.prover().check_only().kernels[0].how == "cached"
    report = second.prover().prove()
    assert (report.kernels[0].how, first.builds, second.builds) == ("cached", 1, 0)
    name = next((second.root / "etc/dkms").iterdir()).name
    assert (second.root / "etc/dkms" / name).read_text() == (first.root / "etc/dkms" / name).read_text()


@pytest.mark.parametrize("what", ["compiler", "headers", "distribution"])
def test_another_shape_is_built(two: tuple[Host, Host], what: str) -> None:
    _first, second = two
    if what == "compiler":
        second.compiler = "gcc-12 (Debian 12.2.0-99) 12.2.0\n"
    elif what == "headers":
        second.installed[f"linux-headers-{KERNEL}"] = "6.1.176-2"
    else:
        (second.root / "etc/os-release").write_text('ID=debian\nVERSION_ID="13"\n')
    assert second.prover().prove().kernels[0].how == "built"


def test_a_changed_tarball_is_refused_removed_and_built_anew(two: tuple[Host, Host]) -> None:
    _first, second = two
    path = tarball(second)
    path.write_bytes(path.read_bytes()[:-5] + b"xxxxx")
    report = second.prover().prove()
    assert (report.kernels[0].how, second.builds) == ("built", 1)
    assert "its checksum is not the one in its name" in report.notes[0]


def test_a_tarball_with_good_checksum_but_wrong_modules_is_refused(
    two: tuple[Host, Host], tmp_path: pathlib.Path
) -> None:
    """Who can rename a file can also fix its checksum; the modules themselves are looked at all the same."""
    import hashlib

    _first, second = two
    path = tarball(second)
    inside = tmp_path / "inside"
    with tarfile.open(path) as archive:
        # our own archive; the filter that later Pythons want is not known to the first 3.11 releases
        archive.extractall(inside, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    module = inside / "files/nvidia.ko"
    module.write_text(module.read_text().replace(KERNEL, "6.1.0-47-amd64"))
    path.unlink()
    other = tmp_path / "other.tar.gz"
    with tarfile.open(other, "w:gz") as archive:
        for item in (
            "files/nvidia.ko",
            "manifest.json",
            *(f"files/{name.name}" for name in (inside / "files").iterdir() if name != module),
        ):
            archive.add(inside / item, arcname=item)
    shape = path.name.rsplit("_", 1)[0]
    shutil.move(other, second.cache / f"{shape}_{hashlib.sha256(other.read_bytes()).hexdigest()}.tar.gz")
    report = second.prover().prove()
    assert (report.kernels[0].how, second.builds) == ("built", 1)
    assert "was changed after it was proved" in report.notes[0]


def test_a_tarball_that_would_write_outside_is_refused(two: tuple[Host, Host], tmp_path: pathlib.Path) -> None:
    import hashlib

    _first, second = two
    path = tarball(second)
    evil = tmp_path / "evil.tar.gz"
    with tarfile.open(evil, "w:gz") as archive:
        archive.add(second.root / "etc/os-release", arcname="files/../../../evil.ko")
    shape = path.name.rsplit("_", 1)[0]
    path.unlink()
    shutil.move(evil, second.cache / f"{shape}_{hashlib.sha256(evil.read_bytes()).hexdigest()}.tar.gz")
    report = second.prover().prove()
    assert "which no proved build has" in report.notes[0]
    assert report.kernels[0].how == "built"
    assert not list(tmp_path.rglob("evil.ko"))


def test_a_cache_that_others_can_write_is_refused(two: tuple[Host, Host]) -> None:
    _first, second = two
    second.cache.chmod(0o777)
    message = str(second.prover().prove().failed[0].error)
    assert "can be written by others" in message and "0777" in message
    assert second.builds == 0


def test_a_half_written_tarball_is_no_tarball_and_goes_in_time(two: tuple[Host, Host]) -> None:
    import os

    _first, second = two
    path = tarball(second)
    half = second.cache / ".partial-abc"
    path.rename(half)
    os.utime(half, (0, 0))
    report = second.prover().prove()
    assert report.kernels[0].how == "built"
    assert str(half) in report.removed and not half.exists()


def test_no_cache(tmp_path: pathlib.Path) -> None:
    host = Host(tmp_path)
    host.headers()
    assert host.prover(cache_dir=None).prove().kernels[0].how == "built"
    assert not host.cache.exists()


def test_a_host_waits_for_the_build_of_another_and_takes_it(two: tuple[Host, Host]) -> None:
    """The lock of a shape: nobody builds what another host is building."""
    from ansible_collections.baremetal.nvidia.plugins.module_utils.proof import scratch

    _first, second = two
    tarball(second).unlink()
    digest = str(second.prover().check_only().kernels[0].shape)
    with scratch.Lock(str(second.cache / f".lock-{digest}"), 1, "x"):
        report = second.prover(timeout=0.1).prove()
    assert "(same cache_dir) is being done by pid" in str(report.failed[0].error)
    assert second.builds == 0
