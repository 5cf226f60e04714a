# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker and CRI-O get the runtime: files keep what they say, daemons take it in, or the former file comes back."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import run as children
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers import engine_files, engine_handler
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers.engine_files import Edit, EngineError, Wish
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store
from hypothesis import given, settings
from hypothesis import strategies as st

PATH = "/usr/bin/nvidia-container-runtime"
CRIO = '[crio.runtime]\ndefault_runtime = "crun"\n[crio.runtime.runtimes.crun]\nruntime_path = "/usr/bin/crun"\n' \
       'monitor_path = "/usr/libexec/crio/conmon"\nallowed_annotations = [\n  "io.containers.trace-syscall",\n]\n'


def test_a_file_that_is_not_there_gets_the_runtime_alone():
    edit = engine_files.docker(None, Wish())
    assert json.loads(edit.text) == {"runtimes": {"nvidia": {"path": PATH, "args": []}}}
    assert engine_files.docker(edit.text, Wish()) == Edit(edit.text)
    assert engine_files.without_docker(edit.text, edit.sets).text is None


def test_everything_else_stays_in_its_order_and_indentation():
    text = '{\n  "log-driver": "json-file",\n  "runtimes": {"kata": {"path": "/k"}},\n  "mtu": 1450\n}\n'
    edit = engine_files.docker(text, Wish(default_runtime="nvidia"))
    data = json.loads(edit.text)
    assert list(data) == ["log-driver", "runtimes", "mtu", "default-runtime"]
    assert data["runtimes"]["kata"] == {"path": "/k"} and '\n  "mtu": 1450' in edit.text
    assert json.loads(engine_files.without_docker(edit.text, edit.sets).text) == json.loads(text)


def test_the_default_comes_back_unless_somebody_changed_it():
    text = '{"default-runtime": "kata"}'
    edit = engine_files.docker(text, Wish(default_runtime="nvidia"))
    assert json.loads(engine_files.without_docker(edit.text, edit.sets).text)["default-runtime"] == "kata"
    changed = edit.text.replace('"default-runtime": "nvidia"', '"default-runtime": "runc"')
    assert json.loads(engine_files.without_docker(changed, edit.sets).text)["default-runtime"] == "runc"


def test_arguments_that_people_gave_the_runtime_stay():
    text = '{"runtimes": {"nvidia": {"path": "/old", "args": ["--x"]}}}'
    assert json.loads(engine_files.docker(text, Wish()).text)["runtimes"]["nvidia"] == {"path": PATH, "args": ["--x"]}


@pytest.mark.parametrize(("text", "words"), [
    ("{", "no JSON"), ("[]", "no JSON object"), ('{"a": 1, "a": 2}', "twice"), ('{"runtimes": []}', "runtimes"),
    ('{"runtimes": {"nvidia": "x"}}', "runtimes.nvidia"), ('{"features": 3}', "features"),
])
def test_a_file_that_is_not_understood_is_refused(text, words):
    with pytest.raises(EngineError, match=words):
        engine_files.docker(text, Wish())


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
                    max_leaves=8)


KEYS = st.text(max_size=8).filter(lambda key: key not in ("runtimes", "features", "default-runtime"))


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(KEYS, JSON, max_size=4))
def test_no_other_setting_changes(data):
    before = {**data, "runtimes": {"x": {"path": "/x"}}}
    edit = engine_files.docker(json.dumps(before), Wish(cdi=True))
    after = json.loads(edit.text)
    assert after.pop("features") == {"cdi": True}
    assert after["runtimes"].pop("nvidia") == {"path": PATH, "args": []}
    assert after == before
    assert json.loads(engine_files.without_docker(edit.text, edit.sets).text) == before


def test_crio_takes_over_the_monitor_of_its_default_runtime():
    text = engine_files.crio(None, CRIO, Wish()).text
    assert 'monitor_path = "/usr/libexec/crio/conmon"' in text
    assert 'allowed_annotations = ["io.containers.trace-syscall"]' in text
    assert "default_runtime" not in text and f'runtime_path = "{PATH}"' in text
    assert engine_files.crio(text, CRIO, Wish()).text == text


def test_crio_keeps_a_default_that_stands_in_the_drop_in():
    text = engine_files.crio(None, CRIO, Wish(default_runtime="nvidia")).text
    assert engine_files.crio(text, CRIO, Wish()).text == text


def test_a_drop_in_of_people_that_says_more_is_left():
    with pytest.raises(EngineError, match="more than the runtime"):
        engine_files.crio('[crio.runtime]\nlog_level = "debug"\n', CRIO, Wish())


