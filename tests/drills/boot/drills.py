# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drills, one function each: it returns what it saw in one line, and raises DrillError when that is not right."""
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from .cuts import PLACES, Cuts
from .moments import Moments
from .rig import HERE, Rig, differ, expect, said

CONTENT = "older"       # the lab's snapshot that older_kernel.yml leaves behind
OLD = "6.1.0-47-amd64"
UPGRADE = ("playbooks/kernel_upgrade.yml", "-e", "gpu_kernel_policy=gated", "-e", "gpu_reboot_allowed=true",
           "-e", "gpu_kernel_trial_panic=5", "-e", "gpu_kernel_trial_timeout=1800",
           "-e", "gpu_kernel_reboot_timeout=2400", "-e", "gpu_driver_poll=3")


@dataclass
class Wishes:
    """What the command line asks for."""

    seed: int
    cuts: int
    finish: int
    firmware: str
    places: list[str]
    within: tuple[float, float] | None
    say: Callable[[str], None]


def _offered(rig: Rig) -> str:
    """The newest kernel of the archive, which the machine does not have yet."""
    depends = rig.run("apt-cache show linux-image-amd64 | sed -n 's/^Depends: //p' | head -n 1")
    release = depends.split()[0].removeprefix("linux-image-")
    expect("a newer kernel is offered", release not in ("", OLD), depends)
    return release


def _older(rig: Rig, firmware: str) -> str:
    rig.up("--from", CONTENT, "--firmware", firmware)
    expect("the machine starts its older kernel, with a module", rig.proved() == OLD)
    return _offered(rig)


def _staged(rig: Rig, wishes: Wishes) -> str:
    """The newer kernel is brought in and its trial waits for leave: done once, kept for the drills that begin there."""
    label = f"{rig.name}-staged-{wishes.firmware}"
    if label not in rig.labels:
        new = _older(rig, wishes.firmware)
        _code, text = rig.play(*UPGRADE, "-e", "gpu_reboot_allowed=false")
        expect("the trial waits for leave", said(text, [new, "waits for gpu_reboot_allowed"]), text)
        expect(f"{OLD} goes on running", rig.proved() == OLD)
        rig.save(label, new)
        wishes.say(f"{new} is brought in; its trial waits")
    rig.up("--disk", label)
    expect("a machine with a kernel whose trial waits starts the older one", rig.proved() == OLD)
    return rig.labels[label]


def _hook(name: str) -> tuple[str, str]:
    return "-e", f"gpu_drain_tasks={HERE}/tasks/{name}.yml"


def short(rig: Rig, wishes: Wishes) -> str:
    """A kernel that panics before the disk, started once by hand of the modules; armed, then cut off at once."""
    rig.up("--firmware", wishes.firmware)
    default = rig.run("uname -r").strip()
    other = rig.run(f"ls /boot | sed -n 's/^vmlinuz-//p' | grep -v -x -F {default}").split()[0]
    pinned = rig.module("boot_default", release=default)
    expect("the running kernel is made the default", not pinned["failed"], pinned)
    initrd = f"/boot/initrd.img-{other}"
    rig.run("cd /tmp && printf '#!/bin/sh\\nexit 1\\n' >init && chmod 0755 init && "
            f"truncate -s %4096 {initrd} && echo init | cpio --quiet -o -H newc >>{initrd} && sync")
    armed = rig.module("boot_once", release=other, state="armed", panic=5, module="nvidia-current", version="0")
    expect("the other kernel is armed", not armed["failed"], armed)
    before = len(rig.console())
    rig.cut()
    rig.start()
    seen = rig.console()[before:]
    expect("the armed kernel started and panicked", f"Linux version {other}" in seen and "Kernel panic" in seen, seen)
    running = rig.run("uname -r").strip()
    expect("the machine is back on its default by itself", running == default, running)
    env = rig.run("grub-editenv list").splitlines()
    expect("GRUB forgot the trial", not any(line.partition("next_entry=")[2] for line in env), env)
    ended = rig.module("boot_once", state="absent")
    expect("the trial is ended", not ended["failed"], ended)
    return f"{other} was armed, the power cut, it panicked, and {default} came back by itself"


def upgrade(rig: Rig, wishes: Wishes) -> str:
    """A newer kernel is staged, proved, started once, committed; and nothing is left to do."""
    new = _older(rig, wishes.firmware)
    begun = time.monotonic()
    code, text = rig.play(*UPGRADE)
    took = time.monotonic() - begun
    expect("kernel_upgrade.yml ends well", code == 0, text)
    expect(f"{new} runs, with its module", rig.proved() == new)
    before = rig.boot_id()
    rig.run("systemctl reboot", timeout=60)
    rig.back(before)
    expect(f"{new} is the default now", rig.proved() == new)
    code, text = rig.play(*UPGRADE)
    expect("a second run has nothing to do", code == 0 and "changed=0" in text, text)
    return f"{OLD} → {new} in {took:.0f} s; it starts by default; a second run changes nothing"


