# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages by dnf (4 and 5): Red Hat, its rebuilds, Fedora, Amazon Linux.

Source: dnf.conf(5), dnf-versionlock(8), dnf-automatic(8), dnf5-versionlock(8).
"""

from __future__ import annotations

import fnmatch
import re
from typing import Any

from ..packages import books, dnf_conf
from ..packages.base import Package
from . import advisories, locks, names, rpmdb
from .candidate import coming
from .context import Context

_REPOS = "/etc/yum.repos.d"
_VARS = ("/usr/share/dnf5/vars.d", "/etc/yum/vars", "/etc/dnf/vars")
_CONFIGS = ("/etc/dnf/dnf.conf", "/etc/yum.conf")
_LOCK_LISTS = ("/etc/dnf/plugins/versionlock.list", "/etc/yum/pluginconf.d/versionlock.list")
_LOCK_TOML = "/etc/dnf/versionlock.toml"
_DROP_INS = ("/usr/share/dnf5/libdnf.conf.d", "/etc/dnf/libdnf5.conf.d")
_PID_FILES = ("/var/cache/dnf/metadata_lock.pid", "/var/cache/dnf/download_lock.pid", "/var/lib/dnf/rpmdb_lock.pid")
# dnf found nothing newer: then it touches the list of packages alone
_CACHES = tuple(f"/var/cache/{place}/*/repodata/{name}" for place in ("dnf", "libdnf5")
                for name in ("repomd.xml", "*primary.xml*"))
_ASKED = (
    "kernel*",
    "kmod-nvidia*",
    "nvidia-*",
    "libnvidia-*",
    "cuda-drivers*",
    "nvlsm",
    "dkms",
    "containerd*",
    "runc",
    "dnf-plugin-nvidia",
)


def read(ctx: Context) -> None:
    tree = ctx.tree
    releases, found = rpmdb.common(ctx, "dnf", _REPOS, _VARS)
    _available(ctx, set(releases) | coming(ctx.known), found or [])
    with ctx.attempt("packages.advisories"):
        advisories.read(ctx, "dnf", found or [])
    with ctx.attempt("packages.held"):
        held, pins = version_locks(ctx, found)
        ctx.set("packages.held", held)
        ctx.set("packages.pins", pins + excludes(ctx))
    if "packages.held" in ctx.unknown:
        ctx.cannot("packages.pins", ctx.unknown["packages.held"])
    with ctx.attempt("packages.versionlock"):
        works = _generations(ctx)[1] or _plugin_on(ctx)
        ctx.set("packages.versionlock", "plugin" if works else "missing")
    with ctx.attempt("packages.installonly_limit"):
        ctx.set("packages.installonly_limit", installonly_limit(ctx))
    with ctx.attempt("packages.auto_upgrades"):
        ctx.set("packages.auto_upgrades", auto_upgrades(ctx, found))
    with ctx.attempt("packages.modules"):
        ctx.set("packages.modules", modules(ctx))
    with ctx.attempt("packages.locked_by"):
        if tree.is_host:
            ctx.set("packages.locked_by", locks.holder(ctx, locks.RPM_LOCKS) or locks.by_pid_file(ctx, _PID_FILES))
        else:
            ctx.cannot("packages.locked_by", "another tree is read: nothing runs in it")
    with ctx.attempt("packages.cache_age"):
        times = [tree.stat(path).st_mtime for pattern in _CACHES for path in tree.expand(pattern)]
        ctx.set("packages.cache_age", max(0, int(ctx.now - max(times))) if times else None)


def _available(ctx: Context, releases: set[str], found: list[rpmdb.Rpm]) -> None:
    """From dnf's cache alone; nothing is fetched."""
    if not ctx.tree.is_host:
        why = "another tree is read: dnf is not asked"
        ctx.cannot("packages.available", why)
        ctx.cannot("packages.origins", why)
        return
    version5 = ctx.which("dnf5") is not None and ctx.which("dnf-3") is None
    program = "dnf5" if version5 else "dnf"
    argv = [program, "-q", "-C", "repoquery", "--qf", "%{name}|%{epoch}|%{version}-%{release}|%{repoid}\\n"]
    argv += ["--available"] + ([] if version5 else ["--disable-modular-filtering"])
    answer = ctx.run([*argv, *_ASKED], timeout=max(ctx.command_timeout, 20.0), limit=16 * 1024 * 1024)
    if not answer.ok:
        why = answer.why("dnf repoquery") + ("" if answer.timed_out or answer.missing else " (from its cache alone)")
        ctx.cannot("packages.available", why)
        ctx.cannot("packages.origins", why)
        return
    installed = {one.name for one in found if names.KERNEL_OR_DRIVER.match(one.name) and names.matters(one.name)}
    put_offers(ctx, answer.out, installed, releases)


