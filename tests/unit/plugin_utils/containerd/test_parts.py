# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts one by one: what is in force, edits in odd places, whose file it is, what the trial catches."""
from __future__ import annotations

from typing import Any

import pytest
import tomllib
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd import (
    Settings,
    decide,
    editing,
    editor,
    generation,
    toml_text,
    trial,
    work_out,
)
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.diff import differences, report
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.edits import FileEdit
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.generation import (
    CRI_V2,
    RUNTIME_V3,
    Generation,
    runtime_plugin,
)
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.merge import glob_regex, load
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.want import Refusal

MAIN = "/etc/containerd/config.toml"
NVIDIA = "/etc/containerd/conf.d/99-nvidia.toml"


def gen(version: str) -> Generation:
    made = generation(version)
    assert made is not None
    return made


def kinds(files: dict[str, str], version: str) -> list[str]:
    return [problem.kind for problem in load(files, MAIN, gen(version)).problems]


@pytest.mark.parametrize(("version", "line", "top", "deep"), [
    ("1.6.20~ds1", "1.6", 2, False), ("v1.7.24", "1.7", 2, False), ("2.0.11", "2.0", 3, True),
    ("2.2.7-k3s1", "2.2", 3, True), ("2.3.0-rc.1", "2.3", 4, True), ("3.0.0", "3.0", 4, True)])
def test_generations(version: str, line: str, top: int, deep: bool) -> None:
    assert (gen(version).name, gen(version).max_version, gen(version).deep_merge) == (line, top, deep)


@pytest.mark.parametrize("version", [None, "", "unknown", "two"])
def test_no_version(version: str | None) -> None:
    assert generation(version) is None
    decision = work_out({}, MAIN, version)
    assert decision.strategy == "none" and "version" in str(decision.refused)


def test_a_later_table_replaces_in_1_and_merges_in_2() -> None:
    cri = f'[plugins."{CRI_V2}"]\n'
    files = {MAIN: 'version = 2\nimports = ["a.toml"]\n' + cri + "x = 1\n",
             "/etc/containerd/a.toml": "version = 2\n" + cri + "y = 2\n"}
    assert load(files, MAIN, gen("1.7.24")).effective["plugins"][CRI_V2] == {"y": 2}
    assert load(files, MAIN, gen("2.1.9")).effective["plugins"][CRI_V2] == {"x": 1, "y": 2}


def test_files_are_read_breadth_first_and_once() -> None:
    files = {MAIN: 'imports = ["a.toml", "b.toml"]\n',
             "/etc/containerd/a.toml": 'imports = ["c.toml", "config.toml"]\n',
             "/etc/containerd/b.toml": 'imports = ["a.toml"]\n', "/etc/containerd/c.toml": ""}
    names = [path.rsplit("/", 1)[1] for path in load(files, MAIN, gen("1.7")).order]
    assert names == ["config.toml", "a.toml", "b.toml", "c.toml"]


@pytest.mark.parametrize(("pattern", "path", "matches"), [
    ("/a/*.toml", "/a/b.toml", True), ("/a/*.toml", "/a/b/c.toml", False), ("/a/*.toml", "/a/.hidden.toml", True),
    ("/a/*", "/a/x.toml.bak", True), ("/a/[^b]*", "/a/bc", False), ("/a/[ab]?*", "/a/bc", True),
    ("/a/\\**", "/a/*x", True),
    ("/a/[*", "/a/[x", True)])
def test_patterns(pattern: str, path: str, matches: bool) -> None:
    assert bool(glob_regex(pattern).match(path)) is matches


@pytest.mark.parametrize(("version", "root", "drop_in", "expected"), [
    ("2.1.9", 3, 2, "mixed_versions"), ("2.1.9", 2, 3, "mixed_versions"), ("2.1.9", 3, 3, None),
    ("2.3.4", 2, 4, "drop_in_newer"),
    ("2.3.4", 3, 2, None), ("1.7.24", 2, 3, "version_too_high"), ("2.2.7", 3, 4, "version_too_high")])
def test_versions_of_two_files(version: str, root: int, drop_in: int, expected: str | None) -> None:
    files = {MAIN: f'version = {root}\nimports = ["a.toml"]\nroot = "/x"\n',
             "/etc/containerd/a.toml": f"version = {drop_in}\n"}
    assert (expected in kinds(files, version)) if expected else kinds(files, version) == []


