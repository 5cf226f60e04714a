# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that a trial boot needs on the host: the program, its two units, what it is told, the watchdog."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..managed_files import STATE_DIRECTORY, TRIAL_CONF, TRIAL_RESULT
from .trial_program import PROGRAM

PROGRAM_PATH = "/usr/local/lib/baremetal-nvidia/kernel-trial"
UNIT_DIRECTORY = "/etc/systemd/system"
EARLY, JUDGE = "baremetal-nvidia-trial-early.service", "baremetal-nvidia-trial.service"
WATCHDOG_PATH = "/etc/systemd/system.conf.d/zz-baremetal-nvidia-trial.conf"
WATCHDOG_SECONDS = 120
_WANTED_BY = "sysinit.target.wants"

# No daemon-reload is needed, as both are read at the next boot (a reload takes the GPUs from some running containers).
# The program is given to sh: on systems with SELinux a file below /usr/local/lib is not executable by systemd.
_UNIT = """\
# Managed by baremetal.nvidia (module boot_once): is there only while a trial boot of a kernel is open.
[Unit]
Description={description}
DefaultDependencies=no
ConditionPathExists={conf}
RequiresMountsFor={mounts}
After=systemd-remount-fs.service{after}
Before={before}shutdown.target
Conflicts=shutdown.target
{more}
[Service]
Type={type}
ExecStart=/bin/sh {program} {verb}
{service}
[Install]
WantedBy=sysinit.target
"""


@dataclass(frozen=True)
class TrialFile:
    """One file, or with ``link`` one symbolic link, that is there while a trial is open."""

    path: str
    content: str = ""
    mode: int = 0o644
    link: str | None = None


def units(grubenv: str) -> dict[str, str]:
    """Both units by name. ``grubenv``: the environment block, whose file system has to be there."""
    mounts = " ".join(dict.fromkeys((grubenv.rsplit("/", 1)[0], STATE_DIRECTORY, PROGRAM_PATH.rsplit("/", 1)[0])))
    common = {"conf": TRIAL_CONF, "mounts": mounts, "program": PROGRAM_PATH}
    return {
        # before anything of GRUB's own touches the block
        EARLY: _UNIT.format(description="Trial boot of a kernel: clear next_entry", after="", verb="early",
                            before="sysinit.target grub-common.service grub-initrd-fallback.service ", more="",
                            type="oneshot", service="RemainAfterExit=yes\n", **common),
        # wanted that early and bound to nothing, so that it also judges a boot that ends in emergency mode
        JUDGE: _UNIT.format(description="Trial boot of a kernel: judge it", after=f" {EARLY}", verb="judge", before="",
                            more="IgnoreOnIsolate=yes\n", type="simple", service="TimeoutStopSec=10\n", **common),
    }


def conf(trial: Mapping[str, object], grubenv: str, editenv: str) -> str:
    """What the program is told, as lines KEY=value."""
    rows = {"AT": trial["at"], "RELEASE": trial["release"], "FORMER": trial["former"], "MODULE": trial["module"],
            "VERSION": trial["version"] or "", "TIMEOUT": trial["timeout"], "ROUTE": _yes(trial["route"]),
            "FALLBACK_REBOOT": _yes(trial["fallback_reboot"]), "GRUBENV": grubenv, "EDITENV": editenv,
            "BOOT_ID": trial["boot_id"]}
    return "".join(f"{key}={value}\n" for key, value in rows.items())


def _yes(value: object) -> str:
    return "yes" if value else "no"


def watchdog() -> str:
    """The drop-in by which systemd feeds the hardware watchdog, and a hang ends in a reset."""
    return ("# Managed by baremetal.nvidia (module boot_once): is there only while a trial boot of a kernel is open.\n"
            f"[Manager]\nRuntimeWatchdogSec={WATCHDOG_SECONDS}\n")


def wanted(trial: Mapping[str, object], grubenv: str, editenv: str) -> list[TrialFile]:
    """All files of a trial, in the order in which they are written; they are removed the other way round."""
    files = [TrialFile(PROGRAM_PATH, PROGRAM, 0o755), TrialFile(TRIAL_CONF, conf(trial, grubenv, editenv), 0o600)]
    if trial["watchdog"]:
        files.append(TrialFile(WATCHDOG_PATH, watchdog()))
    for name, text in units(grubenv).items():
        files.append(TrialFile(f"{UNIT_DIRECTORY}/{name}", text))
        files.append(TrialFile(f"{UNIT_DIRECTORY}/{_WANTED_BY}/{name}", link=f"../{name}"))
    return files


def all_paths() -> list[str]:
    """Every path that a trial may have left, the units' links first."""
    names = (EARLY, JUDGE)
    return [*(f"{UNIT_DIRECTORY}/{_WANTED_BY}/{name}" for name in names),
            *(f"{UNIT_DIRECTORY}/{name}" for name in names),
            WATCHDOG_PATH, PROGRAM_PATH, TRIAL_CONF, TRIAL_RESULT, TRIAL_RESULT + ".new"]
