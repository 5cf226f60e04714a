# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rebuilds initial ramdisks, one kernel at a time, so that no moment has a kernel without a good one.

Logic of module ``initramfs``: built beside the present image, looked into, synced, then renamed; the former one stays.
"""
from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from . import atomic
from .boot import settle
from .errors import HostError
from .facts import initrd, modprobe
from .facts.context import Context
from .facts.kernel import flavour_of, nvidia_module
from .facts.modinfo import stem
from .facts.tree import Tree
from .packages.base import Runner

OLD_SUFFIX = ".baremetal-nvidia.old"
_BUILD_TIMEOUT = 900.0
_READ_TIMEOUT = 120.0
_HOOKS = "/etc/initramfs/post-update.d"
_PROGRAMS = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
_DRACUT_NAMES = ("initramfs-{}.img", "initrd-{}")  # Red Hat's and SUSE's
_STAYS = "The former one is in place"
# Losing a driver below one of these can leave a host without its root file system.
_NEEDED = ("kernel/drivers/ata/", "kernel/drivers/block/", "kernel/drivers/md/", "kernel/drivers/message/",
           "kernel/drivers/mmc/", "kernel/drivers/nvme/", "kernel/drivers/scsi/", "kernel/drivers/virtio/",
           "kernel/fs/")


class InitrdError(HostError):
    """An initrd cannot be built, or what was built is not good enough; the former one is in place."""


@dataclass
class Rebuilt:
    """What became of one kernel's image. ``reason``: why it is (or would be) rebuilt; None when it is good."""

    kernel: str
    changed: bool = False
    reason: str | None = None
    kept: str | None = None


@dataclass
class Outcome:
    """The whole call; ``skipped_reason`` where there is nothing that could build an image."""

    results: list[Rebuilt] = field(default_factory=list)
    diff: list[dict[str, str]] = field(default_factory=list)
    skipped_reason: str | None = None

    @property
    def changed(self) -> bool:
        """Whether any image was (or would be) replaced."""
        return any(result.changed for result in self.results)


