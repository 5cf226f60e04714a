# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of role gpu_driver: sources, packages, modules, files and services."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...model.facts import UNKNOWN, each
from ...model.plan import Change, Disruption
from ...rules import kernels, loading
from ...rules.context import Context
from ...rules.secure_boot import CONSOLE
from .. import family, modules, ramdisks, repositories, runfiles, secure_boot
from . import files
from . import kernel as kernel_changes

ROLE = "gpu_driver"


def changes(context: Context) -> Iterator[Change]:
    """Yield the changes in the order in which the role makes them."""
    mok = context.driver.mok
    stays = context.host.driver.origin == "runfile" and context.driver.runfile is None
    if mok is None or mok["state"] == "enrolled" or stays:
        yield from _steps(context)
        return
    if mok["state"] == "wanted":
        leave = None if context.wishes.mok_password else "gpu_mok_password"
        yield Change(ROLE, "mok", mok["certificate"], "not enrolled", "enrolment asked for", needs=leave,
                     why="with Secure Boot on, the kernel takes modules that are signed with an enrolled key alone")
    # nothing is installed as if it would load: all of it waits for the key
    yield from (replace(one, needs=CONSOLE) for one in _steps(context))


def _steps(context: Context) -> Iterator[Change]:
    stays = context.host.driver.origin == "runfile" and context.driver.runfile is None
    if not context.wants_driver or context.candidate is None or stays:
        return
    yield from runfiles.held_back(context, _all_steps(context))


def _all_steps(context: Context) -> Iterator[Change]:
    steps = [*_prerequisites(context), *_prove(context), *_repair(context)]
    moves = [*runfiles.before_packages(context), *_stream(context), *_remove(context), *_packages(context)]
    steps += runfiles.tied(context, [*moves, *_again(context), *_fabric(context)])
    yield from _sources(context, bool(steps))
    if any(step.action in ("install", "upgrade") for step in steps):
        yield from _pin(context)
    yield from steps
    yield from _sign(context)
    yield from _module_options(context)
    yield from _files(context)
    yield from _initramfs(context)
    yield from _reload(context)
    yield from _services(context)
    yield from _running(context)


def _sources(context: Context, fetches: bool) -> Iterator[Change]:
    for repository in context.driver.repositories:
        if repository["missing"] or files.before(context, repository["path"]) not in (
            None, files.digest(repository["content"])
        ):
            yield Change(ROLE, "repository", repository["name"], None, repository["path"])
    for path in repositories.twins(context, context.driver.repositories):
        yield Change(ROLE, "repository", path, path, None, why="it names the same repository a second time")
    if any(repository.get("replaces") for repository in context.driver.repositories):
        for one in repositories.wrong(context):
            yield Change(ROLE, "repository", one.file, one.url, None, why="it is of another release of the system")
    for one in context.driver.mend:
        yield Change(ROLE, "repository", one["path"], one["url"], None, why=one["why"])
    age = context.host.packages.cache_age
    if fetches and isinstance(age, (int, float)) and age > context.wishes.cache_max_age:
        yield Change(ROLE, "cache_refresh", "package lists", f"{int(age)} s old", "fresh")


def _pin(context: Context) -> Iterator[Change]:
    """Yield the preference for one place, when packages move: an installed driver is held anyway."""
    wanted = context.driver.preferences
    if wanted is not None and files.differs(context, wanted["path"], wanted["content"]):
        yield Change(ROLE, "pin", wanted["path"], files.before(context, wanted["path"]),
                     files.digest(wanted["content"]), why="libraries and module come from one place")


def _repair(context: Context) -> Iterator[Change]:
    gone = set(context.kernel.remove)
    for name in each(context.host.packages.broken):
        if name not in gone and (family.is_driver_package(name) or family.is_module_package(name)):
            yield Change(ROLE, "repair", name, "half-installed", "installed", "daemon_reload")
    if files.denial_is_left(context) and not kernel_changes.is_ours(context):    # else that role does it
        yield Change(ROLE, "repair", files.DENIAL, "no service is started by packages", None,
                     why="a run that was cut off left it")


