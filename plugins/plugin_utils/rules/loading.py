# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is the driver's module loaded where it should be? Asked by the planner, which loads it, and by a rule."""

from __future__ import annotations

from ..model.facts import UNKNOWN, each
from ..model.host import Module
from . import kernels
from .context import SHARED_KERNEL, Card, Context

_ON_TRIAL = ("armed", "booted", "healthy")  # the units of the trial judge it by its module themselves


def without_driver(context: Context) -> list[Card]:
    """Return the GPUs that no driver drives since no nvidia module is loaded; none where that is right or not known.

    It is right where no driver is installed yet (what installs it loads it), where it is another's (the operator's,
    or the machine's that a container runs on), and while a reboot, a trial or a transaction is under way.
    """
    host = context.host
    driver, modules = host.driver, host.modules
    if driver.loaded is not None or not context.wants_driver or context.installed is None:
        return []
    if host.os.virt in SHARED_KERNEL or driver.origin == "operator" or driver.nouveau_loaded is True:
        return []
    if host.boot.trial_phase in _ON_TRIAL or host.open_transaction:
        return []
    if isinstance(modules, tuple) and "nvidia" in modules:
        return []
    return [card for card in each(context.cards) if card.gpu.driver is None]


def can_load(context: Context) -> bool:
    """Say whether the running kernel has the module that is planned: then nothing but modprobe is lacking."""
    kernel, chosen = context.host.kernel(context.host.running), context.candidate
    if kernel is None or chosen is None or kernel.release not in context.driver.kernels:
        return False
    return kernels.has_module_of(kernel, chosen)


def why_not(context: Context) -> str:
    """Return what the facts say of the running kernel's module."""
    host = context.host
    running, kernel = host.running, host.kernel(host.running)
    if not isinstance(running, str):
        return f"which kernel runs is not known ({host.why_unknown('kernel.running')})"
    if kernel is None:
        if isinstance(host.kernels, tuple):
            return f"the running kernel {running} is not installed any more, and its modules are gone with it"
        return f"which modules {running} has is not known ({host.why_unknown('kernel.installed')})"
    module = kernel.module
    if isinstance(module, Module):
        if module.vermagic_ok is False:
            return f"the module that the running kernel {running} has was built for another kernel"
        return f"the running kernel {running} has the module ({module.version or 'of unknown version'})"
    if module is UNKNOWN:
        return f"whether {running} has one is not known ({host.why_unknown(f'kernel.installed[{running}].nvidia')})"
    return f"the running kernel {running} has none"


def way_back(context: Context) -> str | None:
    """Return the way out by a restart, where the kernel that starts next has a module and the running one has not."""
    host = context.host
    default, running = host.kernel(host.default_boot), host.kernel(host.running)
    if default is None or default is running or not kernels.has_module(default):
        return None
    if running is not None and kernels.has_module(running):
        return None
    return f"drain the host and restart it: {default.release}, which starts next, has its module"
