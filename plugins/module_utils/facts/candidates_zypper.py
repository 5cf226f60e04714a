# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels that ``zypper update`` would bring.

Source: zypper(8) (``--dry-run``, ``--xmlout``), libzypp's zypp.conf (``locksfile.path``) and ZConfig.cc (ZYPP_CONF).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from xml.etree import ElementTree

from ..packages import families
from ..packages.books import ZyppLocks
from . import advisories, kmps, packages_zypper, rpmdb
from .candidate import Candidate, ours_in_files
from .context import Context
from .kernel import natural

_CONFS = ("/etc/zypp/zypp.conf", "/usr/etc/zypp/zypp.conf")
_IMAGE = re.compile(r"^kernel-(?P<flavour>default|azure|rt|64kb|vanilla|longterm)$")
PRIMARY = "/var/cache/zypp/raw/*/repodata/*primary.xml*"
_TEXT_RC = (0, 104)  # 104: nothing of that name
_DONE_RC = (0, 102, 103)  # 102: a reboot will be needed, 103: zypper itself comes first


def read(ctx: Context, installed: set[str]) -> tuple[list[Candidate], set[str]]:
    """Candidates; what people lock is left to zypper. Raises OSError or ValueError when zypper does not answer."""
    coming = _coming(ctx)
    found = candidates(coming, _there(ctx, {name for name, _version, _origin in coming}), installed)
    if found:
        _advise(ctx, found)
        _modules(ctx, found)
    return found, set()


def _modules(ctx: Context, found: list[Candidate]) -> None:
    """Set which KMPs fit each candidate; where nobody can tell, the reason stands in unknown."""
    kernels = {(name, version) for one in found for name, version in one.packages.items() if _IMAGE.match(name)}
    provided, required = kmps.of(list(advisories.texts(ctx, [PRIMARY], "kernel.candidates[].modules")), kernels)
    listed = ctx.run(["rpm", "-qa", "--queryformat", rpmdb.QUERY, "nvidia-*-kmp-*"])
    for one in rpmdb.parse(listed.out) if listed.ok else []:
        answer = ctx.run(["rpm", "-q", "--requires", one.name])
        if answer.ok:
            required[one.name, one.version] = kmps.requirements(answer.out)
    for candidate in found:
        symbols = [provided[key] for key in candidate.packages.items() if key in provided]
        if symbols:
            candidate.modules = kmps.fitting(symbols[0], required)
        else:
            ctx.cannot("kernel.candidates[].modules", "the repositories' metadata has no symbols of a kernel on offer")


def _coming(ctx: Context) -> list[tuple[str, str, str]]:
    with _without_ours(ctx) as env:
        argv = ["zypper", "--non-interactive", "--no-refresh", "--xmlout", "update", "--dry-run"]
        argv += ["--auto-agree-with-licenses"]
        answer = ctx.run(argv, timeout=max(ctx.command_timeout, 60.0), env=env, limit=32 * 1024 * 1024)
    if answer.timed_out or answer.missing or answer.rc not in _DONE_RC:
        raise ValueError(answer.why("zypper update --dry-run"))
    return coming(answer.out)


@contextmanager
def _without_ours(ctx: Context) -> Iterator[dict[str, str]]:
    """An environment in which libzypp reads a copy of the locks that lacks ours; an empty one while we have none."""
    book = ZyppLocks()
    own = sorted(ours_in_files(ctx.tree).get(book.path, ()))
    if not own:
        yield {}
        return
    directory = tempfile.mkdtemp(prefix="baremetal-nvidia-")
    try:
        locks, conf = os.path.join(directory, "locks"), os.path.join(directory, "zypp.conf")
        with open(locks, "w", encoding="utf-8") as handle:
            handle.write(book.edit(ctx.tree.text(book.path) or "", own, [], "kernel"))
        with open(conf, "w", encoding="utf-8") as handle:
            handle.write(configuration(next(filter(None, map(ctx.tree.text, _CONFS)), ""), locks))
        yield {"ZYPP_CONF": conf}
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def configuration(text: str, locks: str) -> str:
    """zypp.conf with another file of locks."""
    lines = [line for line in text.splitlines() if not re.match(r"\s*locksfile\.path\s*=", line)]
    if not any(line.strip() == "[main]" for line in lines):
        lines.insert(0, "[main]")
    at = next(index for index, line in enumerate(lines) if line.strip() == "[main]")
    lines.insert(at + 1, f"locksfile.path = {locks}")
    return "\n".join(lines) + "\n"


