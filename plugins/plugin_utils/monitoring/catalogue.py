# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics that are used here: which exporter has each, and on which GPUs it is worth asking for.

Names: the field lists of go-dcgm at the commits that dcgm-exporter 3.3.8-3.6.0, 3.3.9-3.6.1, 4.1.1-4.0.4, 4.2.3-4.1.3,
4.3.1-4.4.0, 4.4.1-4.6.0, 4.4.2-4.7.0, 4.5.1-4.8.0 and 4.5.3-4.8.2 name in their go.mod (pkg/dcgm/const_fields.go), read
2026-11-30; defaults: etc/default-counters.csv of the same tags. A name that an exporter does not know stops it at its
start, so a list is made for the exporter that reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Group = Literal["base", "remap", "retired", "nvlink", "nvlink5", "fabric", "profiling", "profiling_sm", "own"]
GROUPS: tuple[Group, ...] = ("base", "remap", "retired", "nvlink", "nvlink5", "fabric", "profiling", "profiling_sm")


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. since, until: exporters (their second version number, ``4.8.2``) that know it, until exclusively."""

    name: str
    kind: Literal["gauge", "counter", "label"]
    help: str
    group: Group = "base"
    since: tuple[int, ...] = ()
    until: tuple[int, ...] = ()
    default: bool = False     # in every exporter's own list
    textfile: bool = False    # the collector of gpu_monitoring writes it

    def known(self, exporter: tuple[int, ...]) -> bool:
        """Say whether an exporter knows it; () stands for one that is newer than any that was read."""
        return not exporter or (exporter >= self.since and (not self.until or exporter < self.until))


_DCGM4 = (4, 0)
CLOCKS = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"        # the same bits under two names
CLOCKS_BEFORE = "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"

METRICS: tuple[Metric, ...] = (
    Metric("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock in MHz", default=True, textfile=True),
    Metric("DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock in MHz", default=True, textfile=True),
    Metric("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Memory temperature in degrees Celsius", default=True, textfile=True),
    Metric("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature in degrees Celsius", default=True, textfile=True),
    Metric("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw in W", default=True, textfile=True),
    Metric("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "gauge", "Power limit in force in W", textfile=True),
    Metric("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "Energy since the driver was loaded in mJ", default=True),
    Metric(CLOCKS, "gauge", "Why clocks are held back as a bit mask", since=_DCGM4, textfile=True),
    Metric(CLOCKS_BEFORE, "gauge", "Why clocks are held back as a bit mask", until=_DCGM4),
    Metric("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "PCIe replays", default=True, textfile=True),
    Metric("DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilisation in percent", default=True, textfile=True),
    Metric("DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Memory utilisation in percent", default=True, textfile=True),
    Metric("DCGM_FI_DEV_ENC_UTIL", "gauge", "Encoder utilisation in percent", default=True, textfile=True),
    Metric("DCGM_FI_DEV_DEC_UTIL", "gauge", "Decoder utilisation in percent", default=True, textfile=True),
    Metric("DCGM_FI_DEV_FB_FREE", "gauge", "Free memory in MiB", default=True, textfile=True),
    Metric("DCGM_FI_DEV_FB_USED", "gauge", "Used memory in MiB", default=True, textfile=True),
    Metric("DCGM_FI_DEV_FB_RESERVED", "gauge", "Reserved memory in MiB", textfile=True),
    Metric("DCGM_FI_DEV_XID_ERRORS", "gauge", "The last XID; never reset", default=True),
    Metric("DCGM_EXP_XID_ERRORS_COUNT", "gauge", "XIDs of the last five minutes", textfile=True),
    Metric("DCGM_EXP_GPU_HEALTH_STATUS", "gauge", "Health by subsystem: 0 pass 10 warn 20 fail", since=_DCGM4),
    Metric("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", "Corrected ECC errors since the driver was loaded",
           textfile=True),
    Metric("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "Uncorrected ECC errors since the driver was loaded",
           textfile=True),
    Metric("DCGM_FI_DRIVER_VERSION", "label", "Driver version", default=True),
    Metric("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", "Rows remapped for corrected errors", "remap",
           default=True, textfile=True),
    Metric("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "Rows remapped for uncorrected errors", "remap",
           default=True, textfile=True),
    Metric("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "Whether a row could not be remapped", "remap", default=True,
           textfile=True),
    Metric("DCGM_FI_DEV_ROW_REMAP_PENDING", "gauge", "Whether a remapped row waits for a reset", "remap",
           textfile=True),
    Metric("DCGM_FI_DEV_RETIRED_PENDING", "gauge", "Whether retired pages wait for a reset", "retired", textfile=True),
    Metric("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "counter", "NVLink traffic over all lanes", "nvlink", default=True),
    Metric("DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "counter", "NVLink CRC errors in data", "nvlink"),
    Metric("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "counter", "NVLink replays", "nvlink"),
    Metric("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "counter", "NVLink recoveries", "nvlink"),
    Metric("DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS", "counter", "NVLink recoveries that failed",
           "nvlink5", since=_DCGM4),
    Metric("DCGM_FI_DEV_FABRIC_MANAGER_STATUS", "gauge", "Fabric: 1 not started 2 in progress 3 success 4 failure",
           "fabric", since=_DCGM4, textfile=True),
    Metric("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Share of time in which the graphics engine is active",
           "profiling"),
    Metric("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "Share of cycles in which the tensor pipe is active",
           "profiling"),
    Metric("DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "Share of cycles in which memory sends or receives", "profiling"),
    Metric("DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", "PCIe bytes sent per second", "profiling"),
    Metric("DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", "PCIe bytes received per second", "profiling"),
    Metric("DCGM_FI_PROF_SM_ACTIVE", "gauge", "Share of cycles in which an SM has a warp", "profiling_sm"),
    Metric("DCGM_FI_PROF_SM_OCCUPANCY", "gauge", "Share of warps that are resident on an SM", "profiling_sm"),
    # What the collector of gpu_monitoring adds of its own (roles/gpu_monitoring/files/gpu_metrics.py).
    Metric("baremetal_nvidia_smi_up", "gauge", "Whether nvidia-smi answered", "own", textfile=True),
    Metric("baremetal_nvidia_smi_seconds", "gauge", "How long nvidia-smi took", "own", textfile=True),
    Metric("baremetal_nvidia_collected_timestamp_seconds", "gauge", "When this was written", "own", textfile=True),
    Metric("baremetal_nvidia_gpus", "gauge", "GPUs that nvidia-smi shows", "own", textfile=True),
    Metric("baremetal_nvidia_gpus_on_bus", "gauge", "GPUs on the PCI bus", "own", textfile=True),
)
BY_NAME = {metric.name: metric for metric in METRICS}
DEFAULT = frozenset(metric.name for metric in METRICS if metric.default)
TEXTFILE = frozenset(metric.name for metric in METRICS if metric.textfile)
#: Of other programs, with where they come from.
OTHERS = {
    "up": "Prometheus itself", "ALERTS": "Prometheus itself",
    "node_textfile_scrape_error": "node_exporter, collector/textfile.go",
    "kube_node_status_capacity": "kube-state-metrics, docs/metrics/cluster/node-metrics.md",
    "kube_node_status_allocatable": "kube-state-metrics, docs/metrics/cluster/node-metrics.md",
    "gpu_operator_reconciliation_status": "gpu-operator v26.7.0, controllers/operator_metrics.go",
    "gpu_operator_reconciliation_has_nfd_labels": "gpu-operator v26.7.0, controllers/operator_metrics.go",
    "gpu_operator_driver_auto_upgrade_enabled": "gpu-operator v26.7.0, controllers/operator_metrics.go",
    "gpu_operator_nodes_upgrades_failed": "gpu-operator v26.7.0, controllers/operator_metrics.go",
}


def exporter(version: str | None) -> tuple[int, ...]:
    """Return the exporter's own number out of an image tag: (4, 8, 2) of ``4.5.3-4.8.2-distroless``, () if none."""
    parts = (version or "").split("-")
    digits = parts[1].split(".") if len(parts) > 1 else []
    return tuple(map(int, digits)) if digits and all(one.isdigit() for one in digits) else ()


def of_groups(groups: Iterable[str], version: tuple[int, ...]) -> tuple[Metric, ...]:
    """Return the metrics of groups that an exporter knows."""
    wanted = set(groups)
    return tuple(metric for metric in METRICS if metric.group in wanted and metric.known(version))
