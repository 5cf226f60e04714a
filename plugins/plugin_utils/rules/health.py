# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about health: what the hardware and the running driver tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..model.facts import each
from . import loading
from .context import Context
from .gpu import labels
from .registry import Hit, plan_rule

_XID = "https://docs.nvidia.com/deploy/xid-errors/"


@plan_rule(
    "HLT001", "warning", "A PCIe link runs below its width",
    why="A card at half its width works at half the bandwidth, and no tool calls it an error.",
    remedy="reseat the card or riser, then check the slot's bifurcation in the firmware",
    sources=["https://github.com/NVIDIA/NVSentinel/issues/890"],
)
def narrow_link(context: Context) -> Iterator[Hit]:
    """Fires when a link is narrower than card and slot allow."""
    for card in each(context.cards):
        gpu = card.gpu
        width, most = gpu.width, gpu.width_max
        if isinstance(width, (int, float)) and isinstance(most, (int, float)) and 0 < width < most:
            yield Hit(gpu.address, f"the PCIe link of {gpu.address} ({card.label}) runs at x{int(width)} of "
                                   f"x{int(most)}")


@plan_rule(
    "HLT002", "warning", "nvidia-smi does not answer",
    why="A query that hangs means a sick GPU or a stuck driver; everything that asks the driver hangs with it.",
    remedy="look for Xid errors in the kernel log; drain the host and restart it",
    sources=["https://github.com/ocf/puppet/pull/615", _XID],
)
def silent_smi(context: Context) -> Iterator[Hit]:
    """Fires when the query tool ran into its deadline, or fails although module and library fit."""
    driver = context.host.driver
    if driver.smi_status == "timeout":
        loaded = f"; the kernel says that {driver.loaded} is loaded" if isinstance(driver.loaded, str) else ""
        yield Hit("nvidia-smi", f"nvidia-smi did not return within its deadline{loaded}: health is unknown")
    elif driver.smi_status == "failed" and isinstance(driver.loaded, str) and driver.loaded == driver.library:
        yield Hit("nvidia-smi", f"nvidia-smi fails although module and library are both {driver.loaded}")


@plan_rule(
    "HLT003", "warning", "A GPU without a NUMA node beside others that have one",
    why="Schedulers that align CPUs and GPUs put such a card anywhere, or refuse it.",
    remedy="update the firmware; the node is told by ACPI (_PXM)",
    sources=["https://github.com/NVIDIA/go-gpuallocator/issues/17"],
)
def no_numa(context: Context) -> Iterator[Hit]:
    """Fires when some GPUs tell their NUMA node and others do not."""
    cards = list(each(context.cards))
    without = [card for card in cards if card.gpu.numa_node is None or card.gpu.numa_node == -1]
    told = [card for card in cards if isinstance(card.gpu.numa_node, (int, float)) and card.gpu.numa_node >= 0]
    if told:
        for card in without:
            yield Hit(card.gpu.address, f"{card.gpu.address} ({card.label}) tells no NUMA node, {len(told)} other "
                                        "GPUs do")


@plan_rule(
    "HLT004", "warning", "Processes are stuck in the driver",
    why="A process in state D cannot be killed; a reboot may hang on it until the power is cut.",
    remedy="drain the host; be ready for a power cycle before a reboot is started",
    sources=[_XID],
)
def hung_tasks(context: Context) -> Iterator[Hit]:
    """Fires when processes hang in the driver."""
    tasks = list(each(context.host.driver.hung_tasks))
    if tasks:
        yield Hit("driver", f"{len(tasks)} processes hang in the driver ({', '.join(tasks[:3])}): a power cycle may "
                            "be needed")


@plan_rule(
    "HLT005", "warning", "The kernel log has Xid errors",
    why="Xid errors are the driver's own reports of faults of GPU or program.",
    remedy="look the number up in NVIDIA's list; drain the host when it names hardware",
    sources=[_XID],
)
def xids(context: Context) -> Iterator[Hit]:
    """Fires when Xid errors were seen."""
    found: Counter[str] = Counter()
    for one in each(context.host.xids):
        number = one.get("xid") if isinstance(one, dict) else one
        if isinstance(number, (int, str)) and not isinstance(number, bool):
            found[str(number)[:16]] += 1
    if found:
        yield Hit("GPU", "Xid errors in the kernel log: "
                         f"{', '.join(f'{xid} ({count}x)' for xid, count in sorted(found.items()))}")


@plan_rule(
    "HLT006", "warning", "GPU memory is failing",
    why="Uncorrected errors and failed row remaps end in wrong results or lost jobs.",
    remedy="drain the host, reset or replace the GPU",
    sources=["https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/"],
)
def memory(context: Context) -> Iterator[Hit]:
    """Fires for uncorrected ECC errors or a failed row remap."""
    errors = context.host.ecc_uncorrected
    if isinstance(errors, (int, float)) and errors > 0:
        yield Hit("GPU memory", f"{int(errors)} uncorrected ECC errors")
    if context.host.row_remap_failure is True:
        yield Hit("GPU memory", "a row remap failed: the GPU is to be replaced")


