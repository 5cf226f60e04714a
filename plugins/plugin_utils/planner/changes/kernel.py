# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of role gpu_kernel: what is held, what may start, what has to go."""

from __future__ import annotations

from collections.abc import Iterator

from ...model.facts import UNKNOWN, Reader, each, or_none
from ...model.plan import Change
from ...rules.context import Context
from .. import family
from . import files

ROLE = "gpu_kernel"
PLAYBOOK = "playbook kernel_upgrade.yml"


def changes(context: Context) -> Iterator[Change]:
    """Yield the changes in the order in which the role makes them."""
    if not is_ours(context):
        return
    yield from _recover(context)
    yield from _remove(context)
    yield from _headers(context)
    yield from _hold(context)
    yield from _pins(context)
    yield from _manual(context)
    yield from _boot(context)
    yield from _guard(context)
    yield from _move(context)


def is_ours(context: Context) -> bool:
    """Whether this role does anything on the host."""
    return context.has_gpus and context.kernel.policy != "off" and not context.borrowed_kernel


def _recover(context: Context) -> Iterator[Change]:
    """Yield what a run was cut off in: it is finished or taken back before anything else."""
    opened = Reader(context.host.open_transaction)
    if or_none(opened.text("role")) == ROLE:
        what = or_none(opened.text("what")) or "a transaction"
        yield Change(ROLE, "recover", what, "cut off", "finished or taken back", "daemon_reload")
    for path in context.host.stage_left:
        yield Change(ROLE, "recover", path, "left by a run that was cut off", None, "daemon_reload",
                     why="no transaction is open that it belongs to")
    if files.denial_is_left(context):
        yield Change(ROLE, "recover", files.DENIAL, "no service is started by packages", None,
                     why="a run that was cut off left it")


def _guard(context: Context) -> Iterator[Change]:
    """Yield the guard against commands typed by hand, where it is not as it should be and can be."""
    wanted, there = context.kernel.guard, context.host.packages.guard
    facts = there if isinstance(there, dict) else {}
    here, can = list(facts.get("via") or ()), list(facts.get("can") or ())
    if wanted is None:
        if here:
            yield Change(ROLE, "guard", ", ".join(map(str, here)), "in place", None, why="gpu_kernel_guard is false")
        return
    if there is not UNKNOWN and not can:
        return
    allowed = sorted({*wanted["allowed"], *wanted["proved"]})
    if here != can or facts.get("allowed") != allowed or facts.get("proved") != wanted["proved"]:
        yield Change(ROLE, "guard", ", ".join(map(str, can)) or "guard", facts.get("allowed") or None, allowed)


def _move(context: Context) -> Iterator[Change]:
    """Yield the steps of playbook kernel_upgrade.yml that are due, in its order."""
    decision, release = context.kernel, context.kernel.boot
    if decision.stage is not None:
        yield Change(ROLE, "stage", decision.stage["release"], None, "installed, default stays " + str(release),
                     "daemon_reload", needs=PLAYBOOK, why=_module(decision.stage["module"]))
    if decision.commit is not None:
        yield Change(ROLE, "commit", decision.commit, f"default {release}, on trial", f"default {decision.commit}",
                     needs=PLAYBOOK, why="its trial boot was healthy")
    elif decision.trial_release is not None and decision.trial == "available":
        yield Change(ROLE, "trial", decision.trial_release, f"default {release}", "started once", "reboot",
                     needs=PLAYBOOK, why="its module is in its place")
    for pruned in decision.prune if decision.stage is None and decision.trial_release is None else ():
        yield Change(ROLE, "prune", pruned, "installed", None, "daemon_reload", needs=PLAYBOOK,
                     why=f"gpu_kernel_keep is {context.wishes.kernel_keep}")


def _module(module: dict[str, str]) -> str:
    if module["method"] == "dkms":
        return "needs_build: its module is built in a scratch tree before any package is touched"
    return f"{module['package']} {module['version']} is opened and checked before any package is touched"


