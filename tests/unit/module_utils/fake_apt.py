# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's dpkg and apt, as answers over a small table; what the programs print is what the real ones print."""
from __future__ import annotations

import pathlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result

LOCKED = ("dpkg: error: dpkg frontend lock was locked by another process with pid {pid}\n"
          "Note: removing the lock file is always wrong, can damage the locked area\n")


@dataclass
class FakeApt:
    """``packages``: name -> [want, version]; ``archive``: what apt could install; ``locked``: how often it is said."""

    root: pathlib.Path
    packages: dict[str, list[str]] = field(default_factory=dict)
    archive: dict[str, str] = field(default_factory=dict)
    manual: set[str] = field(default_factory=set)
    locked: int = 0
    locked_pid: int = 1
    outweighed: set[str] = field(default_factory=set)     # names that a person's own pin lets in
    calls: list[list[str]] = field(default_factory=list)
    fail: dict[str, str] = field(default_factory=dict)    # program -> its error message

    def install(self, *names: str) -> None:
        for name in names:
            self.packages[name] = ["install", "1.0"]

    def hold(self, *names: str) -> None:
        for name in names:
            self.packages[name][0] = "hold"

    @property
    def held(self) -> set[str]:
        return {name for name, (want, _version) in self.packages.items() if want == "hold"}

    def __call__(self, argv: Sequence[str], timeout: float = 10, env: object = None, input: object = None) -> Result:
        self.calls.append(list(argv))
        program = argv[0]
        if program in self.fail:
            return Result(1, "", self.fail[program])
        args = [a for a in argv[1:] if not a.startswith("--admindir") and a != "-o" and not a.startswith("Dir=")]
        if program == "dpkg-query":
            return Result(0, "".join(f"{n}\t{n}\t{v}\t{w}\tinstalled\n" for n, (w, v) in sorted(self.packages.items())))
        if program == "dpkg":
            if self.locked:
                self.locked -= 1
                return Result(2, "", LOCKED.format(pid=self.locked_pid))
            for line in str(input).splitlines():
                name, want = line.split()
                self.packages[name][0] = want
            return Result(0)
        if program == "apt-cache":
            return Result(0, "".join(self._policy(name) for name in args[1:] if name in self.archive))
        if program == "apt-mark" and args[0] == "showmanual":
            return Result(0, "".join(f"{name}\n" for name in args[1:] if name in self.manual))
        if program == "apt-mark":
            change = self.manual.update if args[0] == "manual" else self.manual.difference_update
            change(args[1:])
            return Result(0)
        raise AssertionError(f"unexpected program: {argv}")

    def _policy(self, name: str) -> str:
        texts = [p.read_text() for p in (self.root / "etc/apt/preferences.d").glob("*")]
        blocked = any(f"Package: {name}\n" in text for text in texts) and name not in self.outweighed
        return f"{name}:\n  Installed: (none)\n  Candidate: {'(none)' if blocked else self.archive[name]}\n"
