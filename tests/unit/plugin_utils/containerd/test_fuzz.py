# SPDX-License-Identifier: GPL-3.0-or-later
"""Random configurations with random imports: nothing that is not ours moves, nothing crashes, twice is once."""
from __future__ import annotations

import json
import os
import pathlib
import sys
import tempfile
from typing import Any

import pytest
import tomllib
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT / "tests" / "cases"), str(pathlib.Path(__file__).parent)]
import containerd_case
import containerds
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd import (
    Settings,
    decide,
    editor,
    toml_text,
    trial,
    work_out,
)
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd import settings as settings_of
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.diff import differences, leaves
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.generation import (
    CRI_V2,
    IMAGES_V3,
    RUNTIME_V3,
    generation,
    runtime_plugin,
)
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.merge import load, migrate
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.want import Refusal

MAIN = "/etc/containerd/config.toml"
NVIDIA = "/etc/containerd/conf.d/99-nvidia.toml"
NAMES = ("/etc/containerd/conf.d/10-a.toml", "/etc/containerd/conf.d/zz-b.toml", "/etc/containerd/other.d/c.toml",
         NVIDIA)
VERSIONS = ("1.6.20", "1.7.24", "2.0.11", "2.1.9", "2.2.7", "2.3.4")
PATTERNS = ("/etc/containerd/conf.d/*.toml", "conf.d/*.toml", "/etc/containerd/other.d/*.toml", "other.d/c.toml",
            "/etc/containerd/conf.d/10-*.toml", NVIDIA, "/nowhere/*.toml")

text = st.sampled_from(["", "a", "overlayfs", "say \"x\"", "back\\slash", "grüße", "tab\there", "/usr/bin/crun"])
number = st.sampled_from([0, 1, -999, 4096])
flag = st.booleans()


@st.composite
def runtimes(draw: Any) -> dict[str, Any]:
    """A ``runtimes`` table with some of the runtimes that people have."""
    out: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from(["runc", "crun", "kata", "nvidia", "nvidia-cdi", "odd name"]),
                              unique=True, max_size=4)):
        table: dict[str, Any] = {"runtime_type": draw(st.sampled_from(
            ["io.containerd.runc.v2", "io.containerd.kata.v2", "io.containerd.runc.v2"]))}
        if draw(flag):
            table["snapshotter"] = draw(text)
        if draw(flag):
            table["options"] = draw(st.dictionaries(
                st.sampled_from(["SystemdCgroup", "NoNewKeyring"]), flag, max_size=2)) | draw(
                    st.dictionaries(st.sampled_from(["BinaryName", "Root"]), text, max_size=2))
        out[name] = table
    return out


@st.composite
def cri(draw: Any, version: int) -> dict[str, Any]:
    """The table of the CRI plugin that holds the runtimes."""
    table: dict[str, Any] = draw(st.fixed_dictionaries({}, optional={
        "enable_selinux": flag, "max_container_log_line_size": number, "enable_cdi": flag,
        "cdi_spec_dirs": st.lists(text, max_size=2)}))
    if version < 3 and draw(flag):
        table["sandbox_image"] = "registry.example.net/pause:3.9"
        table["registry"] = {"config_path": "/etc/containerd/certs.d"}
    if draw(flag):
        table["containerd"] = draw(st.fixed_dictionaries({}, optional={
            "default_runtime_name": st.sampled_from(["runc", "nvidia", "crun"]), "runtimes": runtimes()}))
    return table


@st.composite
def document(draw: Any, version: int | None, main: bool) -> dict[str, Any]:
    """A whole file. Now and then with the tables of another version, or none."""
    out: dict[str, Any] = {}
    if version is not None:
        out["version"] = version
    if draw(st.integers(0, 2)) == 0 or (main and draw(flag)):
        out["imports"] = draw(st.lists(st.sampled_from(PATTERNS), max_size=3))
    out |= draw(st.fixed_dictionaries({}, optional={
        "oom_score": number, "root": text, "disabled_plugins": st.lists(st.sampled_from(
            ["io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.btrfs"]), max_size=2)}))
    plugins: dict[str, Any] = {}
    if draw(flag):
        plugins[runtime_plugin(version or 1)] = draw(cri(version or 1))
    if draw(st.integers(0, 3)) == 0:
        plugins["io.containerd.gc.v1.scheduler"] = {"pause_threshold": 0.05, "startup_delay": "100ms"}
    if draw(st.integers(0, 11)) == 0:
        plugins[draw(st.sampled_from(["cri", CRI_V2, RUNTIME_V3]))] = draw(cri(3))
    if plugins:
        out["plugins"] = plugins
    if draw(st.integers(0, 3)) == 0:
        out["metrics"] = {"address": draw(text), "grpc_histogram": draw(flag)}
    return out