class Host:
    """Docker or CRI-O of a test: what systemctl is asked, and what the daemon then says."""

    def __init__(self, root: pathlib.Path, name: str, monkeypatch: Any, active: bool = True) -> None:
        self.root, self.name, self.active, self.calls = root, name, active, []
        self.known: dict[str, Any] = {}
        self.exec_start, self.refuses, self.deaf, self.containers = "/usr/bin/dockerd", "", False, 0
        (root / "run/systemd/system").mkdir(parents=True)
        self.file = root / ("etc/docker/daemon.json" if name == "docker" else engine_files.CRIO_FILE.lstrip("/"))
        monkeypatch.setattr(engine_handler, "ask",
                            lambda _path, _what: {"Runtimes": self.known, "DefaultRuntime": "runc"})

    def run(self, argv: list[str], **_more: Any) -> children.Result:
        self.calls.append(" ".join(argv[:2]))
        if argv[1] == "is-active":
            return children.Result(rc=0, out="active\n" if self.active else "inactive\n")
        if argv[1] == "show":
            return children.Result(rc=0, out=f"ExecStart={self.exec_start}\n")
        if argv[1] in ("reload", "restart"):
            there = self.file.exists()
            if not self.deaf and self.name == "docker" and there:  # a key that is gone is not taken notice of
                self.known = json.loads(self.file.read_text()).get("runtimes", self.known)
            elif not self.deaf:
                self.known = {"nvidia": {}} if there else {}
            return children.Result(rc=0)
        if argv[1] == "status":
            return children.Result(rc=0, out="[crio.runtime.runtimes.nvidia]\n" if self.known else "")
        return children.Result(rc=1, err=self.refuses) if self.refuses else children.Result(rc=0)

    def handler(self) -> engine_handler.EngineHandler:
        ticks = iter(range(1000))
        return engine_handler.EngineHandler(
            self.name, self.run, lambda: self.containers, Store(str(self.root)), root=str(self.root), timeout=3,
            pause=lambda _s: None, clock=lambda: next(ticks), which=lambda name: f"/usr/bin/{name}")


@pytest.fixture
def docker(tmp_path, monkeypatch):
    return Host(tmp_path, "docker", monkeypatch)


@pytest.fixture
def crio(tmp_path, monkeypatch):
    return Host(tmp_path, "crio", monkeypatch)


def test_docker_is_reloaded_never_restarted_and_a_second_call_does_nothing(docker):
    first = docker.handler().set(Wish(), check=False)
    assert first.changed and "reload docker.service" in first.actions
    assert "systemctl restart" not in docker.calls
    assert not docker.handler().set(Wish(), check=False).changed
    assert Store(str(docker.root)).read()["open"] is None


def test_check_mode_writes_nothing(docker):
    assert docker.handler().set(Wish(), check=True).changed
    assert not (docker.root / "etc/docker/daemon.json").exists() and "systemctl reload" not in docker.calls


def test_a_daemon_that_does_not_take_it_gets_its_file_back(docker):
    file = docker.root / "etc/docker/daemon.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"mtu": 1}')
    docker.deaf = True
    with pytest.raises(EngineError, match=r"does not know the runtime nvidia.*was put back"):
        docker.handler().set(Wish(), check=False)
    assert file.read_text() == '{"mtu": 1}'
    assert Store(str(docker.root)).read()["open"] is None


def test_the_program_refuses_the_file_first(docker):
    docker.refuses = "unable to configure: invalid"
    with pytest.raises(EngineError, match="refuses the new"):
        docker.handler().set(Wish(), check=False)
    assert not (docker.root / "etc/docker/daemon.json").exists()


def test_an_old_dockerd_cannot_look_and_that_is_no_refusal(docker):
    docker.refuses = "unknown flag: --validate"
    assert docker.handler().set(Wish(), check=False).changed


def test_a_flag_in_the_unit_would_keep_docker_from_starting(docker):
    docker.exec_start = "/usr/bin/dockerd --add-runtime=nvidia=/x"
    with pytest.raises(EngineError, match="--add-runtime"):
        docker.handler().set(Wish(), check=False)


def test_a_run_that_was_cut_off_before_the_reload_is_finished(docker):
    file = docker.root / "etc/docker/daemon.json"
    docker.handler().set(Wish(), check=False)
    docker.known = {}
    Store(str(docker.root)).begin("r", "gpu_toolkit", "docker")
    before = file.read_text()
    assert docker.handler().set(Wish(), check=False).changed
    assert docker.known and file.read_text() == before


def test_the_way_back(docker):
    docker.handler().set(Wish(default_runtime="nvidia"), check=True)
    docker.handler().set(Wish(), check=False)
    assert docker.handler().set(None, check=False).changed
    assert not docker.file.exists() and docker.known == {}
    assert not docker.handler().set(None, check=False).changed


def test_crio_is_not_restarted_under_gpu_containers_without_leave(crio):
    crio.containers = 2
    told = crio.handler().set(Wish(), check=False)
    assert not told.changed and "2 GPU containers" in told.skipped_reason
    assert not (crio.root / engine_files.CRIO_FILE.lstrip("/")).exists()
    assert crio.handler().set(Wish(), check=False, allowed=True).changed
    assert "systemctl restart" in crio.calls
    assert crio.handler().set(None, check=False, allowed=True).changed


def test_an_engine_that_does_not_run_only_gets_its_file(tmp_path, monkeypatch):
    host = Host(tmp_path, "crio", monkeypatch, active=False)
    host.containers = 3
    assert host.handler().set(Wish(), check=False).actions == [f"write {engine_files.CRIO_FILE}"]
