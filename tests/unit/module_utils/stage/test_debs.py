# SPDX-License-Identifier: GPL-3.0-or-later
"""apt's answers, and packages packed again."""
from __future__ import annotations

import pathlib
import shutil
import subprocess
from collections.abc import Sequence

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result, run
from ansible_collections.baremetal.nvidia.plugins.module_utils.stage.debs import Debs
from ansible_collections.baremetal.nvidia.plugins.module_utils.stage.errors import StageError
from ansible_collections.baremetal.nvidia.plugins.module_utils.stage.rpms import Rpms

SIMULATED = """Reading package lists...
Inst linux-image-6.1.0-57-amd64 (6.1.192-3 Debian-Security:12/oldstable-security [amd64])
Inst linux-image-amd64 [6.1.170-3] (6.1.192-3 Debian-Security:12/oldstable-security [amd64])
Inst linux-kbuild-6.1 [6.1.170-3] (6.1.192-3 Debian-Security:12/oldstable-security [amd64])
Conf linux-image-6.1.0-57-amd64 (6.1.192-3 Debian-Security:12/oldstable-security [amd64])
"""
WANTED = {"linux-image-amd64": "6.1.192-3", "linux-image-6.1.0-57-amd64": None}


def says(text: str, rc: int = 0, err: str = "") -> Debs:
    return Debs(lambda argv, **_more: Result(rc, text, err))


def test_moves_are_apts_own() -> None:
    assert says(SIMULATED).moves(WANTED) == {
        "linux-image-6.1.0-57-amd64": (None, "6.1.192-3"), "linux-image-amd64": ("6.1.170-3", "6.1.192-3"),
        "linux-kbuild-6.1": ("6.1.170-3", "6.1.192-3")}


def test_nothing_is_taken_out_for_a_kernel() -> None:
    with pytest.raises(StageError, match="would remove zfs-dkms"):
        says(SIMULATED + "Remv zfs-dkms [2.1.11-1]\n").moves(WANTED)


def test_no_other_kernel_comes_with_it() -> None:
    with pytest.raises(StageError, match=r"linux-image-6\.1\.0-58-amd64 as well"):
        says(SIMULATED + "Inst linux-image-6.1.0-58-amd64 (6.1.193-1 x [amd64])\n").moves(WANTED)


def test_apts_reason_is_told() -> None:
    with pytest.raises(StageError, match="Unable to locate package"):
        says("", 100, "E: Unable to locate package linux-image-x").moves(WANTED)


def test_states_of_packages() -> None:
    table = "a\t1\tii \nb\t2\thi \nc\t3\tiU \nd\t4\trc \ne\t5\tun \n"
    debs = says(table)
    assert debs.packages() == {"a": "1 i", "b": "2 i", "c": "3 U"}
    assert debs.wrong() == ["c (3 U)"]
    assert debs.installed({"a": "1", "b": "9", "c": "3", "z": None}) == ["b", "c", "z"]


def test_what_a_cut_off_dpkg_left_is_put_right() -> None:
    calls: list[list[str]] = []
    tables = iter(["new\t2\tiU \nmeta\t2\tii \nother\t1\tii \n", "meta\t1\tii \nother\t1\tiU \n"])

    def fake(argv: Sequence[str], **_more: object) -> Result:
        calls.append(list(argv))
        return Result(0, next(tables) if argv[0] == "dpkg-query" else "")

    done = Debs(fake).back({"meta": "1 i", "other": "1 i"}, {"meta": "/proc/self/exe"}, {"new", "meta"})
    dpkg = [call for call in calls if call[0] == "dpkg"]
    assert "-i" in dpkg[0] and "--force-downgrade" in dpkg[0]
    assert dpkg[1][-2:] == ["--purge", "new"] and "--force-remove-reinstreq" in dpkg[1]
    assert dpkg[2][-2:] == ["--configure", "-a"]
    assert done[1:] == ["new is out", "other is configured"]