@st.composite
def written(draw: Any, content: dict[str, Any]) -> str:
    """A document as text in one of the ways people write: headers, inline tables, dotted keys, comments, line ends."""
    lines: list[str] = [f"# {draw(text)}"] if draw(flag) else []
    tables: list[tuple[tuple[str, ...], dict[str, Any]]] = []

    def comment() -> str:
        return "  # kept" if draw(st.integers(0, 4)) == 0 else ""

    def walk(path: tuple[str, ...], table: dict[str, Any]) -> None:
        tables.append((path, table))

    for name, item in content.items():
        if isinstance(item, dict):
            walk((name,), item)
        else:
            lines.append(f"{toml_text.key(name)} = {toml_text.value(item)}{comment()}")
    while tables:
        path, table = tables.pop(0)
        style = draw(st.sampled_from(["header", "header", "header", "dotted"]))
        own = {k: v for k, v in table.items() if not isinstance(v, dict)}
        inner = {k: v for k, v in table.items() if isinstance(v, dict)}
        if own or not inner or draw(flag):
            lines += [""] * draw(st.integers(0, 2)) + [draw(st.sampled_from(["", "  ", "\t"])) + toml_text.header(path)
                                                       + comment()]
            indent = draw(st.sampled_from(["", "  ", "\t"]))
            lines += [f"{indent}{toml_text.key(k)} = {toml_text.value(v)}{comment()}" for k, v in own.items()]
            for name, item in inner.items():
                how = style if len(path) > 1 else "header"
                if how == "dotted" and draw(flag):
                    lines.append(f"{indent}{toml_text.key(name)} = {toml_text.value(item)}{comment()}")
                elif how == "dotted" and item:
                    lines += [f"{indent}{'.'.join(map(toml_text.key, (name, *p)))} = {toml_text.value(v)}"
                              for p, v in leaves(item)]
                else:
                    walk((*path, name), item)
        else:
            for name, item in inner.items():
                walk((*path, name), item)
    newline = draw(st.sampled_from(["\n", "\n", "\n", "\r\n"]))
    return newline.join(lines) + (newline if draw(flag) else "")


@st.composite
def hosts(draw: Any) -> tuple[str, dict[str, str]]:
    """(containerd's version, its files)."""
    version = draw(st.sampled_from(VERSIONS))
    gen = generation(version)
    assert gen is not None
    mine = draw(st.sampled_from([gen.max_version, gen.max_version, 2, 2, None, 1, 3]))
    files = {}
    if draw(st.integers(0, 9)):
        files[MAIN] = draw(written(draw(document(mine, True))))
    for path in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3)):
        other = mine if draw(st.integers(0, 5)) else draw(st.sampled_from([None, 1, 2, 3, 4]))
        files[path] = draw(written(draw(document(other, False))))
    return version, files


def outcome(version: str, files: dict[str, str], default: str | None) -> tuple[Any, dict[str, str], str | None]:
    decision = work_out(files, MAIN, version, default_runtime=default, runtime_path="/usr/bin/nvidia-container-runtime")
    try:
        return decision, editor.render(decision, files), decision.refused
    except Refusal as refusal:
        return decision, {}, str(refusal)


REACHED: set[tuple[str, str]] = set()
SETTINGS = settings(max_examples=int(os.environ.get("FUZZ_EXAMPLES", "100")), deadline=None,
                    suppress_health_check=list(HealthCheck), derandomize=True)


