# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DKMS, as it comes: one build in a tree of its own, and what its configuration file says."""

from __future__ import annotations

import glob
import os
import re
import time
from dataclasses import dataclass
from typing import Any, Callable

from .errors import ProofError
from .headers import Headers

Runner = Callable[..., Any]

#: Exit status of ``dkms build`` when BUILD_EXCLUSIVE_* in dkms.conf rules the kernel out.
EXCLUDED = 77
LOG_LINES = 25
LINE_WIDTH = 240
_TROUBLE = re.compile(r"(\berror\b|\bERROR\b|undefined!|\*\*\*|No such file|cannot open|Error \d)")
_SAFE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9.+_~-]*$")

_READ_CONF = r"""
kernelver="$2"; arch="$3"; dkms_tree=/nonexistent; source_tree=/nonexistent; kernel_source_dir=/nonexistent
. "$1" >/dev/null 2>&1
for i in "${!BUILT_MODULE_NAME[@]}"; do
  name="${BUILT_MODULE_NAME[i]}"
  printf '%s\t%s\t%s\n' "$name" "${DEST_MODULE_NAME[i]:-$name}" "${BUILT_MODULE_LOCATION[i]:-.}"
done
"""


@dataclass(frozen=True)
class Built:
    """One module that dkms.conf builds: where make leaves it, and its file name once installed (both without .ko)."""

    name: str
    installed_as: str
    location: str


def safe_word(word: str, what: str) -> str:
    """``word``, if it may stand in a file name and in a dkms.conf. Raises ProofError."""
    if not _SAFE.match(word):
        raise ProofError(f"{what} {word!r} has characters that no {what} has")
    return word


def read_conf(path: str, release: str, arch: str, run: Runner) -> list[Built]:
    """The modules of a dkms.conf (a shell script, which DKMS itself sources as root). Raises ProofError."""
    result = run(["bash", "--norc", "--noprofile", "-c", _READ_CONF, "dkms.conf", path, release, arch], timeout=30)
    rows = [line.split("\t") for line in result.out.splitlines() if line.count("\t") == 2]
    if result.rc != 0 or not rows:
        raise ProofError(f"{path} names no modules (BUILT_MODULE_NAME): {result.err.strip() or 'it is empty'}")
    return [Built(name, installed, os.path.normpath(location)) for name, installed, location in rows]


def status(name: str, version: str, run: Runner) -> dict[str, str]:
    """Kernel release -> state (``built``, ``installed``) in the host's own DKMS tree; empty when unknown there."""
    result = run(["dkms", "status", "-m", name, "-v", version], timeout=60)
    found: dict[str, str] = {}
    for line in result.out.splitlines():
        match = re.match(r"^[^,]+, (\S+), \S+: (\w+)", line)
        if match:
            found[match.group(1)] = match.group(2)
    return found


def build(
    headers: Headers,
    *,
    name: str,
    version: str,
    arch: str,
    sources: str,
    scratch: str,
    timeout: float,
    run: Runner,
    jobs: int | None = None,
    niceness: int = 10,
) -> tuple[list[str], float]:
    """Build in ``scratch`` from ``sources`` (a /usr/src); the module files and the seconds it took.

    The host's DKMS tree, its /lib/modules and its signing key are left alone: the host signs when DKMS installs.
    Raises ProofError with the end of the build log.
    """
    tree, tmp = os.path.join(scratch, "dkms"), os.path.join(scratch, "tmp")
    for directory in (tree, tmp, os.path.join(scratch, "modules")):
        os.makedirs(directory, exist_ok=True)
    env = {"TMPDIR": tmp, "sign_file": "/nonexistent"}
    argv = [
        "nice",
        "-n",
        str(niceness),
        "dkms",
        "build",
        "--dkmstree",
        tree,
        "--sourcetree",
        sources,
        "--installtree",
        os.path.join(scratch, "modules"),
        "-m",
        name,
        "-v",
        version,
        "-k",
        headers.release,
        "-a",
        arch,
    ]
    if jobs:
        env["parallel_jobs"] = str(jobs)
    # Named in any case: DKMS 3.2 looks for installed headers below --installtree, which is the scratch tree here.
    argv += ["--kernelsourcedir", str(headers.build)]
    if not headers.installed:
        # NVIDIA's Makefile looks at /lib/modules/RELEASE by itself unless it is told where the headers are.
        env.update(SYSSRC=str(headers.common), SYSOUT=str(headers.build))
    begin = time.monotonic()
    result = run(argv, timeout=timeout, env=env, cwd=scratch)
    seconds = time.monotonic() - begin
    if result.rc == 0 and not result.timed_out:
        files = glob.glob(os.path.join(tree, name, version, headers.release, arch, "module", "*.ko*"))
        if files:
            return sorted(files), seconds
    what = f"{name} {version} for kernel {headers.release}"
    log = find_log(tree)
    if result.timed_out:
        raise ProofError(
            f"{what}: the build did not end within {timeout:.0f} s and was stopped. Give it more time "
            "(timeout), or look at what else this host is doing",
            headers.release,
            log,
        )
    if result.rc == EXCLUDED:
        raise ProofError(
            f"{what}: the driver's dkms.conf rules this kernel out (BUILD_EXCLUSIVE, such as a real-time "
            "kernel). Keep to a kernel of another kind",
            headers.release,
            log,
        )
    said = [
        line.strip() for line in (result.err + "\n" + result.out).splitlines() if line.startswith(("Error!", "dkms"))
    ]
    raise ProofError(
        f"{what}: the build failed, so this driver does not fit this kernel. "
        f"{first_trouble(log) or '; '.join(said) or f'dkms ended with status {result.rc}'}",
        headers.release,
        log or said,
    )


def install(name: str, version: str, release: str, timeout: float, run: Runner) -> None:
    """Have the host's own DKMS build (from the offer) and install. Raises ProofError in DKMS's words."""
    result = run(["dkms", "install", "-m", name, "-v", version, "-k", release], timeout=timeout)
    if result.rc != 0:
        said = [line.strip() for line in (result.err + "\n" + result.out).splitlines() if line.startswith("Error!")]
        raise ProofError(
            f"dkms install of {name} {version} for {release} failed: {'; '.join(said) or f'status {result.rc}'}",
            release,
        )


def find_log(tree: str) -> list[str]:
    """The telling lines of the newest make.log below ``tree``."""
    logs = [os.path.join(where, "make.log") for where, _dirs, files in os.walk(tree) if "make.log" in files]
    if not logs:
        return []
    with open(max(logs, key=os.path.getmtime), encoding="utf-8", errors="replace") as handle:
        return telling(handle.read().splitlines())


def telling(lines: list[str], count: int = LOG_LINES) -> list[str]:
    """At most ``count`` lines: those that name trouble, then the last ones; cut, and without compiler commands."""
    short = [
        line.strip()[:LINE_WIDTH]
        for line in lines
        if line.strip() and not re.match(r"^\s*(\S*gcc|\S*ld|cc|make)(-\d+)? ", line) and "CFLAGS=" not in line
    ]
    trouble = list(dict.fromkeys(line for line in short if _TROUBLE.search(line)))[: count // 2]
    last = [line for line in short[-(count - len(trouble)) :] if line not in trouble]
    return trouble + last


def first_trouble(log: list[str]) -> str:
    """The first line of a build log that names an error, for a message."""
    for line in log:
        if re.search(r"(: error:|: fatal error:|undefined!|error while loading)", line):
            return f"First error: {line}"
    for line in log:
        if _TROUBLE.search(line):
            return f"First error: {line}"
    return ""
