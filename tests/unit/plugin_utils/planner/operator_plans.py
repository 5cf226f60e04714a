# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of many kinds of clusters, made as hosts are planned."""

from __future__ import annotations

import copy
import datetime
import pathlib
from dataclasses import dataclass, field
from typing import Any

import run
from ansible_collections.baremetal.nvidia.plugins.plugin_utils import matrix
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller.operator import for_cluster
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.planner import plan

NOW = datetime.date(2026, 11, 30)
RELEASES = ("v24.9.2", "v25.3.4", "v25.10.1", "v26.3.3", "v26.7.0")
KUBERNETES = {"v24.9.2": "1.31", "v25.3.4": "1.33", "v25.10.1": "1.34", "v26.3.3": "1.35", "v26.7.0": "1.35"}
HOST = next(
    case
    for case in run.load(pathlib.Path(run.__file__).parent / "operator_settings.yml")
    if case["id"] == "settings-new-cluster"
)
OPERATOR = {"gpu_driver_owner": "operator", "gpu_driver_version": "580.173.02", "gpu_kernel_policy": "off"}
OLD = {**OPERATOR, "gpu_driver_version": "550.90.07"}
MINE = {"gpu_driver_owner": "host", "gpu_driver_version": "580.173.02", "gpu_kernel_policy": "off"}
PROMETHEUS = {
    "crds": {"servicemonitors.monitoring.coreos.com": {}},
    "prometheuses": [
        {"metadata": {"name": "k8s"}, "spec": {"serviceMonitorSelector": {"matchLabels": {"release": "prometheus"}}}}
    ],
}
SHARES = "version: v1\nsharing: {{{}: {{resources: [{{name: nvidia.com/gpu, replicas: 4}}]}}}}\n"
OBJECTS = {"driver": {"nvidiaDriverCRD": {"enabled": True}}}


@dataclass
class Wanted:
    """A cluster: a policy for each of its hosts, changes to facts, and chart values that are asked for."""

    name: str
    hosts: list[dict[str, Any]]
    cluster: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    containerd: dict[str, Any] = field(default_factory=dict)
    gpu: str = "10de:2331"
    toolkit: str | None = None
    objects: bool = False
    since: str = "v24.9.2"
    labels: dict[str, str] = field(default_factory=dict)

    def fits(self, release: str) -> bool:
        """Say whether the release has what is asked for."""
        return RELEASES.index(release) >= RELEASES.index(self.since)


PLANS = [
    Wanted("operator-owns", [OPERATOR]),
    Wanted("host-owns", [MINE], toolkit="1.20.0"),
    Wanted("mixed", [OPERATOR, MINE]),
    Wanted(
        "precompiled",
        [{**OPERATOR, "gpu_driver_version": None, "gpu_driver_branch": "580", "gpu_driver_method": "precompiled"}],
    ),
    Wanted("objects", [OPERATOR], values=OBJECTS, objects=True),
    Wanted("objects-of-two-drivers", [OPERATOR, OLD], objects=True),
    Wanted("objects-precompiled-beside", [OPERATOR, {**OPERATOR, "gpu_driver_method": "precompiled"}], objects=True),
    Wanted("proprietary", [{**OPERATOR, "gpu_driver_flavour": "proprietary"}], gpu="10de:1db5"),
    Wanted(
        "own-registry",
        [OPERATOR, OLD],
        objects=True,
        values={
            "driver": {"repository": "registry.example.net/nvidia", "image": "gpu-driver", "imagePullSecrets": ["pull"]}
        },
    ),
    *(Wanted(name, [OPERATOR], containerd={"owner": name}) for name in ("k3s", "rke2", "k0s", "microk8s")),
    Wanted("prometheus", [OPERATOR], cluster=PROMETHEUS),
    Wanted(
        "taints",
        [OPERATOR],
        labels={"pool": "ai"},
        cluster={"taint": {"key": "team", "value": "ai", "effect": "NoSchedule"}},
    ),
    Wanted(
        "fabric-and-storage",
        [OPERATOR],
        values={
            "gdrcopy": {"enabled": True},
            "gds": {"enabled": True},
            "driver": {"rdma": {"enabled": True, "useHostMofed": False}},
        },
    ),
    Wanted(
        "numbers-for-texts",
        [OPERATOR],
        values={"toolkit": {"env": [{"name": "A", "value": 1}, {"name": "B", "value": True}]}, "dcgm": {"version": 4}},
    ),
    Wanted(
        "upgrade-policy",
        [OPERATOR],
        values={
            "driver": {
                "upgradePolicy": {
                    "autoUpgrade": True,
                    "maxParallelUpgrades": 2,
                    "maxUnavailable": "10%",
                    "drain": {"enable": True, "timeoutSeconds": 60},
                    "gpuPodDeletion": {"force": True, "timeoutSeconds": 60},
                    "waitForCompletion": {"timeoutSeconds": 0},
                }
            }
        },
    ),
    Wanted(
        "air-gap",
        [OPERATOR],
        values={
            "operator": {"repository": "registry.example.net/nvidia"},
            "toolkit": {"repository": "registry.example.net/k8s"},
            "driver": {
                "repoConfig": {"configMapName": "repos"},
                "certConfig": {"name": "ca"},
                "licensingConfig": {"nlsEnabled": True},
            },
        },
    ),
    *(Wanted(name, [OPERATOR], values={"devicePlugin": {"config": {
        "create": True, "name": "shares", "default": "any", "data": {"any": SHARES.format(kind)}}}})
      for name, kind in (("sharing-by-values", "timeSlicing"), ("mps-by-values", "mps"))),
    Wanted(
        "mig-by-label",
        [OPERATOR],
        labels={"nvidia.com/mig.config": "all-balanced"},
        values={"migManager": {"env": [{"name": "WITH_REBOOT", "value": True}]}},
    ),
    Wanted(
        "objects-with-all-around",
        [OPERATOR, OLD],
        objects=True,
        values={
            "driver": {
                "imagePullSecrets": ["pull"],
                "repoConfig": {"configMapName": "repos"},
                "certConfig": {"name": "ca"},
                "rdma": {"enabled": True, "useHostMofed": False},
                "env": [{"name": "A", "value": 1}],
                "upgradePolicy": {"maxParallelUpgrades": 4, "gpuPodDeletion": {"force": True}},
                "licensingConfig": {"configMapName": "licence", "nlsEnabled": True},
                "virtualTopology": {"config": "topology"},
                "kernelModuleConfig": {"name": "options"},
                "manager": {"env": [{"name": "B", "value": "2"}]},
                "startupProbe": {"initialDelaySeconds": 60},
            },
            "daemonsets": {"tolerations": [{"key": "team", "operator": "Exists"}]},
            "gds": {"enabled": True},
            "gdrcopy": {"enabled": True},
        },
    ),
    Wanted("groups", [{**OPERATOR, "gpu_sharing": [{"name": "jobs", "preset": "batch"}]},
                      {**OPERATOR, "gpu_sharing": [{"name": "web", "preset": "serving"}]}]),
    Wanted("groups-of-mig", [{**OPERATOR, "gpu_sharing": [
        {"name": "own", "strategy": "mig", "mig_profile": {"3g.40gb": 1, "1g.10gb": 4}, "replicas": 2}]}]),
    Wanted("nri", [OPERATOR], since="v26.3.3", values={"cdi": {"enabled": True, "nriPluginEnabled": True}}),
    Wanted(
        "exporter",
        [OPERATOR],
        since="v26.7.0",
        cluster=PROMETHEUS,
        values={
            "dcgmExporter": {
                "serviceMonitor": {"interval": "30s", "scrapeTimeout": "20s", "honorLabels": True},
                "hostNetwork": True,
                "podLabelAllowlistRegex": ["app"],
                "config": {"name": "metrics"},
            }
        },
    ),
]


