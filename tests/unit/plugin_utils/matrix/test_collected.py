# SPDX-License-Identifier: GPL-3.0-or-later
"""Our rows against the collected facts they were made from: nothing lost, nothing mistyped.

The facts lie beside a checkout of the project and are not part of it; without them the tests skip.
"""

from __future__ import annotations

import datetime
import pathlib
import re

import pytest
import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model.version import parse

FACTS = pathlib.Path(__file__).resolve().parents[4].parent / "shared" / "facts"


@pytest.fixture(scope="module")
def facts():
    if not FACTS.is_dir():
        pytest.skip(f"no collected facts at {FACTS}: they are not part of the collection")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return {path.stem: yaml.load(path.read_text(encoding="utf-8"), Loader=loader) for path in FACTS.glob("*.yml")}


def iso(value):
    return value.isoformat() if isinstance(value, datetime.date) else value


def test_branches_and_versions(facts, matrix):
    for fact in facts["drivers"]["branches"]:
        branch = matrix.branch(str(fact["number"]))
        assert branch.confidence == fact["confidence"]
        eol = str(fact["eol"])
        if re.match(r"\d{4}-\d\d", eol):
            assert iso(branch.eol).startswith(eol), branch.name
        assert [(row.version, iso(row.date)) for row in matrix.versions(branch.name)] == sorted(
            ((one["version"], one["date"]) for one in fact["known_versions"]),
            key=lambda one: parse(one[0]),
            reverse=True,
        )
        assert {row.version for row in matrix.versions(branch.name) if row.deployed} == set(
            fact.get("commonly_deployed", ())
        )


def test_security_floors(facts, matrix):
    for fact in facts["security"]["driver_floor_by_branch"]:
        branch = matrix.branch(fact["branch"][1:])
        assert (branch.security_floor, branch.security_current) == (
            fact["min_secure"],
            fact.get("in_newest_bulletin", False),
        )
    listed = facts["security"]["driver_bulletins"] + facts["security"]["component_bulletins"]
    assert {row.id for row in matrix.bulletins()} == {fact["bulletin"] for fact in listed}
    for fact in facts["security"]["driver_bulletins"]:
        (row,) = [one for one in matrix.bulletins() if one.id == fact["bulletin"]]
        assert dict(row.fixed) == {branch[1:]: version for branch, version in fact["fixed_tesla_linux"].items()}
        assert (iso(row.date), list(row.cves), row.cvss) == (fact["date"], fact["linux_cves"], fact["max_cvss"])


def test_cuda(facts, matrix):
    for fact in facts["cuda"]["toolkits"]:
        row = matrix.cuda(fact["toolkit"])
        bundled = fact["bundled_driver"]
        assert row.bundled_driver == (None if not bundled or bundled.startswith("none") else bundled)
        assert row.ships_driver is not bool(bundled and bundled.startswith("none"))
        assert (row.toolkit_min, row.minor_min, row.confidence) == (
            fact["toolkit_driver_min"],
            fact["minor_version_compat_min"],
            fact["confidence"],
        )
    assert len(matrix.cudas()) == len(facts["cuda"]["toolkits"])


def test_products(facts, matrix):
    for fact in facts["products"]["products"]:
        device = f"10de:{fact['pci_device']}"
        for subsystem in fact["subsystems"] or (None,):
            row = matrix.product(device, subsystem)
            assert row.name == fact["product"].removeprefix("NVIDIA "), device
            assert row.architecture.split("_soc")[0] == fact["architecture"], device
            last = fact["last_driver_branch"]
            assert row.last_branch == (None if last == "ongoing" else last[1:])
            if fact["min_driver"]["confidence"] == "high" and fact["min_driver"]["basis"] == "changelog":
                assert row.first_driver == fact["min_driver"]["version"]
    for fact in facts["products"]["pci_ids_only"]:
        device = f"10de:{fact['pci_device']}"
        row = matrix.product(device) or matrix.nvswitch(device)
        assert row is not None, device
    for fact in facts["products"]["nvswitch"]:
        for device in fact["pci_devices"] or ():
            assert matrix.nvswitch(f"10de:{device}").nvlink == fact["nvlink"]


def test_open_lists(facts, matrix):
    """The first release of a branch that lists a card for open modules supports it."""
    for fact in facts["products"]["products"]:
        row = matrix.product(f"10de:{fact['pci_device']}", (fact["subsystems"] or [None])[0])
        for branch, version in (fact["open_first_per_branch"] or {}).items():
            if (fact["pci_device"], branch) in {("2901", "R570"), ("2c3a", "R580")}:
                continue  # 2901: the operator's documentation asks for more; 2c3a: sources disagree
            assert matrix.supports(row, version).answer == "yes", (fact["product"], version)


def test_mig(facts, matrix):
    assert len(facts["architectures"]["mig_products"]) == len(matrix.tables["mig"])
    for fact in facts["architectures"]["mig_products"]:
        (row,) = [one for one in matrix.tables["mig"] if one.title == fact["product"]]
        assert (row.max_instances, list(row.profiles)) == (fact["max_instances"], fact["profiles"] or [])


