# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages by zypper: SUSE Linux Enterprise and openSUSE.

Source: zypper(8), libzypp's zypp/Locks.cc (format of /etc/zypp/locks).
"""

from __future__ import annotations

import fnmatch
import re
from typing import Any
from xml.etree import ElementTree

from . import advisories, aptconf, locks, names, packages_dnf, rpmdb
from .candidate import coming
from .context import Context

_REPOS = "/etc/zypp/repos.d"
_LOCKS = "/etc/zypp/locks"
# zypper found nothing newer: then it touches the index of the repository alone
_CACHES = ("/var/cache/zypp/solv/*/cookie", "/var/cache/zypp/raw/*/repodata/repomd.xml")
_PID_FILES = ("/run/zypp.pid", "/var/run/zypp.pid")
_ASKED = (
    "kernel-default*",
    "kernel-azure*",
    "kernel-devel",
    "nvidia-*",
    "libnvidia-*",
    "cuda-drivers*",
    "containerd",
    "runc",
    "dkms",
    "nvlsm",
)


def read(ctx: Context) -> None:
    tree = ctx.tree
    releases, found = rpmdb.common(ctx, "zypper", _REPOS, ("/etc/zypp/vars.d",))
    _available(ctx, set(releases) | coming(ctx.known), found or [])
    with ctx.attempt("packages.advisories"):
        advisories.read(ctx, "zypper", found or [])
    with ctx.attempt("packages.held"):
        held, pins = zypper_locks(ctx, [one.name for one in found or []])
        ctx.set("packages.held", held)
        ctx.set("packages.pins", pins)
    if "packages.held" in ctx.unknown:
        ctx.cannot("packages.pins", ctx.unknown["packages.held"])
    with ctx.attempt("packages.auto_upgrades"):
        if found is None:
            raise ValueError("the installed packages cannot be read")
        there = any(one.name in ("os-update", "transactional-update") for one in found)
        # whether one of their timers is on is joined by the collector
        ctx.set("packages.auto_upgrades", {"enabled": there, "excluded": []})
    with ctx.attempt("packages.locked_by"):
        if tree.is_host:
            ctx.set("packages.locked_by", locks.by_pid_file(ctx, _PID_FILES) or locks.holder(ctx, locks.RPM_LOCKS))
        else:
            ctx.cannot("packages.locked_by", "another tree is read: nothing runs in it")
    with ctx.attempt("packages.cache_age"):
        paths = [path for pattern in _CACHES for path in tree.expand(pattern)]
        times = [tree.stat(path).st_mtime for path in paths if "@System" not in path]
        ctx.set("packages.cache_age", max(0, int(ctx.now - max(times))) if times else None)


def _available(ctx: Context, releases: set[str], found: list[rpmdb.Rpm]) -> None:
    if not ctx.tree.is_host:
        why = "another tree is read: zypper is not asked"
    else:
        argv = ["zypper", "--non-interactive", "--no-refresh", "--xmlout", "search", "--details", "--type", "package"]
        answer = ctx.run(
            [*argv, *_ASKED],
            timeout=max(ctx.command_timeout, 20.0),
            limit=32 * 1024 * 1024,
            env={"ZYPP_READONLY_HACK": "1"},  # neither takes nor waits for the lock
        )
        why = answer.why("zypper search")
        if answer.rc in (0, 104):  # 104: nothing of that name anywhere
            try:
                text = search(answer.out, _aliases(ctx))
            except (ElementTree.ParseError, ValueError) as error:
                why = f"the answer of zypper search cannot be read: {error}"
            else:
                installed = {
                    one.name for one in found if names.KERNEL_OR_DRIVER.match(one.name) and names.matters(one.name)
                }
                packages_dnf.put_offers(ctx, text, installed, releases)
                return
    ctx.cannot("packages.available", why)
    ctx.cannot("packages.origins", why)


def _aliases(ctx: Context) -> dict[str, str]:
    """Name of a repository → its alias, which is its id: zypper prints the name."""
    rows: dict[str, str] = {}
    for path in ctx.tree.glob(_REPOS, "*.repo"):
        try:
            for alias, section in rpmdb.sections(ctx.tree.text(path) or ""):
                rows[section.get("name", alias)] = alias
        except OSError:
            continue
    return rows


def search(xml: str, aliases: dict[str, str]) -> str:
    """``zypper --xmlout search --details`` as lines NAME|EPOCH|VERSION-RELEASE|REPOSITORY.

    Raises ValueError or ElementTree.ParseError for anything else.
    """
    if "<!ENTITY" in xml:
        raise ValueError("entities in the answer")
    lines = []
    for node in ElementTree.fromstring(xml).iter("solvable"):
        repository = node.get("repository", "")
        if node.get("kind") != "package" or repository in ("", "(System Packages)"):
            continue
        epoch, mark, version = node.get("edition", "").partition(":")
        if not mark:
            epoch, version = "0", node.get("edition", "")
        lines.append(f"{node.get('name')}|{epoch}|{version}|{aliases.get(repository, repository)}")
    return "\n".join(lines)


def zypper_locks(ctx: Context, installed: list[str]) -> tuple[list[str], list[dict[str, Any]]]:
    """Names of locked packages (patterns also as the installed names that they match), and the locks as pins."""
    held: set[str] = set()
    pins: list[dict[str, Any]] = []
    for stanza in aptconf.stanzas(ctx.tree.text(_LOCKS) or ""):
        name = stanza.get("solvable_name")
        if not name or stanza.get("type", "package") != "package":
            continue
        version = stanza.get("version", "")
        pins.append({"package": name, "pin": f"lock {version}".strip(), "priority": 1001, "file": _LOCKS})
        held.add(name)
        if stanza.get("match_type", "glob") == "regex":
            held |= {one for one in installed if _matches(name, one)}
        else:
            held |= {one for one in installed if fnmatch.fnmatchcase(one, name)}
    return sorted(held), pins


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False
