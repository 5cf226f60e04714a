# SPDX-License-Identifier: GPL-3.0-or-later
"""What a list of objects is cut down to: of 3000 nodes the images alone would be a hundred megabytes."""

from __future__ import annotations

from typing import Any

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
from ansible_collections.baremetal.nvidia.plugins.modules import cluster_read


class Client:
    """Serves one object of each kind."""

    def resource(self, _kind: str, _version: str) -> Client:
        return self

    def get(self, **_asked: Any) -> Client:
        return self

    def to_dict(self) -> dict[str, Any]:
        applied = "kubectl.kubernetes.io/last-applied-configuration"
        meta = {"name": "g1", "managedFields": [{}], "annotations": {applied: "{}", "kept": "1"}}
        return {"items": [{"metadata": meta, "status": {"images": [{}], "nodeInfo": {"osImage": "x"}}}]}


def read(kind: str) -> dict[str, Any]:
    wanted = {"kind": kind, "api_version": "v1", "namespace": None, "name": None, "label_selectors": [], "whole": []}
    found = cluster_read.read(Client(), wanted)
    assert found is not None and len(found) == 1
    return found[0]


def test_a_node_comes_without_what_nobody_reads() -> None:
    assert read("Node") == {"apiVersion": "v1", "kind": "Node", "status": {"nodeInfo": {"osImage": "x"}},
                            "metadata": {"name": "g1", "annotations": {"kept": "1"}}}


def test_other_kinds_keep_their_status() -> None:
    assert read("Pod")["status"]["images"] == [{}]