def _prerequisites(context: Context) -> Iterator[Change]:
    """Yield what a build needs and the host lacks, where there is something to build."""
    chosen, host = context.candidate, context.host
    if chosen is None or not isinstance(host.packages.installed, dict):
        return
    to_build = [kernel for release in context.driver.kernels if (kernel := host.kernel(release)) is not None
                and not kernels.has_module_of(kernel, chosen)]
    for name in context.driver.prerequisites if to_build else ():
        if name not in host.packages.installed and (name == "dkms" or name.startswith("gcc")):
            offers = host.packages.offers(name)
            yield Change(ROLE, "install", name, None, next(each(offers), None) or "as offered", "daemon_reload",
                         why=f"to build the module for {to_build[0].release}")


def _prove(context: Context) -> Iterator[Change]:
    chosen = context.candidate
    if chosen is None or chosen.method != "dkms":
        return
    for release in context.driver.kernels:
        kernel = context.host.kernel(release)
        if kernel is None or not kernels.has_module_of(kernel, chosen):
            before = kernel.module.version if kernel is not None and kernel.module else None
            yield Change(ROLE, "prove", release, before if isinstance(before, str) else None,
                         f"{chosen.version or 'R' + chosen.branch} ({chosen.flavour})", why="needs_build")


def _stream(context: Context) -> Iterator[Change]:
    """Yield the module stream of dnf that is switched with the packages."""
    modules = context.host.packages.modules
    for name, stream in context.driver.streams.items():
        here = modules.get(name) if isinstance(modules, dict) else None
        before = here.get("stream") if isinstance(here, dict) else None
        yield Change(ROLE, "stream", name, str(before) if before else None, stream, _disruption(context))


def _again(context: Context) -> Iterator[Change]:
    """Yield packages whose module is not where it belongs."""
    for name in context.driver.reinstall:
        version = context.host.packages.version(name)
        yield Change(ROLE, "reinstall", name, f"{version} without its module", str(version), _disruption(context))


def _remove(context: Context) -> Iterator[Change]:
    for name in context.driver.remove:
        version = context.host.packages.version(name)
        yield Change(ROLE, "remove", name, version if isinstance(version, str) else None, None, _disruption(context))


def _packages(context: Context) -> Iterator[Change]:
    host = context.host.packages
    for name, version in context.driver.packages.items():
        there = host.version(name)
        if isinstance(there, str) and (version is None or there == version):
            continue
        yield Change(ROLE, "upgrade" if isinstance(there, str) else "install", name,
                     there if isinstance(there, str) else None, version or "as offered", _disruption(context))


def _disruption(context: Context) -> Disruption:
    """Say what replacing the driver's files does: under a loaded module of another version it needs a reboot."""
    driver = context.host.driver
    return "reboot" if isinstance(driver.loaded, str) and _loaded_moves(context) else "daemon_reload"


def _loaded_moves(context: Context) -> bool:
    return context.host.driver.loaded != context.driver.version or _flavour_moves(context)


def _flavour_moves(context: Context) -> bool:
    loaded = context.host.driver.loaded_flavour
    return isinstance(loaded, str) and loaded in ("open", "proprietary") and loaded != context.driver.flavour


def _fabric(context: Context) -> Iterator[Change]:
    host = context.host.packages
    for name, version in context.driver.fabric.items():
        there = host.version(name)
        if isinstance(there, str) and (version is None or there == version):
            continue
        yield Change(ROLE, "fabricmanager", name, there if isinstance(there, str) else None,
                     version or context.driver.version, _disruption(context))


def _module_options(context: Context) -> Iterator[Change]:
    wanted = context.driver.modprobe
    if wanted is None or not files.differs(context, wanted["path"], wanted["content"]):
        return
    nouveau = context.host.driver.nouveau_blocked
    if files.entry(context, wanted["path"]) is UNKNOWN and nouveau is True:
        return
    yield Change(ROLE, "module_options", wanted["path"], files.before(context, wanted["path"]),
                 files.digest(wanted["content"]), why="nouveau is blocked")