def test_of_a_debians_packages_those_are_taken_back_that_the_resolver_named_or_that_are_of_the_kernel() -> None:
    now = ("linux-image-6.1.0-57-amd64\t2\tii \nlinux-image-amd64\t2\tii \nlibelf1:amd64\t2\tii \n"
           "linux-modules-6.1.0-57-amd64\t2\tii \npostgresql\t15\tii \nopenssl\t3.0.15\tii \n")
    before = {"linux-image-amd64": "1 i", "libelf1:amd64": "1 i", "openssl": "3.0.14 i"}
    data = {"packages": before, "moved": ["libelf1", "linux-image-6.1.0-57-amd64", "linux-image-amd64"],
            "release": "6.1.0-57-amd64"}
    assert says(now).own(data) == {"libelf1:amd64", "linux-image-6.1.0-57-amd64", "linux-image-amd64",
                                   "linux-modules-6.1.0-57-amd64"}
    calls: list[list[str]] = []

    def fake(argv: Sequence[str], **_more: object) -> Result:
        calls.append(list(argv))
        return Result(0, now if argv[0] == "dpkg-query" else "")

    debs = Debs(fake)
    debs.back(before, {"libelf1": "/proc/self/exe"}, debs.own(data))
    dpkg = [call for call in calls if call[0] == "dpkg"]
    assert dpkg[0][-2:] == ["-i", "/proc/self/exe"], "shared between architectures, known by apt's name"
    assert dpkg[1][-3:] == ["--purge", "linux-image-6.1.0-57-amd64", "linux-modules-6.1.0-57-amd64"]


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not here")
def test_a_package_is_packed_again_from_its_files(tmp_path: pathlib.Path) -> None:
    info = tmp_path / "var/lib/dpkg/info"
    info.mkdir(parents=True)
    (tmp_path / "usr/share/doc/meta").mkdir(parents=True)
    (tmp_path / "usr/share/doc/meta/README").write_text("text")
    (info / "meta.postinst").write_text("#!/bin/sh\nexit 0\n")
    (info / "meta.postinst").chmod(0o755)
    status = ("Package: meta\nStatus: hold ok installed\nVersion: 1.2-3\nArchitecture: all\nMaintainer: x <x@x.org>\n"
              "Depends: base\nConffiles:\n /etc/x 0123\nDescription: a meta\n with two lines\n")
    answers = {"-W": "meta", "--status": status, "-L": "/.\n/usr\n/usr/share/doc/meta\n/usr/share/doc/meta/README\n"}

    def fake(argv: Sequence[str], timeout: float = 10, **more: object) -> Result:
        return Result(0, answers[argv[1]]) if argv[0] == "dpkg-query" else run(list(argv), timeout=timeout)

    into = tmp_path / "kept"
    into.mkdir()
    path = Debs(fake, str(tmp_path)).keep({"meta": ("1.2-3", "2"), "new": (None, "2")}, str(into))
    assert list(path) == ["meta"]
    shown = subprocess.run(["dpkg-deb", "-f", path["meta"]], capture_output=True, text=True, check=True).stdout
    assert "Version: 1.2-3" in shown and "Status" not in shown and "Conffiles" not in shown and "two lines" in shown
    listed = subprocess.run(["dpkg-deb", "-c", path["meta"]], capture_output=True, text=True, check=True).stdout
    assert "./usr/share/doc/meta/README" in listed
    control = subprocess.run(["dpkg-deb", "-I", path["meta"]], capture_output=True, text=True, check=True).stdout
    assert "postinst" in control


def test_rpm_says_what_went_out() -> None:
    before = {"kernel-core-5.14-1.x86_64": "i", "kmod-zfs-2-1.el9.x86_64": "i"}
    assert Rpms.lost(before, {"kernel-core-5.14-2.x86_64": "i"}) == ["kmod-zfs"]


def test_rpm_erases_what_came_in() -> None:
    calls: list[list[str]] = []

    def fake(argv: Sequence[str], **_more: object) -> Result:
        calls.append(list(argv))
        return Result(0, "kernel-core\t5.14-1\tx86_64\t1\nkernel-core\t5.14-2\tx86_64\t2\n" if argv[1] == "-qa" else "")

    done = Rpms(fake, "dnf").back({"kernel-core-5.14-1.x86_64": "i"}, {}, {"kernel-core-5.14-2.x86_64"})
    assert calls[-1] == ["rpm", "-e", "--nodeps", "kernel-core-5.14-2.x86_64"] and len(done) == 1


def test_of_rpms_those_are_taken_back_that_came_or_went_in_the_kernels_transaction() -> None:
    """A person has updated openssl, installed htop and removed the oldest kernel since the run was cut off."""
    before = dict.fromkeys(["kernel-core-5.14-1.x86_64", "kernel-core-5.14-2.x86_64",
                            "linux-firmware-20240101-1.noarch", "openssl-3.0-1.x86_64", "kmod-zfs-2-1.x86_64"], "i")
    rows = [("kernel-core", "5.14-2", "x86_64", 10), ("kernel-core", "5.14-3", "x86_64", 20),
            ("linux-firmware", "20250101-1", "noarch", 20), ("openssl", "3.0-2", "x86_64", 30),
            ("htop", "3-1", "x86_64", 30)]
    calls: list[list[str]] = []

    def fake(argv: Sequence[str], **_more: object) -> Result:
        calls.append(list(argv))
        return Result(0, "".join("\t".join(map(str, row)) + "\n" for row in rows) if argv[1] == "-qa" else "")

    data = {"packages": before, "release": "5.14-3.x86_64", "wanted": {"kernel-core": "5.14-3"}}
    rpms = Rpms(fake, "dnf")
    own = rpms.own(data)
    assert own == {"kernel-core-5.14-3.x86_64", "linux-firmware-20250101-1.noarch", "linux-firmware-20240101-1.noarch",
                   "kmod-zfs-2-1.x86_64"}
    rpms.back(before, {}, own)
    assert calls[-2] == ["rpm", "-e", "--nodeps", "kernel-core-5.14-3.x86_64"]
    assert calls[-1][0] == "dnf" and calls[-1][-2:] == ["kmod-zfs-2-1.x86_64", "linux-firmware-20240101-1.noarch"]
