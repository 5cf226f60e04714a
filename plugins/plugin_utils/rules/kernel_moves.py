# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about kernels that move: what holds them back, whether they can be tried, and what moved behind our back."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator

from ..model.facts import each
from ..model.host import Kernel, Module
from ..model.packages import Command
from . import kernels
from .context import Context
from .registry import Hit, plan_rule

_DESIGN = "docs/design.md, section 7"
_PATIENCE = 30  # days for which a security kernel that waits is nothing to be told about more than once
_HOLDS_APART = "https://manpages.debian.org/bookworm/apt/apt-mark.8.en.html"
_ZYPPER = (
    "let it in once its module is proved: gpu_kernel_policy: gated, then playbook kernel_upgrade.yml. While it is held "
    "zypper patch installs no patch that needs it: use zypper patch --skip-not-applicable-patches"
)
DRIFT = ("KRN020", "KRN021", "KRN022", "KRN023")  # what playbook verify.yml fails for


@plan_rule(
    "KRN016", "error", "The new kernel cannot be tried once",
    why="A kernel becomes the default after one boot that went well. Where GRUB cannot write, the entry that was to "
        "start once starts for ever, and a kernel that does not come up has no way back.",
    remedy="a plain partition for /boot; or waive this rule (gpu_findings_waived), bring the kernel in, and "
           "make it the default by hand with a console at hand",
    sources=[_DESIGN, "https://www.gnu.org/software/grub/manual/grub/html_node/Environment-block.html"],
)
def no_trial(context: Context) -> Iterator[Hit]:
    """Fires when the policy is gated, a kernel is about to move and the boot loader cannot start it once."""
    decision = context.kernel
    moving = decision.stage["release"] if decision.stage is not None else decision.trial_release
    if decision.policy == "gated" and moving is not None and decision.trial == "unavailable":
        yield Hit(moving, f"{moving} cannot be tried before it becomes the default: {decision.trial_reason}")


@plan_rule(
    "KRN017", "info", "A kernel on offer is refused",
    why="It would leave the host without a module that the present kernel has.",
    remedy="wait for the module, or build what is lacking; the plan looks again at each run",
    sources=[_DESIGN],
)
def refused(context: Context) -> Iterator[Hit]:
    """Fires for each kernel on offer that the gate refuses; a warning for one that fixes vulnerabilities."""
    offers = {offer.release: offer for offer in each(context.host.offers)}
    for one in context.kernel.refused:
        offer = offers.get(one["release"])
        urgent = offer is not None and offer.security is True and context.kernel.stage is None
        yield Hit(one["release"], f"{one['release']} is on offer and refused: {one['why']}",
                  severity="warning" if urgent else None)


@plan_rule(
    "KRN018", "info", "A kernel with security fixes is held back",
    why="A hold keeps security fixes out as well; somebody should know since when.",
    remedy="let it in once its module is proved: gpu_kernel_policy: gated, then playbook kernel_upgrade.yml",
    sources=[_DESIGN],
)
def security_held_back(context: Context) -> Iterator[Hit]:
    """Fires when a hold keeps out a kernel from a security source; a warning once that is a month ago."""
    if context.wishes.kernel_policy != "hold" or not context.has_gpus:
        return
    waiting = [offer for offer in each(context.host.offers) if offer.security is True]
    name, told, fixed = _advised(context)
    if waiting:
        name = waiting[0].release
        told = [offer.since for offer in waiting if isinstance(offer.since, str)] or told
        fixed |= {cve for offer in waiting for cve in each(offer.cves)}
    elif name is None:
        name, told = _from_security(context)
    if name is None:
        return
    days = [day for one in told if (day := _day(one)) is not None]
    held = _day(context.host.held_since)
    # held before it came out: it waits since it came out; out before it was held: since then
    since = max([*([held] if held else []), min(days)]) if days else None
    age = (context.now - since).days if since is not None else None
    text = f"{name} fixes vulnerabilities and is held back"
    if since is not None:
        text += f" since {since} ({age} days)"
    else:
        text += f" (kernels are held since {held})" if held else "; since when is not known"
    cves = sorted(fixed, reverse=True)  # the newest first
    text += f": {', '.join(cves[:5])}{f' and {len(cves) - 5} more' if len(cves) > 5 else ''}" if cves else ""
    blocked = context.host.packages.manager == "zypper"
    yield Hit(name, text, _ZYPPER if blocked else None,
              severity="warning" if age is not None and age > _PATIENCE else None)


