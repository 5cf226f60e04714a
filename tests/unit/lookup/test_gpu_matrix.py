# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup of matrix rows, through Ansible's own templating."""
from __future__ import annotations

import json

import pytest
from ansible.errors import AnsibleError
from ansible_collections.baremetal.nvidia.plugins.lookup.gpu_matrix import LookupModule
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix import export, load
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix.schema import SECTIONS


@pytest.fixture
def lookup(monkeypatch):
    plugin = LookupModule()
    given = {"where": {}, "overlay": []}
    monkeypatch.setattr(plugin, "find_file_in_search_path", lambda variables, folder, name, ignore_missing=False: None)
    monkeypatch.setattr(plugin, "set_options", lambda var_options=None, direct=None: given.update(direct or {}))
    monkeypatch.setattr(plugin, "get_option", lambda name: given[name])
    return lambda *terms, **options: plugin.run(list(terms), {}, **options)


def test_a_section_and_one_row(lookup):
    assert len(lookup("branches")) == len(load().branches())
    (row,) = lookup("branches/580")
    assert (row["eol"], row["latest"], row["overlay"]) == ("2028-06-30", "580.178.04", None)
    assert row["source"] and row["checked"]


def test_products_by_any_id(lookup):
    assert lookup("products/10de:1eb8")[0]["name"] == "Tesla T4"
    assert lookup("products/10de:25b6/10de:157e")[0]["name"] == "A2"
    assert lookup("products/10de:2684")[0]["architecture"] == "ada"
    assert lookup("products/10de:ffff") == []


def test_several_terms_and_where(lookup):
    assert [row["name"] for row in lookup("branches/470", "branches/580")] == ["470", "580"]
    assert {row["name"] for row in lookup("branches", where={"type": "lts"})} >= {"470", "535", "580"}
    assert [row["name"] for row in lookup("branches", where={"last_for": "kepler"})] == ["470"]


def test_overlays_show(lookup):
    ours = {"name": "site", "branches": [{"name": "580", "eol": "2030-01-01", "source": "us", "checked": "2026-11-20"}]}
    (row,) = lookup("branches/580", overlay=[ours])
    assert (row["eol"], row["overlay"]) == ("2030-01-01", "site")


@pytest.mark.parametrize(("terms", "options", "message"), [
    (["colours"], {}, "unknown section 'colours'; allowed: architectures, "),
    (["branches"], {"where": {"colour": "red"}}, "rows have no field 'colour'; they have "),
    (["branches"], {"overlay": ["/none.yml"]}, "/none.yml: cannot be read")])
def test_bad_questions_name_what_is_allowed(lookup, terms, options, message):
    with pytest.raises(AnsibleError, match=message):
        lookup(*terms, **options)


@pytest.mark.parametrize("section", sorted(SECTIONS))
def test_every_section_is_plain_data(section):
    rows = export.rows(load(), section)
    assert rows and json.loads(json.dumps(rows)) == rows
