# SPDX-License-Identifier: GPL-3.0-or-later
"""Proposals from what NVIDIA publishes: a diff to read, never a change."""

from __future__ import annotations

import datetime
import json
import pathlib
import subprocess
import sys

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
import matrix_edit
import matrix_published
import matrix_refresh
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix import MatrixError, load, loader

TODAY = datetime.date(2026, 12, 24)


def release(branch, kind, *versions):
    return {
        branch: {
            "type": kind,
            "driver_info": [{"release_version": version, "release_date": date} for version, date in versions],
        }
    }


def chip(device, name, **more):
    return {"devid": device, "name": name, "features": ["cuda"], **more}


def csaf(number, fixed, cve="CVE-2026-99999", date="2026-12-01T00:00:00Z"):
    """fixed: (architecture, product, version) each, as NVIDIA's documents nest them."""
    leaves = [
        {
            "category": "architecture",
            "name": architecture,
            "branches": [
                {"category": "product_version", "name": product, "product": {"name": version, "product_id": f"{index}"}}
            ],
        }
        for index, (architecture, product, version) in enumerate(fixed)
    ]
    return {
        "document": {
            "title": "Security Bulletin: Something - December 2026",
            "tracking": {"id": str(number), "initial_release_date": date},
        },
        "product_tree": {"branches": [{"category": "vendor", "name": "NVIDIA", "branches": leaves}]},
        "vulnerabilities": [
            {
                "cve": cve,
                "product_status": {"fixed": [str(index) for index in range(len(fixed))]},
                "scores": [{"cvss_v3": {"baseScore": 7.5}}],
            }
        ],
    }


@pytest.fixture
def proposal():
    return matrix_refresh.Proposal(TODAY)


def edited(proposal, file):
    return yaml.safe_load(proposal.files[file].text)


def test_a_new_release_goes_behind_its_elders(proposal):
    proposal.releases(
        release("580", "lts branch", ("580.190.02", "2026-12-10"), ("580.178.04", "2026-08-03")), "r.json"
    )
    proposal.check()
    versions = [row["version"] for row in edited(proposal, "versions.yml")["versions"]]
    at = versions.index("580.190.02")
    assert (versions[at - 1], versions[at + 1]) == ("580.178.04", "590.44.01")
    assert (
        "+  - {version: 580.190.02, date: 2026-12-10, checked: 2026-12-24, source: [nvidia-releases-2026-12-24]}"
        in (proposal.diff())
    )
    assert "+  nvidia-releases-2026-12-24: r.json (2026-12-24)" in proposal.diff()
    assert proposal.remarks == []


def test_a_date_that_was_not_known_is_filled_in(proposal):
    assert load().version("610.43.02").date is None
    proposal.releases(release("610", "new feature branch", ("610.43.02", "2026-06-16")), "r.json")
    proposal.check()
    assert "-  - {version: 610.43.02," in proposal.diff() and "+  - {version: 610.43.02, " in proposal.diff()
    assert "date: 2026-06-16" in proposal.diff()


def test_what_needs_a_person_is_remarked(proposal):
    proposal.releases(
        {
            **release("640", "production branch", ("640.10", "2026-12-01")),
            **release("590", "production branch", ("590.48.01", "2025-11-01")),
        },
        "r.json",
    )
    assert [text.split(":")[0].split(" (")[0] for text in proposal.remarks] == [
        "R590 is new_feature here and production there",
        "590.48.01 is of 2025-12-18 here and of 2025-11-01 there",
        "R640 is new",
    ]


def test_windows_releases_are_left_out(proposal):
    proposal.releases(release("580", "lts branch", ("582.16", "2026-01-01")), "r.json")
    assert proposal.diff() == ""


def test_a_card_that_nobody_knows_is_proposed_as_a_doubt(proposal):
    proposal.gpus(
        {
            "chips": [
                chip("0x2B87", "NVIDIA GeForce RTX 5090 D v2"),
                chip("0x2FFF", "New card", subvendorid="0x10DE", subdeviceid="0x21A1"),
            ]
        },
        "s.json",
        "620.10.01",
    )
    proposal.check()
    added = {row["id"]: row for row in edited(proposal, "products.yml")["products"] if row["checked"] == TODAY}
    assert set(added) <= {"10de:2b87", "10de:2fff"} and added["10de:2fff"]["subsystems"] == ["10de:21a1"]
    assert added["10de:2fff"]["unconfirmed"] is True and added["10de:2fff"]["first_driver"] == "620.10.01"


def test_differences_over_known_cards_are_remarked(proposal):
    proposal.gpus(
        {
            "chips": [
                chip("0x1EB8", "Tesla T4", legacybranch="620.xx"),
                chip("0x1DB5", "Tesla V100"),
                chip("0x1EB8", "Tesla T4", legacybranch="620.xx"),
            ]
        },
        "s.json",
        "620.10.01",
    )
    assert len(proposal.remarks) == 2 and "last branch None here, 620 there" in proposal.remarks[0]
    assert "R620 does not support Volta" in proposal.remarks[1] and proposal.diff() == ""