def _advised(context: Context) -> tuple[str | None, list[str], set[str]]:
    """Return the kernel of the newest security advisory, when the advisories were issued, and what they fix."""
    advisories = context.host.packages.advisories
    name, told, fixed = None, [], set()
    for package, versions in advisories.items() if isinstance(advisories, dict) else ():
        for version, row in versions.items():
            name = f"{package} {version}"
            told += [str(row["since"])] if row.get("since") else []
            fixed |= {str(cve) for cve in row.get("cves") or ()}
    return name, told, fixed


def _from_security(context: Context) -> tuple[str | None, list[str]]:
    """Return the meta that a security source would move, and when it was first seen, where no resolver was asked."""
    host, seen = context.host.packages, context.host.seen
    if context.packaging is None or not isinstance(host.origins, dict):
        return None, []
    for name in context.packaging.kernel.metas:
        newest, origins = next(each(host.offers(name)), None), host.origins.get(name)
        moves = newest is not None and isinstance(host.version(name), str) and newest != host.version(name)
        if moves and isinstance(origins, dict) and "security" in str(origins.get(newest)):
            first = seen.get(name) if isinstance(seen, dict) else None
            return f"{name} {newest}", [str(first)] if first else []
    return None, []


def _day(value: object) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(str(value)[:10])
    except ValueError:
        return None


@plan_rule(
    "KRN019", "warning", "The trial boot of a kernel failed",
    why="It was started once and did not come up with its module; the host is back on the proved kernel.",
    remedy="read the reason and the journal of that boot (journalctl -b -1). The kernel is tried again only when "
           "gpu_kernel_release names it",
    sources=[_DESIGN],
)
def trial_failed(context: Context) -> Iterator[Hit]:
    """Fires when the facts tell of a trial that failed, or of one that was used up without a word."""
    failed = kernels.failed_trial(context)
    if failed is not None:
        yield Hit(failed[0], f"the trial boot of {failed[0]} failed: {failed[1]}")


@plan_rule(
    "KRN020", "warning", "Holds of ours were taken away",
    why="What is not held moves with the next upgrade, automatic ones included.",
    remedy="the plan holds them again; find out who released them",
    sources=[_DESIGN, _HOLDS_APART],
)
def holds_gone(context: Context) -> Iterator[Hit]:
    """Fires for packages that we hold by our own records, and that are installed and free."""
    host = context.host.packages
    if not isinstance(host.held, tuple) or not isinstance(host.installed, dict):
        return
    free = [name for name in context.host.own_holds if name in host.installed and name not in host.held]
    if free and not context.host.open_transaction:
        yield Hit(free[0], f"{_few(free)} {'was' if len(free) == 1 else 'were'} held by us and "
                           f"{'is' if len(free) == 1 else 'are'} free now{_by(context, free)}")


@plan_rule(
    "KRN021", "warning", "A kernel came in behind our back",
    why="Nobody proved a module for it, and the boot loader may prefer it.",
    remedy="the plan keeps the boot default; remove that kernel, or let the plan prove it",
    sources=[_DESIGN],
)
def kernel_came(context: Context) -> Iterator[Hit]:
    """Fires for an unproved kernel that came since we hold kernels, by the package manager's log, or dpkg's or rpm's.

    What ``dpkg -i`` and ``rpm -i`` bring stands in no log of a package manager.
    """
    if not isinstance(context.host.proved, tuple) or not context.host.proved or not context.wants_driver:
        return
    for kernel in each(context.host.kernels):
        if kernel.release in context.host.proved or kernel.image is not True:
            continue
        command, since = _command(context, _words(kernel)), context.host.held_since
        if command is not None and not (isinstance(since, str) and command.when < since):
            yield Hit(kernel.release, f"{kernel.release} came in without a proof{_said(command)}")
        elif isinstance(kernel.arrived, Command) and isinstance(since, str) and kernel.arrived.when >= since:
            yield Hit(kernel.release, f"{kernel.release} came in without a proof, by no command that the package "
                                      f"manager's log has{_said(kernel.arrived)}")


