# SPDX-License-Identifier: GPL-3.0-or-later
"""What apt, dpkg and GRUB themselves say of a host whose kernel is held."""

from __future__ import annotations

import json
from typing import Any

import pytest

OTHER_FLAVOURS = ("linux-image-rt-amd64", "linux-image-cloud-amd64")


@pytest.fixture(scope="module")
def kernels(host: Any) -> list[str]:
    """Releases of the installed kernels."""
    found = host.check_output("ls /boot").split()
    return [name[len("vmlinuz-") :] for name in found if name.startswith("vmlinuz-")]


@pytest.fixture(scope="module")
def family(host: Any) -> list[str]:
    """Installed packages that move a kernel."""
    listed = host.check_output("dpkg-query -W -f '${db:Status-Status} ${Package}\\n' 'linux-image-*' 'linux-headers-*'")
    names = [line.split()[1] for line in listed.splitlines() if line.startswith("installed ")]
    return [name for name in names if not name.endswith("-common")]


@pytest.fixture(scope="module")
def state(host: Any) -> dict[str, Any]:
    with host.sudo():
        return dict(json.loads(host.check_output("cat /var/lib/baremetal-nvidia/state.json")))


def test_the_whole_family_is_held_and_the_holds_are_ours(host: Any, family: list[str], state: dict[str, Any]) -> None:
    assert set(host.check_output("apt-mark showhold").split()) >= set(family) and len(family) >= 4
    assert set(state["holds"]["kernel"]) == set(family)


@pytest.mark.parametrize("name", OTHER_FLAVOURS)
def test_other_flavours_have_no_candidate(host: Any, name: str) -> None:
    assert name in host.check_output(f"apt-cache pkgnames {name}").split(), "it does exist"
    result = host.run(f"apt-get -s install {name}")
    assert result.rc == 100 and f"Package '{name}' has no installation candidate" in result.stderr


NEWER = r"""
set -eu
rm -rf /root/newer; mkdir -p /root/newer/repo /root/newer/lists/partial; cd /root/newer
for name in linux-image-amd64 linux-image-99.9.9-amd64; do
    mkdir -p $name/DEBIAN
    printf 'Package: %s\nVersion: 99.9.9-1\nArchitecture: amd64\n' $name >$name/DEBIAN/control
    printf 'Maintainer: Test <test@localhost>\nDescription: test\n' >>$name/DEBIAN/control
done
echo 'Depends: linux-image-99.9.9-amd64' >>linux-image-amd64/DEBIAN/control
for name in linux-image-amd64 linux-image-99.9.9-amd64; do dpkg-deb -b $name repo >/dev/null; done
(cd repo && apt-ftparchive packages . >Packages)
echo 'deb [trusted=yes] file:/root/newer/repo ./' >list
sed 's/^Status: hold /Status: install /' /var/lib/dpkg/status >status
printf 'Dir::Etc::SourceList "/root/newer/list";\nDir::Etc::SourceParts "-";\n' >conf
printf 'Dir::State::Lists "/root/newer/lists";\nDir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n' >>conf
APT_CONFIG=/root/newer/conf apt-get -qq update
"""


@pytest.fixture(scope="module")
def newer(host: Any) -> str:
    """apt with an archive that offers a newer kernel: the start of its command line."""
    with host.sudo():
        host.check_output(f"sh -c '{NEWER.replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))}'")
    return "env APT_CONFIG=/root/newer/conf apt-get -s"


def test_full_upgrade_moves_no_kernel(host: Any, newer: str) -> None:
    with host.sudo():
        held = host.check_output(f"{newer} full-upgrade")
        free = host.check_output(f"{newer} -o Dir::State::status=/root/newer/status full-upgrade")
    assert "Inst linux-image-99.9.9-amd64" in free, "without the holds the newer kernel does come in"
    assert "Inst linux-image" not in held and "linux-image-amd64" in held.split("kept back:")[1]


def test_a_held_kernel_asked_for_by_name_is_refused(host: Any, newer: str) -> None:
    with host.sudo():
        result = host.run(f"{newer} --yes install linux-image-amd64")
    assert result.rc == 100 and "Held packages were changed" in result.stderr


