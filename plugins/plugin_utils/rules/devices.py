# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about how GPUs get into containers: the mode, reloads of systemd's units, CDI units, Docker and CRI-O."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import chart
from ..model.facts import UNKNOWN
from ..model.version import try_loose
from .context import Context
from .registry import Hit, plan_rule

_MODE = "nvidia-container-runtime.mode"
_RELOAD = "https://github.com/NVIDIA/nvidia-container-toolkit/issues/48"
_NRI = "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/cdi.html"
_CDI = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html"


@plan_rule(
    "CTR010", "warning", "A reload of systemd's units would take GPUs from containers",
    why="Devices that the legacy hook brings into a container are unknown to systemd; daemon-reload, and with it every "
        "package transaction, takes them away: Failed to initialize NVML: Unknown Error.",
    remedy="set gpu_container_mode: cdi and start these containers anew, or drain the host before its packages change",
    sources=[_RELOAD, "https://github.com/NVIDIA/gpu-operator/issues/485"],
)
def would_detach(context: Context) -> Iterator[Hit]:
    """Fires when running containers have GPUs that their specification does not name."""
    count = context.host.containers.detachable
    if context.has_gpus and isinstance(count, (int, float)) and count > 0:
        yield Hit(f"{int(count)} GPU containers",
                  f"{int(count)} running containers got their GPUs by the legacy hook and would lose them at systemctl "
                  "daemon-reload")


@plan_rule(
    "CTR011", "error", "The way devices get into containers does not fit",
    why="Containers would start without GPUs, or not at all, and nothing says why.",
    remedy="leave gpu_container_mode at auto",
    sources=[_NRI, _CDI],
)
def mode_does_not_fit(context: Context) -> Iterator[Hit]:
    """Fires when runtime, toolkit or operator cannot do what gpu_container_mode asks for."""
    mode = context.wishes.container_mode
    if mode == "auto" or not context.has_gpus or not context.uses_containers:
        return
    checks = {"nri": _nri, "cdi": _cdi, "legacy": _legacy}
    yield from checks[mode](context)


def _nri(context: Context) -> Iterator[Hit]:
    subject = "gpu_container_mode nri"
    if context.operator is None or not context.toolkit_by_operator:
        yield Hit(subject, "gpu_container_mode is nri, but the NRI plugin comes with the operator's toolkit, and no "
                           "operator brings a toolkit here",
                  "set toolkit.enabled: true in the operator's values, or gpu_container_mode: auto")
        return
    if context.operator.release < (26, 3):
        yield Hit(subject, f"gpu_container_mode is nri, but the operator {context.operator.version} has no NRI plugin",
                  "move the operator to v26.3.0 or newer, or set gpu_container_mode: auto")
    elif chart.flag(context.operator.values, "cdi.nriPluginEnabled") is not True:
        yield Hit(subject, "gpu_container_mode is nri, but cdi.nriPluginEnabled is not true in the operator's values",
                  "set cdi.nriPluginEnabled: true")
    release = try_loose(context.host.containers.containerd) if context.uses("containerd") else None
    if release is not None and (release < (1, 7, 30) or (2,) <= release < (2, 1)):
        yield Hit(f"containerd {context.host.containers.containerd}",
                  f"gpu_container_mode is nri, but containerd {context.host.containers.containerd} is too old for the "
                  "plugin: it needs 1.7.30, or 2.1", "move containerd, or set gpu_container_mode: auto")
    crio = _version(context, "crio")
    if crio is not None and crio < (1, 34):
        yield Hit("CRI-O", "gpu_container_mode is nri, but CRI-O is older than 1.34",
                  "move CRI-O, or set gpu_container_mode: auto")


def _cdi(context: Context) -> Iterator[Hit]:
    subject = "gpu_container_mode cdi"
    if context.operator is not None and chart.flag(context.operator.values, "cdi.enabled") is False:
        yield Hit(subject, "gpu_container_mode is cdi, but cdi.enabled is false in the operator's values",
                  "set cdi.enabled: true, or gpu_container_mode: legacy")
    toolkit = try_loose(context.toolkit.version)
    if toolkit is not None and toolkit < (1, 12):
        yield Hit(f"nvidia-container-toolkit {context.toolkit.version}",
                  f"gpu_container_mode is cdi, but nvidia-container-toolkit {context.toolkit.version} makes no "
                  "specifications: it needs 1.12", "move the toolkit, or set gpu_container_mode: legacy")
    yield from _specification_format(context, toolkit)