@plan_rule(
    "KRN022", "warning", "The boot default was moved behind our back",
    why="The next boot starts another kernel than the one that was proved.",
    remedy="the plan sets it back",
    sources=[_DESIGN],
)
def default_moved(context: Context) -> Iterator[Hit]:
    """Fires when we have proved kernels, and the boot loader starts one that is none of them."""
    host, default = context.host, context.host.default_boot
    if not isinstance(host.proved, tuple) or not isinstance(default, str) or context.kernel.policy == "off":
        return
    if default in host.proved or default == context.boot or context.boot not in host.proved:
        return
    yield Hit(default, f"the boot loader starts {default} by default, not {context.boot}, which was proved"
                       f"{_by(context, _words(host.kernel(default)) or [default])}")


@plan_rule(
    "KRN023", "warning", "The module of a proved kernel is gone",
    why="It was there when the kernel was proved; the next boot of it has no GPUs.",
    remedy="the plan builds it again; find out what removed it",
    sources=[_DESIGN],
)
def module_gone(context: Context) -> Iterator[Hit]:
    """Fires when a kernel that we proved, still installed, has no module that fits it any more."""
    if not isinstance(context.host.proved, tuple) or not context.wants_driver:
        return
    for kernel in each(context.host.kernels):
        lost = kernel.module is None or (isinstance(kernel.module, Module) and not kernels.has_module(kernel))
        if kernel.release in context.host.proved and kernel.image is True and lost:
            yield Hit(kernel.release, f"{kernel.release} was proved and has no nvidia module any more"
                                      f"{_by(context, [*_words(kernel), 'nvidia'])}")


@plan_rule(
    "KRN024", "info", "The boot loader is only read",
    why="Default, trial and way back are built for GRUB; systemd-boot is told apart and left alone.",
    remedy="set the default by hand (bootctl set-default), and move kernels by hand with a console at hand",
    sources=[_DESIGN, "https://www.freedesktop.org/software/systemd/man/latest/bootctl.html"],
)
def read_only_loader(context: Context) -> Iterator[Hit]:
    """Fires on a host with GPUs that systemd-boot starts."""
    loader = context.host.loader
    if loader == "systemd-boot" and context.has_gpus and context.kernel.policy != "off":
        yield Hit(str(loader), f"the boot loader is systemd-boot: its default, "
                               f"{context.host.default_boot or 'which could not be read'}, is shown and not set")


@plan_rule(
    "KRN025", "info", "A hang in the trial boot needs a power cycle",
    why="A kernel that panics restarts by itself and the present one follows; one that hangs needs a watchdog to.",
    remedy="have a way to the power (BMC), or load the driver of the board's watchdog",
    sources=[_DESIGN, "https://docs.kernel.org/watchdog/index.html"],
)
def no_watchdog(context: Context) -> Iterator[Hit]:
    """Fires when a trial is ahead on a host without a watchdog."""
    decision = context.kernel
    release = decision.stage["release"] if decision.stage is not None else decision.trial_release
    if decision.power_cycle is not None and decision.trial == "available" and release is not None:
        yield Hit(release, decision.power_cycle)


@plan_rule(
    "KRN026", "warning", "What kernels are on offer could not be read",
    why="Under gated, no offer and an offer that nobody saw look the same; security kernels would wait unseen.",
    remedy="read the reason, put the package manager right (what does apt-get -s dist-upgrade say?), run again",
    sources=[_DESIGN],
)
def offers_unknown(context: Context) -> Iterator[Hit]:
    """Fires when the policy is gated and the resolver was asked and did not answer."""
    reason = context.host.reasons.get("kernel.candidates")
    if context.wishes.kernel_policy == "gated" and context.wants_driver and reason is not None:
        yield Hit("kernel.candidates", f"which kernels an upgrade would bring could not be read: {reason}")


def _few(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _words(kernel: Kernel | None) -> list[str]:
    """How the package log may name a kernel: rpm's names have neither a flavour like +rt nor SUSE's like -default."""
    if kernel is None:
        return []
    return [kernel.release, *([kernel.image_package] if isinstance(kernel.image_package, str) else [])]


def _command(context: Context, words: Iterable[str]) -> Command | None:
    """Return the newest command of the package log that moved one of these names (or names with such a word in it)."""
    wanted = tuple(words)
    found = [one for one in each(context.host.packages.history)
             if any(word in name for word in wanted for name in one.names)]
    return max(found, key=lambda one: one.when) if found else None


def _said(command: Command) -> str:
    who = f" by {command.user}" if isinstance(command.user, str) else ""
    return f": {command.command or 'a command without a name'}{who}, {command.when or 'at an unknown time'}"


def _by(context: Context, words: Iterable[str]) -> str:
    command = _command(context, words)
    return _said(command) if command is not None else "; the package log does not say by what"
