#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evict the pods that use the GPUs of a node, and no others."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_evict
short_description: Evict the pods that use the GPUs of a node, and no others
description:
  - Evicts (never deletes) the pods of a node that ask for C(nvidia.com/gpu) or a part of a GPU, and waits, with a line
    for each look, until they are gone. M(kubernetes.core.k8s_drain) knows pods by their labels alone, and gives up at
    the first PodDisruptionBudget.
  - A PodDisruptionBudget that does not let a pod go is waited for until O(timeout), and named.
  - As C(kubectl drain) does, it evicts nothing where a pod would be lost for good (O(bare_pods), O(emptydir)) or would
    be back at once (of a DaemonSet, static).
  - Which pods these are is looked at again at each look. Cordon the node before, so that no new ones come.
version_added: 0.2.0
author: baremetal.nvidia maintainers (@baremetal-nvidia)
extends_documentation_fragment:
  - baremetal.nvidia.cluster
  - baremetal.nvidia.cluster.connection
  - baremetal.nvidia.cluster.wait
options:
  node:
    description: Name of the node.
    type: str
    required: true
  state:
    description: Whether V(empty) pods of the node are evicted, or it is V(looked) at alone.
    type: str
    choices: [empty, looked]
    default: empty
  keep_namespaces:
    description: Namespaces whose pods are left alone.
    type: list
    elements: str
    default: []
  bare_pods:
    description: Whether pods may be evicted that have no controller, which nobody starts again.
    type: bool
    default: false
  emptydir:
    description: Whether pods may be evicted that have an C(emptyDir) on disk, whose content goes with them.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Empty the GPUs of a node
  baremetal.nvidia.cluster_evict:
    node: g1
    keep_namespaces: [gpu-operator]
    timeout: 600
"""

RETURN = r"""
users:
  description: The pods that use the GPUs, or did when they were looked for first.
  returned: success
  type: list
  elements: str
  sample: [ai/training-0]
refused:
  description: Pods that are not evicted, each with the reason.
  returned: success
  type: list
  elements: str
blocked:
  description: Pods that the API server does not let go, each with its words (which name the PodDisruptionBudget).
  returned: success
  type: dict
evicted:
  description: Pods that were told to go.
  returned: success
  type: list
  elements: str
unschedulable:
  description: Whether the node was cordoned.
  returned: success
  type: bool
"""

import json
import traceback
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible_collections.baremetal.nvidia.plugins.module_utils import cluster_spec, gpu_users

try:
    from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
    from ansible_collections.kubernetes.core.plugins.module_utils.k8s.exceptions import CoreException
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError
    MISSING = None
except ImportError:
    MISSING = traceback.format_exc()


def look(client: Any, given: dict[str, Any]) -> tuple[list[gpu_users.Pod], bool]:
    """Return the pods that use the GPUs of the node, and whether it is cordoned."""
    node = client.resource("Node", "v1").get(name=given["node"]).to_dict()
    listed = client.resource("Pod", "v1").get(field_selector=f"spec.nodeName={given['node']}").to_dict()
    found = gpu_users.users(listed["items"], given["keep_namespaces"])
    return sorted(found, key=gpu_users.name_of), bool((node.get("spec") or {}).get("unschedulable"))


def objections(pods: list[gpu_users.Pod], given: dict[str, Any]) -> list[str]:
    """Return in words which pods are not evicted, and why."""
    found = ((gpu_users.name_of(pod), gpu_users.objection(pod, given["bare_pods"], given["emptydir"])) for pod in pods)
    return [f"{name} {reason}" for name, reason in found if reason]


def evict(client: Any, pod: gpu_users.Pod) -> tuple[bool, str]:
    """Ask the API server to evict a pod; return whether it goes, and the server's words where it does not."""
    meta = pod["metadata"]
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/eviction"
    body = {"apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
            "deleteOptions": {"preconditions": {"uid": meta["uid"]}}}
    try:
        client.client.request("post", path, body=body)
    except ApiException as exc:
        if exc.status == 404:
            return True, ""
        if exc.status in (409, 429) or "PodDisruptionBudget" in str(exc.body):
            return False, _words(exc)
        raise
    return True, ""


def _words(exc: Any) -> str:
    """Return what a server says: the cause names the budget, the message does not."""
    try:
        told = json.loads(exc.body)
    except (TypeError, ValueError):
        return str(exc.reason)
    causes = [one.get("message") for one in (told.get("details") or {}).get("causes") or () if one.get("message")]
    return "; ".join(causes) or str(told.get("message") or exc.reason)


def main() -> None:
    """Look once, evict what may be, and return; the action plugin looks again."""
    module = AnsibleModule(argument_spec={
        **cluster_spec.CONNECTION,
        **cluster_spec.WAIT,
        "node": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["empty", "looked"], "default": "empty"},
        "keep_namespaces": {"type": "list", "elements": "str", "default": []},
        "bare_pods": {"type": "bool", "default": False},
        "emptydir": {"type": "bool", "default": False},
    }, supports_check_mode=True)
    if MISSING:
        module.fail_json(msg=missing_required_lib("kubernetes (and the collection kubernetes.core)"), exception=MISSING)
    given = module.params
    try:
        client = get_api_client(**{key: given[key] for key in ("kubeconfig", "context") if given[key]})
        pods, unschedulable = look(client, given)
        refused = objections(pods, given)
        acts = given["state"] == "empty" and not refused
        evicted, blocked = [], {}
        for pod in pods if acts else ():
            if gpu_users.is_ending(pod):
                continue
            goes, words = (True, "") if module.check_mode else evict(client, pod)
            if goes:
                evicted.append(gpu_users.name_of(pod))
            else:
                blocked[gpu_users.name_of(pod)] = words
    except (ApiException, CoreException, HTTPError, OSError, ValueError) as exc:
        told = getattr(exc, "body", None) or exc
        module.fail_json(msg=f"the pods of {given['node']} cannot be evicted: {type(exc).__name__}: {told}")
    module.exit_json(changed=bool(evicted), users=[gpu_users.name_of(pod) for pod in pods], refused=refused,
                     evicted=evicted, blocked=blocked, unschedulable=unschedulable)


if __name__ == "__main__":
    main()