@plan_rule(
    "HLT007", "warning", "The NVLink fabric is not complete",
    why="nvidia-smi looks healthy, and CUDA does not start before the fabric is complete.",
    remedy="check fabric manager (and nvlsm, ib_umad on NVLink 5) and its log",
    sources=["https://github.com/NVIDIA/gpu-operator/issues/2781"],
)
def fabric(context: Context) -> Iterator[Hit]:
    """Fires when a GPU's fabric state is anything but completed."""
    states: Counter[str] = Counter()
    for card in each(context.cards):
        state, status = card.gpu.fabric_state, card.gpu.fabric_status
        if isinstance(state, str) and state.lower() not in ("completed", "n/a", "not supported"):
            states[state] += 1
        elif isinstance(status, str) and state and status.lower() not in ("success", "n/a"):
            states[status] += 1
    for state, count in sorted(states.items()):
        modules = context.host.modules
        lacks = isinstance(modules, tuple) and "ib_umad" not in modules and _has_nvlink5(context)
        yield Hit("fabric", f"the fabric of {count} GPUs is "
                            f"{state!r}{'; the module ib_umad is not loaded' if lacks else ''}",
                  "load ib_umad and restart the fabric manager" if lacks else None)


def _has_nvlink5(context: Context) -> bool:
    return any(getattr(card.product, "fabric", None) in ("nvlink5", "multi_node") for card in each(context.cards))


@plan_rule(
    "HLT008", "warning", "A GPU's memory window is not mapped",
    why="Without its BARs the driver cannot start the GPU.",
    remedy="enable Above 4G Decoding (large BARs) in the firmware, or add pci=realloc",
    sources=["https://docs.nvidia.com/datacenter/tesla/"],
)
def no_bar(context: Context) -> Iterator[Hit]:
    """Fires when the firmware left a BAR of a GPU unassigned."""
    for card in each(context.cards):
        if card.gpu.bar_ok is False:
            yield Hit(card.gpu.address, f"the memory window (BAR) of {card.gpu.address} ({card.label}) is not assigned")


@plan_rule(
    "HLT009", "warning", "A needed service has failed",
    why="Without fabric manager or persistenced the first job is slow, or does not start.",
    remedy="systemctl status and the journal tell why; systemctl reset-failed after that",
    sources=["docs/design.md, section 3"],
)
def failed_services(context: Context) -> Iterator[Hit]:
    """Fires for failed services of the driver and the container toolkit."""
    services = context.host.services
    for name, state in sorted(services.items()) if isinstance(services, dict) and context.has_gpus else ():
        if isinstance(state, dict) and state.get("failed") is True:
            yield Hit(name, f"{name} has failed", _mended(context, name))


def _mended(context: Context, name: str) -> str | None:
    """Return what the plan does about it: the refresh of CDI specifications gives up when the driver comes late."""
    if name == "nvidia-cdi-refresh.service" and any(
            one.role == "gpu_toolkit" and one.action in ("cdi", "cdi_unit") for one in context.changes):
        return "the plan makes the specification anew and lets the unit wait for the driver at boot"
    return None


@plan_rule(
    "HLT010", "warning", "A MIG mode change waits for a reset",
    why="Until the GPU is reset it works in its old mode, whatever the configuration says.",
    remedy="drain the host and reset the GPU, or restart the host",
    sources=["https://docs.nvidia.com/datacenter/tesla/mig-user-guide/"],
)
def mig_pending(context: Context) -> Iterator[Hit]:
    """Fires when the pending MIG mode of a GPU is not its present one."""
    for card in each(context.cards):
        now, then = card.gpu.mig, card.gpu.mig_pending
        if isinstance(now, bool) and isinstance(then, bool) and now != then:
            yield Hit(card.gpu.address, f"MIG of {card.gpu.address} ({card.label}) is {'on' if now else 'off'} and "
                                        f"{'on' if then else 'off'} after the next reset")


@plan_rule(
    "HLT011", "error", "The driver is installed and not loaded",
    why="The GPUs are on the bus, no driver has them, and every job on this host fails.",
    remedy="load it (modprobe nvidia); the kernel log (dmesg) says why it was not loaded",
    sources=["docs/design.md, section 3"],
)
def not_loaded(context: Context) -> Iterator[Hit]:
    """Fires when no nvidia module is loaded and the plan does not load it; a warning while something else is to come.

    An error would keep back just those steps (a proof, packages, the boot default) that lead out of it.
    """
    idle, every = loading.without_driver(context), (*context.changes, *context.pending)
    if not idle or any(one.role == "gpu_driver" and (one.action, one.target) == ("load", "nvidia") for one in every):
        return
    leads_out = any(one.role in ("gpu_driver", "gpu_kernel") for one in context.changes) or any(
        one.role == "gpu_driver" for one in context.pending)
    count = "the GPU" if len(idle) == 1 else f"{len(idle)} GPUs"
    yield Hit(labels(idle), f"no nvidia module is loaded, and no driver has {count}: {loading.why_not(context)}",
              loading.way_back(context), severity="warning" if leads_out else None)
