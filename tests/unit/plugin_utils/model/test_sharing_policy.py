# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu_sharing: what cannot be meant, and what excludes itself, is refused by name before anything else."""
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import policy, sharing


def groups(*given: Any) -> tuple[sharing.Group, ...]:
    return sharing.read(policy.validate({"gpu_sharing": list(given)})["gpu_sharing"])


@pytest.mark.parametrize(
    ("group", "where", "words"),
    [
        ({"strategy": "mps", "replicas": 4, "mig_profile": "1g.10gb"}, "mig_profile", "whole GPUs alone, not on MIG"),
        ({"strategy": "time_slicing", "replicas": 4, "mig_profile": "1g.10gb"}, "mig_profile", "strategy mig takes"),
        ({"strategy": "mps", "replicas": 49}, "replicas", "at most 48"),
        ({"strategy": "mps"}, "replicas", "from 2 on"),
        ({"strategy": "time_slicing", "replicas": 1}, "replicas", "from 2 on"),
        ({"strategy": "time_slicing", "replicas": "4"}, "replicas", "from 2 on"),
        ({"strategy": "none", "replicas": 2}, "replicas", "one pod alone"),
        ({"strategy": "mig", "mig_profile": "balanced", "replicas": 2}, "replicas", "named"),
        ({"strategy": "mps", "replicas": 4, "fail_requests_greater_than_one": True}, "fail_requests_greater_than_one",
         "MPS"),
        ({"strategy": "mig", "mig_profile": "1g.10gb", "rename": True}, "rename", "replicas"),
        ({"strategy": "mig"}, "mig_profile", "1g.10gb, balanced"),
        ({"strategy": "mig", "mig_profile": "big"}, "mig_profile", "1g.10gb, balanced"),
        ({"strategy": "mig", "mig_profile": {"1g.10gb": 0}}, "mig_profile", "how many"),
        ({"strategy": "mig", "mig_profile": {"1g.10gb": 1, "2g.20gb": 1}, "mig_strategy": "single"}, "mig_strategy",
         "mixed"),
        ({"strategy": "mps", "replicas": 4, "mig_strategy": "single"}, "mig_strategy", "strategy mig"),
        ({"preset": "serving", "strategy": "mig"}, "strategy", "preset or strategy"),
        ({"preset": "training"}, "preset", "batch, serving"),
        ({"strategy": "shared"}, "strategy", "time_slicing"),
        ({"preset": "batch", "replica": 4}, "replica", "one of the keys"),
        ({"preset": "batch", "nodes": {"pool": ["a"]}}, "nodes.pool", "label"),
        ({"preset": "batch", "hosts": {"a": 1}}, "hosts", "inventory groups"),
    ],
)
def test_what_cannot_be_is_refused_by_name(group: dict[str, Any], where: str, words: str) -> None:
    with pytest.raises(policy.PolicyError, match=words) as refused:
        groups({"name": "a", **group})
    assert refused.value.variable == f"gpu_sharing[0].{where}"


@pytest.mark.parametrize("name", [None, "", "Whole", "whole", "a_b", "a" * 49])
def test_a_name_is_a_key_and_a_label(name: Any) -> None:
    with pytest.raises(policy.PolicyError, match=r"gpu_sharing\[0\].name"):
        groups({"name": name, "preset": "batch"})


def test_a_name_stands_once() -> None:
    with pytest.raises(policy.PolicyError, match="no other group"):
        groups({"name": "a", "preset": "batch"}, {"name": "a", "preset": "serving"})


def test_presets_say_the_strategy_and_take_other_numbers() -> None:
    batch, serving = groups({"name": "a", "preset": "batch"}, {"name": "b", "preset": "serving", "replicas": 8})
    assert (batch.strategy, batch.replicas, batch.rename) == ("time_slicing", 4, True)
    assert (serving.strategy, serving.replicas, serving.rename) == ("mps", 8, False)


def test_one_name_never_means_two_things() -> None:
    one, same, other = (groups({"name": "a", "preset": "batch", **more})[0].key
                        for more in ({}, {"hosts": "x"}, {"replicas": 8}))
    assert one == same != other


def test_what_was_checked_can_be_checked_again() -> None:
    once = policy.validate({"gpu_sharing": [{"name": "a", "preset": "batch", "hosts": "x"},
                                            {"name": "b", "strategy": "mig", "mig_profile": {"1g.10gb": 2}}]})
    assert policy.validate(once)["gpu_sharing"] == once["gpu_sharing"]


def test_a_group_takes_by_inventory_group_pattern_and_label() -> None:
    (one,) = groups({"name": "a", "preset": "batch", "hosts": ["inference", "gpu-a*"],
                     "nodes": {"pool": "web", "gpu": True}})
    labels = {"pool": "web", "gpu": "true"}
    assert one.takes("gpu-a1", (), labels) and one.takes("x", ("inference",), labels)
    assert not one.takes("gpu-b1", (), labels) and not one.takes("gpu-a1", (), {"pool": "web"})
    (everywhere,) = groups({"name": "a", "preset": "batch"})
    assert everywhere.takes("any", (), {})
