# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that watches a trial boot, run by sh in a tree of its own with stand-ins for what it calls."""
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot import trial_files
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot.trial_program import PROGRAM
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import trial
from grub_host import ENTRY, NEW, OLD, block, put, write_block

SHELL = shutil.which("dash") or "/bin/sh"
# real tools that it needs beside the stand-ins
TOOLS = ("cat", "cp", "cut", "date", "dd", "grep", "head", "mv", "printf", "rm", "sed", "sync", "tr", "wc")
EDITENV = r"""#!/bin/sh
[ -e "$0.fails" ] && { echo "cannot write" >&2; exit 1; }
head -n 1 "$1" 2>/dev/null | grep -q '^# GRUB Environment Block$' || { echo "invalid environment block" >&2; exit 1; }
case $2 in
    list) sed 1d "$1" | tr -d '#' | grep = ;;
    unset)
        [ -e "$0.lies" ] && exit 0
        { head -n 1 "$1"; sed 1d "$1" | tr -d '#' | grep = | grep -v "^$3="; } >"$1.t"
        size=$(wc -c <"$1.t")
        head -c $((1024 - size)) /dev/zero | tr '\0' '#' >>"$1.t"
        cat "$1.t" >"$1"; rm "$1.t" ;;
esac
exit 0
"""
MODINFO = r"""#!/bin/sh
case "$*" in
    *vermagic*) cat "$ROOT/vermagic" 2>/dev/null || { echo "modinfo: ERROR: Module nvidia not found." >&2; exit 1; } ;;
    *version*) cat "$ROOT/version" ;;
esac
"""
MODPROBE = r"""#!/bin/sh
echo "modprobe $*" >>"$ROOT/calls"
[ ! -e "$ROOT/modprobe.hangs" ] || exec /bin/sleep 1000
if [ -e "$ROOT/modprobe.says" ]; then cat "$ROOT/modprobe.says" >&2; exit 1; fi
/bin/mkdir -p "$ROOT/sys/module/nvidia"
cat "$ROOT/version" >"$ROOT/sys/module/nvidia/version"
"""
SYSTEMCTL = r"""#!/bin/sh
echo "systemctl $*" >>"$ROOT/calls"
case "$*" in *is-active*) [ -e "$ROOT/booted" ] ;; esac
"""
SLEEP = r"""#!/bin/sh
echo "sleep $*" >>"$ROOT/slept"
read -r up rest <"$ROOT/proc/uptime"
echo "$((${up%.*} + $1)).00 1.00" >"$ROOT/proc/uptime"
[ "$1" -gt 1 ] || exec /bin/sleep 0.02
"""
ENODEV = "modprobe: ERROR: could not insert 'nvidia': No such device\n"
AT = "2026-11-30T04:00:00Z"


