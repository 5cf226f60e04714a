#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read objects of several kinds from a cluster in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_read
short_description: Read objects of several kinds from a cluster in one call
description:
  - Reads lists of objects through the client of C(kubernetes.core), as M(kubernetes.core.k8s_info) does, but all of
    them at once, since starting a module costs more than asking the API server.
  - Reads only. A kind that the cluster does not serve is no error.
  - What only grows an answer is left out, C(metadata.managedFields) and the list of images of a node.
version_added: 0.2.0
author: baremetal.nvidia maintainers (@baremetal-nvidia)
extends_documentation_fragment:
  - baremetal.nvidia.cluster
  - baremetal.nvidia.cluster.connection
  - baremetal.nvidia.cluster.objects
seealso:
  - module: kubernetes.core.k8s_info
"""

EXAMPLES = r"""
- name: Read nodes and driver objects
  baremetal.nvidia.cluster_read:
    objects:
      - {kind: Node}
      - {kind: NVIDIADriver, api_version: nvidia.com/v1alpha1}
  register: seen
"""

RETURN = r"""
version:
  description: The version of the API server.
  returned: success
  type: str
  sample: v1.34.1
resources:
  description: The objects by kind. A kind that is not served is absent.
  returned: success
  type: dict
"""

import traceback
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible_collections.baremetal.nvidia.plugins.module_utils import cluster_spec

try:
    from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
    from ansible_collections.kubernetes.core.plugins.module_utils.k8s.exceptions import CoreException
    from kubernetes.client.exceptions import ApiException
    from kubernetes.dynamic.exceptions import NotFoundError, ResourceNotFoundError
    from urllib3.exceptions import HTTPError
    MISSING = None
except ImportError:
    MISSING = traceback.format_exc()

_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def read(client: Any, wanted: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the objects, None where the cluster does not serve the kind."""
    try:
        resource = client.resource(wanted["kind"], wanted["api_version"])
    except ResourceNotFoundError:
        return None
    asked = {key: wanted[key] for key in ("namespace", "name") if wanted[key]}
    if wanted["label_selectors"]:
        asked["label_selector"] = ",".join(wanted["label_selectors"])
    try:
        answer = resource.get(**asked).to_dict()
    except NotFoundError:
        return []
    listed = answer.get("items", [answer])
    return [_short(one, wanted) for one in listed]


def _short(one: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    meta = one.get("metadata") or {}
    if wanted["whole"] and meta.get("name") not in wanted["whole"]:
        return {"metadata": {"name": meta.get("name")}}
    meta.pop("managedFields", None)
    (meta.get("annotations") or {}).pop(_APPLIED, None)
    if wanted["kind"] == "Node":    # tens of KiB a node, which nobody here reads
        (one.get("status") or {}).pop("images", None)
    return {"apiVersion": wanted["api_version"], "kind": wanted["kind"], **one}


def main() -> None:
    """Read and return."""
    module = AnsibleModule(argument_spec={**cluster_spec.CONNECTION, "objects": cluster_spec.OBJECTS},
                           supports_check_mode=True)
    if MISSING:
        module.fail_json(msg=missing_required_lib("kubernetes (and the collection kubernetes.core)"), exception=MISSING)
    given = {key: module.params[key] for key in ("kubeconfig", "context") if module.params[key]}
    try:
        client = get_api_client(**given)
        version = client.client.version["kubernetes"]["gitVersion"]
        found = {wanted["kind"]: read(client, wanted) for wanted in module.params["objects"]}
    except (ApiException, CoreException, HTTPError, OSError, ValueError) as exc:
        module.fail_json(msg=f"the cluster cannot be read: {type(exc).__name__}: {getattr(exc, 'body', None) or exc}")
    module.exit_json(changed=False, version=version,
                     resources={kind: listed for kind, listed in found.items() if listed is not None})


if __name__ == "__main__":
    main()