@SETTINGS
@given(hosts(), st.sampled_from([None, None, "nvidia", "runc", "crun"]))
def test_only_our_settings_move(host: tuple[str, dict[str, str]], default: str | None) -> None:
    version, files = host
    gen = generation(version)
    assert gen is not None
    for content in files.values():
        tomllib.loads(content)
    decision, new, refusal = outcome(version, files, default)
    changed = {path: content for path, content in new.items() if files.get(path) != content}
    if refusal is not None:
        assert not changed
        return
    after = {**files, **changed}
    loaded = load(after, MAIN, gen)
    assert not loaded.problems
    plugin = ("plugins", runtime_plugin(loaded.version))
    exempt = [(*plugin, "containerd", "default_runtime_name")] if default else []
    assert containerd_case.untouched(files, after, MAIN, gen, exempt) == []
    for path, content in changed.items():
        if path in files and not any(edit.path == path and edit.document is not None for edit in decision.edits):
            kept = toml_text.comments(content)
            assert [c for c in kept if c in toml_text.comments(files[path])] == toml_text.comments(files[path])
    handler = loaded.effective["plugins"][plugin[1]]["containerd"]["runtimes"]["nvidia"]
    assert handler["options"]["BinaryName"] == "/usr/bin/nvidia-container-runtime"
    again, second, refused = outcome(version, after, default)
    assert refused is None and again.strategy == "none" and not second
    REACHED.add((version[:3], decision.strategy))


WISHES = st.builds(Settings, st.sampled_from([None, None, "registry.k8s.io/pause:3.10"]),
                   st.sampled_from([None, None, "/etc/containerd/certs.d"]), st.sampled_from([None, None, True, False]))
BACK: set[str] = set()


@SETTINGS
@given(hosts(), st.sampled_from([None, "nvidia", "runc"]), WISHES)
def test_with_settings_and_back_again(host: tuple[str, dict[str, str]], default: str | None, wish: Settings) -> None:
    """Only what was asked for moves; taken out again, what is in force is what was in force before."""
    version, files = host
    gen = generation(version)
    assert gen is not None
    decision = work_out(files, MAIN, version, default_runtime=default, settings=wish)
    try:
        new = editor.render(decision, files)
    except Refusal:
        return
    if decision.refused or not new:
        return
    before, after = load(files, MAIN, gen), {**files, **{path: text for path, text in new.items() if text is not None}}
    loaded = load(after, MAIN, gen)
    plugin = ("plugins", runtime_plugin(loaded.version))
    runtimes = loaded.effective["plugins"][plugin[1]]["containerd"]["runtimes"]
    exempt = [*settings_of.paths(wish, runtimes), (*plugin, "containerd", "default_runtime_name")]
    assert containerd_case.untouched(files, after, MAIN, gen, exempt) == []
    again = work_out(after, MAIN, version, default_runtime=default, settings=wish)
    assert again.refused is None and not again.edits
    record = decision.records(files)
    if any("nvidia" in text for text in files.values()) or before.fatal or NVIDIA in files:
        return  # the runtime, what names it or its file was there before: whose it is then is another test's question
    gone = work_out(after, MAIN, version, state="absent", record=record)
    if gone.refused:
        assert "default runtime" in gone.refused or "were this" in gone.refused
        return
    left = dict(after)
    for path, text in editor.render(gone, after).items():
        if text is None:
            del left[path]
        else:
            left[path] = text
    moved = [path for path, old, now in differences(before.effective, load(left, MAIN, gen).effective)
             if {} not in (old, now)]
    assert moved == [] and work_out(left, MAIN, version, state="absent", record=record).strategy == "none"
    for path, text in files.items():
        kept = toml_text.comments(left[path])
        assert [c for c in kept if c in toml_text.comments(text)] == toml_text.comments(text)
    BACK.add(version[:3])


def test_the_fuzz_came_back_in_all_lines() -> None:
    assert {"1.6", "1.7", "2.0", "2.1", "2.2", "2.3"} <= BACK


def test_the_fuzz_reached_all_lines() -> None:
    """A fuzz in which everything is refused would prove nothing."""
    for line in ("1.6", "1.7", "2.0", "2.1", "2.2", "2.3"):
        assert (line, "edit" if line < "2" else "drop_in") in REACHED


@SETTINGS
@given(st.dictionaries(st.sampled_from([MAIN, NVIDIA, "/etc/containerd/x"]), st.text(max_size=60)), st.text(max_size=8),
       st.sampled_from(["host", "k3s", "operator", "kubespray", "", None, "other"]))
def test_never_a_crash_on_any_text(files: dict[str, str], version: str, owner: str | None) -> None:
    work_out(files, MAIN, version or "2.1.9", owner=owner)


@SETTINGS
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(
    inner, max_size=3) | st.dictionaries(st.sampled_from(["containerd", "config", "text", "drop_ins", "path", "version",
                                                          "owner"]), inner, max_size=4), max_leaves=12))
