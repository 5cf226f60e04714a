# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The toolkit's config.toml: settings change, everything else stays."""

from __future__ import annotations

import pathlib

import pytest
import tomllib
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers import own_settings, toolkit_toml
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store
from hypothesis import given, settings
from hypothesis import strategies as st

STOCK = (pathlib.Path(__file__).parents[4] / "molecule/shared/repository/files/config.toml").read_text()


def test_it_reads_what_the_toolkit_writes():
    told = toolkit_toml.read(STOCK)
    assert told["nvidia-container-runtime.mode"] == "auto"
    assert told["nvidia-container-runtime.runtimes"] == ["runc", "crun"]
    assert told["nvidia-container-runtime.modes.cdi.spec-dirs"] == ["/etc/cdi", "/var/run/cdi"]
    assert "accept-nvidia-visible-devices-as-volume-mounts" not in told
    assert told["nvidia-container-cli.load-kmods"] is True


def test_nothing_wanted_changes_no_byte():
    assert toolkit_toml.edit(STOCK, {}) == STOCK
    assert toolkit_toml.edit(STOCK, {"nvidia-container-runtime.mode": "auto"}) == STOCK


def test_a_value_changes_in_its_line():
    new = toolkit_toml.edit(STOCK, {"nvidia-container-runtime.mode": "cdi"})
    assert new.replace('mode = "cdi"', 'mode = "auto"') == STOCK


def test_a_default_in_a_comment_gets_its_setting_below():
    new = toolkit_toml.edit(STOCK, {"accept-nvidia-visible-devices-envvar-when-unprivileged": False,
                                    "nvidia-container-cli.no-cgroups": True})
    assert ("#accept-nvidia-visible-devices-envvar-when-unprivileged = true\n"
            "accept-nvidia-visible-devices-envvar-when-unprivileged = false\n") in new
    assert "#no-cgroups = false\nno-cgroups = true\n" in new
    assert [line for line in new.splitlines() if line not in STOCK.splitlines()] == [
        "accept-nvidia-visible-devices-envvar-when-unprivileged = false", "no-cgroups = true"]


def test_a_table_that_is_not_there_comes_last():
    new = toolkit_toml.edit(STOCK, {"features.disable-imex-channel-creation": True})
    assert new == STOCK + "\n[features]\ndisable-imex-channel-creation = true\n"
    assert toolkit_toml.edit(new, {"features.disable-imex-channel-creation": True}) == new


def test_an_empty_file_and_one_without_a_last_newline():
    assert toolkit_toml.edit("", {"disable-require": True}) == "disable-require = true\n"
    assert toolkit_toml.edit("[a]\nb = 1", {"a.c": "x"}) == '[a]\nb = 1\nc = "x"\n'


def test_comments_behind_a_value_and_lists_over_lines_stay():
    text = ('mode = "a" # why\n[t]\nruntimes = [ # ours\n  "runc", # the "first"\n  "crun",\n]\n'
            'x = "# no comment" # one\n' "a.b = 'c'\n")
    assert toolkit_toml.read(text) == {"mode": "a", "t.runtimes": ["runc", "crun"], "t.x": "# no comment", "t.a.b": "c"}
    new = toolkit_toml.edit(text, {"mode": "b", "t.x": "y", "t.a.b": "d"})
    assert new == text.replace('"a" #', '"b" #').replace('"# no comment"', '"y"').replace("'c'", '"d"')
    assert toolkit_toml.read(toolkit_toml.edit(text, {"t.runtimes": ["runc"]}))["t.runtimes"] == ["runc"]


def test_a_setting_is_taken_out_with_all_its_lines():
    text = '[t]\na = [\n "x",\n]\n# of b\nb = 1\n'
    assert toolkit_toml.edit(text, {"t.a": None}) == "[t]\n# of b\nb = 1\n"
    assert toolkit_toml.edit(text, {"t.none": None}) == text


def test_the_way_back(tmp_path):
    store = Store(str(tmp_path))
    there = toolkit_toml.read(STOCK)
    mode, cgroups = "nvidia-container-runtime.mode", "nvidia-container-cli.no-cgroups"
    own_settings.note(store, "/f", there, {mode: "cdi", cgroups: True, "disable-require": False})
    changed = toolkit_toml.edit(STOCK, {mode: "cdi", cgroups: True})
    own_settings.note(store, "/f", toolkit_toml.read(changed), {mode: "legacy"})
    changed = toolkit_toml.edit(changed, {mode: "legacy"})
    back = own_settings.taken_back(store, "/f", toolkit_toml.read(changed))
    assert back == {mode: "auto", cgroups: None}
    assert toolkit_toml.edit(changed, back) == STOCK
    by_hand = toolkit_toml.edit(changed, {mode: "csv"})
    assert own_settings.taken_back(store, "/f", toolkit_toml.read(by_hand)) == {cgroups: None}
    own_settings.forget(store, "/f")
    assert own_settings.taken_back(store, "/f", there) == {} and store.read()["configured"] == {}


@pytest.mark.parametrize(("text", "want", "words"), [
    ("this is nothing\n", {"mode": "x"}, "line 1"),
    ('a = [\n "x",\n', {"mode": "x"}, "has no end"),
    ('a = """\nx"""\n', {"mode": "x"}, "several lines"),
    ("features = {a = true}\n", {"features": True}, "inline table"),
    ("features = {a = true}\n", {"features.a": False}, "inline table"),
    ('[a]\nb = "x"\nb = "y"\n', {"a.b": "z"}, "a.b twice"),
    ('nvidia-container-cli.path = "/x"\n', {"nvidia-container-cli.debug": "/y"}, "dotted keys"),
    ('[a]\nmodes.cdi.kind = "x"\n', {"a.modes.cdi.dirs": ["/y"]}, "a.modes.cdi is written in dotted keys"),
])
def test_what_it_does_not_understand_is_refused(text, want, words):
    with pytest.raises(toolkit_toml.TomlError, match=words):
        toolkit_toml.edit(text, want)


def test_what_it_writes_is_toml():
    """A header for a table that dotted keys made, or a bare control character, would stop every GPU container."""
    text = '[a]\nmodes.cdi.kind = "x"\n'
    new = toolkit_toml.edit(text, {"a.modes.legacy.compat": "hook", "a.modes.cdi.kind": "del\x7f"})
    assert tomllib.loads(new) == {"a": {"modes": {"cdi": {"kind": "del\x7f"}, "legacy": {"compat": "hook"}}}}


TEXT = st.text(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\x7f\u2028\u2029\x85"))


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(
    st.sampled_from(["disable-require", "nvidia-container-cli.debug", "nvidia-container-runtime.mode", "features.x",
                     "nvidia-container-runtime.runtimes", "a.b.c", "nvidia-container-runtime.modes.cdi.spec-dirs"]),
    st.one_of(st.booleans(), TEXT,
              st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126)), max_size=3)), max_size=5))
def test_any_settings_come_out_and_nothing_else_moves(want):
    new = toolkit_toml.edit(STOCK, want)
    assert toolkit_toml.read(new) == {**toolkit_toml.read(STOCK), **want}
    assert toolkit_toml.edit(new, want) == new
    comments = [line for line in STOCK.splitlines() if line.startswith("#")]
    assert [line for line in new.splitlines() if line.startswith("#")] == comments