def put_offers(ctx: Context, text: str, installed: set[str], releases: set[str]) -> None:
    """``packages.available`` and ``.origins`` of lines NAME|EPOCH|VERSION-RELEASE|REPOSITORY."""
    offers: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        fields = line.strip().split("|")
        if len(fields) != 4 or not (fields[0] in installed or names.wanted_rpm(fields[0], releases)):
            continue
        epoch = "" if fields[1] in ("0", "", "(none)") else f"{fields[1]}:"
        offers.setdefault(fields[0], {}).setdefault(f"{epoch}{fields[2]}", fields[3])
    available = {
        name: names.kept(name, rpmdb.newest(versions, len(versions)), 3) for name, versions in sorted(offers.items())
    }
    ctx.set("packages.available", available)
    ctx.set("packages.origins", {name: {one: offers[name][one] for one in rows} for name, rows in available.items()})


def version_locks(ctx: Context, found: list[rpmdb.Rpm] | None) -> tuple[list[str], list[dict[str, Any]]]:
    """Names that do not move or come in, by versionlock or an exclusion, and versionlock's entries as pins.

    With both generations of dnf on the host a name is held when both hold it.
    """
    plugin, four, five = _plugin_on(ctx), *_generations(ctx)
    texts = [(books.VersionLockList(path), ctx.tree.text(path) or "") for path in _LOCK_LISTS if plugin]
    lists = [(book, book.entries(text)) for book, text in texts]
    toml = books.VersionLockToml()
    entries = toml.entries(ctx.tree.text(_LOCK_TOML) or "")
    excluded = [row["package"] for row in excludes(ctx) if row["file"] in _CONFIGS]
    pins = [_pin(entry, book.path) for book, rows in lists for entry in rows] + [_toml_pin(entry) for entry in entries]
    there: dict[str, list[Package]] = {}
    for one in found or []:
        there.setdefault(one.name, []).append(Package(one.name, one.name, one.evr, False))
    offered = ctx.facts.get("packages", {}).get("available") or {}
    named = {pin["package"] for pin in pins} | {word for word in excluded if not books.is_glob(word)}

    def by(book: books.Book, rows: list[str], name: str) -> bool:
        about = [entry for entry in rows if book.concerns(entry, name)]
        return book.is_held(about, there.get(name, [])) or (found is None and bool(about))

    held = []
    both = bool(set(there) & dnf_conf.WITHOUT_PLUGINS) and not five
    for name in sorted({*there, *offered, *named}):
        out = any(fnmatch.fnmatchcase(name, word) for word in excluded)
        by4 = out or (not both and any(by(book, rows, name) for book, rows in lists))
        by5 = out or by(toml, entries, name)
        if (by4 or not four) and (by5 or not five) and not books.is_glob(name):
            held.append(name)
    return held, pins


def _generations(ctx: Context) -> tuple[bool, bool]:
    """Whether dnf 4 and dnf 5 work here; a tree without either is taken for what it has lock files of."""
    five = ctx.which("dnf5") is not None
    four = ctx.which("dnf-3", "dnf4") is not None or (ctx.which("dnf") is not None and not five)
    if not four and not five:
        five = ctx.tree.isfile(_LOCK_TOML)
        four = not five
    return four, five


