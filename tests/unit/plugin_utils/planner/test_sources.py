# SPDX-License-Identifier: GPL-3.0-or-later
"""Proxy, mirror and priority of package sources, as the plan has them."""
from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model.policy import PolicyError, validate

MIRROR = {"url": "https://mirror.local/cuda/", "fingerprint": "A" * 40, "key_url": "https://mirror.local/key.asc"}
CONF = "/etc/apt/apt.conf.d/51baremetal-nvidia-cuda-proxy"
FACTS: dict[str, Any] = {
    "os": {"id": "ubuntu", "version": "24.04", "codename": "noble", "family": "debian", "arch": "x86_64",
           "virt": "none"},
    "gpus": [{"address": "0000:3b:00.0", "id": "10de:1eb8", "driver": None, "numa_node": 0}],
    "nvswitches": [],
    "kernel": {"running": "6.8.0-149-generic", "default_boot": "6.8.0-149-generic", "installed": [
        {"release": "6.8.0-149-generic", "image": True, "initrd": True, "headers": True, "compiler": "gcc-13",
         "nvidia": None}]},
    "files": {},
    "packages": {"manager": "apt", "installed": {}, "cache_age": 60, "repositories": [
        {"id": "ubuntu", "url": "http://archive.ubuntu.com/ubuntu", "suites": ["noble"], "signed_by": None,
         "file": "/etc/apt/sources.list", "enabled": True, "components": ["main", "restricted"]}]},
}


def test_a_proxy_counts_for_what_we_write(plan: Callable[..., dict[str, Any]]) -> None:
    made = plan(FACTS, gpu_driver_source="nvidia", gpu_driver_repository=MIRROR, gpu_proxy="http://proxy.local:3128/")
    row = made["decisions"]["driver"]["repositories"][0]
    assert row["proxy"] == "http://proxy.local:3128" and row["missing"]
    own = plan(FACTS, gpu_driver_source="nvidia", gpu_driver_repository={**MIRROR, "proxy": ""}, gpu_proxy="http://p:1")
    assert own["decisions"]["driver"]["repositories"][0]["proxy"] is None


def test_a_proxy_that_is_lacking_or_too_much_is_a_change(plan: Callable[..., dict[str, Any]]) -> None:
    asked = {"gpu_driver_source": "nvidia", "gpu_driver_repository": MIRROR}
    row = plan(FACTS, **asked)["decisions"]["driver"]["repositories"][0]
    facts = copy.deepcopy(FACTS)
    facts["files"][row["path"]] = {"sha256": hashlib.sha256(row["content"].encode()).hexdigest()}
    for proxy, there, missing in ((None, None, False), ("http://p:1", None, True), (None, "x", True)):
        if there:
            facts["files"][CONF] = {"sha256": there}
        found = plan(facts, **asked, **({"gpu_proxy": proxy} if proxy else {}))
        assert found["decisions"]["driver"]["repositories"][0]["missing"] is missing, (proxy, there)


@pytest.mark.parametrize("value", ["proxy.local:3128", "socks5://p:1", "http://p:1/path", 3128, 'http://p:1";x'])
def test_what_is_no_proxy(value: Any) -> None:
    with pytest.raises(PolicyError, match=r"^gpu_proxy: .*allowed is the address of a proxy"):
        validate({"gpu_proxy": value})


def test_credentials_are_refused_and_not_shown() -> None:
    with pytest.raises(PolicyError) as caught:
        validate({"gpu_proxy": "http://user:s3cret@p:1"})
    assert "s3cret" not in str(caught.value) and "without credentials" in str(caught.value)


def test_libraries_and_module_come_from_one_place(plan: Callable[..., dict[str, Any]]) -> None:
    made = plan(FACTS, gpu_driver_source="nvidia", gpu_driver_repository=MIRROR)
    wanted = made["decisions"]["driver"]["preferences"]
    assert 'Pin: origin "mirror.local"\nPin-Priority: 1001' in wanted["content"]
    assert wanted["content"].index("nvidia-container-*") < wanted["content"].index("nvidia-* libnvidia-*")
    version = made["decisions"]["driver"]["version"]
    exact = wanted["content"].index(f"Pin: version {version}*\nPin-Priority: 1002\n")
    assert exact < wanted["content"].index("Pin: origin"), "the first record that fits a version counts"
    assert [change["target"] for change in made["changes"] if change["action"] == "pin"] == [wanted["path"]]
    facts = copy.deepcopy(FACTS)
    facts["packages"]["repositories"].append(
        {"id": "cuda", "url": "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/",
         "suites": ["/"], "signed_by": "/x", "file": "/etc/apt/sources.list.d/cuda.list", "enabled": True})
    archive = plan(facts, gpu_driver_source="distro")["decisions"]["driver"]["preferences"]
    assert 'Pin: origin "developer.download.nvidia.com"\nPin-Priority: 100' in archive["content"]
    assert "1002" not in archive["content"]
    facts["packages"]["repositories"].pop()
    assert plan(facts, gpu_driver_source="distro")["decisions"]["driver"]["preferences"] is None
    same = {**MIRROR, "url": "http://archive.ubuntu.com/cuda/"}
    made = plan(FACTS, gpu_driver_source="nvidia", gpu_driver_repository=same)
    alone = made["decisions"]["driver"]["preferences"]["content"]
    assert "Pin: origin" not in alone, "the address does not tell them apart"
    assert f"Pin: version {version}*\nPin-Priority: 1002\n" in alone