def test_a_bulletin_moves_the_floors(proposal):
    proposal.csaf(
        csaf(
            5999,
            [
                ("Linux(R580)", "Tesla", "580.190.02"),
                ("Linux(R595)", "Tesla", "595.95.01"),
                ("Windows(R580)", "Tesla", "582.99"),
                ("Linux(R580)", "GeForce", "580.191"),
            ],
        ),
        "5999.json",
    )
    proposal.check()
    branches = {row["name"]: row for row in edited(proposal, "branches.yml")["branches"]}
    assert (branches["580"]["security_floor"], branches["580"]["security_bulletin"]) == ("580.190.02", 5999)
    assert branches["595"]["security_current"] is True and "security_current" not in branches["535"]
    (bulletin,) = [row for row in edited(proposal, "bulletins.yml")["bulletins"] if row["id"] == 5999]
    assert bulletin["fixed"] == {"580": "580.190.02", "595": "595.95.01"} and bulletin["cvss"] == 7.5
    assert branches["580"]["eol"] == load().branch("580").eol


def test_an_old_bulletin_moves_nothing_back(proposal):
    proposal.csaf(csaf(5001, [("Linux(R580)", "Tesla", "580.65.06")], date="2025-01-01T00:00:00Z"), "5001.json")
    branches = {row["name"]: row for row in edited(proposal, "branches.yml")["branches"]}
    assert branches["580"]["security_floor"] == "580.159.03" and branches["535"]["security_current"] is True


def test_a_bulletin_about_containers(proposal):
    proposal.csaf(
        csaf(5998, [("Linux", "NVIDIA Container Toolkit", "1.21.0"), ("Linux", "NVIDIA GPU Operator", "26.9.1")]), "c"
    )
    proposal.check()
    (cve,) = [row for row in edited(proposal, "runtimes.yml")["cves"] if row["id"] == "CVE-2026-99999"]
    assert (cve["component"], cve["fixed"], cve["operator_fixed"]) == ("nvidia-container-toolkit", ["1.21.0"], "26.9.1")


def test_known_and_foreign_bulletins_are_only_remarked(proposal):
    proposal.csaf(csaf(5821, [("Linux(R580)", "Tesla", "580.159.03")]), "5821.json")
    proposal.csaf(csaf(6000, [("Linux", "NVIDIA Jetson", "36.4")]), "6000.json")
    assert proposal.diff() == "" and [text.split(": ", 1)[1] for text in proposal.remarks] == [
        "bulletin 5821 is known",
        "bulletin 6000 (Something - December 2026) names nothing that the matrix follows",
    ]


@pytest.mark.parametrize(
    ("reader", "document", "message"),
    [
        (matrix_published.releases, [], "driver_info are wanted"),
        (matrix_published.releases, {"580": []}, "driver_info are wanted"),
        (matrix_published.gpus, {"cards": []}, "a list chips is wanted"),
        (matrix_published.advisory, {}, "not a CSAF document"),
    ],
)
def test_other_documents_are_refused(reader, document, message):
    with pytest.raises(matrix_published.Unreadable, match=message):
        list(reader(document))


def test_a_proposal_that_breaks_the_schema_is_not_shown(proposal):
    proposal.files["versions.yml"].add("versions", {"version": "garbage", "source": ["eol-date"], "checked": TODAY})
    with pytest.raises(MatrixError, match="'garbage' is no driver version"):
        proposal.check()


def test_edits_leave_the_rest_alone(tmp_path):
    path = tmp_path / "x.yml"
    path.write_text("# head\n---\nrows:\n  # one\n  - {a: '1'}\n  - {a: '2',\n     b: long}\n\nmore:\n  - {c: 3}\n")
    file = matrix_edit.DataFile(path)
    file.replace("rows", 1, {"a": "2", "b": "short"})
    file.add("rows", {"a": "1.5"}, 0)
    file.add("more", {"c": ["x" * 60, "y" * 60]})
    assert file.text == (
        "# head\n---\nrows:\n  # one\n  - {a: '1'}\n  - {a: '1.5'}\n  - {a: '2', b: short}\n\nmore:\n  - {c: 3}\n"
        f"  - {{c: [{'x' * 60},\n     {'y' * 60}]}}\n"
    )
    with pytest.raises(KeyError, match=r"x.yml has no section none"):
        file.add("none", {})


def run(*arguments):
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "matrix_refresh.py"), *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )


def test_the_command_writes_nothing_and_tells_by_its_status(tmp_path):
    before = loader.check(loader.DATA)
    new = tmp_path / "releases.json"
    new.write_text(json.dumps(release("580", "lts branch", ("580.190.02", "2026-12-10"))))
    done = run("--releases", str(new), "--today", "2026-12-24")
    assert done.returncode == 1 and done.stdout.startswith("--- a/plugins/plugin_utils/matrix/data/sources.yml"), (
        done.stderr
    )
    assert loader.check(loader.DATA) == before
    new.write_text(json.dumps(release("580", "lts branch", ("580.178.04", "2026-08-03"))))
    assert run("--releases", str(new)).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "name at least one of --releases, --gpus, --csaf"),
        (["--gpus", "x"], 2, "--gpus needs --driver"),
        (["--csaf", "/none.json"], 2, "No such file"),
        (["--csaf", "http://x/y"], 2, "only files and https URLs are read"),
    ],
)
def test_bad_arguments(arguments, status, message):
    done = run(*arguments)
    assert done.returncode == status and message in done.stderr