def test_a_drop_in_without_a_version_counts_as_3_in_2_1() -> None:
    """It is brought up to 3 while it is read, and with it the version of all."""
    files = {MAIN: f'version = 2\nimports = ["a.toml"]\n[plugins."{CRI_V2}"]\nsandbox_image = "x"\n',
             "/etc/containerd/a.toml": "oom_score = 1\n"}
    assert kinds(files, "2.1.9") == ["mixed_versions"]
    assert "sandbox_image" not in str(load(files, MAIN, gen("2.1.9")).effective)


def test_windows_line_ends_stay() -> None:
    text = (f'version = 2\r\n# kept\r\n[plugins."{CRI_V2}".containerd.runtimes.runc]\r\n'
            'runtime_type = "io.containerd.runc.v2"\r\n')
    decision = work_out({MAIN: text}, MAIN, "1.7.24")
    new = editor.render(decision, {MAIN: text})[MAIN]
    assert new.count("\n") == new.count("\r\n") and new.startswith(text.rstrip("\r\n"))


@pytest.mark.parametrize(("text", "path", "value", "expected"), [
    ("a = 1 # one\n", ("a",), 2, "a = 2 # one\n"),
    ("[t]\n\ta = 1\n# end\n", ("t", "b"), True, "[t]\n\ta = 1\n\tb = true\n# end\n"),
    ("[t]\n# only a comment\n", ("t", "b"), True, "[t]\n  b = true\n# only a comment\n"),
    ("t = {a = 1}\n", ("t", "b"), "x", 't = {a = 1,b = "x"}\n'),
    ("[t] # head\na = '''\n[t.x]\n'''\n", ("t", "b"), 1, "[t] # head\na = '''\n[t.x]\n'''\nb = 1\n"),
    ('[t]\na = "# no comment"\n', ("t", "a"), "y", '[t]\na = "y"\n'),
    ("[[list]]\na = 1\n[t]\n", ("t", "a"), 2, "[[list]]\na = 1\n[t]\n  a = 2\n"),
])
def test_edits_leave_all_else(text: str, path: tuple[str, ...], value: Any, expected: str) -> None:
    new = editor.edited(FileEdit("x", sets=((path, value),)), text)
    assert tomllib.loads(new) == tomllib.loads(expected)
    assert new == expected or text.startswith("[[list]]")


def test_an_edit_that_cannot_be_proved_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editing, "_exchange", lambda text, path, value: text + "\n# comment\n")
    monkeypatch.setattr(editing, "tomlkit", None)
    with pytest.raises(Refusal, match="tomlkit is not installed"):
        editor.edited(FileEdit("x", sets=((("t", "b"), 1),)), "t = {a = 1}\n")


def test_without_tomlkit_ordinary_files_are_edited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editing, "tomlkit", None)
    text = f'version = 2\n[plugins."{CRI_V2}".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
    assert "nvidia" in editor.render(work_out({MAIN: text}, MAIN, "1.6.20"), {MAIN: text})[MAIN]


def test_a_comment_that_would_go_stops_the_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editing, "_exchange", lambda text, path, value: "a = 2\n")
    monkeypatch.setattr(editing, "_inline", lambda text, path, value: None)
    with pytest.raises(Refusal, match="cannot be edited safely"):
        editor.edited(FileEdit("x", sets=((("a",), 2),)), "a = 1 # why\n")


def test_comments_are_found_where_they_are() -> None:
    text = '# one\na = "# no" # two\nb = [ # three\n  1,\n]\nc = """\n# no\n""" # four\nd = \'#no\'\n'
    assert toml_text.comments(text) == ["# one", "# two", "# three", "# four"]


@pytest.mark.parametrize("item", [
    {"a b": 1, "c": [True, 1.5, "x\ny\"\\\x01"]}, {"deep": {"er": {"x": []}, "y": {}}},
    {"n": float("inf"), "e": "\x7fü"}])
def test_what_is_written_reads_back(item: dict[str, Any]) -> None:
    assert tomllib.loads("\n".join(toml_text.table(["t"], item))) == {"t": item}


@pytest.mark.parametrize(("owner", "words"), [
    ("microk8s", ["containerd-template.toml"]), ("operator", ["toolkit.enabled"]),
    ("kubespray", ["containerd_additional_runtimes"]), ("somebody", ["somebody"])])
def test_each_owner_is_told_what_to_set(owner: str, words: list[str]) -> None:
    decision = work_out({MAIN: "version = 2\n"}, MAIN, "1.7.24", owner=owner)
    assert decision.strategy == "none" and not decision.edits
    for word in words:
        assert word in str(decision.refused)
    assert all(note.severity != "error" for note in decision.notes)


