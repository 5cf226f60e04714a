# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the operator's toolkit container and the containerd that it configures."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import chart
from ..model.version import try_loose
from . import operator_releases
from .context import Context
from .registry import Hit, plan_rule

CONFIG = ("CONTAINERD_CONFIG", "RUNTIME_CONFIG")
SOCKET = ("CONTAINERD_SOCKET", "RUNTIME_SOCKET")
SOURCE = "RUNTIME_CONFIG_SOURCE"
DEFAULTS = {"CONTAINERD_CONFIG": "/etc/containerd/config.toml", "CONTAINERD_SOCKET": "/run/containerd/containerd.sock"}
_K3S_SOCKET = "/run/k3s/containerd/containerd.sock"
_PATHS = {
    "k3s": {"CONTAINERD_CONFIG": "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
            "CONTAINERD_SOCKET": _K3S_SOCKET, SOURCE: "file"},
    "rke2": {"CONTAINERD_CONFIG": "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
             "CONTAINERD_SOCKET": _K3S_SOCKET, SOURCE: "file"},
    "k0s": {"CONTAINERD_CONFIG": "/etc/k0s/containerd.d/nvidia.toml", "CONTAINERD_SOCKET": "/run/k0s/containerd.sock",
            "RUNTIME_EXECUTABLE_PATH": "/var/lib/k0s/bin/containerd", SOURCE: "file"},
    "microk8s": {"CONTAINERD_CONFIG": "/var/snap/microk8s/current/args/containerd-template.toml",
                 "CONTAINERD_SOCKET": "/var/snap/microk8s/common/run/containerd.sock",
                 SOURCE: "file=/var/snap/microk8s/current/args/containerd.toml"},
}
_MARKS = (("/rke2/", "rke2"), ("/k3s/", "k3s"), ("/k0s/", "k0s"), ("/run/k0s", "k0s"), ("/microk8s/", "microk8s"))
_V3_TOOLKIT = (1, 17, 4)  # first toolkit that writes configuration version 3
_ENV_DOCS = "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/getting-started.html"


def paths(distribution: str | None) -> dict[str, str]:
    """Return the toolkit's environment for a distribution of Kubernetes, {} where containerd is at its usual place."""
    return _PATHS.get(distribution or "", {})


def distribution(context: Context) -> str | None:
    """Return the distribution that runs containerd: k3s, rke2, k0s or microk8s; None for a containerd of its own."""
    containers = context.host.containers
    if isinstance(containers.owner, str) and containers.owner in _PATHS:
        return containers.owner
    for mark, name in _MARKS:
        if isinstance(containers.config_path, str) and mark in containers.config_path:
            return name
    node = context.cluster.node_of(context.name) if context.cluster is not None else None
    labels = node.labels if node is not None else {}
    instance = labels.get("node.kubernetes.io/instance-type")
    if instance in _PATHS:
        return instance
    return "microk8s" if labels.get("microk8s.io/cluster") == "true" else None


def _asked(context: Context, names: tuple[str, ...]) -> tuple[str, str] | None:
    """Return name and value of the first of these variables that somebody set."""
    given = chart.env(context.operator.values, "toolkit") if context.operator is not None else {}
    for name in names:
        if isinstance(given.get(name), str):
            return name, given[name]
    return None


def _right(context: Context) -> dict[str, str] | None:
    """Return the paths of the containerd that really runs, None if nobody could tell."""
    known = paths(distribution(context))
    if known:
        return known
    containers = context.host.containers
    if not isinstance(containers.config_path, str):
        return None
    socket = containers.socket if isinstance(containers.socket, str) else DEFAULTS["CONTAINERD_SOCKET"]
    return {"CONTAINERD_CONFIG": containers.config_path, "CONTAINERD_SOCKET": socket.replace("/var/run/", "/run/")}


@plan_rule(
    "OPR020", "error", "The toolkit container is pointed at another containerd",
    why="It writes the runtime into a file that nobody reads, or breaks a template, and restarts the wrong daemon.",
    remedy="set file and socket to those of the containerd that runs the pods",
    sources=[_ENV_DOCS, "https://github.com/NVIDIA/gpu-operator/issues/992"],
)
def wrong_containerd(context: Context) -> Iterator[Hit]:
    """Fires when toolkit.env names a template, or file or socket of another containerd than the one that runs."""
    if not context.toolkit_by_operator:
        return
    right, config, socket = _right(context), _asked(context, CONFIG), _asked(context, SOCKET)
    if config is not None and config[1].endswith((".tmpl", ".template")):
        where = right["CONTAINERD_CONFIG"] if right else config[1].rpartition(".")[0]
        yield Hit(f"toolkit.env {config[0]}", f"{config[0]} is {config[1]}, a Go template; the toolkit writes TOML",
                  f"set {config[0]} to {where}")
        return
    if right is None or (config is None and socket is None):
        return
    for names, asked in ((CONFIG, config), (SOCKET, socket)):
        have = asked[1] if asked is not None else DEFAULTS[names[0]]
        wanted = right[names[0]]
        if have.replace("/var/run/", "/run/") != wanted and not _same_k0s(have, wanted):
            name = asked[0] if asked is not None else names[0]
            told = "is" if asked is not None else "is left at"
            yield Hit(f"toolkit.env {name}", f"{name} {told} {have}, but the containerd of this node "
                                             f"({distribution(context) or 'host'}) has {wanted}",
                      f"set {name} to {wanted} in toolkit.env")


