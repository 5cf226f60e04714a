# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds that the emulator serves: built-in ones, and those that CustomResourceDefinitions bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_BUILT_IN = """
v1 namespaces Namespace cluster status
v1 nodes Node cluster status
v1 pods Pod namespaced status,log,eviction
v1 secrets Secret namespaced
v1 configmaps ConfigMap namespaced
v1 services Service namespaced status
v1 serviceaccounts ServiceAccount namespaced
v1 events Event namespaced
v1 resourcequotas ResourceQuota namespaced status
v1 limitranges LimitRange namespaced
apps/v1 daemonsets DaemonSet namespaced status
apps/v1 deployments Deployment namespaced status
apps/v1 replicasets ReplicaSet namespaced status
batch/v1 jobs Job namespaced status
rbac.authorization.k8s.io/v1 roles Role namespaced
rbac.authorization.k8s.io/v1 rolebindings RoleBinding namespaced
rbac.authorization.k8s.io/v1 clusterroles ClusterRole cluster
rbac.authorization.k8s.io/v1 clusterrolebindings ClusterRoleBinding cluster
node.k8s.io/v1 runtimeclasses RuntimeClass cluster
scheduling.k8s.io/v1 priorityclasses PriorityClass cluster
autoscaling/v2 horizontalpodautoscalers HorizontalPodAutoscaler namespaced status
policy/v1 poddisruptionbudgets PodDisruptionBudget namespaced status
apiextensions.k8s.io/v1 customresourcedefinitions CustomResourceDefinition cluster status
"""
_SHORT = {"namespaces": ["ns"], "configmaps": ["cm"], "deployments": ["deploy"], "daemonsets": ["ds"], "nodes": ["no"],
          "customresourcedefinitions": ["crd"]}
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


@dataclass(frozen=True)
class Kind:
    """One kind in one version; ``schema`` is that of a CRD's version, None for what is built in."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    subresources: tuple[str, ...] = ()
    schema: dict[str, Any] | None = None

    @property
    def group_version(self) -> str:
        """``v1`` or ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version


def built_in() -> list[Kind]:
    """The kinds of a fresh cluster."""
    found = []
    for line in _BUILT_IN.strip().splitlines():
        group_version, plural, kind, scope, *subresources = line.split()
        group, _slash, version = group_version.rpartition("/")
        found.append(Kind(group, version, plural, kind, scope == "namespaced",
                          tuple(subresources[0].split(",")) if subresources else ()))
    return found


def of_definition(definition: dict[str, Any]) -> list[Kind]:
    """The kinds that a CustomResourceDefinition brings: one a served version."""
    spec = definition["spec"]
    return [
        Kind(spec["group"], version["name"], spec["names"]["plural"], spec["names"]["kind"],
             spec["scope"] == "Namespaced", tuple(version.get("subresources") or ()),
             version.get("schema", {}).get("openAPIV3Schema"))
        for version in spec["versions"] if version.get("served", True)
    ]


def discovery(kinds: list[Kind], group_version: str) -> dict[str, Any] | None:
    """The resource list of a group and version, as ``/apis/GROUP/VERSION`` returns it."""
    resources: list[dict[str, Any]] = []
    for kind in kinds:
        if kind.group_version != group_version:
            continue
        resources.append({"name": kind.plural, "singularName": kind.kind.lower(), "namespaced": kind.namespaced,
                          "kind": kind.kind, "verbs": VERBS, "shortNames": _SHORT.get(kind.plural, [])})
        resources += [{"name": f"{kind.plural}/{one}", "singularName": "", "namespaced": kind.namespaced,
                       "kind": kind.kind, "verbs": ["get", "patch", "update"]} for one in kind.subresources]
    if not resources:
        return None
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}


def groups(kinds: list[Kind]) -> dict[str, Any]:
    """The list of groups, as ``/apis`` returns it."""
    versions: dict[str, list[str]] = {}
    for kind in kinds:
        if kind.group and kind.version not in versions.setdefault(kind.group, []):
            versions[kind.group].append(kind.version)
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group(name, found)
                                                                   for name, found in sorted(versions.items())]}


def group(name: str, versions: list[str]) -> dict[str, Any]:
    """One group of the list."""
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def openapi_index(kinds: list[Kind]) -> dict[str, Any]:
    """Where the OpenAPI v3 document of each group and version lies."""
    paths = {("apis/" if kind.group else "api/") + kind.group_version: None for kind in kinds}
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in paths}}


def openapi(kinds: list[Kind], group_version: str) -> dict[str, Any]:
    """An OpenAPI v3 document that says just this: a PATCH of each kind takes ``fieldValidation``.

    That is what clients look for before they leave the validation to the server.
    """
    paths: dict[str, Any] = {}
    for kind in kinds:
        if kind.group_version != group_version:
            continue
        root = f"/apis/{group_version}" if kind.group else f"/api/{group_version}"
        where = f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"
        known = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        paths[f"{where}/{{name}}"] = {"patch": {
            "x-kubernetes-group-version-kind": known,
            "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}],
            "responses": {"200": {"description": "OK"}},
        }}
    return {"openapi": "3.0.0", "info": {"title": "emulator", "version": "v1"}, "paths": paths,
            "components": {"schemas": {}}}