def test_the_operators_binary_is_no_difference() -> None:
    text = (f'version = 2\n[plugins."{CRI_V2}"]\nenable_cdi = true\n[plugins."{CRI_V2}".containerd.runtimes.nvidia]\n'
            'runtime_type = "io.containerd.runc.v2"\n'
            'options = {BinaryName = "/usr/local/nvidia/toolkit/nvidia-container-runtime"}\n'
            f'[plugins."{CRI_V2}".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n')
    assert work_out({MAIN: text}, MAIN, "1.7.24", owner="operator").notes == ()
    noted = work_out({MAIN: text}, MAIN, "1.7.24", owner="k3s").notes
    assert [note.kind for note in noted] == ["runtime_differs"] and "/usr/local/nvidia/toolkit" in noted[0].summary


def test_crun_as_low_level_runtime_is_told() -> None:
    runtime = f'[plugins."{RUNTIME_V3}".containerd.runtimes.crun]\nruntime_type = "io.containerd.runc.v2"\n'
    text = (f'version = 3\n[plugins."{RUNTIME_V3}".containerd]\ndefault_runtime_name = "crun"\n{runtime}'
            'options = {BinaryName = "/usr/bin/crun"}\n')
    decision = work_out({MAIN: text}, MAIN, "2.1.9")
    assert (decision.copied_from, decision.low_level_runtime) == ("crun", "/usr/bin/crun")
    assert "/usr/bin/crun" not in str(decision.drop_in)


def test_the_deprecated_default_runtime_table_decides_on_1() -> None:
    text = (f'version = 2\n[plugins."{CRI_V2}".containerd.default_runtime]\nruntime_type = "io.containerd.runc.v2"\n'
            "options = {SystemdCgroup = true}\n")
    decision = work_out({MAIN: text}, MAIN, "1.6.20")
    assert decision.copied_from == "default" and "'SystemdCgroup': True" in str(decision.edits)
    assert "default_runtime" in str(work_out({MAIN: text}, MAIN, "1.6.20", default_runtime="nvidia").refused)


def test_a_predicted_version_counts_where_none_is_installed() -> None:
    decision = decide({"containerd": None}, version="2.1.9")
    assert decision.strategy == "drop_in" and decision.as_dict()["files"] == [NVIDIA, MAIN]
    assert decision.drop_in is not None and tomllib.loads(decision.drop_in)["version"] == 3


def test_masked_texts_are_planned_from_as_well() -> None:
    text = (f'version = 2\n[plugins."{CRI_V2}".registry.configs."r".auth]\npassword = "********"\n'
            f'[plugins."{CRI_V2}".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n')
    decision = decide({"containerd": {"version": "1.7.24", "owner": "host", "config": {"path": MAIN, "text": text}}})
    assert decision.strategy == "edit" and "password" not in str(decision.as_dict())


def test_a_broken_drop_in_that_holds_more_comes_alive_only_by_hand() -> None:
    """Mending ours would bring others' settings in force that are not now: that is for a person to do."""
    files = {MAIN: 'version = 2\nimports = ["conf.d/*.toml"]\n', NVIDIA: "version = 4\n",
             "/etc/containerd/conf.d/10-site.toml": "version = 2\noom_score = -5\n"}
    decision = work_out(files, MAIN, "2.3.4")
    assert decision.strategy == "none" and NVIDIA in str(decision.refused)


def test_a_file_without_plugins_gets_its_version_on_2() -> None:
    """Where no plugin is named, a version line decides nothing yet, so it can be added."""
    files = {MAIN: "oom_score = -999\n# kept\n"}
    decision = work_out(files, MAIN, "2.2.7")
    new = editor.render(decision, files)
    assert decision.strategy == "drop_in" and new[MAIN].endswith("oom_score = -999\n# kept\n")
    assert tomllib.loads(new[MAIN])["version"] == tomllib.loads(new[NVIDIA])["version"] == 3
    assert work_out({**files, **new}, MAIN, "2.2.7").strategy == "none"
    assert work_out({MAIN: 'required_plugins = ["cri"]\n'}, MAIN, "2.2.7").refused


def test_a_table_that_another_hides_is_told() -> None:
    table = f'[plugins."{CRI_V2}"]\nenable_cdi = true\n'
    files = {MAIN: 'version = 2\nimports = ["conf.d/*.toml"]\n' + table, NVIDIA: "version = 2\n" + table}
    notes = work_out(files, MAIN, "1.7.24").notes
    assert [note.kind for note in notes] == ["cri_hidden"] and NVIDIA in notes[0].summary and MAIN in notes[0].summary