def _specification_format(context: Context, toolkit: tuple[int, ...] | None) -> Iterator[Hit]:
    """Since 1.19 the toolkit writes version 0.7.0 of the format, which older runtimes do not read by themselves."""
    if toolkit is None or toolkit < (1, 19):
        return
    found = {
        "containerd": (try_loose(context.host.containers.containerd), (1, 7, 16)),
        "docker": (_version(context, "docker"), (26, 1)),
        "crio": (_version(context, "crio"), (1, 30)),
    }
    for name, (have, least) in found.items():
        if context.uses(name) and have is not None and have < least:
            words = ".".join(str(number) for number in least)
            yield Hit(name, f"{name} reads no CDI specification of the toolkit {context.toolkit.version}: it needs "
                            f"{words}; only the nvidia runtime does",
                      f"move {name}, or let containers use the nvidia runtime", severity="info")


def _legacy(context: Context) -> Iterator[Hit]:
    operator = context.operator
    if operator is None or not context.toolkit_by_operator:
        return
    by_cdi = chart.flag(operator.values, "cdi.enabled")
    if by_cdi is True or (by_cdi is None and operator.release >= (25, 10)):
        yield Hit("gpu_container_mode legacy",
                  "gpu_container_mode is legacy, but the operator brings the toolkit and uses CDI",
                  "set cdi.enabled: false, or gpu_container_mode: auto")


def _version(context: Context, name: str) -> tuple[int, ...] | None:
    version = getattr(context.host.containers.engine(name), "version", None)
    return try_loose(version) if isinstance(version, str) and context.uses(name) else None


@plan_rule(
    "CTR012", "error", "One setting of the toolkit is asked for twice",
    why="Of two different answers one would be dropped in silence.",
    remedy="say it in one place",
    sources=[_CDI],
)
def asked_twice(context: Context) -> Iterator[Hit]:
    """Fires when gpu_toolkit_config contradicts gpu_container_mode or gpu_container_hardened."""
    given = context.wishes.toolkit_config
    if not context.has_gpus or not context.uses_containers:
        return
    mode = context.wishes.container_mode
    if mode in ("cdi", "legacy") and given.get(_MODE, mode) != mode:
        yield Hit(f"gpu_toolkit_config.{_MODE}",
                  f"gpu_toolkit_config says {_MODE}: {given[_MODE]}, gpu_container_mode says {mode}",
                  f"take {_MODE} out of gpu_toolkit_config")
    for key, value in (("accept-nvidia-visible-devices-envvar-when-unprivileged", False),
                       ("accept-nvidia-visible-devices-as-volume-mounts", True)):
        if context.wishes.container_hardened and given.get(key, value) is not value:
            yield Hit(f"gpu_toolkit_config.{key}",
                      f"gpu_toolkit_config says {key}: {str(not value).lower()}, which gpu_container_hardened forbids",
                      f"take {key} out of gpu_toolkit_config")


@plan_rule(
    "CTR013", "warning", "A container runtime that is asked for is not there",
    why="It is not installed by this collection, so nobody will configure it.",
    remedy="install it, or take it out of gpu_container_runtime",
    sources=["https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"],
)
def runtime_missing(context: Context) -> Iterator[Hit]:
    """Fires when Docker or CRI-O is in gpu_container_runtime and not on the host."""
    for name, words in (("docker", "Docker"), ("crio", "CRI-O")):
        if context.has_gpus and context.uses(name) and context.host.containers.engine(name) is None:
            yield Hit(words, f"gpu_container_runtime names {name}, and {words} is not on the host")


@plan_rule(
    "CTR014", "warning", "What a file says of containers could not be read",
    why="What was asked for is not written blindly into a file that nobody understands.",
    remedy="mend the file, or move it away; the next run writes what is wanted",
    sources=[_CDI],
)
def unreadable(context: Context) -> Iterator[Hit]:
    """Fires when settings are asked for and the file that would get them could not be read."""
    containers = context.host.containers
    if context.toolkit.config and isinstance(containers.toolkit, str) and containers.toolkit_config is UNKNOWN:
        reason = context.host.why_unknown("containers.toolkit.config")
        yield Hit("/etc/nvidia-container-runtime/config.toml", f"the toolkit's config.toml could not be read: {reason}")
    for name, engine in context.toolkit.engines.items():
        if getattr(containers.engine(name), "runtimes", None) is UNKNOWN:
            reason = context.host.why_unknown(f"containers.{name}.config")
            yield Hit(engine["path"], f"the configuration of {name} could not be read: {reason}")