def test_never_a_crash_on_any_facts(facts: Any) -> None:
    if facts is None or isinstance(facts, dict):
        decide(facts).as_dict()


@pytest.mark.parametrize("line", ["1.6", "1.7", "2.1"])
def test_containerd_itself_sees_nothing_else_move(line: str) -> None:
    """Random files, random wishes: what the real program prints differs in what was asked for, and in nothing else."""
    program = containerds.program(line)
    compared = []

    @settings(max_examples=int(os.environ.get("FUZZ_REAL", "25")), deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck), derandomize=True)
    @given(st.data(), st.sampled_from([None, "nvidia"]), WISHES)
    def compare(data: Any, default: str | None, wish: Settings) -> None:
        version = data.draw(st.sampled_from([2, 3] if line == "2.1" else [2]))
        files = {MAIN: data.draw(written(data.draw(document(version, True))))}
        for path in data.draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=2)):
            files[path] = data.draw(written(data.draw(document(version, False))))
        assume("\r" not in "".join(files.values()))
        decision = work_out(files, MAIN, line + ".20", default_runtime=default, settings=wish)
        assume(not decision.refused and bool(decision.edits))
        names = [name for text in files.values() for name in tomllib.loads(text).get("imports", [])]
        if any(name.startswith("conf.d/") for name in names):
            return  # 1.6.20 looks for a relative pattern where it was started
        new = editor.render(decision, files)
        with tempfile.TemporaryDirectory() as folder:
            old_rc, before, _why = containerds.dump(program, containerds.place(pathlib.Path(folder) / "a", files))
            target = containerds.place(pathlib.Path(folder) / "b", {**files, **new})
            rc, after, why = containerds.dump(program, target)
            assert rc == 0, why
            text = json.dumps(after, default=str).replace(f"{folder}/b", f"{folder}/a")
        if old_rc != 0:
            return
        asked = set(settings_of.paths(wish, {"runc": {}, "crun": {}, "kata": {}}))
        was = json.loads(json.dumps(before, default=str))
        moved = [path for path, _old, _new in differences(was, json.loads(text))
                 if path[0] not in ("version", "imports") and not trial._ours(path) and path not in asked]
        assert moved == [], files
        compared.append(line)

    compare()
    assert len(compared) >= 5


@pytest.mark.parametrize("line", ["1.6", "1.7", "2.1"])
def test_what_is_in_force_is_what_containerd_prints(line: str) -> None:
    """Random files, read by us and by the real program: each setting that it knows has the value we computed."""
    program = containerds.program(line)
    gen = generation(line + ".0")
    assert gen is not None
    compared = []

    @settings(max_examples=60, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck),
              derandomize=True)
    @given(st.data())
    def compare(data: Any) -> None:
        version = data.draw(st.sampled_from([2, 3] if line == "2.1" else [2]))
        files = {MAIN: data.draw(written(data.draw(document(version, True))))}
        for path in data.draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3)):
            files[path] = data.draw(written(data.draw(document(version, False))))
        loaded = load(files, MAIN, gen)
        assume(not loaded.problems)
        if any(RUNTIME_V3 in loaded.documents[p].get("plugins", {}) and version == 2
               for p in loaded.order) or "\r" in "".join(files.values()):
            return
        if CRI_V2 in loaded.effective.get("plugins", {}) and version == 3:
            return
        if line == "1.6" and any(name.startswith("conf.d/") for p in loaded.order
                                 for name in loaded.documents[p].get("imports", [])):
            return  # 1.6.20 looks for a relative pattern where it was started, later ones beside the file
        with tempfile.TemporaryDirectory() as folder:
            config = containerds.place(pathlib.Path(folder), files)
            rc, printed, complaint = containerds.dump(program, config)
            assert rc == 0 and printed, complaint
            computed = migrate(loaded.effective, version, 3) if line == "2.1" else loaded.effective
            there = dict(leaves(printed))
            for path, value in leaves(computed):
                if path[0] in ("version", "imports") or path not in there:
                    continue
                if path[0] != "plugins" and not value:
                    continue  # an empty value at the top stands for the built-in default
                compared.append(path)
                assert there[path] == value, (path, files)

    compare()
    assert len(compared) > 40
    assert any(IMAGES_V3 in path or CRI_V2 in path for path in compared)
