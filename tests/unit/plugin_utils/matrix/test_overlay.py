# SPDX-License-Identifier: GPL-3.0-or-later
"""Overlays: rows added, rows overruled, and errors that name file and line."""

from __future__ import annotations

import textwrap

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix import MatrixError, load

OURS = {"source": "burn-in of rack 7", "checked": "2026-11-20"}


def write(tmp_path, text, name="ours.yml"):
    path = tmp_path / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return str(path)


def test_a_row_is_added_and_knows_its_overlay(tmp_path, matrix):
    file = write(
        tmp_path,
        """\
        products:
          - {id: "10de:ffff", name: Lab card, architecture: ada, first_driver: "580.65.06", datacenter: true,
             source: our lab, checked: 2026-11-20}
        """,
    )
    with_overlay = load([file])
    product = with_overlay.product("10de:ffff")
    assert (product.name, product.flavour_rule, product.overlay, product.source) == (
        "Lab card",
        "both",
        file,
        ("our lab",),
    )
    assert matrix.product("10de:ffff") is None
    assert with_overlay.overlays == (file,)


def test_a_row_is_overruled_field_by_field(matrix):
    bad = load(
        [{"name": "site", "versions": [{"version": "580.95.05", "known_bad": ["hangs in our burn-in"], **OURS}]}]
    )
    row = bad.version("580.95.05")
    assert (row.known_bad, row.overlay, row.source) == (("hangs in our burn-in",), "site", ("burn-in of rack 7",))
    assert row.date == matrix.version("580.95.05").date
    assert matrix.version("580.95.05").known_bad == () and bad.version("580.105.08").overlay is None


def test_later_overlays_win():
    first = {"name": "one", "branches": [{"name": "580", "eol": "2030-01-01", **OURS}]}
    second = {"name": "two", "branches": [{"name": "580", "eol": "2031-01-01", **OURS}]}
    row = load([first, second]).branch("580")
    assert (row.eol.year, row.overlay) == (2031, "two")
    assert load([second, first]).branch("580").overlay == "one"


def test_mappings_are_merged():
    more = load([{"name": "site", "chips": [{"name": "GP102", "ids": {"1bff": "Prototype"}, **OURS}]}])
    assert more.product("10de:1bff").architecture == "pascal"
    assert more.product("10de:1b38").name == load().product("10de:1b38").name


def test_an_overlay_can_settle_a_doubt():
    doubt = load().product("10de:2c3a")
    assert not doubt.decides
    row = {"id": "10de:2c3a", "subsystems": ["10de:21f4"], **OURS}
    assert load([{"name": "site", "products": [row]}]).product("10de:2c3a").decides


def test_an_overlay_decides_what_builds():
    ours = {
        "name": "own-kernels",
        "kernel_builds": [
            {
                "driver": "580.178.04",
                "flavour": "open",
                "release": "7.4.1-ours",
                "compiler": "gcc-14",
                "result": "builds",
                **OURS,
            }
        ],
    }
    assert load().kernel_fit("580.178.04", "open", "7.4.1-ours", "debian", "13").answer == "unknown"
    fit = load([ours]).kernel_fit("580.178.04", "open", "7.4.1-ours", "debian", "13")
    assert (fit.answer, fit.overlays) == ("builds", ("own-kernels",))


def test_sources_of_the_collection_may_be_named():
    row = load(
        [
            {
                "name": "site",
                "facts": [
                    {"component": "cuda", "fact": "x", "source": ["eol-date", "ticket 12"], "checked": "2026-11-20"}
                ],
            }
        ]
    ).facts("cuda")[-1]
    assert row.source[0].startswith("https://") and row.source[1] == "ticket 12"


def test_the_digest_tells_overlays_apart():
    one = {"name": "site", "branches": [{"name": "580", "eol": "2030-01-01", **OURS}]}
    two = {"name": "site", "branches": [{"name": "580", "eol": "2030-01-02", **OURS}]}
    assert len({load().digest, load([one]).digest, load([two]).digest}) == 3
    assert load([one]).digest == load([one]).digest


def test_one_overlay_needs_no_list(tmp_path):
    file = write(tmp_path, "branches: []\n")
    assert load(file).overlays == (file,)
    assert load([write(tmp_path, "", "empty.yml")]).branch("580")


