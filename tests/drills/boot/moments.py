# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power cuts at many random moments of one run: the disk of each moment is kept, and started afterwards."""
from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from .rig import LOGS, Rig, expect, vm_machine


class Moments:
    """A run that brings a kernel in, and what a power cut at some moments of it would have left on the disk."""

    def __init__(self, rig: Rig, upgrade: tuple[str, ...], old: str, new: str, say: Callable[[str], None]) -> None:
        self.rig, self.upgrade, self.old, self.new, self.say = rig, upgrade, old, new, say
        self.folder = LOGS / f"{rig.name}-moments"

    def _keep(self, number: int) -> Path:
        """The disk as a cut leaves it now: QEMU stands still while the file is copied, as if it had been killed.

        What the guest has not written, and what QEMU has not, is in neither of them.
        """
        kept = self.folder / f"{number}.qcow2"
        mains = vm_machine.pid(self.rig.machine)
        if mains is not None:
            os.killpg(mains, signal.SIGSTOP)
        try:
            subprocess.run(["cp", "--sparse=always", str(self.rig.machine.disk), str(kept)], check=True)
        finally:
            if mains is not None:
                os.killpg(mains, signal.SIGCONT)
        return kept

    def taken(self, seed: int, count: int, within: tuple[float, float]) -> list[tuple[float, Path]]:
        """One run to its end, with the disk kept at random moments of it (seconds after its begin)."""
        dice = random.Random(seed)
        moments = sorted(dice.uniform(*within) for _number in range(count))
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        begun, known, kept = time.monotonic(), self.rig.said(), []
        child = self.rig.playing(*self.upgrade)
        try:
            for number, moment in enumerate(moments, 1):
                while child.poll() is None and time.monotonic() - begun < moment:
                    time.sleep(0.02)
                kept.append((time.monotonic() - begun, self._keep(number)))
            expect("the run itself ends well", child.wait(5400) == 0, self.rig.said(known))
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        self.say(f"{len(kept)} moments of seed {seed}, the run took {time.monotonic() - begun:.0f} s")
        return kept

    def started(self, kept: list[tuple[float, Path]], finish: int) -> int:
        """Start each of them: a proved kernel runs; from some, evenly spread, the next run comes to its end."""
        step = max(1, len(kept) // finish) if finish else len(kept) + 1
        ended = 0
        for number, (moment, disk) in enumerate(kept, 1):
            what = f"{moment:.1f} s into the run (number {number})"
            self.rig.cut()
            os.replace(disk, self.rig.machine.disk)
            self.rig.start()
            running = self.rig.proved()
            expect(f"after a cut {what} a proved kernel starts", running in (self.old, self.new), running)
            text = f"cut {what}: {running} started"
            if number % step == 0 and ended < finish:
                code, said = self.rig.play(*self.upgrade)
                expect(f"the run after a cut {what} ends well", code == 0, said)
                expect(f"the run after a cut {what} reaches {self.new}", self.rig.proved() == self.new)
                ended += 1
                text += ", and the next run came to its end"
            self.say(text)
        shutil.rmtree(self.folder, ignore_errors=True)
        return ended
