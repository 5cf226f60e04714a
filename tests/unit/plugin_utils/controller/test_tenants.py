# SPDX-License-Identifier: GPL-3.0-or-later
"""Quotas, limits and priorities of tenants; each way in which gpu_tenants can be wrong."""

from __future__ import annotations

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import tenants
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller.cluster import MADE_BY

VISION = {"name": "vision", "gpus": 8, "resources": {"nvidia.com/mig-1g.10gb": 4}, "priority": 1000, "preempts": False,
          "max_gpus_per_container": 2, "requests": {"cpu": 1, "memory": "2Gi"}, "quota": {"requests.cpu": 64}}


def _by_kind(made):
    return {one["kind"]: one for one in made}


def test_a_tenant_is_a_namespace_with_quota_limits_and_priority():
    made = _by_kind(tenants.objects([VISION]))
    assert made["ResourceQuota"]["spec"]["hard"] == {
        "requests.nvidia.com/gpu": "8", "requests.nvidia.com/mig-1g.10gb": "4", "requests.cpu": "64"}
    assert made["PriorityClass"]["value"] == 1000 and made["PriorityClass"]["preemptionPolicy"] == "Never"
    assert all(MADE_BY.items() <= one["metadata"]["labels"].items() for one in made.values())


def test_a_maximum_of_gpus_gives_none_to_containers_that_ask_for_none():
    limits = _by_kind(tenants.objects([VISION]))["LimitRange"]["spec"]["limits"][0]
    assert limits["max"] == {"nvidia.com/gpu": "2"}
    assert limits["default"]["nvidia.com/gpu"] == "0" and limits["defaultRequest"]["nvidia.com/gpu"] == "0"


@pytest.mark.parametrize(("given", "words"), [
    ("vision", "gpu_tenants is 'vision'; a list"),
    (["vision"], "gpu_tenants[0] is 'vision'; a mapping"),
    ([{"name": "Vision"}], "gpu_tenants[0].name is 'Vision'; the name of a namespace"),
    ([{"name": "kube-system"}], "gpu_tenants[0].name is 'kube-system'"),
    ([{"name": "a"}, {"name": "a"}], "gpu_tenants[1].name is 'a', which is there twice"),
    ([{"name": "a", "gpu": 1}], "gpu_tenants[0].gpu is not known; allowed are"),
    ([{"name": "a", "gpus": -1}], "gpu_tenants[0].gpus is -1; a whole number from 0"),
    ([{"name": "a", "gpus": True}], "gpu_tenants[0].gpus is True"),
    ([{"name": "a", "gpus": 1, "resources": {"nvidia.com/gpu": 2}}], "say the same thing twice"),
    ([{"name": "a", "resources": {"limits.nvidia.com/gpu": 2}}], "resources has 'limits.nvidia.com/gpu'"),
    ([{"name": "a", "resources": ["x"]}], "gpu_tenants[0].resources is ['x']; a mapping"),
    ([{"name": "a", "quota": {"limits.nvidia.com/gpu": 2}}], "GPUs belong to gpus and resources"),
    ([{"name": "a", "quota": {"requests.cpu": "many"}}], "gpu_tenants[0].quota[requests.cpu] is 'many'; a quantity"),
    ([{"name": "a", "priority": 2_000_000_000}], "gpu_tenants[0].priority is 2000000000"),
    ([{"name": "a", "preempts": "yes"}], "gpu_tenants[0].preempts is 'yes'; true or false"),
    ([{"name": "a", "requests": {"nvidia.com/gpu": 1}}], "would give one to every container"),
])
def test_what_cannot_be_meant_is_named_with_its_place(given, words):
    with pytest.raises(tenants.TenantError) as caught:
        tenants.objects(given)
    assert words in str(caught.value)


def test_what_nobody_asks_for_any_more_goes_only_where_it_is_ours():
    ours = {"metadata": {"name": "gpu-tenant", "namespace": "old", "labels": {**MADE_BY, **tenants.PART}}}
    theirs = {"metadata": {"name": "compute", "namespace": "old", "labels": {}}}
    helm = {"metadata": {"name": "x", "labels": {"app.kubernetes.io/managed-by": "Helm"}}}
    planned = tenants.plan([], {"ResourceQuota": [ours, theirs], "PriorityClass": [helm], "Namespace": []})
    assert [(one["kind"], one["namespace"], one["name"]) for one in planned["remove"]] == [
        ("ResourceQuota", "old", "gpu-tenant")]


def test_an_object_of_somebody_else_is_not_taken_over():
    there = {"PriorityClass": [{"metadata": {"name": "gpu-tenant-vision"}, "value": 5}]}
    with pytest.raises(tenants.TenantError, match="PriorityClass gpu-tenant-vision is there"):
        tenants.plan([VISION], there)


def test_a_namespace_that_is_there_stays_as_it_is():
    planned = tenants.plan([VISION], {"Namespace": [{"metadata": {"name": "vision", "labels": {"a": "b"}}}]})
    assert "Namespace" not in {one["kind"] for one in planned["apply"]}


def test_another_priority_replaces_the_class():
    before = tenants.objects([{**VISION, "priority": 5}])[-1]
    planned = tenants.plan([VISION], {"PriorityClass": [before]})
    assert [one["name"] for one in planned["replace"]] == ["gpu-tenant-vision"]
    assert tenants.plan([{**VISION, "priority": 5}], {"PriorityClass": [before]})["replace"] == []


def test_what_the_cluster_cannot_give_is_said():
    notes = tenants.plan([VISION], {}, [{"allocatable": {"nvidia.com/gpu": "4"}}])["notes"]
    assert notes == ["the tenants may have 8 of nvidia.com/gpu, and the nodes offer 4: first come, first served",
                     "no node offers nvidia.com/mig-1g.10gb, which the tenants may have 4 of"]