class Host:
    """A host on which a trial was armed, and which then restarted into the kernel on trial."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root, self.shims = root, root / "shims"
        for name, text in (("grub-editenv", EDITENV), ("modinfo", MODINFO), ("modprobe", MODPROBE), ("sleep", SLEEP),
                           ("systemctl", SYSTEMCTL), ("uname", f"#!/bin/sh\ncat {root}/running\n")):
            put(root, f"shims/{name}", text).chmod(0o755)
        for name in TOOLS:
            os.symlink(str(shutil.which(name)), self.shims / name)
        put(root, "kernel-trial", PROGRAM)
        for path, text in (("running", NEW), ("vermagic", f"{NEW} SMP mod_unload\n"), ("version", "535.261.03\n"),
                           ("booted", ""), ("calls", ""), ("proc/uptime", "20.50 30.00\n"),
                           ("proc/sys/kernel/random/boot_id", "two\n"), ("proc/sysrq-trigger", ""), ("run/x", "")):
            put(root, path, text)
        (root / "boot/grub").mkdir(parents=True)
        self.set_env(saved_entry=ENTRY)
        self.arm()

    def arm(self, **more: object) -> None:
        asked = {"release": NEW, "former": OLD, "at": AT, "boot_id": "one", "module": "nvidia-current", "timeout": 60,
                 "version": "535.261.03", "route": False, "fallback_reboot": False, **more}
        put(self.root, "var/lib/baremetal-nvidia/trial.conf",
            trial_files.conf(asked, "/boot/grub/grubenv", "grub-editenv"))

    def set_env(self, **values: str) -> None:
        write_block(self.root / "boot/grub/grubenv", values)

    @property
    def env(self) -> dict[str, str]:
        raw = (self.root / "boot/grub/grubenv").read_bytes()
        assert len(raw) == 1024
        return {key: value.rstrip("#") for key, value in block(self.root / "boot/grub/grubenv").items()}

    def run(self, verb: str) -> int:
        env = {"BAREMETAL_NVIDIA_ROOT": str(self.root), "BAREMETAL_NVIDIA_PATH": str(self.shims),
               "ROOT": str(self.root), "PATH": os.environ["PATH"]}
        done = subprocess.run([SHELL, str(self.root / "kernel-trial"), verb], env=env, capture_output=True, text=True,
                              timeout=60, check=False)
        self.said = done.stdout + done.stderr
        return done.returncode

    def result(self) -> dict[str, str]:
        path = self.root / "var/lib/baremetal-nvidia/trial"
        return trial.result(path.read_text()) if path.exists() else {}

    def boot(self) -> dict[str, str]:
        """Both units, one after the other."""
        self.run("early")
        self.run("judge")
        return self.result()

    def calls(self) -> str:
        return (self.root / "calls").read_text()


@pytest.fixture
def host(tmp_path: pathlib.Path) -> Host:
    return Host(tmp_path)


def test_healthy(host: Host) -> None:
    said = host.boot()
    keys = ("PHASE", "REASON", "BOOTED", "BOOT_ID", "AT")
    assert tuple(said[key] for key in keys) == ("healthy", "", NEW, "two", AT)
    assert "modprobe nvidia-current" in host.calls() and "reboot" not in host.calls()
    assert sorted(path.name for path in (host.root / "var/lib/baremetal-nvidia").iterdir()) == ["trial", "trial.conf"]


def test_nothing_without_a_trial(host: Host) -> None:
    (host.root / "var/lib/baremetal-nvidia/trial.conf").unlink()
    assert host.boot() == {} and host.calls() == ""


def test_nothing_in_the_boot_that_armed_it(host: Host) -> None:
    put(host.root, "proc/sys/kernel/random/boot_id", "one\n")
    host.set_env(saved_entry=ENTRY, next_entry="x")
    assert host.boot() == {} and host.env["next_entry"] == "x"


def test_an_unknown_verb(host: Host) -> None:
    assert host.run("later") == 64 and "usage" in host.said


# next_entry


@pytest.mark.parametrize("running", [NEW, OLD])
def test_early_clears_next_entry_whatever_came_up(host: Host, running: str) -> None:
    put(host.root, "running", running)
    host.set_env(saved_entry=ENTRY, next_entry="baremetal-nvidia-trial-x")
    assert host.run("early") == 0
    assert host.env == {"saved_entry": ENTRY}
    assert [path.name for path in (host.root / "boot/grub").iterdir()] == ["grubenv"]


def test_early_needs_no_room_on_boot(host: Host) -> None:
    host.set_env(saved_entry=ENTRY, next_entry="x")
    block_of = host.root / "boot/grub/grubenv"
    inode = block_of.stat().st_ino
    assert host.run("early") == 0 and host.env == {"saved_entry": ENTRY}
    assert block_of.stat().st_ino == inode and block_of.stat().st_size == 1024, "in its place"


def test_a_block_of_another_size_is_not_written(host: Host) -> None:
    """grub-editenv that makes another block of it: what is there stays, and that is a failure."""
    host.set_env(saved_entry=ENTRY, next_entry="x")
    put(host.root, "shims/grub-editenv", EDITENV.replace("1024", "1000")).chmod(0o755)
    assert host.run("early") == 1 and host.env == {"saved_entry": ENTRY, "next_entry": "x"}


def test_next_entry_that_does_not_go_away_is_a_failure_and_no_restart(host: Host) -> None:
    host.arm(fallback_reboot=True)
    host.set_env(saved_entry=ENTRY, next_entry="x")
    put(host.root, "shims/grub-editenv.lies", "")
    assert host.run("early") == 1
    said = host.boot()
    assert said["PHASE"] == "failed" and "next_entry cannot be cleared: the next boot starts x again" in said["REASON"]
    assert "reboot" not in host.calls(), "it would only start the trial again"


def test_an_environment_that_cannot_be_read(host: Host) -> None:
    (host.root / "boot/grub/grubenv").write_bytes(b"")
    said = host.boot()
    assert said["PHASE"] == "failed" and "environment of GRUB cannot be read" in said["REASON"]


# another kernel came up


@pytest.mark.parametrize("phase, words", [
    (None, "booted 6.1.0-47-amd64 instead: 6.1.0-50-amd64 did not come up (panic, hang or power cycle)"),
    ("booted", "was cut off before it was judged"),
    ("healthy", "was healthy, but not made the default"),
])
def test_falling_back_is_recognised(host: Host, phase: str | None, words: str) -> None:
    put(host.root, "running", OLD)
    if phase:
        put(host.root, "var/lib/baremetal-nvidia/trial", f"AT={AT}\nPHASE={phase}\nBOOT_ID=two\n")
    put(host.root, "proc/sys/kernel/random/boot_id", "three\n")
    said = host.boot()
    assert said["PHASE"] == "failed" and words in said["REASON"] and said["BOOTED"] == OLD
    assert "modprobe" not in host.calls()


def test_the_first_reason_stays(host: Host) -> None:
    put(host.root, "modprobe.says", "modprobe: ERROR: could not insert 'nvidia': Unknown symbol in module\n")
    first = host.boot()
    put(host.root, "running", OLD)
    put(host.root, "proc/sys/kernel/random/boot_id", "three\n")
    assert host.boot() == first and "Unknown symbol" in first["REASON"]


def test_what_an_earlier_trial_said_does_not_count(host: Host) -> None:
    put(host.root, "var/lib/baremetal-nvidia/trial",
        "AT=2026-11-29T00:00:00Z\nPHASE=failed\nREASON=old\nBOOT_ID=zero\n")
    assert host.boot()["PHASE"] == "healthy"


# the module


@pytest.mark.parametrize("change, words", [
    ({"vermagic": None}, "no module nvidia-current for 6.1.0-50-amd64: modinfo: ERROR: Module nvidia not found"),
    ({"vermagic": f"{OLD} SMP\n"}, "module nvidia-current was built for 6.1.0-47-amd64"),
    ({"version": "550.1\n"}, "module nvidia-current is version 550.1 and not 535.261.03"),
    ({"modprobe.says": "modprobe: ERROR: could not insert 'nvidia_current': Exec format error\n"}, "Exec format error"),
    ({"modprobe.says": "modprobe: FATAL: Module nvidia-current not found in directory /lib\n"}, "not found in"),
    ({"sys/module/nvidia/version": "470.1\n"}, "module nvidia is loaded in version 470.1 and not 535.261.03"),
])
def test_a_module_that_does_not_fit(host: Host, change: dict[str, str | None], words: str) -> None:
    for path, text in change.items():
        if text is None:
            (host.root / path).unlink()
        else:
            put(host.root, path, text)
    said = host.boot()
    assert said["PHASE"] == "failed" and words in said["REASON"]
    assert (host.root / "slept").read_text().count("sleep 5") == 2, "what is wrong three times stays wrong"


def test_no_device_and_none_on_the_bus_is_a_module_that_fits(host: Host) -> None:
    put(host.root, "modprobe.says", ENODEV)
    assert host.boot()["PHASE"] == "healthy"


def test_no_device_beside_a_gpu_is_a_failure(host: Host) -> None:
    put(host.root, "modprobe.says", ENODEV)
    put(host.root, "sys/bus/pci/devices/0000:3b:00.0/vendor", "0x10de\n")
    put(host.root, "sys/bus/pci/devices/0000:3b:00.0/class", "0x030200\n")
    said = host.boot()
    assert said["PHASE"] == "failed" and "does not take the GPU of this host" in said["REASON"]
    # the kernel's own list has the last word
    (host.root / "var/lib/baremetal-nvidia/trial").unlink()
    put(host.root, "proc/bus/pci/devices", "0008\t80861237\t0\n")
    assert host.boot()["PHASE"] == "healthy"


def test_a_loaded_module_is_not_loaded_again(host: Host) -> None:
    put(host.root, "sys/module/nvidia/version", "535.261.03\n")
    assert host.boot()["PHASE"] == "healthy" and "modprobe" not in host.calls()


def test_any_version_will_do_where_none_is_asked(host: Host) -> None:
    host.arm(version=None)
    put(host.root, "version", "1.2.3\n")
    assert host.boot()["PHASE"] == "healthy"


def test_a_modprobe_that_hangs_does_not_hang_the_judge(host: Host) -> None:
    put(host.root, "modprobe.hangs", "")
    put(host.root, "proc/uptime", "50.00 1.00\n")
    said = host.boot()
    assert said["PHASE"] == "failed" and "modprobe nvidia-current did not end in time (after 60 s)" in said["REASON"]


# the host


def test_a_host_that_does_not_finish_booting(host: Host) -> None:
    (host.root / "booted").unlink()
    said = host.boot()
    assert said["PHASE"] == "failed" and said["REASON"] == "the host has not finished booting (after 60 s)"
    assert "modprobe" not in host.calls(), "nothing is loaded before the host has loaded its own"


ROUTES = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\n"
ROUTE6 = "{} 00 {} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 {}\n"


@pytest.mark.parametrize("route, route6, phase", [
    (ROUTES, "", "failed"),
    (ROUTES + "eth0\t0002000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\n", "", "failed"),
    (ROUTES + "eth0\t00000000\t0202000A\t0003\t0\t0\t0\t00000000\t0\n", "", "healthy"),
    (ROUTES, ROUTE6.format("0" * 32, "0" * 32, "      lo"), "failed"),
    (ROUTES, ROUTE6.format("0" * 32, "0" * 32, "    eth0"), "healthy"),
    (None, None, "failed"),
])
def test_a_host_without_network(host: Host, route: str | None, route6: str | None, phase: str) -> None:
    host.arm(route=True)
    if route is not None and route6 is not None:
        put(host.root, "proc/net/route", route)
        put(host.root, "proc/net/ipv6_route", route6)
    said = host.boot()
    assert said["PHASE"] == phase
    assert said["REASON"] == ("" if phase == "healthy" else "there is no default route (after 60 s)")


# going back


def test_a_failed_trial_restarts_the_host_where_that_is_wanted(host: Host) -> None:
    host.arm(fallback_reboot=True)
    (host.root / "vermagic").unlink()
    assert host.boot()["PHASE"] == "failed"
    calls = [line for line in host.calls().splitlines() if "reboot" in line]
    assert calls == ["systemctl --no-block reboot", "systemctl reboot --force"]
    assert (host.root / "proc/sysrq-trigger").read_text() == "b\n", "the last resort, if nothing else restarts it"


def test_it_stays_where_it_is_not_wanted(host: Host) -> None:
    (host.root / "vermagic").unlink()
    assert host.boot()["PHASE"] == "failed" and "reboot" not in host.calls()


def test_it_does_not_restart_into_another_trial(host: Host) -> None:
    """Somebody set next_entry while the trial was judged."""
    host.arm(fallback_reboot=True)
    (host.root / "vermagic").unlink()
    host.run("early")
    host.set_env(saved_entry=ENTRY, next_entry="x")
    host.run("judge")
    assert "not restarted, as next_entry is still set" in host.result()["REASON"] and "reboot" not in host.calls()


def test_a_result_that_cannot_be_written_does_not_keep_it_from_going_back(host: Host) -> None:
    host.arm(fallback_reboot=True)
    (host.root / "vermagic").unlink()
    (host.shims / "mv").unlink()
    assert host.boot() == {} and "systemctl --no-block reboot" in host.calls()


def test_a_judged_trial_is_not_judged_again(host: Host) -> None:
    host.boot()
    (host.root / "vermagic").unlink()
    host.run("judge")
    assert host.result()["PHASE"] == "healthy"


# the texts


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_shellcheck(tmp_path: pathlib.Path) -> None:
    path = put(tmp_path, "kernel-trial", PROGRAM)
    done = subprocess.run(["shellcheck", "-s", "sh", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_takes_the_units(tmp_path: pathlib.Path) -> None:
    for name, text in trial_files.units("/boot/grub/grubenv").items():
        put(tmp_path, name, text)
    put(tmp_path, "zz.conf", trial_files.watchdog())
    paths = [str(tmp_path / name) for name in (trial_files.EARLY, trial_files.JUDGE)]
    done = subprocess.run(["systemd-analyze", "verify", *paths], capture_output=True, text=True, check=False)
    ours = [line for line in done.stderr.splitlines() if "baremetal-nvidia" in line]
    assert ours == [], ours


def test_the_units_start_without_anything_but_file_systems() -> None:
    units = trial_files.units("/boot/efi/EFI/rocky/grubenv")
    for text in units.values():
        assert "DefaultDependencies=no\n" in text and "WantedBy=sysinit.target\n" in text
        assert "\nRequiresMountsFor=/boot/efi/EFI/rocky /var/lib/baremetal-nvidia /usr/local/lib/baremet" in text
        assert "ConditionPathExists=/var/lib/baremetal-nvidia/trial.conf\n" in text
    assert "Before=sysinit.target grub-common.service" in units[trial_files.EARLY]
    assert f"After=systemd-remount-fs.service {trial_files.EARLY}\n" in units[trial_files.JUDGE]