def coming(xml: str) -> list[tuple[str, str, str]]:
    """(name, version, repository) of the kernel packages of a dry run. Raises ValueError for anything else."""
    found = []
    for section in ("to-install", "to-upgrade", "to-upgrade-change-arch", "to-change-vendor"):
        for parent in _parsed(xml).iter(section):
            for node in parent.iter("solvable"):
                name = node.get("name", "")
                if node.get("type", "package") == "package" and families.kernel_part(name) not in (None, "tools"):
                    found.append((name, node.get("edition", ""), node.get("repository", "")))
    return found


def _parsed(xml: str) -> ElementTree.Element:
    if "<!ENTITY" in xml:
        raise ValueError("entities in the answer of zypper")
    try:
        return ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise ValueError(f"the answer of zypper cannot be read: {error}") from error


def _there(ctx: Context, names: Iterable[str]) -> list[tuple[str, str, str]]:
    """Every version that the repositories have of these names."""
    wanted = sorted(names)
    if not wanted:
        return []
    argv = ["zypper", "--non-interactive", "--no-refresh", "--xmlout", "search", "--details", "--type", "package"]
    answer = ctx.run([*argv, "--match-exact", *wanted], timeout=max(ctx.command_timeout, 20.0), limit=32 * 1024 * 1024,
                     env={"ZYPP_READONLY_HACK": "1"})  # fmt: skip
    if answer.timed_out or answer.missing or answer.rc not in _TEXT_RC:
        raise ValueError(answer.why("zypper search"))
    try:
        rows = [line.split("|") for line in packages_zypper.search(answer.out, {}).splitlines()]
    except ElementTree.ParseError as error:
        raise ValueError(f"the answer of zypper search cannot be read: {error}") from error
    return [(name, f"{epoch}:{version}" if epoch not in ("", "0") else version, origin)
            for name, epoch, version, origin in rows]  # fmt: skip


def release_of(name: str, version: str) -> str | None:
    """6.4.0-150600.23.47-default of kernel-default 6.4.0-150600.23.47.2: the last number counts rebuilds."""
    match = _IMAGE.match(name)
    number, mark, rest = version.rpartition("-")
    if match is None or not mark or "." not in rest:
        return None
    return f"{number.split(':')[-1]}-{rest.rpartition('.')[0]}-{match.group('flavour')}"


def candidates(
    coming_: list[tuple[str, str, str]], there: list[tuple[str, str, str]], installed: set[str]
) -> list[Candidate]:
    """From what would come and what the repositories have of the same names."""
    found: dict[str, Candidate] = {}
    versions: dict[str, str] = {}
    rows = [*coming_, *(row for row in there if row not in coming_)]
    for name, version, origin in rows:
        release = release_of(name, version)
        if release is None or release in installed:
            continue
        floor = max((natural(one) for one in installed if _flavour(one) == _flavour(release)), default=[])
        top = max(natural(release_of(*row[:2]) or "") for row in coming_ if row[0] == name)
        if floor < natural(release) <= top and (
            release not in versions or rpmdb.compare(version, versions[release]) > 0
        ):
            found[release], versions[release] = Candidate(release, {}, None, origin), version
    for name, version, _origin in rows:
        for release, one in found.items():
            if _together(version, versions[release]) and _fits(name, release):
                one.packages[name] = rpmdb.newest([version, one.packages.get(name, version)], 1)[0]
    return list(found.values())


def _together(version: str, other: str) -> bool:
    """Whether two packages are of one kernel: the same but for the count of rebuilds."""
    return version.rpartition(".")[0] == other.rpartition(".")[0]


def _fits(name: str, release: str) -> bool:
    flavour = re.match(r"^kernel-(default|azure|rt|64kb|vanilla|longterm)(?:-|$)", name)
    return flavour is None or flavour.group(1) == _flavour(release)


def _flavour(release: str) -> str:
    return release.rpartition("-")[2]


# ---- patches


def _advise(ctx: Context, found: list[Candidate]) -> None:
    """Set what the patches of the repositories say of each kernel; where none has it, nothing is known."""
    rows = [row for text in advisories.texts(ctx, advisories.PATHS["zypper"])
            for row in advisories.of(text, {name for one in found for name in one.packages if _IMAGE.match(name)})]
    for one in found:
        mine = [row for row in rows if one.packages.get(row.name) == row.version]
        secure = [row for row in mine if row.kind == "security"]
        one.security = bool(secure) if mine else None
        one.since = min((row.since for row in secure if row.since), default=None)
        one.cves = sorted({cve for row in secure for cve in row.cves})
