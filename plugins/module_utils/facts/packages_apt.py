# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages by apt: installed, offered, held, pinned, broken, and who may move them behind our back."""

from __future__ import annotations

import re
from typing import Any

from . import aptconf, aptlists, dpkg, locks, made_for, names
from .candidate import coming
from .context import Context
from .kernel import images
from .system import arch as machine_of

_MOST_PINS = 40
_MOST_HELD = 200
_OURS = re.compile(r"/etc/apt/sources\.list\.d/baremetal-nvidia-[^/]+\.sources$")


def read(ctx: Context) -> None:
    tree = ctx.tree
    ctx.set("packages.manager", "apt")
    machine = None
    with ctx.attempt("packages.arch"):
        machine = machine_of(tree)
    arch = dpkg.native(tree, machine)
    releases: set[str] = set()
    with ctx.attempt("kernel.installed"):
        releases = set(images(tree))
    known: list[dpkg.Package] | None = None
    try:
        known = dpkg.packages(tree)
    except OSError as error:
        for key in ("installed", "held", "broken", "manual"):
            ctx.cannot(f"packages.{key}", error)
    if known is not None:
        _installed(ctx, known, arch, releases)
    sources: list[aptconf.Source] | None = None
    with ctx.attempt("packages.repositories"):
        sources = aptconf.sources(tree)
        ctx.set("packages.repositories", [source.row() for source in sources])
    if sources is None:
        why = "the package sources cannot be read"
        ctx.cannot("packages.available", why)
        ctx.cannot("packages.origins", why)
    else:
        _offers(ctx, sources, arch, releases | coming(ctx.known), known or [])
    with ctx.attempt("packages.pins"):
        rows = aptconf.pins(tree)
        ctx.set("packages.pins", rows[:_MOST_PINS])
        if len(rows) > _MOST_PINS:
            ctx.cannot("packages.pins[]", f"{len(rows)} entries, only the first {_MOST_PINS} are given")
    with ctx.attempt("packages.auto_upgrades"):
        ctx.set("packages.auto_upgrades", auto_upgrades(ctx, known))
    with ctx.attempt("packages.locked_by"):
        if tree.is_host:
            ctx.set("packages.locked_by", locks.holder(ctx, locks.APT_LOCKS))
        else:
            ctx.cannot("packages.locked_by", "another tree is read: nothing runs in it")
    with ctx.attempt("packages.cache_age"):
        fetched = aptlists.all_fetched(tree, [one for one in sources or () if _OURS.match(one.file)], arch)
        ctx.set("packages.cache_age", aptlists.age(tree, ctx.now) if fetched else None)


def _installed(ctx: Context, known: list[dpkg.Package], arch: str, releases: set[str]) -> None:
    there = [one for one in known if one.there]
    rows = {dpkg.key(one, arch): one.version for one in there if names.matters(one.name)}
    ctx.set("packages.installed", dict(sorted(rows.items())))
    held = sorted(dpkg.key(one, arch) for one in known if one.want == "hold")
    ctx.set("packages.held", held[:_MOST_HELD])
    ctx.set("packages.broken", dpkg.broken(known, arch))
    with ctx.attempt("packages.manual"):
        automatic = dpkg.automatic(ctx.tree)
        ctx.set(
            "packages.manual", [name for name in rows if names.KERNEL_OR_DRIVER.match(name) and name not in automatic]
        )
    present = {one.name for one in there}
    ctx.set("kernel_packages", {release: owners(present, release) for release in sorted(releases)})


def owners(present: set[str], release: str) -> dict[str, str | None]:
    """``{image, headers}``: the packages a kernel came with, null for none."""
    images_ = (f"linux-image-{release}", f"linux-image-unsigned-{release}", f"linux-image-uc-{release}")
    return {
        "image": next((name for name in images_ if name in present), None),
        "headers": f"linux-headers-{release}" if f"linux-headers-{release}" in present else None,
    }


def _offers(
    ctx: Context, sources: list[aptconf.Source], arch: str, releases: set[str], known: list[dpkg.Package]
) -> None:
    installed = {
        one.name for one in known if one.there and names.KERNEL_OR_DRIVER.match(one.name) and names.matters(one.name)
    }

    by_kernels = names.wanted_by(releases)

    def wanted(name: str) -> bool:
        return name in installed or by_kernels(name)

    drivers: dict[str, dict[str, str]] = {}

    def notice(name: str, version: str, stanza: bytes) -> None:
        driver = made_for.driver(stanza.decode("utf-8", "replace")) if name.startswith(made_for.PREFIX) else None
        if driver:
            drivers.setdefault(name, {})[version] = driver

    with ctx.attempt("packages.available"):
        found = aptlists.offers(ctx, sources, arch, names.PREFIXES, wanted, notice)
        available: dict[str, list[str]] = {}
        origins: dict[str, dict[str, str]] = {}
        for name in sorted(found):
            available[name] = names.kept(name, aptlists.newest(found[name], len(found[name])), aptlists.NEWEST)
            origins[name] = {version: found[name][version] for version in available[name]}
        ctx.set("packages.available", available)
        ctx.set("packages.origins", origins)
        ctx.set("packages.made_for", {name: drivers[name] for name in sorted(drivers) if name in available})
        return
    ctx.cannot("packages.origins", ctx.unknown["packages.available"])


def auto_upgrades(ctx: Context, known: list[dpkg.Package] | None) -> dict[str, Any]:
    """``{enabled, excluded}`` of unattended-upgrades. Raises OSError when its settings cannot be read."""
    settings = aptconf.configuration(ctx.tree)
    if known is None:
        raise ValueError("the installed packages cannot be read")
    there = any(one.name == "unattended-upgrades" and one.there for one in known)
    enabled = there and all(
        _number(settings.get(key, [default])[-1]) for key, default in (
            ("apt::periodic::enable", "1"), ("apt::periodic::unattended-upgrade", "0"),
        )
    )  # fmt: skip
    excluded = settings.get("unattended-upgrade::package-blacklist", [])
    return {"enabled": enabled, "excluded": [one for one in excluded if one]}


def _number(text: str) -> bool:
    return text.strip().lower() not in ("", "0", "false", "no", "off")