def _remove(context: Context) -> Iterator[Change]:
    for name in context.kernel.remove:
        version = context.host.packages.version(name)
        yield Change(ROLE, "remove", name, version if isinstance(version, str) else None, None, "daemon_reload",
                     why=f"half-configured; the host starts {context.kernel.boot}")


def _headers(context: Context) -> Iterator[Change]:
    for name in context.kernel.headers:
        offers = context.host.packages.offers(name)
        yield Change(ROLE, "headers", name, None, next(each(offers), None) or "as offered", "daemon_reload")


def _hold(context: Context) -> Iterator[Change]:
    host = context.host.packages
    if not isinstance(host.installed, dict):
        for name in context.kernel.hold:
            yield Change(ROLE, "hold", name, None, "held")
        return
    held = set(each(host.held)) if host.held is not UNKNOWN else set()
    gone = {*context.kernel.remove, *context.driver.remove}
    wanted = [name for name in context.kernel.hold if name in host.installed]
    if context.wants_driver and not _driver_moves(context):
        wanted += [name for name in context.driver.hold if name in host.installed and family.is_driver_package(name)]
    for name in dict.fromkeys(wanted):
        if name not in held and name not in gone:
            yield Change(ROLE, "hold", name, "free", f"held at {host.installed[name]}")


def _driver_moves(context: Context) -> bool:
    """Say whether the driver's packages change in this run: then its role holds the new ones itself."""
    return context.candidate is not None and not context.candidate.installed


def _pins(context: Context) -> Iterator[Change]:
    for action, wanted in (("deny", context.kernel.preferences), ("auto_upgrades", context.kernel.auto_upgrades)):
        if wanted is not None and files.differs(context, wanted["path"], wanted["content"]):
            target = ", ".join(context.kernel.deny) if action == "deny" and context.kernel.deny else wanted["path"]
            yield Change(ROLE, action, target, files.before(context, wanted["path"]),
                         files.digest(wanted["content"]) if wanted["content"] else None)
    if context.kernel.preferences is None:
        host = context.host.packages
        held = set(each(host.held))
        for name in context.kernel.deny:
            if name not in held:
                yield Change(ROLE, "deny", name, "may come in", "blocked")


def _manual(context: Context) -> Iterator[Change]:
    manual = context.host.packages.manual
    if not isinstance(manual, tuple):
        return
    for name in context.kernel.manual:
        if name not in manual:
            yield Change(ROLE, "manual", name, "automatic", "manual")


def _boot(context: Context) -> Iterator[Change]:
    wanted, host = context.kernel.boot, context.host
    if wanted is None or context.kernel.boot_default is None or host.loader is None:
        return
    if isinstance(host.default_boot, str) and host.default_boot != wanted:
        yield Change(ROLE, "boot_default", wanted, host.default_boot, wanted)
    elif isinstance(host.default_mode, str) and host.default_mode != "saved":
        yield Change(ROLE, "boot_default", wanted, f"mode {host.default_mode}", "mode saved")
    elif host.default_boot is None and host.loader is not UNKNOWN:
        yield Change(ROLE, "boot_default", wanted, None, wanted)
    else:
        yield from _settings_of_boot(context, wanted)


def _settings_of_boot(context: Context, wanted: str) -> Iterator[Change]:
    """Yield the setting by which the default, right as it is now, would move with the next kernel or the next menu."""
    here = context.host.boot
    if here.update_default is True:
        yield Change(ROLE, "boot_default", wanted, "UPDATEDEFAULT=yes", "UPDATEDEFAULT=no",
                     why="a kernel that comes in, by whatever way, would make itself the default")
    elif isinstance(here.configured_default, str) and here.configured_default != "saved":
        yield Change(ROLE, "boot_default", wanted, f"GRUB_DEFAULT={here.configured_default}", "GRUB_DEFAULT=saved",
                     why="the next menu that is generated would not follow the saved default")
