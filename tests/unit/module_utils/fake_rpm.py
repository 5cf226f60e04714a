# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with an rpm database and the files of dnf or zypper. The files are real; programs answer from a table."""
from __future__ import annotations

import pathlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result

PLUGIN = "usr/lib/python3.9/site-packages/dnf-plugins/versionlock.py"
DNF_CONF = "[main]\ngpgcheck=1\ninstallonly_limit=3\nclean_requirements_on_remove=True\n"


@dataclass
class FakeRpm:
    """``packages``: name -> versions (EPOCH:VERSION-RELEASE where there is an epoch)."""

    root: pathlib.Path
    packages: dict[str, list[str]] = field(default_factory=dict)
    manual: set[str] = field(default_factory=set)
    calls: list[list[str]] = field(default_factory=list)
    fail: dict[str, str] = field(default_factory=dict)

    def write(self, path: str, text: str = "") -> pathlib.Path:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def read(self, path: str) -> str:
        return (self.root / path.lstrip("/")).read_text()

    def dnf4(self, plugin: bool = True, conf: str = DNF_CONF) -> FakeRpm:
        self.write("usr/bin/dnf-3")
        self.write("usr/bin/dnf")
        self.write("etc/dnf/dnf.conf", conf)
        if plugin:
            self.write(PLUGIN)
            self.write("etc/dnf/plugins/versionlock.conf",
                       "[main]\nenabled = 1\nlocklist = /etc/dnf/plugins/versionlock.list\n")
            self.write("etc/dnf/plugins/versionlock.list", "")
        return self

    def dnf5(self, conf: str = "[main]\n") -> FakeRpm:
        self.write("usr/bin/dnf5")
        self.write("usr/bin/dnf")
        self.write("etc/dnf/dnf.conf", conf)
        return self

    def zypper(self) -> FakeRpm:
        self.write("usr/bin/zypper")
        return self

    def __call__(self, argv: Sequence[str], timeout: float = 10, env: object = None, input: object = None) -> Result:
        self.calls.append(list(argv))
        program = argv[0]
        if program in self.fail:
            return Result(1, "", self.fail[program])
        if program == "rpm":
            lines = []
            for name, versions in self.packages.items():
                for evr in versions:
                    epoch, _mark, version = evr.rpartition(":")
                    lines.append(f"{name}\t{epoch or '0'}\t{version}\tx86_64\n")
            return Result(0, "".join(lines))
        if program in ("dnf", "dnf5"):
            args = [a for a in argv[1:] if not a.startswith("-")]
            if args[0] == "repoquery":
                return Result(0, "".join(f"{name}\n" for name in sorted(self.manual)))
            if args[0] == "mark":
                change = self.manual.update if args[1] in ("install", "user") else self.manual.difference_update
                change(args[2:])
                return Result(0)
        raise AssertionError(f"unexpected program: {argv}")
