# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages by dnf (4 and 5): Red Hat, its rebuilds, Fedora, Amazon Linux.

Source: dnf.conf(5), dnf-versionlock(8), dnf-automatic(8), dnf5-versionlock(8).
"""

from __future__ import annotations

import re
from typing import Any

from . import locks, names, rpmdb
from .context import Context

_REPOS = "/etc/yum.repos.d"
_VARS = ("/usr/share/dnf5/vars.d", "/etc/yum/vars", "/etc/dnf/vars")
_CONFIGS = ("/etc/dnf/dnf.conf", "/etc/yum.conf")
_LOCK_LISTS = ("/etc/dnf/plugins/versionlock.list", "/etc/yum/pluginconf.d/versionlock.list")
_LOCK_TOML = "/etc/dnf/versionlock.toml"
_NEVRA = re.compile(
    r"^(?P<name>.+?)-(?P<evr>(?:\d+:)?[^-:]*\d[^-:]*-[^-]+?)(?:\.(?:\*|noarch|x86_64|aarch64|i686|src))?$"
)
_PID_FILES = ("/var/cache/dnf/metadata_lock.pid", "/var/cache/dnf/download_lock.pid", "/var/lib/dnf/rpmdb_lock.pid")
_CACHES = ("/var/cache/dnf/*/repodata/repomd.xml", "/var/cache/libdnf5/*/repodata/repomd.xml")
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
    _available(ctx, set(releases), found or [])
    with ctx.attempt("packages.held"):
        held, pins = version_locks(ctx, found)
        ctx.set("packages.held", held)
        ctx.set("packages.pins", pins + excludes(ctx))
    if "packages.held" in ctx.unknown:
        ctx.cannot("packages.pins", ctx.unknown["packages.held"])
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
    available = {name: rpmdb.newest(versions) for name, versions in sorted(offers.items())}
    ctx.set("packages.available", available)
    ctx.set("packages.origins", {name: {one: offers[name][one] for one in rows} for name, rows in available.items()})


def version_locks(ctx: Context, found: list[rpmdb.Rpm] | None) -> tuple[list[str], list[dict[str, Any]]]:
    """Names that versionlock keeps, and its entries as pins. Without the plugin the list has no effect."""
    held: set[str] = set()
    pins: list[dict[str, Any]] = []
    if _plugin_on(ctx):
        for path in _LOCK_LISTS:
            for line in (ctx.tree.text(path) or "").splitlines():
                entry = line.split("#", 1)[0].strip()
                if not entry:
                    continue
                excluded = entry.startswith("!")
                match = _NEVRA.match(entry.lstrip("!"))
                name, evr = (match.group("name"), match.group("evr")) if match else (entry.lstrip("!"), "*")
                evr = evr[2:] if evr.startswith("0:") else evr
                pins.append(
                    {"package": name, "pin": f"version {evr}", "priority": -1 if excluded else 1001, "file": path}
                )
                if not excluded:
                    held.add(name)
    text = ctx.tree.text(_LOCK_TOML) or ""  # dnf5: built in
    for block in re.split(r"(?m)^\[\[packages\]\]", text)[1:]:
        name5 = re.search(r"(?m)^name\s*=\s*[\"']([^\"']+)", block)
        value = re.search(r"(?m)^(?:value|key)\s*=.*", block)
        version = re.search(r"(?m)^value\s*=\s*[\"']([^\"']+)", block)
        if name5 and value:
            held.add(name5.group(1))
            evr = version.group(1) if version else "*"
            pins.append({"package": name5.group(1), "pin": f"version {evr}", "priority": 1001, "file": _LOCK_TOML})
    return sorted(held), pins


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
