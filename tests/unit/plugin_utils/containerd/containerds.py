# SPDX-License-Identifier: GPL-3.0-or-later
"""Real containerd binaries to hold computations against: the one of the machine and those of Debian's releases.

They are fetched with apt into .cache/containerd (no installation) the first time. Where that cannot be, the tests
that need them are skipped and say so; in CI they fail, since a run that compared nothing would look like one that did.
"""
from __future__ import annotations

import fcntl
import functools
import os
import pathlib
import re
import shutil
import subprocess
from typing import Any

import pytest
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[4]
CACHE = ROOT / ".cache" / "containerd"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SUITES = {"1.6": "bookworm", "1.7": "trixie", "2.1": "forky"}


def program(line: str) -> str:
    """The path of a containerd of that line (``1.6``, ``1.7``, ``2.1``); without one the test is skipped, or fails."""
    path, reason = found(line)
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"containerd {line} is not here: {reason}")
    return path


@functools.cache
def found(line: str) -> tuple[str | None, str]:
    """The path, or None and why there is none; asked once, as an archive that does not answer takes its time."""
    own = shutil.which("containerd")
    if own and _line(own) == line:
        return own, ""
    CACHE.mkdir(parents=True, exist_ok=True)
    # The workers of a run, and the runs of two Pythons, come here at once: one fetches, the others find it done.
    with (CACHE / f"apt-{SUITES[line]}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fetched = CACHE / f"apt-{SUITES[line]}/root/usr/bin/containerd"
        return (str(fetched), "") if _line(fetched) == line else _fetch(line)


def _line(path: str | pathlib.Path) -> str | None:
    try:
        out = subprocess.run([str(path), "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    except OSError:
        return None
    match = re.search(r" v?(\d+\.\d+)\.\d+", out)
    return match[1] if match else None


def _fetch(line: str) -> tuple[str | None, str]:
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb") or not pathlib.Path(KEYRING).exists():
        return None, f"Debian's archive needs apt-get, dpkg-deb and {KEYRING}"
    root = CACHE / f"apt-{SUITES[line]}"
    for folder in ("lists/partial", "cache/archives/partial", "etc"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    source = root / "etc/sources.list"
    source.write_text(f"deb [signed-by={KEYRING} check-valid-until=no] http://deb.debian.org/debian {SUITES[line]} "
                      "main\n", encoding="utf-8")
    options = [f"-oDir::Etc::sourcelist={source}", "-oDir::Etc::sourceparts=/dev/null",
               f"-oDir::State::lists={root}/lists", f"-oDir::Cache={root}/cache",
               "-oDir::State::status=/dev/null", "-oAPT::Sandbox::User=root"]
    try:
        for command in (["apt-get", *options, "-qq", "update"], ["apt-get", *options, "-qq", "download", "containerd"]):
            subprocess.run(command, cwd=root, check=True, capture_output=True, timeout=300)
        package = next(root.glob("containerd_*.deb"))
        # beside, then in place: a run that is cut off leaves no half program
        shutil.rmtree(root / "unpacked", ignore_errors=True)
        subprocess.run(["dpkg-deb", "-x", str(package), str(root / "unpacked")], check=True, capture_output=True,
                       timeout=300)
        shutil.rmtree(root / "root", ignore_errors=True)
        (root / "unpacked").rename(root / "root")
    except subprocess.CalledProcessError as error:
        return None, f"{error.cmd[0]}: {error.stderr.decode('utf-8', 'replace').strip()[-500:]}"
    except (OSError, subprocess.SubprocessError, StopIteration) as error:
        return None, f"{SUITES[line]} could not be fetched: {error!r}"
    path = root / "root/usr/bin/containerd"
    there = _line(path)
    return (str(path), "") if there == line else (None, f"{SUITES[line]} has containerd {there}")


def place(folder: pathlib.Path, files: dict[str, str], base: str = "/etc/containerd") -> pathlib.Path:
    """Write files of ``base`` into ``folder``, their imports turned towards it; the path of config.toml there."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        target = folder / pathlib.PurePosixPath(path).relative_to(base)
        target.parent.mkdir(parents=True, exist_ok=True)
        lines = [line.replace(base, str(folder)) if line.lstrip().startswith(("imports", '"/', "'/")) else line
                 for line in text.split("\n")]
        target.write_text("\n".join(lines), encoding="utf-8")
    return folder / "config.toml"


def dump(program: str, config: pathlib.Path) -> tuple[int, dict[str, Any], str]:
    """(exit status, what is printed, what is complained of) of ``containerd config dump``."""
    done = subprocess.run([program, "--config", str(config), "config", "dump"], capture_output=True, text=True,
                          timeout=60, check=False)
    try:
        printed = tomllib.loads(done.stdout)
    except tomllib.TOMLDecodeError:
        printed = {}
    return done.returncode, printed, done.stderr
