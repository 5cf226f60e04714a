# SPDX-License-Identifier: GPL-3.0-or-later
"""Package sources: added beside what the host has, never against it."""
from __future__ import annotations

from typing import Any

import as_planned
import hosts
import pytest

OWN = {"url": "https://mirror.example/toolkit", "suite": "/", "components": [], "key_url": "https://mirror.example/key.asc",
       "fingerprint": "70D6 1122 6262 FE7F 868E  5DE9 FEF8 AA56 C8A2 655E"}


def plain_debian() -> dict[str, Any]:
    facts = hosts.fresh("debian 12")
    facts["packages"]["repositories"] = [
        {"id": "a", "url": "http://mirror.example/debian", "suites": ["bookworm", "bookworm-updates"], "enabled": True,
         "components": ["main", "non-free-firmware"], "signed_by": None, "file": "/etc/apt/sources.list"},
        {"id": "b", "url": "http://mirror.example/debian-security", "suites": ["bookworm-security"], "enabled": True,
         "components": ["main", "non-free-firmware"], "signed_by": "/k.gpg", "file": "/etc/apt/sources.list"},
        {"id": "c", "url": "https://elsewhere.example/apt", "suites": ["bookworm"], "components": ["main"],
         "enabled": True, "signed_by": "/x.gpg", "file": "/etc/apt/sources.list.d/x.list"}]
    return facts


def test_missing_components_come_from_the_same_mirror_with_the_same_key(plan: Any) -> None:
    made = plan(plain_debian())
    (repository,) = made["decisions"]["driver"]["repositories"]
    assert repository["missing"] and repository["key"] is None
    stanzas = [f"{stanza}\n" for stanza in repository["content"].split("\n\n")]
    assert "URIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\n" in stanzas[0]
    assert "Components: contrib non-free\n" in stanzas[0] and "Signed-By" not in stanzas[0]
    assert "URIs: http://mirror.example/debian-security" in stanzas[1] and "Signed-By: /k.gpg" in stanzas[1]
    assert "elsewhere" not in repository["content"]


def test_ubuntu_without_restricted_and_multiverse_gets_them_from_its_own_mirror(plan: Any) -> None:
    facts = hosts.fresh("ubuntu 24.04", ("l40s",))
    (archive,) = facts["packages"]["repositories"]
    archive.update(url="http://mirror.example/ubuntu", components=["main", "universe"])
    archive["suites"] += ["noble-backports", "noble-proposed"]
    made = plan(facts)
    (repository,) = made["decisions"]["driver"]["repositories"]
    assert repository["missing"] and repository["path"].endswith("/baremetal-nvidia-ubuntu.sources")
    assert ("URIs: http://mirror.example/ubuntu\nSuites: noble noble-updates noble-security\n"
            "Components: restricted multiverse\n") in repository["content"]
    assert made["decisions"]["driver"]["predicted"], "until the lists are there"
    assert any(one["action"] == "repository" for one in made["changes"])
    archive["components"] += ["restricted", "multiverse"]
    assert plan(facts)["decisions"]["driver"]["repositories"] == []


def test_the_systems_own_sources_are_never_a_second_source(plan: Any) -> None:
    made = plan(plain_debian())
    assert not [one for one in made["changes"] if one["action"] == "repository" and one["after"] is None]


def test_complete_components_need_no_repository(plan: Any) -> None:
    assert plan(hosts.fresh("debian 12"))["decisions"]["driver"]["repositories"] == []


def test_a_second_file_for_nvidias_repository_goes(plan: Any) -> None:
    facts = hosts.fresh("debian 12")
    wish = {"gpu_driver_branch": "580", "gpu_driver_source": "nvidia"}
    done = as_planned.carry_out(facts, plan(facts, **wish))
    ours = next(one for one in done["packages"]["repositories"] if "baremetal-nvidia" in one["file"])
    done["packages"]["repositories"].append({**ours, "file": "/etc/apt/sources.list.d/cuda.list", "signed_by": None})
    changes = plan(done, **wish)["changes"]
    assert [(one["action"], one["target"], one["after"]) for one in changes] == [
        ("repository", "/etc/apt/sources.list.d/cuda.list", None)]


def test_own_toolkit_repository(plan: Any) -> None:
    facts = hosts.containers(hosts.fresh("debian 13"))
    made = plan(facts, gpu_toolkit_repository=OWN)
    (repository,) = made["decisions"]["toolkit"]["repositories"]
    assert repository["content"] == (
        "Types: deb\nURIs: https://mirror.example/toolkit\nSuites: /\n"
        "Signed-By: /etc/apt/keyrings/baremetal-nvidia-container-toolkit.asc\n")
    assert repository["key"]["fingerprint"] == "70D611226262FE7F868E5DE9FEF8AA56C8A2655E"
    done = as_planned.carry_out(facts, made)
    assert plan(done, gpu_toolkit_repository=OWN)["changes"] == []


@pytest.mark.parametrize(("ours", "theirs"), [
    ("file:/srv/toolkit", "file:///srv/toolkit/"),
    ("https://mirror.example/stable/deb/amd64", "http://mirror.example/stable/deb/$(ARCH)"),
])
def test_a_second_file_is_seen_however_it_writes_the_address(plan: Any, ours: str, theirs: str) -> None:
    wish = {"gpu_toolkit_repository": {**OWN, "url": ours}}
    facts = hosts.containers(hosts.fresh("debian 13"))
    done = as_planned.carry_out(facts, plan(facts, **wish))
    old = "/etc/apt/sources.list.d/nvidia-container-toolkit.list"
    done["packages"]["repositories"].append({"id": "x", "url": theirs, "suites": ["/"], "file": old, "enabled": True,
                                             "signed_by": "/usr/share/keyrings/old.gpg"})
    assert [(one["target"], one["after"]) for one in plan(done, **wish)["changes"]] == [(old, None)]


def test_own_fabric_manager_repository_makes_the_archives_driver_possible(plan: Any) -> None:
    facts = hosts.fresh("debian 13", ("h100",) * 8, switches=4)
    assert plan(facts)["decisions"]["driver"]["source"] == "nvidia"
    driver = plan(facts, gpu_fabricmanager_repository=OWN)["decisions"]["driver"]
    assert driver["source"] == "distro"
    assert driver["fabricmanager"]["package"] == "nvidia-fabricmanager-550"
    assert [one["name"] for one in driver["repositories"]] == ["baremetal-nvidia-fabricmanager"]