BAD = [
    (
        "branches:\n  - {name: 580, source: x, checked: 2026-11-20}\n",
        2,
        "branches[0].name: 580 is int in YAML: quote it",
    ),
    ("versions:\n  - {version: 580.95, source: x, checked: 2026-11-20}\n", 2, "580.95 is float in YAML: quote it"),
    ("versions:\n  - {version: 580-95, source: x, checked: 2026-11-20}\n", 2, "'580-95' is no driver version, such as"),
    (
        "\nversions:\n\n  - version: '580.95.05'\n    source: x\n    checked: soon\n",
        6,
        "'soon' is no date, such as 2026-11-30",
    ),
    ("versions:\n  - {version: '580.1.1', checked: 2026-11-20}\n", 2, "missing: source"),
    ("versions:\n  - {version: '580.1.1', source: x}\n", 2, "missing: checked"),
    ("versions:\n  - {version: '580.95.05', known_bad: [x]}\n", 2, "missing: checked, source"),
    ("versions:\n  - {version: '580.1.1', source: '', checked: 2026-11-20}\n", 2, "at least one source"),
    (
        "versions:\n  - {version: '580.1.1', source: x, checked: 2026-11-20, colour: red}\n",
        2,
        "unknown key 'colour'; allowed:",
    ),
    (
        "versions:\n  - {version: '580.1.1', source: x, checked: 2026-11-20, overlay: me}\n",
        2,
        "it is set by the loader",
    ),
    ("colours:\n  - {}\n", 1, "unknown section 'colours'; allowed: architectures, branches"),
    ("branches: {name: x}\n", 1, "branches: a list of rows is wanted"),
    ("branches:\n  - just text\n", 2, "branches[0]: a mapping is wanted"),
    ("- a list\n", 1, "a mapping of sections is wanted at the top"),
    (
        "branches:\n  - {name: '580', type: lts, type: legacy, source: x, checked: 2026-11-20}\n",
        2,
        "key 'type' stands twice",
    ),
    ("branches:\n  - {name: '580'\n", 3, "no valid YAML"),
    (
        "branches:\n  - {name: '580', type: forever, source: x, checked: 2026-11-20}\n",
        2,
        "'forever' is not one of 'production', 'lts'",
    ),
    (
        "products:\n  - {id: '10DE:1EB8', source: x, checked: 2026-11-20}\n",
        2,
        "is no PCI id, such as '10de:1eb8' (lower case)",
    ),
    ("signing_keys:\n  - {name: k, fingerprint: abc, source: x, checked: 2026-11-20}\n", 2, "is no key fingerprint"),
    (
        "kernel_breakages:\n  - id: mine\n    kind: build\n    symptom: x\n    drivers:\n"
        "      - '535'\n      - '>=550,<535'\n    source: x\n    checked: 2026-11-20\n",
        7,
        "'>=550,<535' is upside down: nothing lies in it",
    ),
    (
        "kernel_breakages:\n  - {id: mine, kind: build, symptom: x, kernels: ['>=6.12.97,<6.12']"
        ", source: x, checked: 2026-11-20}\n",
        2,
        "is upside down",
    ),
    (
        "kernel_breakages:\n  - {id: mine, kind: build, symptom: x, drivers: ['R535']"
        ", source: x, checked: 2026-11-20}\n",
        2,
        "'R535' in 'R535' is no bound",
    ),
    (
        "kernel_breakages:\n  - {id: mine, kind: build, symptom: x, drivers: ['535,>=1']"
        ", source: x, checked: 2026-11-20}\n",
        2,
        "a plain version stands alone",
    ),
    (
        "lying_names:\n  - {os: debian 12, name: '(', installs: '535', source: x, checked: 2026-11-20}\n",
        2,
        "no regular expression",
    ),
    (
        "versions:\n  - {version: '580.1.1', source: x, checked: 2026-11-20}\n  - {version: '580.1.1'"
        ", source: x, checked: 2026-11-20}\n",
        3,
        "stands twice",
    ),
]


@pytest.mark.parametrize(("text", "line", "message"), BAD, ids=[message[:40] for _text, _line, message in BAD])
def test_errors_name_file_and_line(tmp_path, text, line, message):
    file = write(tmp_path, text)
    with pytest.raises(MatrixError) as caught:
        load([file])
    assert (caught.value.file, caught.value.line) == (file, line)
    assert message in caught.value.message and str(caught.value).startswith(f"{file}:{line}: ")


@pytest.mark.parametrize(
    ("given", "file", "message"),
    [
        ({"branches": [{"name": "580", "eol": 5, **OURS}]}, "overlay[0]", "branches[0].eol: 5 is no date"),
        ({"name": "site", "branches": [{"name": 580, **OURS}]}, "site", "580 is int in YAML: quote it"),
        (7, "overlay[0]", "a file name or a mapping of sections is wanted, not int"),
    ],
)
def test_inline_rows_are_named_without_line(given, file, message):
    with pytest.raises(MatrixError) as caught:
        load([given])
    assert (caught.value.file, caught.value.line) == (file, None) and message in caught.value.message


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(MatrixError, match="cannot be read: No such file"):
        load([str(tmp_path / "none.yml")])


def test_a_bad_overlay_leaves_the_matrix_alone(tmp_path, matrix):
    before = matrix.digest
    with pytest.raises(MatrixError):
        load([write(tmp_path, "branches: [{name: '580', eol: x, source: x, checked: 2026-11-20}]")])
    assert load().digest == before and load() is matrix


def test_a_matrix_does_not_change(matrix):
    with pytest.raises(AttributeError, match="does not change"):
        matrix.digest = "x"
    with pytest.raises(AttributeError):
        matrix.branch("580").eol = None
    with pytest.raises(TypeError):
        matrix.tables["branches"] = ()
