# SPDX-License-Identifier: GPL-3.0-or-later
"""Policy variables are collected; misspelt ones are named, other people's are not."""

from __future__ import annotations

import pathlib
import re

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import names, policy_vars

ROOT = pathlib.Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("gpu_driver_brnach", "gpu_driver_branch"),
        ("gpu_driver_brach", "gpu_driver_branch"),
        ("gpu_driverbranch", "gpu_driver_branch"),
        ("gpu_branch_driver", "gpu_driver_branch"),
        ("gpu_Driver_Branch", "gpu_driver_branch"),
        ("gpu_driver_flavor", "gpu_driver_flavour"),
        ("gpu_reboots_allowed", "gpu_reboot_allowed"),
        ("gpu_framework", "gpu_frameworks"),
        ("gpu_findings_waved", "gpu_findings_waived"),
        ("gpu_cudas", "gpu_cuda"),
        ("gpu_serials", "gpu_serial"),
    ],
)
def test_misspelt_names_have_a_nearest_one(written: str, meant: str) -> None:
    assert policy_vars.nearest(written, names.known()) == meant
    with pytest.raises(policy_vars.UnknownVariable, match=f"{written}.*{meant}"):
        policy_vars.refuse_misspelt({written: "x"}, names.known())


@pytest.mark.parametrize(
    "own", ["gpu_rack", "gpu_count", "gpu_nodes", "gpu_cost_centre", "gpu_driver", "driver_branch", "gpu_card"]
)
def test_other_peoples_variables_pass(own: str) -> None:
    policy_vars.refuse_misspelt({own: "x"}, names.known())


def test_known_names_are_no_mistakes_of_each_other() -> None:
    policy_vars.refuse_misspelt(dict.fromkeys(names.known(), "x"), names.known())


@pytest.mark.parametrize("name", names.PLAYBOOK)
def test_a_variable_of_the_playbooks_is_read_and_told_in_one_place(name: str) -> None:
    files = [path for folder in ("playbooks", "roles", "plugins/action") for path in (ROOT / folder).rglob("*")
             if path.suffix in (".yml", ".py") and "meta" not in path.parts]
    lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()
             if not line.lstrip().startswith("#")]
    assert re.search(rf"\b{name}\b", "\n".join(lines)), f"nothing reads {name}"
    assert name not in names.policy() | names.role_options(), "its own file documents it already"


def test_only_known_variables_are_evaluated() -> None:
    seen: list[str] = []

    def template(name: str, value: object) -> object:
        seen.append(name)
        return value

    variables = {"gpu_cuda": "12.4", "secret": "{{ boom }}", "ansible_facts": {"x": "{{ boom }}"}}
    assert policy_vars.collect(variables, names.policy(), template) == {"gpu_cuda": "12.4"}
    assert seen == ["gpu_cuda"]


@pytest.mark.parametrize("given", [{"gpu_driver_brnch": "580"}, {"nonsense": 1}, ["gpu_cuda"], "gpu_cuda"])
def test_an_explicit_policy_has_only_known_keys(given: object) -> None:
    with pytest.raises(policy_vars.UnknownVariable, match="polic"):
        policy_vars.refuse_unknown(given, names.policy())


def test_every_variable_that_playbooks_and_roles_read_is_known() -> None:
    """A switch that is missing from names.py would be called misspelt, or not be documented."""
    pattern = re.compile(r"(?<![\w.'\"])(gpu_[a-z_]+)\b(?!\s*[:(])")
    used: dict[str, str] = {}
    for path in [*ROOT.glob("playbooks/*.yml"), *ROOT.glob("roles/*/tasks/*.yml")]:
        for expression in re.findall(r"{{(.*?)}}|when:(.*)", path.read_text(encoding="utf-8")):
            for name in pattern.findall(re.sub(r"'[^']*'", "", " ".join(expression))):
                used.setdefault(name, path.name)
    assert "gpu_serial" in used, "the test must find what it looks for"
    assert {name: place for name, place in used.items() if name not in names.known()} == {}