def nobuild(rig: Rig, wishes: Wishes) -> str:
    """A kernel for which the module cannot be built is refused before any package is touched."""
    rig.up("--from", CONTENT, "--firmware", wishes.firmware)
    rig.copy(HERE / "boot" / "unbuildable.sh", "/run/unbuildable.sh")
    rig.run("sh /run/unbuildable.sh && apt-get update -qq")
    before = rig.state()
    code, text = rig.play(*UPGRADE)
    expect("kernel_upgrade.yml fails", code != 0, text)
    expect("it says that the module does not fit", said(text, ["6.1.0-90-amd64"]) and "does not fit" in text, text)
    expect("the machine is as it was", rig.state() == before, "\n".join(differ(before, rig.state())))
    start = rig.boot_id()
    rig.run("systemctl reboot", timeout=60)
    rig.back(start)
    expect("it starts the older kernel", rig.proved() == OLD)
    return (f"6.1.0-90 was refused: {len(before)} lines about packages, holds, /boot, modules and DKMS are as before, "
            f"and {OLD} starts")


def module(rig: Rig, wishes: Wishes) -> str:
    """A kernel that starts, but whose module is gone: the trial fails, and one reset brings the proved kernel back."""
    new = _staged(rig, wishes)
    code, text = rig.play(*UPGRADE, *_hook("take_module"))
    expect("kernel_upgrade.yml fails", code != 0, text)
    expect("it says that the trial failed and why", said(text, [f"The trial of {new}", "failed"]), text)
    expect(f"{new} is on trial", rig.run("uname -r").strip() == new)
    start = rig.boot_id()
    rig.cut()
    rig.start()
    expect("another start", rig.boot_id() != start)
    expect("after one reset the proved kernel is back", rig.proved() == OLD)
    trial = rig.run("cat /var/lib/baremetal-nvidia/trial*")
    expect("the trial is on record as failed", "failed" in trial, trial)
    return f"{new} came up without its module, the trial failed; after one power cycle {OLD} is back"


def panic(rig: Rig, wishes: Wishes) -> str:
    """A kernel that panics before userspace: the machine is back by itself."""
    new = _staged(rig, wishes)
    code, text = rig.play(*UPGRADE, *_hook("break_init"))
    seen = rig.console()
    expect(f"{new} started and panicked", f"Linux version {new}" in seen and "Kernel panic" in seen, seen)
    expect("kernel_upgrade.yml fails", code != 0, text)
    expect("it says that the host is back on the old kernel", said(text, ["failed", f"it runs {OLD}"]), text)
    expect("the proved kernel runs, by itself", rig.proved() == OLD)
    return f"{new} panicked; the machine restarted by itself into {OLD}, and the run said so"


def cuts(rig: Rig, wishes: Wishes) -> str:
    """Power cuts at named places: each next run has to clear up before it comes further, and the last one ends."""
    case = _cuts(rig, wishes)
    for place in wishes.places:
        wishes.say(case.at(place))
    where = ", ".join(PLACES[place] for place in wishes.places)
    case.finish("at these places")
    return f"cut {where}: a proved kernel each time; the next run came further, and the last one to its end"


def random_cuts(rig: Rig, wishes: Wishes) -> str:
    """Power cuts at random moments of one run: a proved kernel starts from each disk, and the next run finishes."""
    case = _cuts(rig, wishes)
    within = wishes.within
    if within is None:
        within = case.measure()
        wishes.say(f"a run without a cut changes the host from second {within[0]:.0f} to second {within[1]:.0f}")
    moments = Moments(rig, UPGRADE, OLD, case.new, wishes.say)
    kept = moments.taken(wishes.seed, wishes.cuts, within)
    ended = moments.started(kept, wishes.cuts if wishes.finish < 0 else wishes.finish)
    return (f"{len(kept)} cuts of seed {wishes.seed} between {within[0]:.0f} and {within[1]:.0f} s: a proved kernel "
            f"each time; after {ended} of them the next run was made, and came to its end")


def _cuts(rig: Rig, wishes: Wishes) -> Cuts:
    new = _older(rig, wishes.firmware)
    return Cuts(rig, lambda: rig.up("--from", CONTENT, "--firmware", wishes.firmware), UPGRADE, OLD, new)


def layouts(rig: Rig, _wishes: Wishes) -> str:
    """/boot on software RAID and in a volume group: no trial, with the reason, and nothing changes."""
    seen = []
    for layout in ("mdraid", "lvm"):
        rig.up("--layout", layout)
        default = rig.run("uname -r").strip()
        other = rig.run(f"ls /boot | sed -n 's/^vmlinuz-//p' | grep -v -x -F {default}").split()[0]
        before = rig.run("sha256sum /boot/grub/grub.cfg /boot/grub/grubenv")
        refused = rig.module("boot_once", release=other, state="armed", module="nvidia-current", version="0")
        expect(f"a trial is refused on {layout}", refused["failed"], refused)
        word = {"mdraid": "raid", "lvm": "lvm"}[layout]
        expect(f"the reason names {word}", word in refused["msg"].lower(), refused["msg"])
        expect("nothing changed", rig.run("sha256sum /boot/grub/grub.cfg /boot/grub/grubenv") == before)
        seen.append(f"{layout}: {refused['msg'].splitlines()[0]}")
    return "; ".join(seen)


def uefi(rig: Rig, wishes: Wishes) -> str:
    """The same upgrade under UEFI."""
    return upgrade(rig, replace(wishes, firmware="uefi"))


ALL: dict[str, Callable[[Rig, Wishes], str]] = {
    "short": short, "upgrade": upgrade, "nobuild": nobuild, "module": module, "panic": panic, "cuts": cuts,
    "random": random_cuts, "layouts": layouts, "uefi": uefi}
