# SPDX-License-Identifier: GPL-3.0-or-later
"""The planner's questions as filters and tests: the same answers as a host gets, and clear errors."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture(name="ask", scope="module")
def _ask() -> Any:
    from ansible.plugins.loader import init_plugin_loader

    init_plugin_loader([str(ROOT / "collections")])

    def ask(expression: str, **variables: Any) -> Any:
        return Templar(loader=DataLoader(), variables=variables).template(trust_as_template("{{ " + expression + " }}"))

    return ask


def test_a_driver_for_these_gpus(ask: Any) -> None:
    answer = ask("'10de:1eb8' | baremetal.nvidia.gpu_driver_for('debian 12')")
    assert (answer["branch"], answer["flavour"], answer["blocked"]) == ("535", "proprietary", [])
    assert answer["because"]


def test_policy_can_be_asked_with_and_without_prefix(ask: Any) -> None:
    for name in ("driver_branch", "gpu_driver_branch"):
        answer = ask(f"'10de:1db5' | baremetal.nvidia.gpu_driver_for('ubuntu 24.04', {name}='595')")
        assert answer["branch"] == "580" and "Volta" in " ".join(answer["blocked"])


def test_facts_of_a_host_can_be_asked(ask: Any) -> None:
    facts = {"os": {"id": "debian", "version": "12", "arch": "x86_64"}, "gpus": [{"id": "10de:1eb8"}]}
    assert ask("facts | baremetal.nvidia.gpu_driver_for", facts=facts)["branch"] == "535"


def test_cuda_of_a_driver(ask: Any) -> None:
    assert ask("'580.178.04' | baremetal.nvidia.gpu_cuda_max") == "13.0"
    assert ask("'100.1' | baremetal.nvidia.gpu_cuda_max") is None


def test_frameworks_of_a_driver(ask: Any) -> None:
    answer = ask("'580.178.04' | baremetal.nvidia.gpu_frameworks_ok({'pytorch': '2.7'})")
    assert answer["pytorch"]["ok"] is True and answer["pytorch"]["wheel_index"].startswith("cu")
    old = ask("'470.256.02' | baremetal.nvidia.gpu_frameworks_ok({'pytorch': '2.9'})")
    assert old["pytorch"]["ok"] is False and old["pytorch"]["min_driver"] == "525.60.13"
    assert ask("'580.178.04' | baremetal.nvidia.gpu_frameworks_ok({'pytorch': '99'})")["pytorch"]["ok"] is None


def test_a_driver_on_a_kernel(ask: Any) -> None:
    debian = "'550.163.01' is baremetal.nvidia.gpu_driver_supported_on(kernel, 'debian 13', flavour, source='distro')"
    assert ask(debian, kernel="6.12.117+deb13-amd64", flavour="proprietary") is True
    assert ask(debian, kernel="6.12.117+deb13-amd64", flavour="open") is False, "nv-pci.c: pci_resize_resource"
    assert ask(debian, kernel="7.2.12+deb14-amd64", flavour="proprietary") is False
    assert ask(debian, kernel="no kernel", flavour="proprietary") is False, "unknown is not supported"


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("'8086:1234' | baremetal.nvidia.gpu_driver_for('debian 12')", "8086:1234"),
        ("[] | baremetal.nvidia.gpu_driver_for('debian 12')", "PCI id"),
        ("'10de:1eb8' | baremetal.nvidia.gpu_driver_for", "system is needed"),
        ("'10de:1eb8' | baremetal.nvidia.gpu_driver_for('what ever')", "what ever"),
        ("'10de:1eb8' | baremetal.nvidia.gpu_driver_for('debian 12', driver_brnch='580')", "gpu_driver_branch"),
        ("'10de:1eb8' | baremetal.nvidia.gpu_driver_for('debian 12', driver_version=580.1)", "quote"),
        ("580.1 | baremetal.nvidia.gpu_cuda_max", "quote it"),
        ("'580.178.04' | baremetal.nvidia.gpu_frameworks_ok('pytorch')", "mapping"),
        ("'1.2' is baremetal.nvidia.gpu_driver_supported_on('6.1', 'debian 12', 'closed')", "proprietary"),
        ("'1.2' is baremetal.nvidia.gpu_driver_supported_on('6.1', 'debian 12', source='mine')", "distro"),
        ("'1.2' is baremetal.nvidia.gpu_driver_supported_on('6.1')", "system"),
    ],
)
def test_a_question_that_cannot_be_meant_is_answered_with_what_is_allowed(ask: Any, expression: str, says: str) -> None:
    with pytest.raises(AnsibleError) as caught:
        ask(expression)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "path", [*ROOT.glob("plugins/filter/*.py"), *ROOT.glob("plugins/test/*.py")], ids=lambda path: path.stem
)
def test_each_has_its_documentation_beside_it(path: pathlib.Path) -> None:
    document = yaml.safe_load(path.with_suffix(".yml").read_text(encoding="utf-8"))
    assert document["DOCUMENTATION"]["name"] == path.stem and document["EXAMPLES"] and document["RETURN"]