def handler(plugin: str, binary: str) -> str:
    base = f'plugins."{plugin}".containerd.runtimes'
    return (f'[{base}.runc]\nruntime_type = "io.containerd.runc.v2"\noptions = {{ SystemdCgroup = true }}\n'
            f'[{base}.nvidia]\nruntime_type = "io.containerd.runc.v2"\noptions = {{ BinaryName = "{binary}" }}\n')


def test_an_older_drop_in_of_ours_is_edited_in_its_own_names() -> None:
    """2.3 takes a drop-in of version 2 under a version 3 file; a table of version 3 in it would hide all the others."""
    files = {MAIN: 'version = 3\nimports = ["conf.d/*.toml"]\n', NVIDIA: "version = 2\n" + handler(CRI_V2, "/opt/nvcr")}
    wish = Settings(sandbox_image="registry.k8s.io/pause:3.10.2", registry_config_path="/etc/containerd/certs.d")
    new = editor.render(work_out(files, MAIN, "2.3.4", settings=wish), files)
    assert list(new) == [NVIDIA]
    written = tomllib.loads(new[NVIDIA])
    cri = written["plugins"][CRI_V2]
    assert list(written["plugins"]) == [CRI_V2] and written["version"] == 2
    assert cri["containerd"]["runtimes"]["nvidia"]["options"] == {
        "BinaryName": "/usr/bin/nvidia-container-runtime", "SystemdCgroup": True}
    assert cri["sandbox_image"] == "registry.k8s.io/pause:3.10.2"
    assert cri["registry"] == {"config_path": "/etc/containerd/certs.d"}
    assert work_out({**files, **new}, MAIN, "2.3.4", settings=wish).strategy == "none"


def test_a_drop_in_with_the_tables_of_two_versions_is_told() -> None:
    files = {MAIN: 'version = 3\nimports = ["conf.d/*.toml"]\n', "/etc/containerd/conf.d/10-site.toml":
             "version = 2\n" + handler(CRI_V2, "/a") + handler(RUNTIME_V3, "/b")}
    decision = work_out(files, MAIN, "2.3.4")
    assert decision.strategy == "none" and "hides what" in str(decision.refused)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_main_file_that_only_imports_gets_the_version_of_what_it_imports(version: int) -> None:
    """In 2.3 the first version that is read counts: a lower one in the main file would stop it."""
    site = f"version = {version}\n" + handler(runtime_plugin(version), "/usr/bin/nvidia-container-runtime")
    files = {MAIN: 'imports = ["conf.d/*.toml"]\n', "/etc/containerd/conf.d/10-site.toml": site}
    new = editor.render(work_out(files, MAIN, "2.3.4"), files)
    assert tomllib.loads(new[MAIN])["version"] == tomllib.loads(new[NVIDIA])["version"] == version
    options = tomllib.loads(new[NVIDIA])["plugins"][runtime_plugin(version)]["containerd"]["runtimes"]["nvidia"]
    assert options == {"options": {"SystemdCgroup": True}}
    assert work_out({**files, **new}, MAIN, "2.3.4").strategy == "none"


@pytest.mark.parametrize("line", ['version = "3"', "version = -3", "version = true", 'imports = "conf.d/*.toml"',
                                  "imports = [1]"])
@pytest.mark.parametrize("version", ["1.6.39", "1.7.30", "2.0.11", "2.2.7", "2.3.4"])
def test_what_containerd_cannot_decode_is_told_and_left(line: str, version: str) -> None:
    decision = work_out({MAIN: line + "\n"}, MAIN, version)
    assert decision.strategy == "none" and not decision.edits
    assert line.split()[0] in str(decision.refused) and decision.notes[0].severity == "error"


@pytest.mark.parametrize("version", ["1.6.39", "1.7.30", "2.2.7"])
def test_a_default_that_is_no_runtime_is_told_before_a_restart_finds_out(version: str) -> None:
    """containerd prints such a file without complaint and then starts without CRI."""
    text = (f'version = 2\n[plugins."{CRI_V2}".containerd]\ndefault_runtime_name = "gone"\n'
            f'[plugins."{CRI_V2}".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n')
    decision = work_out({MAIN: text}, MAIN, version)
    assert decision.strategy == "none" and "'gone'" in str(decision.refused)
    assert decision.notes[0].severity == "error"
    assert work_out({MAIN: text}, MAIN, version, default_runtime="runc").refused is None
    assert work_out({MAIN: text.replace("gone", "nvidia")}, MAIN, version).refused is None