class Initramfs:
    """The images of the tree ``root``, built by initramfs-tools or dracut, whichever is there."""

    def __init__(self, run: Runner, root: str = "/", driver_as_installed: bool = False) -> None:
        """``driver_as_installed``: an nvidia module in an image has to be of the version that is on disk."""
        self.run = run
        self.root = root
        self.driver_as_installed = driver_as_installed

    def _path(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def image(self, kernel: str) -> str:
        """Where the boot loader looks for the image of ``kernel``: as the system names them, if there is none yet."""
        if self.builder() != "dracut":
            return self._path(f"/boot/initrd.img-{kernel}")
        names = [self._path(f"/boot/{name.format(kernel)}") for name in _DRACUT_NAMES]
        there = next((name for name in names if os.path.exists(name)), None)
        return there or names[os.path.isdir(self._path("/etc/zypp"))]

    def builder(self) -> str | None:
        """The program that builds images here."""
        for name in ("mkinitramfs", "dracut", "mkinitcpio"):
            if any(os.path.exists(self._path(f"{folder}/{name}")) for folder in _PROGRAMS):
                return name
        return None

    def _modules(self, kernel: str) -> dict[str, str]:
        """Module name → path below /lib/modules, from modules.dep."""
        text = atomic.read_text(self._path(f"/lib/modules/{kernel}/modules.dep")) or ""
        paths = (line.split(":", 1)[0] for line in text.splitlines())
        return {name: path for path in paths if (name := stem(os.path.basename(path))) is not None}

    def absent(self) -> str | None:
        """Why no image can be built here, or None. Raises InitrdError for a builder that is not known here."""
        name = self.builder()
        if name in ("mkinitramfs", "dracut"):
            return None
        if name is not None:
            raise InitrdError(f"initial ramdisks are built by {name} here, which is not supported: only "
                              "initramfs-tools and dracut are")
        return "no initial ramdisks here: neither initramfs-tools nor dracut is installed"

    def _command(self, kernel: str, new: str, unwanted: list[str]) -> list[str]:
        if self.builder() == "mkinitramfs":
            return ["mkinitramfs", "-o", new, kernel]
        omit = ["--omit-drivers", " ".join(unwanted)] if unwanted else []
        return ["dracut", "--force", *omit, new, kernel]

    def rebuild(self, kernels: Iterable[str], absent: Iterable[str], force: bool, check: bool) -> Outcome:
        """See to it that none of the modules ``absent`` is loaded from the image of any of ``kernels``.

        Raises InitrdError, OSError; images that were done before the failing one stay done.
        """
        wanted, unwanted = list(dict.fromkeys(kernels)), sorted(set(absent))
        reason = self.absent()
        if reason:
            return Outcome(skipped_reason=reason)
        for kernel in wanted:
            if not os.path.exists(self._path(f"/boot/vmlinuz-{kernel}")):
                images = [name for name in os.listdir(self._path("/boot")) if name.startswith("vmlinuz-")]
                there = ", ".join(sorted(name[len("vmlinuz-"):] for name in images)) or "none"
                raise InitrdError(f"kernels has {kernel}, which is not installed; installed: {there}")
        outcome = Outcome()
        for kernel in wanted:
            result = Rebuilt(kernel, reason=self._why(kernel, unwanted, force))
            outcome.results.append(result)
            if result.reason is None:
                continue
            result.changed = True
            title = "/" + os.path.relpath(self.image(kernel), self.root)
            outcome.diff.append({"before_header": title, "after_header": title, "before": f"{result.reason}\n",
                                 "after": "rebuilt\n"})
            if not check:
                result.kept = self._replace(kernel, unwanted)
        return outcome

    def _why(self, kernel: str, unwanted: list[str], force: bool) -> str | None:
        path = self.image(kernel)
        if not os.path.exists(path):
            return "there is none"
        if force:
            return "force was given"
        try:
            content = initrd.inspect(path, _READ_TIMEOUT)
        except ValueError as exc:
            return f"it cannot be read: {exc}"
        loaded = [name for name in unwanted if content.loads(name)]
        return f"it loads {', '.join(loaded)}" if loaded else self._stale(kernel, content)

    def _stale(self, kernel: str, content: initrd.Content) -> str | None:
        """Why the nvidia module in an image is not the installed one; None where it is, or where none is in it."""
        if not self.driver_as_installed or content.driver is None:
            return None
        inside = content.drivers[content.driver] or {}
        tree = Tree(self.root)
        try:
            there = nvidia_module(Context(tree), kernel, modprobe.settings(tree)) or {}
        except (OSError, ValueError) as exc:
            raise InitrdError(f"the nvidia module of {kernel} cannot be read: {exc}. {_STAYS}") from exc
        here = {"version": inside.get("version"), "flavour": flavour_of(inside)}
        if all(here[key] == there.get(key) for key in here):
            return None
        words = [" ".join(str(one.get(key)) for key in here if one.get(key)) for one in (here, there)]
        return f"it holds nvidia {words[0] or 'of no version'}, installed is {words[1] or 'none'}"

    # one image

    def _replace(self, kernel: str, unwanted: list[str]) -> str | None:
        """Build, look into it, put it in place. Returns where the former image is kept."""
        path = self.image(kernel)
        new = os.path.join(os.path.dirname(path), f"{atomic.TMP_PREFIX}{os.path.basename(path)}")
        atomic.remove(new)
        self._room(path)
        try:
            result = self.run(self._command(kernel, new, unwanted), timeout=_BUILD_TIMEOUT)
            if result.timed_out or result.rc != 0:
                words = (result.err or result.out).strip()[-500:] or "no message"
                raise InitrdError(f"building the initrd of {kernel} failed: {words}. {_STAYS}")
            self._look(kernel, path, new, unwanted)
            kept = self._keep(path)
            # the boot loader reads the image without the file system's journal
            settle.swap(new, path, on_host=self.root == "/")
        finally:
            atomic.remove(new)
        self._hooks(kernel, path)
        return kept

    def _room(self, path: str) -> None:
        """Raise InitrdError unless /boot has room for one more image of that size, and a fifth."""
        need = os.path.getsize(path) * 6 // 5 if os.path.exists(path) else 64 * 1024 * 1024
        info = os.statvfs(os.path.dirname(path))
        if info.f_flag & os.ST_RDONLY:
            raise InitrdError("/boot is mounted read-only: no initrd can be replaced. Mount it writable")
        if info.f_bavail * info.f_frsize < need:
            free = info.f_bavail * info.f_frsize // 2**20
            raise InitrdError(f"/boot has {free} MiB free, the new initrd needs {need // 2**20} MiB: make room first")

    def _look(self, kernel: str, path: str, new: str, unwanted: list[str]) -> None:
        """The content check. Raises InitrdError, naming what is wrong."""
        built = f"the initrd that was built for {kernel}"
        try:
            content = initrd.inspect(new, _READ_TIMEOUT)
        except (ValueError, OSError) as exc:
            raise InitrdError(f"{built} cannot be read: {exc}. {_STAYS}") from exc
        known = self._modules(kernel)
        if known and not content.modules:
            raise InitrdError(f"{built} has no kernel module in it. {_STAYS}")
        strange = sorted(content.modules - set(known))
        if known and len(strange) * 2 > len(content.modules):
            raise InitrdError(f"{built} holds modules of another kernel ({strange[0]}, …). {_STAYS}")
        loaded = [name for name in unwanted if content.loads(name)]
        if loaded:
            raise InitrdError(f"{built} still loads {', '.join(loaded)}: block it in /etc/modprobe.d first. {_STAYS}")
        stale = self._stale(kernel, content)
        if stale:
            raise InitrdError(f"{built} is no better: {stale}. Take the other module out of /lib/modules/{kernel}. "
                              f"{_STAYS}")
        lost = self._lost(path, content, known, unwanted)
        if lost:
            raise InitrdError(f"{built} lacks {', '.join(lost[:5])}, which the former one had: the host may not find "
                              f"its root file system. {_STAYS}")

    def _lost(self, path: str, content: initrd.Content, known: dict[str, str], unwanted: list[str]) -> list[str]:
        """Drivers of disks and file systems that the former image had and the new one has not."""
        try:
            former = initrd.inspect(path, _READ_TIMEOUT).modules
        except (OSError, ValueError):
            return []    # there was none, or none that could be read
        gone = former - content.modules - set(unwanted)
        return sorted(name for name in gone if known.get(name, "").startswith(_NEEDED))

    def _keep(self, path: str) -> str | None:
        """Keep the former image under a second name, in one step."""
        if not os.path.exists(path):
            return None
        old, tmp = path + OLD_SUFFIX, path + OLD_SUFFIX + ".new"
        atomic.remove(tmp)
        try:
            os.link(path, tmp)
        except OSError:    # FAT has no hard links
            shutil.copy2(path, tmp)
        atomic.publish(tmp, old)
        atomic.remove(tmp)    # renaming one of two names of the same file does nothing: a run was cut off behind this
        return old

    def _hooks(self, kernel: str, path: str) -> None:
        """What update-initramfs runs for boot loaders that copy the image."""
        with contextlib.suppress(FileNotFoundError):
            if os.listdir(self._path(_HOOKS)):
                argv = ["run-parts", f"--arg={kernel}", f"--arg={path}", self._path(_HOOKS)]
                result = self.run(argv, timeout=_BUILD_TIMEOUT)
                if result.rc != 0:
                    raise InitrdError(f"the initrd of {kernel} is in place, but a boot loader's hook failed: "
                                      f"{result.err.strip()}")


def as_results(outcome: Outcome) -> list[dict[str, Any]]:
    """The module's return value."""
    return [vars(result) for result in outcome.results]