def _files(context: Context) -> Iterator[Change]:
    """Yield files that are not as they should be; where the facts do not tell of them nothing is known."""
    for wanted in context.driver.files:
        there = files.entry(context, wanted["path"])
        if there is not UNKNOWN and files.differs(context, wanted["path"], wanted["content"]):
            yield Change(ROLE, "file", wanted["path"], files.before(context, wanted["path"]),
                         files.digest(wanted["content"]), why=wanted["why"])


def _running(context: Context) -> Iterator[Change]:
    """Yield the driver's module where it is not loaded, else what is loaded beside it, and persistence mode."""
    idle = loading.without_driver(context)
    if idle and loading.can_load(context):
        yield Change(ROLE, "load", "nvidia", "not loaded", "loaded",
                     why=f"no driver has {', '.join(card.gpu.address for card in idle)}")
    if not isinstance(context.host.driver.loaded, str):
        return
    here = context.host.modules
    lacking = [name for name in context.driver.modules if name not in here] if isinstance(here, tuple) else []
    for name in lacking:
        yield Change(ROLE, "load", name, "not loaded", "loaded")
    for address in modules.persistence_off(context):
        yield Change(ROLE, "persistence", address, "off", "on", why="without it the driver lets go of an idle GPU")


def _initramfs(context: Context) -> Iterator[Change]:
    moving = any((*_packages(context), *_again(context)))
    for release in context.driver.initramfs:
        kernel = context.host.kernel(release)
        if kernel is None:
            continue
        before, after, why = ramdisks.words(context, kernel)
        # the image follows the module on disk: where that waits for leave, so does this
        waits = moving and not ramdisks.holds_nouveau(context, kernel) and ramdisks.moves(context, kernel)
        yield Change(ROLE, "initramfs", release, before, after, _disruption(context) if waits else "none", why=why)


def _sign(context: Context) -> Iterator[Change]:
    """Yield the kernels whose module was built before there was a key, or with another one."""
    if context.candidate is None or context.driver.mok is None:
        return
    for release in secure_boot.unsigned(context, context.candidate):
        yield Change(ROLE, "sign", release, "not signed with the enrolled key",
                     f"signed by {context.driver.mok['name']}")


def _reload(context: Context) -> Iterator[Change]:
    """Yield the reboot that a bound nouveau or a loaded module of another version needs."""
    driver, wanted = context.host.driver, context.driver.version
    running = context.host.kernel(context.host.running)
    if driver.nouveau_loaded is True and driver.loaded is None:
        yield Change(ROLE, "reboot", "nouveau", "nouveau drives the GPUs", f"nvidia {wanted}", "reboot")
    elif isinstance(driver.loaded, str) and running is not None and _loaded_moves(context):
        before = f"{driver.loaded} ({driver.loaded_flavour}) is loaded" if driver.loaded_flavour else driver.loaded
        yield Change(ROLE, "reboot", "nvidia module", before, f"{wanted} ({context.driver.flavour})", "reboot")


def _services(context: Context) -> Iterator[Change]:
    """Yield services that are not enabled, and those that do not run although the module is loaded."""
    known = context.host.services
    loaded = isinstance(context.host.driver.loaded, str)
    for name, wanted in context.driver.services.items():
        state: Any = known.get(name, UNKNOWN) if isinstance(known, dict) else UNKNOWN
        active = _active(context, name, state)
        if isinstance(state, dict) and state.get("enabled") is not True:
            yield Change(ROLE, "service", name, "disabled", "enabled")
        elif loaded and active is False:
            yield Change(ROLE, "service", name, "stopped", wanted["state"])
        elif not isinstance(state, dict) and active is not True:
            yield Change(ROLE, "service", name, None, "enabled")


def _active(context: Context, name: str, state: Any) -> Any:
    if isinstance(state, dict):
        return state.get("active", UNKNOWN)
    driver = context.host.driver
    return driver.fabricmanager_active if "fabricmanager" in name else driver.persistenced_active