def _pin(entry: str, path: str) -> dict[str, Any]:
    excluded = entry.startswith("!")
    name, evr = books.VersionLockList.split(entry)
    return {"package": name, "pin": f"version {evr or '*'}", "priority": -1 if excluded else 1001, "file": path}


def _toml_pin(entry: str) -> dict[str, Any]:
    name, _mark, condition = entry.partition(" ")
    if condition == books.VersionLockToml.NOTHING:
        return {"package": name, "pin": "version *", "priority": -1, "file": _LOCK_TOML}
    version = re.sub(r"^evr ==? ", "", condition) or "*"
    return {"package": name, "pin": f"version {version}", "priority": 1001, "file": _LOCK_TOML}


def installonly_limit(ctx: Context) -> int:
    """How many kernels dnf lets stand side by side; 0 = any number. dnf.conf outweighs dnf 5's drop-ins."""
    limit = dnf_conf.limit_of(ctx.tree.text(dnf_conf.PATH) or "")
    if limit is None and _generations(ctx)[1]:
        paths = [path for directory in _DROP_INS for path in ctx.tree.glob(directory, "*.conf")]
        files = {path.rsplit("/", 1)[-1]: path for path in paths}
        limits = [dnf_conf.limit_of(ctx.tree.text(files[name]) or "") for name in sorted(files)]
        limit = next((one for one in reversed(limits) if one is not None), None)
    return dnf_conf.DEFAULT_LIMIT if limit is None else limit


def _plugin_on(ctx: Context) -> bool:
    tree = ctx.tree
    there = tree.expand("/usr/lib/python3*/site-packages/dnf-plugins/versionlock.py") or tree.expand(
        "/usr/lib/python3*/dist-packages/dnf-plugins/versionlock.py"
    )
    conf = dict(rpmdb.sections(tree.text("/etc/dnf/plugins/versionlock.conf") or "")).get("main", {})
    return bool(there) and rpmdb.yes(conf.get("enabled", "1"))


def excludes(ctx: Context) -> list[dict[str, Any]]:
    """``exclude=`` of dnf.conf and of repositories, as pins of priority -1."""
    rows: list[dict[str, Any]] = []
    for path in [*_CONFIGS, *ctx.tree.glob(_REPOS, "*.repo")]:
        if path == "/etc/yum.conf" and ctx.tree.readlink(path):
            continue
        for _name, section in rpmdb.sections(ctx.tree.text(path) or ""):
            for word in re.split(r"[\s,]+", f"{section.get('exclude', '')} {section.get('excludepkgs', '')}"):
                if word:
                    rows.append({"package": word, "pin": "exclude", "priority": -1, "file": path})
    return rows


def auto_upgrades(ctx: Context, found: list[rpmdb.Rpm] | None) -> dict[str, Any]:
    """dnf-automatic; whether a timer starts it is joined by the collector. ``excluded`` is what dnf excludes anyway."""
    if found is None:
        raise ValueError("the installed packages cannot be read")
    there = any(one.name in ("dnf-automatic", "dnf5-plugin-automatic") for one in found)
    conf = dict(rpmdb.sections(ctx.tree.text("/etc/dnf/automatic.conf") or "")).get("commands", {})
    excluded = [row["package"] for row in excludes(ctx) if row["file"] in _CONFIGS]
    return {"enabled": there and rpmdb.yes(conf.get("apply_updates", "no")), "excluded": excluded}


def modules(ctx: Context) -> dict[str, dict[str, str]]:
    """Module streams that are switched on or off: ``{nvidia-driver: {stream: 580-open, state: enabled}}``."""
    rows = {}
    for path in ctx.tree.glob("/etc/dnf/modules.d", "*.module"):
        for name, section in rpmdb.sections(ctx.tree.text(path) or ""):
            if section.get("state"):
                rows[name] = {"stream": section.get("stream", ""), "state": section["state"]}
    return rows