def test_the_guard_refuses_a_kernel_that_is_typed_without_a_hold(host: Any, newer: str, kernels: list[str]) -> None:
    """Not simulated, since apt calls no hook then: refused before dpkg is called."""
    free = "--yes --allow-change-held-packages -o Dir::State::status=/root/newer/status"
    with host.sudo():
        result = host.run(f"{newer.removesuffix(' -s')} {free} install linux-image-amd64")
        log = host.check_output("journalctl -t baremetal-nvidia-guard -o cat --no-pager")
    assert result.rc == 100 and "linux-image-99.9.9-amd64 would be installed" in result.stderr
    assert any(kernel in result.stderr for kernel in kernels) and "baremetal.nvidia.kernel_upgrade" in result.stderr
    assert not host.file("/var/lib/dpkg/info/linux-image-99.9.9-amd64.list").exists
    assert "refused (" in log and "linux-image-99.9.9-amd64" in log


def test_the_guard_lets_one_command_through_and_says_so(host: Any, newer: str) -> None:
    """A stand-in of a kernel comes in for real, and goes again."""
    install = f"{newer.removesuffix(' -s')} --yes install linux-image-99.9.9-amd64"
    once = "/run/baremetal-nvidia/allow-once"
    with host.sudo():
        try:
            host.check_output(f"mkdir -p {once.rpartition('/')[0]} && touch {once}")
            host.check_output(install)
            assert host.package("linux-image-99.9.9-amd64").is_installed and not host.file(once).exists
            host.check_output("dpkg --purge linux-image-99.9.9-amd64")
            assert host.run(install).rc == 100, "the file is used up"
            host.check_output(install.replace("env ", "env BAREMETAL_NVIDIA_ALLOW=1 ", 1))
        finally:
            host.run("dpkg --purge linux-image-99.9.9-amd64")
        log = host.check_output("journalctl -t baremetal-nvidia-guard -o cat --no-pager")
    for way in (f"once by {once} (", "by BAREMETAL_NVIDIA_ALLOW=1 ("):
        assert any(f"let through {way}" in line and "linux-image-99.9.9-amd64" in line for line in log.splitlines())


def test_unattended_upgrades_leave_kernels_alone(host: Any) -> None:
    entries = host.check_output("apt-config dump Unattended-Upgrade::Package-Blacklist")
    for prefix in ("linux-image-", "linux-headers-"):
        assert f'Unattended-Upgrade::Package-Blacklist:: "{prefix}";' in entries


def test_every_kernel_that_stays_has_headers_and_is_marked_manual(host: Any, kernels: list[str]) -> None:
    manual = host.check_output("apt-mark showmanual").split()
    for kernel in kernels:
        assert host.file(f"/lib/modules/{kernel}/build/Makefile").exists
        assert {f"linux-image-{kernel}", f"linux-headers-{kernel}"} <= set(manual)


def test_autoremove_takes_no_kernel(host: Any) -> None:
    text = host.check_output("apt-get -s autoremove --purge")
    assert not [line for line in text.splitlines() if line.startswith(("Remv linux-image", "Purg linux-image"))]


def test_grub_starts_the_planned_kernel_by_its_id(host: Any, kernels: list[str]) -> None:
    with host.sudo():
        saved = host.check_output("grub-editenv /boot/grub/grubenv list").splitlines()
        menu = host.check_output("cat /boot/grub/grub.cfg")
    (entry,) = [line.partition("=")[2] for line in saved if line.startswith("saved_entry=")]
    assert 'set default="${saved_entry}"' in menu
    submenu, _mark, ident = entry.partition(">")
    assert submenu.startswith("gnulinux-advanced-")
    assert any(ident.startswith(f"gnulinux-{kernel}-advanced-") for kernel in kernels)
    assert f"menuentry_id_option '{ident}'" in menu


def test_nothing_is_left_open(state: dict[str, Any]) -> None:
    assert state["open"] is None and state["lease"] is None


def test_files_are_roots_and_readable(host: Any) -> None:
    for path in ("/etc/apt/preferences.d/baremetal-nvidia", "/etc/apt/apt.conf.d/52baremetal-nvidia"):
        file = host.file(path)
        assert (file.user, file.mode) == ("root", 0o644)
    with host.sudo():
        assert host.file("/var/lib/baremetal-nvidia").mode == 0o700
