# SPDX-License-Identifier: GPL-3.0-or-later
"""What dpkg, DKMS, GRUB and modinfo themselves say of a host whose kernel was brought in."""

from __future__ import annotations

import json
from typing import Any

OLD, NEW = "6.1.0-47-amd64", "6.1.0-57-amd64"


def test_the_new_kernel_is_whole_and_held(host: Any) -> None:
    held = host.check_output("apt-mark showhold").split()
    for name in (f"linux-image-{NEW}", f"linux-headers-{NEW}", "linux-image-amd64", "linux-headers-amd64"):
        assert host.package(name).is_installed and name in held
    assert host.package("linux-image-amd64").version.startswith("6.1.192")
    for name in ("vmlinuz", "initrd.img"):
        assert host.file(f"/boot/{name}-{NEW}").size > 1_000_000
    assert host.check_output("dpkg --audit") == ""


def test_its_module_is_the_proved_one(host: Any) -> None:
    assert f"{NEW}, x86_64: installed" in host.check_output("dkms status nvidia-current")
    told = host.check_output(f"modinfo -k {NEW} nvidia-current")
    assert f"vermagic:       {NEW} " in told and "535.309.01" in told
    state = json.loads(host.check_output("cat /var/lib/baremetal-nvidia/state.json"))
    assert state["proved_kernels"][NEW]["driver"] == "535.309.01"


def test_the_other_module_of_the_host_came_with_it(host: Any) -> None:
    assert f"{NEW}, x86_64: installed" in host.check_output("dkms status gdrdrv")
    assert f"vermagic:       {NEW} " in host.check_output(f"modinfo -k {NEW} gdrdrv")


def test_the_default_stays_and_the_new_kernel_has_its_entry(host: Any) -> None:
    saved = host.check_output("grub-editenv /boot/grub/grubenv list")
    assert f"gnulinux-{OLD}-advanced" in saved and "next_entry" not in saved
    assert f"gnulinux-{NEW}-advanced" in host.check_output("cat /boot/grub/grub.cfg")


def test_nothing_is_left_of_the_way(host: Any) -> None:
    ours = "baremetal-nvidia"
    for path in (f"/var/lib/{ours}/stage.json", f"/boot/.{ours}-stage", f"/var/lib/{ours}/stage-bin"):
        assert not host.file(path).exists
    state = json.loads(host.check_output("cat /var/lib/baremetal-nvidia/state.json"))
    assert state["open"] is None and state["lease"] is None
    assert f"linux-image-{NEW}" in state["holds"]["kernel"]
    assert host.check_output(f"ls /etc/dkms | grep -c {NEW} || true") == "0"
