# SPDX-License-Identifier: GPL-3.0-or-later
"""The eviction of a pod: its PodDisruptionBudgets have a word in it, as they have none in a deletion."""

from __future__ import annotations

from typing import Any

from .kinds import Kind
from .store import Object, Refused, Store

_NO = "Cannot evict pod as it would violate the pod's disruption budget."
_TWO = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


def evict(store: Store, kind: Kind, where: str, name: str, given: Any) -> Object:
    """Delete the pod where its budget (``disruptionsAllowed``) allows it. Raises Refused (404, 409, 429, 500)."""
    pod = store.get(kind, where, name)
    wanted = ((given.get("deleteOptions") or {}).get("preconditions") or {}).get("uid")
    if wanted not in (None, pod["metadata"]["uid"]):
        raise Refused(409, "Conflict", f"the UID in the precondition ({wanted}) does not match the UID of pod {name}")
    its_kind = store.kind("policy", "v1", "poddisruptionbudgets")
    budgets = [one for one in store.list(its_kind, where) if _covers(one, pod)]
    if len(budgets) > 1:
        raise Refused(500, "InternalError", _TWO)
    for one in budgets:
        status = one.get("status") or {}
        if status.get("disruptionsAllowed", 0) < 1:
            told = (f"The disruption budget {one['metadata']['name']} needs {status.get('desiredHealthy', 1)} healthy "
                    f"pods and has {status.get('currentHealthy', 1)} currently")
            raise Refused(429, "TooManyRequests", _NO,
                          {"causes": [{"reason": "DisruptionBudget", "message": told}]})
        status["disruptionsAllowed"] -= 1
        store.replace(its_kind, where, one["metadata"]["name"], one)
    store.delete(kind, where, name)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _covers(budget: Object, pod: Object) -> bool:
    labels = pod["metadata"].get("labels") or {}
    wanted = budget["spec"].get("selector", {}).get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items())