BASE = '{{ template "base" . }}\n'


@pytest.mark.parametrize(("version", "templates", "found"), [
    ("2.1.5-k3s1", {"config-v3.toml.tmpl": BASE}, True),
    ("2.1.5-k3s1", {"config-v3.toml.tmpl": "{{/* begin with " + BASE.strip() + " */}}\nversion = 3\n"}, False),
    ("2.1.5-k3s1", {"config-v3.toml.tmpl": BASE, "config.toml.tmpl": "version = 2\n"}, True),
    ("2.1.5-k3s1", {"config-v3.toml.tmpl": "version = 3\n", "config.toml.tmpl": BASE}, False),
    ("2.1.5-k3s1", {"config.toml.tmpl": "version = 2\n"}, False),
    ("1.7.23-k3s2", {"config-v3.toml.tmpl": "version = 3\n", "config.toml.tmpl": BASE}, True)])
def test_of_two_templates_of_k3s_the_one_that_counts_is_looked_at(version: str, templates: dict[str, str],
                                                                  found: bool) -> None:
    folder = "/var/lib/rancher/k3s/agent/etc/containerd/"
    written = (f'version = 2\n[plugins."{CRI_V2}"]\nenable_cdi = true\n[plugins."{CRI_V2}".containerd.runtimes.runc]\n'
               'runtime_type = "io.containerd.runc.v2"\n')
    files = {folder + name: text for name, text in {"config.toml": written, **templates}.items()}
    decision = work_out(files, folder + "config.toml", version, owner="k3s")
    assert (decision.strategy == "detect") is found and (decision.refused is None) is found


def dump(text: str, rc: int = 0) -> dict[str, Any]:
    return {"rc": rc, "out": text, "why": "because" if rc else ""}


GOOD = (f'root = "/r"\n[plugins."{RUNTIME_V3}".containerd.runtimes.nvidia.options]\n'
        'BinaryName = "/usr/bin/nvidia-container-runtime"\n')


@pytest.mark.parametrize(("before", "after", "word"), [
    (dump(""), dump("", 1), "because"), (dump(""), dump("x = ["), "not valid TOML"),
    (dump('root = "/r"\n'), dump('root = "/r"\n'), "None"),
    (dump('root = "/other"\n'), dump(GOOD), "also change root"),
    (dump(f'root = "/r"\n[plugins."{RUNTIME_V3}"]\nenable_selinux = true\n'), dump(GOOD), "enable_selinux")])
def test_the_trial_refuses(before: dict[str, Any], after: dict[str, Any], word: str) -> None:
    with pytest.raises(Refusal, match=word):
        trial.judge(before, after, "/usr/bin/nvidia-container-runtime")


def test_the_trial_accepts_ours_alone() -> None:
    trial.judge(dump('root = "/r"\nimports = ["a"]\n'), dump(GOOD), "/usr/bin/nvidia-container-runtime")
    trial.judge(None, dump(GOOD), "/usr/bin/nvidia-container-runtime")
    trial.judge(dump("", 1), dump(GOOD), "/usr/bin/nvidia-container-runtime")


def test_the_trials_files_mean_the_same() -> None:
    files = {MAIN: 'version = 3\nimports = [\n  "conf.d/*.toml", # all\n]\nroot = "/x"\n',
             NVIDIA: 'imports = ["/b.toml"]\nversion = 3\n', "/b.toml": "version = 3\noom_score = 5\n"}
    laid = trial.tree(files, MAIN, gen("2.1.9"))
    assert set(laid) == {"config.toml", "001.toml", "002.toml"}
    placed = {f"/t/{name}": text.replace("@FOLDER@", "/t") for name, text in laid.items()}
    one, two = load(files, MAIN, gen("2.1.9")).effective, load(placed, "/t/config.toml", gen("2.1.9")).effective
    assert [path for path, _old, _new in differences(one, two) if path != ("imports",)] == []
    assert trial.with_imports("root = 1\n", ["a"]) == 'imports = ["a"]\nroot = 1\n'


def test_a_report_has_plain_values() -> None:
    assert report(differences({"a": {"b c": 1}}, {"a": {"d": True}})) == [
        {"path": 'a."b c"', "before": 1, "after": None}, {"path": "a.d", "before": None, "after": True}]