def made(wanted: Wanted, release: str) -> list[dict[str, Any]]:
    """Return the plans of its hosts for a new cluster with this release."""
    names = [f"gpu-{number:02}" for number in range(1, len(wanted.hosts) + 1)]
    facts = copy.deepcopy(HOST["facts"])
    facts["gpus"][0]["id"] = wanted.gpu
    facts["containers"]["toolkit"] = wanted.toolkit and {"version": wanted.toolkit, "mode": "auto"}
    facts["containers"]["containerd"].update(wanted.containerd)
    cluster = {
        **copy.deepcopy(HOST["cluster"]),
        "version": KUBERNETES[release],
        "values": wanted.values,
        **{key: value for key, value in wanted.cluster.items() if key != "taint"},
    }
    node = cluster["nodes"][0]
    cluster["nodes"] = [
        {
            **node,
            "name": name,
            "labels": {**node["labels"], "kubernetes.io/hostname": name, **wanted.labels},
            "taints": [wanted.cluster["taint"]] if "taint" in wanted.cluster else [],
        }
        for name in names
    ]
    return [
        plan(name, {**facts, "host": name}, {**policy, "gpu_operator_version": release}, matrix.load(), NOW, cluster)
        for name, policy in zip(names, wanted.hosts, strict=True)
    ]


def cluster(*names: str, **more: Any) -> dict[str, Any]:
    """Return a new cluster of nodes with these names."""
    node = HOST["cluster"]["nodes"][0]
    nodes = [{**node, "name": name, "labels": {**node["labels"], "kubernetes.io/hostname": name}} for name in names]
    return {**copy.deepcopy(HOST["cluster"]), "uid": "u", "nodes": nodes, **more}


def planned(where: dict[str, Any], name: str, policy: dict[str, Any], **facts: Any) -> dict[str, Any]:
    """Return the plan of a host with its cluster."""
    return plan(name, {**HOST["facts"], "host": name, **facts}, policy, matrix.load(), NOW, where)


def fleet(where: dict[str, Any], **policies: dict[str, Any]) -> dict[str, Any]:
    """Return what is made of the plans of hosts, by name with their policies."""
    made = for_cluster([planned(where, name.replace("_", "-"), one) for name, one in policies.items()], where)
    assert made is not None
    return made


def applied(there: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """Return the cluster as it is after the role did what was made of the plans."""
    after = copy.deepcopy(there)
    after["operator"] = {"version": made["version"], "values": copy.deepcopy(made["values"])}
    objects = {one["name"]: one for one in after.get("drivers") or () if one["name"] not in made["unused"]}
    objects.update({one["name"]: {**one, "ours": True} for one in made["drivers"]})
    after["drivers"] = list(objects.values())
    after["config_maps"] = {one["name"]: one["data"] for one in made["sharing"]["config_maps"]}
    changes = [(one["metadata"]["name"], one["metadata"]["labels"], one["metadata"]["annotations"])
               for one in made["patches"]]
    changes += [(one["name"], one["labels"], None) for one in made["sharing"]["nodes"]]
    for name, labels, notes in changes:
        node = next(one for one in after["nodes"] if one["name"] == name)
        merged = {**node["labels"], **labels}
        node["labels"] = {key: value for key, value in merged.items() if value is not None}
        if notes is not None:
            node["ours"] = (notes["baremetal.nvidia/labels"] or "").split(",")
    return after
