# SPDX-License-Identifier: GPL-3.0-or-later
"""Initial ramdisks and the driver: what a host loads from its image is the module that is installed."""

from __future__ import annotations

import gzip
import pathlib

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.initramfs import Initramfs, InitrdError
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result
from facts_helpers import cpio, module

REL = "6.1.0-50-amd64"
BASE = "kernel/fs/ext4/ext4.ko"
IN_IT = f"usr/lib/modules/{REL}/updates/dkms/nvidia-current.ko"


def image(version=None, license="NVIDIA"):
    files = {f"usr/lib/modules/{REL}/{BASE}": "x", "init": "x"}
    return gzip.compress(cpio({**files, **({IN_IT: module(REL, version, license)} if version else {})}))


@pytest.fixture
def debian(host):
    """A host with driver 550 on disk, and what mkinitramfs writes there next."""
    host.put("/usr/sbin/mkinitramfs")
    host.put(f"/boot/vmlinuz-{REL}", "k")
    host.put(f"/lib/modules/{REL}/modules.dep", f"{BASE}:\nupdates/dkms/nvidia-current.ko:\n")
    host.put(f"/lib/modules/{REL}/updates/dkms/nvidia-current.ko", module(REL, "550.163.01"))
    host.put(f"/boot/initrd.img-{REL}", image("550.163.01"))
    host.next = image("550.163.01")
    return host


def rebuild(host, driver_as_installed=True):
    def build(argv, **_options):
        with open(argv[2], "wb") as handle:
            handle.write(host.next)
        return Result(0)

    images = Initramfs(build, str(host.root), driver_as_installed=driver_as_installed)
    return images.rebuild([REL], ["nouveau"], False, False)


@pytest.mark.parametrize(
    ("former", "reason"),
    [
        (image("535.261.03"), "it holds nvidia 535.261.03 proprietary, installed is 550.163.01 proprietary"),
        (image("550.163.01", "Dual MIT/GPL"), "it holds nvidia 550.163.01 open, installed is 550.163.01 proprietary"),
    ],
)
def test_a_former_module_goes(debian, former, reason):
    debian.put(f"/boot/initrd.img-{REL}", former)
    assert not rebuild(debian, driver_as_installed=False).changed
    outcome = rebuild(debian)
    assert [(one.changed, one.reason) for one in outcome.results] == [(True, reason)]
    assert debian.path(f"/boot/initrd.img-{REL}").read_bytes() == debian.next
    assert pathlib.Path(outcome.results[0].kept).read_bytes() == former
    assert not rebuild(debian).changed


def test_a_module_of_a_driver_that_is_gone_goes(debian):
    debian.path(f"/lib/modules/{REL}/updates/dkms/nvidia-current.ko").unlink()
    debian.next = image()
    assert "installed is none" in rebuild(debian).results[0].reason


@pytest.mark.parametrize("version", [None, "550.163.01"])
def test_the_installed_module_and_none_are_good(debian, version):
    debian.put(f"/boot/initrd.img-{REL}", image(version))
    assert not rebuild(debian).changed


def test_an_image_that_is_no_better_never_takes_the_place(debian):
    """A leftover below /lib/modules that the builder prefers."""
    former = image("535.261.03")
    debian.put(f"/boot/initrd.img-{REL}", former)
    debian.next = image("535.261.03")
    with pytest.raises(InitrdError, match=r"no better: it holds nvidia 535.261.03.*former one is in place"):
        rebuild(debian)
    assert debian.path(f"/boot/initrd.img-{REL}").read_bytes() == former


def test_a_module_that_cannot_be_compared_stops_it(debian):
    debian.put(f"/lib/modules/{REL}/updates/dkms/nvidia-current.ko", "broken")
    with pytest.raises(InitrdError, match=r"cannot be read.*former one is in place"):
        rebuild(debian)
