# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power cuts while a kernel is brought in, at named places; and how long a run without one takes."""
from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable

from .rig import LOGS, Rig, expect

# Says "now" on the machine when something happens: one process that looks often, since starts are slow there.
_WATCH = r"""
import glob, os, sys, time
what, release = sys.argv[1:]
def size(path):
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
def mark(path):
    try:
        found = os.stat(path)
        return found.st_ino, found.st_mtime_ns
    except OSError:
        return None
def dpkg_runs():
    for path in glob.glob('/proc/[0-9]*/comm'):
        try:
            if open(path).read().strip() == 'dpkg':
                return True
        except OSError:
            continue
    return False
log, env = size('/var/log/dpkg.log'), mark('/boot/grub/grubenv')
boot, menu = set(glob.glob('/boot/*')), set(glob.glob('/boot/grub/*'))
main = mark('/boot/grub/grub.cfg')
print('ready', flush=True)
while True:
    if what == 'unpack':
        with open('/var/log/dpkg.log') as stream:
            stream.seek(log)
            if 'status half-installed linux-image-' + release in stream.read():
                time.sleep(1)
                break
    elif what == 'initrd':
        if any('initrd' in path and size(path) for path in set(glob.glob('/boot/*')) - boot):
            break
    elif what == 'menu':
        # the menu that has the new kernel; its former file has a second name while the new one takes its place
        if not os.path.exists('/boot/initrd.img-' + release):
            main = mark('/boot/grub/grub.cfg')
        elif set(glob.glob('/boot/grub/grub.cfg*.old')) - menu or mark('/boot/grub/grub.cfg') != main:
            if dpkg_runs():
                sys.exit(3)
            break
    elif mark('/boot/grub/grubenv') != env:
        break
    time.sleep(0.02)
print('now', flush=True)
"""
_FIRST = "TASK [Take the host's lease]"     # until then a run only reads
PLACES = {"unpack": "inside dpkg's unpack", "initrd": "inside the initrd's write", "menu": "inside grub.cfg's write",
          "env": "inside grubenv's write"}


class Cuts:
    """A machine on which a kernel is brought in, again and again."""

    def __init__(self, rig: Rig, restore: Callable[[], None], upgrade: tuple[str, ...], old: str, new: str) -> None:
        self.rig, self.restore, self.upgrade, self.old, self.new = rig, restore, upgrade, old, new

    def _stop_playing(self, child: subprocess.Popen[bytes]) -> None:
        if child.poll() is None:
            os.killpg(child.pid, 9)
        child.wait()

    def _after(self, what: str) -> str:
        """Switch on and see what came up."""
        self.rig.start()
        running = self.rig.proved()
        expect(f"after a cut {what} a proved kernel starts", running in (self.old, self.new), running)
        return running

    def finish(self, what: str) -> None:
        """The run after a cut ends well, with the new kernel as the default and running."""
        code, text = self.rig.play(*self.upgrade)
        expect(f"the run after a cut {what} ends well", code == 0, text)
        expect(f"the run after a cut {what} reaches {self.new}", self.rig.proved() == self.new)

    def at(self, place: str) -> str:
        """Let a run come as far as a named place, cut there, and see a proved kernel start."""
        watch = LOGS / f"{self.rig.name}-watch.py"
        watch.write_text(_WATCH)
        self.rig.copy(watch, "/run/watch.py")
        eye = self._watching(place)
        child, known = self.rig.playing(*self.upgrade), self.rig.said()
        try:
            end = time.monotonic() + 3600
            while eye.poll() is None:
                expect(f"{PLACES[place]} is reached before the run ends", child.poll() is None, self.rig.said(known))
                expect(f"{PLACES[place]} is reached", time.monotonic() < end)
                time.sleep(0.05)
            expect("grub.cfg stays as it is while packages move", eye.returncode != 3)
            expect("the watcher saw it", eye.returncode == 0)
            self.rig.cut()
        finally:
            eye.kill()
            self._stop_playing(child)
        return f"{PLACES[place]}: cut; {self._after(PLACES[place])} started"

    def _watching(self, place: str) -> subprocess.Popen[bytes]:
        eye = subprocess.Popen([*self.rig.ssh(), f"python3 /run/watch.py {place} {self.new}"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert eye.stdout is not None
        expect("the watcher watches", eye.stdout.readline() == b"ready\n")
        return eye

    def measure(self) -> tuple[float, float]:
        """A run without a cut: after how many seconds it begins to change the host, and after how many it ends."""
        begun, known = time.monotonic(), self.rig.said()
        child, first = self.rig.playing(*self.upgrade), None
        while child.poll() is None:
            time.sleep(0.2)
            if first is None and _FIRST in self.rig.said(known):
                first = time.monotonic() - begun
        expect("a run without a cut ends well", child.returncode == 0 and first is not None, self.rig.said(known))
        took = time.monotonic() - begun
        self.restore()
        return first or 0.0, took
