# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about restarts: what they go past, under whom they happen, and what lasts until the next one."""

from __future__ import annotations

from collections.abc import Iterator

from ...module_utils.boot import host as trials
from ...module_utils.facts import kexec
from .context import Context
from .registry import Hit, plan_rule

_DESIGN = "docs/design.md, section 7"
# services that are, or start, the kubelet of a node
_KUBELETS = ("kubelet.service", "k3s.service", "k3s-agent.service", "rke2-server.service", "rke2-agent.service",
             "k0scontroller.service", "k0sworker.service", "snap.microk8s.daemon-containerd.service")


def _moves(context: Context) -> str | None:
    """Return the release of the kernel that is about to come in or to be tried."""
    decision = context.kernel
    return decision.stage["release"] if decision.stage is not None else decision.trial_release


@plan_rule(
    "KRN028", "warning", "A restart goes past the boot loader",
    why="kexec starts a kernel without GRUB: the proved default does not count, and nothing can be started once. With "
        "a new kernel on the disk any restart would start it untried.",
    remedy="take what is loaded out (kexec --unload), and set LOAD_KEXEC=false",
    sources=[_DESIGN, "https://manpages.debian.org/bookworm/kexec-tools/kexec.8.en.html",
             "https://packages.debian.org/bookworm/kexec-tools"],
)
def past_the_loader(context: Context) -> Iterator[Hit]:
    """Fires where kexec takes the next restart; an error where a kernel is about to move, also when it is not known."""
    if not context.has_gpus or context.borrowed_kernel or context.kernel.policy == "off":
        return
    found, moving = context.host.boot.kexec, _moves(context)
    detour = kexec.detour(found) if isinstance(found, dict) else None
    if detour is not None:
        more = f"; {moving} is neither brought in nor tried before that has an end" if moving is not None else ""
        yield Hit("kexec", f"{detour.why}{more}", detour.way_out, severity="error" if moving is not None else None)
    elif moving is not None and "boot.kexec" in context.host.reasons:
        yield Hit("kexec", "whether a restart goes past GRUB by kexec could not be read "
                           f"({context.host.why_unknown('boot.kexec')}); {moving} has to wait until that is known",
                  "read the reason, put it right, run again", severity="error")


@plan_rule(
    "KRN029", "warning", "A node of a cluster is restarted without being drained",
    why="The restart that tries a kernel, or loads another driver, waits for GPU processes alone: other pods of the "
        "node go down with it, past their disruption budgets, and the scheduler goes on sending new ones.",
    remedy="set gpu_drain_tasks to a file with tasks that drain the node, and gpu_undrain_tasks to one that gives it "
           "its work back",
    sources=[_DESIGN, "https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/"],
)
def not_drained(context: Context) -> Iterator[Hit]:
    """Fires when a kernel or a driver restarts a host with an active kubelet, and gpu_drain_tasks is empty."""
    unit = _kubelet(context)
    if unit is None or context.wishes.drain_tasks:
        return
    moving, restarts = _moves(context), []
    if moving is not None and context.kernel.trial == "available":
        restarts.append(f"the trial boot of {moving}")
    if any(change.role == "gpu_driver" and change.disruption == "reboot" for change in context.changes):
        restarts.append(f"the move to driver {context.driver.version}")
    for what in restarts:
        yield Hit(context.name, f"{what} restarts this node of a cluster ({unit} is active) under the pods that run on "
                                "it: gpu_drain_tasks is empty")


def _kubelet(context: Context) -> str | None:
    """Return the unit by which this host is an active node of a cluster, None where it is none."""
    services = context.host.services
    rows = {unit: services.get(unit) for unit in _KUBELETS} if isinstance(services, dict) else {}
    return next((unit for unit, row in rows.items() if isinstance(row, dict) and row.get("active") is True), None)


@plan_rule(
    "KRN030", "info", "The running kernel keeps the arguments of its trial",
    why="They make an oops or a lock-up end in a restart, as a trial needs it; a command line cannot be changed while "
        "its kernel runs.",
    remedy="nothing has to be done: the next restart starts it without them",
    sources=[_DESIGN, "https://docs.kernel.org/admin-guide/kernel-parameters.html"],
)
def keeps_trial_arguments(context: Context) -> Iterator[Hit]:
    """Fires when the running kernel was started for a trial that is over, and has not been restarted since."""
    host = context.host
    if context.borrowed_kernel or not isinstance(host.cmdline, str) or isinstance(host.boot.trial_phase, str):
        return
    kept = trials.arguments_in(host.cmdline)
    if kept is not None and isinstance(host.running, str):
        yield Hit(host.running, f"{host.running} runs as it was started for its trial, with {kept}, until the next "
                                "restart: an oops or a lock-up restarts the host by itself")