def _same_k0s(have: str, wanted: str) -> bool:
    """Say whether a file of k0s' own drop-in directory is meant: any name does there."""
    return wanted.startswith("/etc/k0s/") and have.startswith("/etc/k0s/")


def _config_version(context: Context) -> int | None:
    """Return the version of the node's configuration, None if nobody could tell."""
    if context.containerd.config_version is not None:
        return context.containerd.config_version
    text = context.host.containers.config_text
    for line in text.splitlines() if isinstance(text, str) else ():
        key, equals, value = line.partition("=")
        if equals and key.strip() == "version" and value.strip().isdigit():
            return int(value.strip())
    release = try_loose(context.host.containers.containerd)
    return 3 if release is not None and release >= (2,) and not isinstance(text, str) else None


@plan_rule(
    "OPR021", "error", "A pinned toolkit image does not fit",
    why="An old pin survives each upgrade of the chart; old toolkits break newer containerd files and have holes.",
    remedy="remove toolkit.version from the values, so that the chart's own image is used",
    sources=["https://github.com/NVIDIA/nvidia-container-toolkit/issues/1222"],
)
def old_image(context: Context) -> Iterator[Hit]:
    """Fires when toolkit.version cannot write the node's configuration, or is older than the chart's or the floor."""
    if context.operator is None or not context.toolkit_by_operator:
        return
    pin = chart.text(context.operator.values, "toolkit.version")
    have = operator_releases.image_version(pin)
    if have is None:
        return
    version, floor = _config_version(context), try_loose(context.matrix.toolkit_floor())
    charts = operator_releases.component(operator_releases.row(context), "container_toolkit")
    if version is not None and version >= 3 and have < _V3_TOOLKIT:
        yield Hit(f"toolkit.version {pin}", f"the toolkit image is pinned to {pin}, which does not know containerd's "
                                            f"configuration version {version}; that needs 1.17.4")
    elif floor is not None and have < floor and (charts is None or have < charts):
        yield Hit(f"toolkit.version {pin}", f"the toolkit image is pinned to {pin}, older than the chart's and below "
                                            f"the security floor {context.matrix.toolkit_floor()}", severity="warning")
    elif charts is not None and have < charts:
        yield Hit(f"toolkit.version {pin}", f"the toolkit image is pinned to {pin}, older than that of the chart",
                  severity="info")


@plan_rule(
    "OPR022", "warning", "The toolkit writes a configuration that containerd does not take",
    why="It copies the version that the binary prints, not that of the file: containerd 2.3 then refuses to start, and "
        "2.0 to 2.2 forget settings.",
    remedy="set RUNTIME_CONFIG_SOURCE: file in toolkit.env, with toolkit 1.20.0 or newer",
    sources=["https://github.com/NVIDIA/aicr/issues/1688", "https://github.com/NVIDIA/nvidia-container-toolkit/issues/1956"],
)
def wrong_source(context: Context) -> Iterator[Hit]:
    """Fires for a source other than the file on containerd 2, and for toolkit 1.19 on a version 3 file."""
    if context.operator is None or not context.toolkit_by_operator:
        return
    source = _asked(context, (SOURCE, "RUNTIME_CONFIG_SOURCES"))
    release = try_loose(context.host.containers.containerd)
    version = _config_version(context)
    if source is not None and release is not None and release >= (2,) and not source[1].startswith("file"):
        worst = release >= (2, 3) and version is not None and version < 4
        yield Hit(f"toolkit.env {source[0]}", f"{source[0]} is {source[1]} on containerd "
                                              f"{context.host.containers.containerd}: the drop-in gets the version of "
                                              "the binary instead of that of the file",
                  severity="error" if worst else None)
    pin = operator_releases.image_version(chart.text(context.operator.values, "toolkit.version"))
    have = pin or operator_releases.component(operator_releases.row(context), "container_toolkit")
    from_file = source is not None and source[1].startswith("file")
    if have is not None and have[:2] == (1, 19) and version is not None and version >= 3 and from_file:
        yield Hit("toolkit 1.19", "the toolkit 1.19 of this release writes no runtime_type into a version 3 "
                                  "configuration",
                  "move the operator to v26.7.0, or set toolkit.version: v1.20.0", severity="info"
                  if context.host.containers.owner == "operator" else None)
