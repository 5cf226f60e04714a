# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers for an operator that does not run: sets the status of its custom objects to ready, in any cluster.

    play.py KUBECONFIG SECONDS

On a cluster without GPUs (kind) the stand-in chart brings the objects and nobody who answers for them.
"""

from __future__ import annotations

import sys
import time

import kubernetes
from kubernetes.client.exceptions import ApiException

_KINDS = (("v1", "clusterpolicies"), ("v1alpha1", "nvidiadrivers"))
_READY = {"status": {"state": "ready", "namespace": "gpu-operator", "conditions": []}}


def once(api: kubernetes.client.CustomObjectsApi) -> None:
    """Say ready for each object that does not say so."""
    for version, plural in _KINDS:
        try:
            listed = api.list_cluster_custom_object("nvidia.com", version, plural)["items"]
            for one in listed:
                if one.get("status", {}).get("state") != "ready":
                    name = one["metadata"]["name"]
                    api.patch_cluster_custom_object_status("nvidia.com", version, plural, name, _READY)
        except ApiException as exc:
            if exc.status != 404:    # the kind is not there yet, or the object is gone already
                raise


def main() -> None:
    """Look each second until time is up."""
    api = kubernetes.client.CustomObjectsApi(kubernetes.config.new_client_from_config(sys.argv[1]))
    until = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < until:
        once(api)
        time.sleep(1)


if __name__ == "__main__":
    main()
