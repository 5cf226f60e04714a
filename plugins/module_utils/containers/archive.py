# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd from the files that its project publishes: fetched, checked, tried, and only then put in place.

Each program is written beside its place, synced and renamed, so that any moment leaves the old or the new one whole,
and a containerd that runs goes on with the program it was started from. What lies where is kept in a file of its own.
"""
from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import atomic, state
from ..errors import HostError
from ..run import Result

Runner = Callable[..., Result]
Fetch = Callable[[str], bytes]

RECORD = state.DIRECTORY + "/archives.json"
BIN, RUNC, CNI = "/usr/local/bin", "/usr/local/sbin/runc", "/opt/cni/bin"
UNIT = "/etc/systemd/system/containerd.service"
UNIT_PLACES = (UNIT, "/usr/local/lib/systemd/system/containerd.service", "/usr/lib/systemd/system/containerd.service",
               "/lib/systemd/system/containerd.service")
UNIT_TEXT = """# written by the Ansible collection baremetal.nvidia
[Unit]
Description=containerd container runtime
Documentation=https://containerd.io
After=network.target dbus.service

[Service]
Type=notify
ExecStartPre=-/sbin/modprobe overlay
ExecStart=/usr/local/bin/containerd
Restart=always
RestartSec=5
# containers outlive a restart
KillMode=process
Delegate=yes
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
"""
_MOST = 512 * 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class ArchiveError(HostError):
    """A release file cannot be used; the message says which, why and what to do."""


@dataclass(frozen=True)
class Part:
    """A release file: containerd's or CNI's archive, or runc's program."""

    name: str  # containerd|runc|cni
    version: str
    url: str
    sha256: str


@dataclass
class Outcome:
    """What was done, or would be."""

    actions: list[str] = field(default_factory=list)


class Archive:
    """Release files below ``root``."""

    def __init__(self, fetch: Fetch, run: Runner, root: str = "/") -> None:
        self.fetch, self.run, self.root = fetch, run, root

    def __call__(self, parts: list[Part], check: bool) -> Outcome:
        """Bring the host to these parts. Everything is fetched, checked and tried before anything is placed."""
        outcome = Outcome()
        known = self._known()
        due = [part for part in parts if not self._there(part, known.get(part.name))]
        outcome.actions += [f"install {part.name} {part.version} from {part.url}" for part in due]
        unit = any(part.name == "containerd" for part in parts) and not any(
            os.path.lexists(self._real(path)) for path in UNIT_PLACES)
        if unit:
            outcome.actions.append(f"write {UNIT}")
        if check:
            return outcome
        ready = [(part, self._files(part)) for part in due]
        for part, files in ready:
            self._try(part, files)
        for part, files in ready:
            for path, content in files.items():
                atomic.write(self._real(path), content, mode=0o755)
            known[part.name] = {"version": part.version, "sha256": part.sha256,
                                "files": {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}}
            text = json.dumps(known, indent=1, sort_keys=True) + "\n"
            atomic.write(self._real(RECORD), text, mode=0o600, dir_mode=0o700)
        if unit:
            atomic.write(self._real(UNIT), UNIT_TEXT)
        if (unit or self._asleep(parts)) and os.path.isdir(self._real("/run/systemd/system")):
            # no reload of systemd's units: it finds a unit that it did not know by itself
            result = self.run(["systemctl", "--no-reload", "enable", "containerd.service"], timeout=30)
            if not result.ok:
                raise ArchiveError(result.why("systemctl enable containerd.service"))
        return outcome

    def _asleep(self, parts: list[Part]) -> bool:
        """Whether our own unit is there and a cut-off run did not enable it."""
        link = self._real("/etc/systemd/system/multi-user.target.wants/containerd.service")
        return any(part.name == "containerd" for part in parts) and os.path.lexists(self._real(UNIT)) and (
            not os.path.lexists(link))

    def _there(self, part: Part, known: Any) -> bool:
        if not isinstance(known, Mapping) or known.get("sha256") != part.sha256 or not known.get("files"):
            return False
        for path, digest in known["files"].items():
            try:
                with open(self._real(path), "rb") as handle:
                    if hashlib.sha256(handle.read()).hexdigest() != digest:
                        return False
            except OSError:
                return False
        return True

    def _files(self, part: Part) -> dict[str, bytes]:
        try:
            data = self.fetch(part.url)
        except (OSError, ValueError) as error:
            raise ArchiveError(f"{part.url} cannot be fetched: {error}; nothing was written") from error
        found = hashlib.sha256(data).hexdigest()
        if found != part.sha256:
            raise ArchiveError(f"{part.url} has the SHA-256 {found}, expected is {part.sha256}; nothing was written. "
                               f"See whether gpu_containerd_archive.{part.name} names the file of {part.version}")
        if part.name == "runc":
            return {RUNC: data}
        folder, inside = (BIN, "bin/") if part.name == "containerd" else (CNI, "")
        return {f"{folder}/{name}": content for name, content in _members(part, data, inside).items()}

    def _try(self, part: Part, files: dict[str, bytes]) -> None:
        """Start the program once, apart: a file for another machine or of another version shows here."""
        program = {"containerd": f"{BIN}/containerd", "runc": RUNC}.get(part.name)
        if program is None:
            return
        if program not in files:
            raise ArchiveError(f"{part.url} has no program {os.path.basename(program)}; nothing was written")
        with tempfile.TemporaryDirectory(prefix=atomic.TMP_PREFIX, dir=self._scratch()) as scratch:
            path = os.path.join(scratch, part.name)
            atomic.write(path, files[program], mode=0o755)
            result = self.run([path, "--version"], timeout=20)
        if not result.ok or not re.search(rf"(?<![\d.]){re.escape(part.version)}(?![\d.])", result.out):
            said = result.out.strip().split("\n")[0] if result.ok else result.why(f"{part.name} --version")
            raise ArchiveError(f"the {part.name} in {part.url} is not version {part.version} for this machine: {said}; "
                               "nothing was written")

    def _scratch(self) -> str:
        """A folder on the file system of the programs: /tmp may forbid to start any."""
        folder = self._real(BIN)
        os.makedirs(folder, mode=0o755, exist_ok=True)
        return folder

    def _known(self) -> dict[str, Any]:
        text = atomic.read_text(self._real(RECORD))
        try:
            found = json.loads(text) if text else {}
        except ValueError:
            return {}  # written anew with what is placed now
        return found if isinstance(found, dict) else {}

    def _real(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))


def _members(part: Part, data: bytes, inside: str) -> dict[str, bytes]:
    """The programs of an archive. Whatever does not lie flat in its folder is refused: releases have nothing else."""
    found: dict[str, bytes] = {}
    size = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as archive:
            for member in archive:
                name = member.name[2:] if member.name.startswith("./") else member.name
                if member.isdir():
                    continue
                base = name[len(inside):] if name.startswith(inside) else ""
                if not member.isfile() or not _NAME.fullmatch(base):
                    raise ArchiveError(f"{part.url} holds {member.name!r}, which {part.name}'s releases do not have; "
                                       "nothing was written")
                size += member.size
                if size > _MOST:
                    raise ArchiveError(f"{part.url} unpacks to more than {_MOST} bytes; nothing was written")
                handle = archive.extractfile(member)
                if handle is not None and member.mode & 0o111:
                    found[base] = handle.read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ArchiveError(f"{part.url} is no archive: {error}; nothing was written") from error
    return found