def test_frameworks(facts, matrix):
    for fact in facts["frameworks"]["pytorch"]:
        row = matrix.framework("pytorch", fact["version"])
        assert [(w.index, w.cuda, w.stable, w.min_driver, w.toolkit_min) for w in row.wheels] == [
            (w["index"], w["cuda"], w["status"] == "stable", w["min_driver_minor_compat"], w["toolkit_driver_min"])
            for w in fact.get("cuda_wheels", ())
        ]
        assert (row.default_cuda, row.confidence) == (fact.get("pypi_default_cuda"), fact["confidence"])
        for cuda, text in (fact.get("compute_capabilities") or {}).items():
            (wheel,) = [one for one in row.wheels if one.cuda == cuda]
            assert list(wheel.compute_capability) == re.findall(r"\d+\.\d", text.split("(x86_64)")[0])
    for fact in facts["frameworks"]["tensorflow"]:
        row = matrix.framework("tensorflow", fact["version"])
        assert (row.cudas, row.min_driver) == ((fact["cuda"],), fact["min_driver"])


def test_kernels(facts, matrix):
    kernels = facts["kernels"]
    assert len(matrix.tables["kernel_fixes"]) == len(kernels["kernel_fixes"])
    assert len(matrix.tables["kernel_builds"]) == len(kernels["build_tests"])
    assert len(matrix.tables["kernel_prebuilt"]) == len(kernels["ubuntu_prebuilt"])
    # Two breakages of the facts are claims without a source ("do not encode"): they are not rows.
    assert len(matrix.tables["kernel_breakages"]) == len(kernels["breakages"]) - 2
    for fact in kernels["build_tests"]:
        rows = [
            one
            for one in matrix.tables["kernel_builds"]
            if one.release == fact["debian_kernel"]
            and fact["driver"] in (one.driver, one.package_version)
            and one.flavour == fact["flavour"]
        ]
        assert [one.result for one in rows] == [fact["result"]] and rows[0].compiler == fact["compiler"]
    texts = {name: str(fix["first_fixed"]) for fix in kernels["kernel_fixes"] for name in [fix["change"][:12]]}
    assert len(texts) == len(kernels["kernel_fixes"])
    named = " ".join(texts.values())
    for row in matrix.tables["kernel_fixes"]:
        for branch, version in row.fixed.items():
            assert version in ("never", "unknown", "unneeded") or version in named, (row.id, branch, version)


def test_runtimes(facts, matrix):
    runtimes = facts["runtimes"]
    assert {row.version for row in matrix.toolkit_releases()} == {
        fact["version"] for fact in runtimes["toolkit_releases"]
    }
    for fact in runtimes["cves"]:
        (row,) = [one for one in matrix.tables["cves"] if one.id == fact["cve"]]
        fixed = fact["fixed"]
        assert row.fixed == (None if fixed is None else (fixed,) if isinstance(fixed, str) else tuple(fixed))
        assert (row.component, row.operator_fixed, row.cvss) == (
            fact["component"],
            fact.get("operator_fixed"),
            fact.get("cvss"),
        )
    for fact in runtimes["containerd"]:
        row = matrix.containerd(fact["release"])
        assert (row.config_version, row.latest, iso(row.eol)[: len(fact["eol"])]) == (
            fact["config_version"],
            fact["latest_seen"],
            fact["eol"],
        )
    for fact in runtimes["kubernetes"]:
        assert iso(matrix.kubernetes(fact["version"]).eol) == fact["eol"]
    for fact in runtimes["containerd_kubernetes"]:
        assert [f"{one}+" for one in matrix.kubernetes(fact["kubernetes"]).containerd] == fact["containerd"]


def test_operator(facts, matrix):
    releases = facts["operator"]["releases"]
    assert [row.version for row in matrix.operators()] == sorted(
        (fact["version"] for fact in releases), key=lambda text: parse(text[1:]), reverse=True
    )
    for fact in releases:
        row = matrix.operator(fact["version"])
        assert (row.default_driver, dict(row.components)) == (
            fact["default_driver"],
            {key: str(value) for key, value in fact["components"].items()},
        )
        listed = sorted(version for found in (row.drivers or {}).values() for version in found)
        assert listed == sorted(fact.get("supported_drivers") or ())
    assert len(matrix.facts("gpu-operator")) == len(facts["operator"]["events"])


def test_keys(facts, matrix):
    for fact in facts["packaging"]["gpg_keys"]:
        if fact["file"].startswith("http"):
            row = matrix.signing_key("container-toolkit-deb")
        else:
            row = matrix.signing_key(f"cuda-{fact['file'].removesuffix('.pub')}")
        assert (row.fingerprint, row.status) == (fact["fingerprint"], fact["status"])
    for fact in facts["packaging"]["os_lifecycle"]:
        release = fact["release"].split(".")[0] if fact["distro"] == "sles" else fact["release"]
        assert iso(matrix.system(fact["distro"], release).eol) == fact["eol"], fact
