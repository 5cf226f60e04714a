# SPDX-License-Identifier: GPL-3.0-or-later
"""What was set is taken out again: the runtime, its drop-in and import, and the default runtime is what it was."""
from __future__ import annotations

import copy
import json
import pathlib
import sys
from typing import Any

import pytest
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT / "tests" / "cases"), str(pathlib.Path(__file__).parent)]
import containerd_case
import containerds
from ansible_collections.baremetal.nvidia.plugins.module_utils.containers import config_files
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd import Settings, editor, generation, work_out
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.diff import differences
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.generation import CRI_V2, RUNTIME_V3
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.merge import load

MAIN = "/etc/containerd/config.toml"
NVIDIA = "/etc/containerd/conf.d/99-nvidia.toml"
V2 = f"""# the fleet's file
version = 2   # as 1.7 writes it
root = "/data/containerd"

[plugins."{CRI_V2}"]
  sandbox_image = "registry.local/pause:3.9" # ours

  [plugins."{CRI_V2}".containerd]
    default_runtime_name = "crun"

    [plugins."{CRI_V2}".containerd.runtimes.crun]
      runtime_type = "io.containerd.runc.v2"
      [plugins."{CRI_V2}".containerd.runtimes.crun.options]
        BinaryName = "/usr/bin/crun"
        SystemdCgroup = true
"""
V3 = V2.replace("version = 2", "version = 3").replace(CRI_V2, RUNTIME_V3).replace(
    f'[plugins."{RUNTIME_V3}"]\n  sandbox_image = "registry.local/pause:3.9" # ours\n\n', "")
Files = dict[str, str]


class Host:
    """Files and what the state keeps of them, as the module on the host does it."""

    def __init__(self, files: Files, version: str, main: str = MAIN, owner: str = "host") -> None:
        self.files, self.version, self.main, self.owner = dict(files), version, main, owner
        self.state: dict[str, Any] = {"configured": {}}

    def run(self, state: str = "present", **more: Any) -> Any:
        decision = work_out(self.files, self.main, self.version, owner=self.owner, state=state,
                            record=self.state["configured"], **more)
        for path, entry in decision.records(self.files).items():
            config_files._record(path, json.loads(json.dumps(entry)), self.state)
        for path, text in editor.render(decision, self.files).items():
            if text is None:
                del self.files[path]
            else:
                self.files[path] = text
        return decision

    def effective(self) -> dict[str, Any]:
        gen = generation(self.version)
        assert gen is not None
        return load(self.files, self.main, gen).effective


@pytest.mark.parametrize(("version", "text"), [("1.6.20", V2), ("1.7.24", V2), ("2.0.11", V3), ("2.1.9", V3),
                                               ("2.2.7", V2), ("2.3.4", V3), ("1.7.24", None), ("2.1.9", None)])
@pytest.mark.parametrize("default", [None, "nvidia"])
def test_there_and_back_again(version: str, text: str | None, default: str | None) -> None:
    host = Host({} if text is None else {MAIN: text}, version)
    before = dict(host.files)
    assert host.run(default_runtime=default).restart
    assert host.files != before
    gone = host.run("absent")
    assert gone.strategy == "remove" and gone.restart and not gone.refused
    assert host.files == before, "every byte is what it was"
    again = host.run("absent")
    assert again.strategy == "none" and not again.restart


PACKAGED = """version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
      conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd/opt"
"""


@pytest.mark.parametrize("version", ["1.6.20", "1.7.24"])
@pytest.mark.parametrize("default", [None, "nvidia", "runc"])
def test_debians_own_file_is_what_the_package_brought(version: str, default: str | None) -> None:
    """Its tables stand without a gap: the blank lines that came with ours go with them."""
    host = Host({MAIN: PACKAGED}, version)
    host.run(default_runtime=default)
    host.run("absent")
    assert host.files == {MAIN: PACKAGED}


@pytest.mark.parametrize("version", ["1.7.24", "2.1.9", "2.3.4"])
@pytest.mark.parametrize("text", ["# nothing yet\n", "imports = []  # kept\n", "oom_score = 0\n", ""])
def test_a_file_that_said_nothing_says_nothing_again(version: str, text: str) -> None:
    host = Host({MAIN: text}, version)
    host.run()
    assert "version" in host.files[MAIN] or version < "2"
    host.run("absent")
    assert host.effective() == tomllib.loads(text) and "version" not in host.files[MAIN]
    assert host.run("absent").strategy == "none"


def test_settings_come_back_too() -> None:
    host = Host({MAIN: V2}, "1.7.24")
    host.run(settings=Settings("registry.k8s.io/pause:3.10", "/etc/containerd/certs.d", False))
    now = tomllib.loads(host.files[MAIN])["plugins"][CRI_V2]
    assert now["sandbox_image"] == "registry.k8s.io/pause:3.10" and now["registry"]["config_path"]
    assert now["containerd"]["runtimes"]["crun"]["options"]["SystemdCgroup"] is False
    assert now["containerd"]["runtimes"]["nvidia"]["options"]["SystemdCgroup"] is False
    host.run("absent")
    assert host.files == {MAIN: V2}


def test_what_somebody_changed_since_is_left() -> None:
    host = Host({MAIN: V2}, "1.7.24")
    host.run(default_runtime="nvidia", settings=Settings(sandbox_image="registry.k8s.io/pause:3.10"))
    host.files[MAIN] = host.files[MAIN].replace("pause:3.10", "pause:4")
    host.run("absent")
    assert host.files[MAIN] == V2.replace("registry.local/pause:3.9", "registry.k8s.io/pause:4")


def test_moved_on_by_us_what_comes_back_is_the_first() -> None:
    host = Host({MAIN: V2}, "1.7.24")
    for image in ("a.local/pause:1", "a.local/pause:2"):
        host.run(settings=Settings(sandbox_image=image))
    host.run("absent")
    assert host.files == {MAIN: V2}


def test_a_setting_that_a_person_made_after_we_took_ours_out_is_what_counts_next_time() -> None:
    host = Host({MAIN: V2}, "1.7.24")
    host.run(default_runtime="nvidia")
    host.run("absent")
    host.files[MAIN] = host.files[MAIN].replace('default_runtime_name = "crun"', 'default_runtime_name = "runc"')
    mine = host.files[MAIN]
    host.run(default_runtime="nvidia")
    host.run("absent")
    assert host.files[MAIN] == mine


def test_without_a_record_the_runtime_and_what_names_it_go() -> None:
    host = Host({MAIN: V3}, "2.1.9")
    host.run(default_runtime="nvidia")
    host.state["configured"].clear()
    host.run("absent")
    assert NVIDIA not in host.files
    assert differences(tomllib.loads(V3), {k: v for k, v in host.effective().items() if k != "imports"}) == []


def test_a_drop_in_with_more_in_it_keeps_that() -> None:
    host = Host({MAIN: V3}, "2.1.9")
    host.run()
    host.files[NVIDIA] += '\n# a person\n[plugins."io.containerd.gc.v1.scheduler"]\npause_threshold = 0.02\n'
    host.run("absent")
    assert "# a person" in host.files[NVIDIA] and "runtimes.nvidia" not in host.files[NVIDIA]
    assert host.effective()["plugins"]["io.containerd.gc.v1.scheduler"] == {"pause_threshold": 0.02}


def test_an_import_that_reaches_another_file_stays() -> None:
    host = Host({MAIN: V3}, "2.1.9")
    host.run()
    host.files["/etc/containerd/conf.d/site.toml"] = "version = 3\noom_score = -5\n"
    host.run("absent")
    assert host.effective()["oom_score"] == -5 and NVIDIA not in host.files


def test_somebody_elses_runtime_of_that_name_is_left() -> None:
    text = V3 + (f'\n[plugins."{RUNTIME_V3}".containerd.runtimes.nvidia]\n  runtime_type = "io.containerd.runc.v2"\n'
                 f'  [plugins."{RUNTIME_V3}".containerd.runtimes.nvidia.options]\n    BinaryName = "/opt/other"\n')
    assert Host({MAIN: text}, "2.1.9").run("absent").strategy == "none"


def test_what_does_not_parse_is_told_and_not_taken_for_empty() -> None:
    decision = work_out({MAIN: "version = 2\n["}, MAIN, "1.7.24", state="absent")
    assert decision.strategy == "none" and "not valid TOML" in str(decision.refused)


def test_a_default_runtime_of_somebody_else_stops_it() -> None:
    host = Host({MAIN: V3}, "2.1.9")
    host.run()
    host.files["/etc/containerd/conf.d/z.toml"] = (
        f'version = 3\n[plugins."{RUNTIME_V3}".containerd]\ndefault_runtime_name = "nvidia"\n')
    host.files[MAIN] = host.files[MAIN].replace("99-nvidia*.toml", "*.toml")
    decision = host.run("absent")
    assert "default runtime" in str(decision.refused) and NVIDIA in host.files


@pytest.mark.parametrize(("owner", "main", "version"), [
    ("k3s", "/var/lib/rancher/k3s/agent/etc/containerd/config.toml", "2.1.9-k3s1"),
    ("rke2", "/var/lib/rancher/rke2/agent/etc/containerd/config.toml", "2.1.9-k3s1")])
def test_in_the_folder_of_k3s_and_rke2(owner: str, main: str, version: str) -> None:
    folder = main.replace("config.toml", "config-v3.toml.d")
    handler = f'[plugins."{RUNTIME_V3}".containerd.runtimes.nvidia]\n  runtime_type = "io.containerd.runc.v2"\n' \
              f'[plugins."{RUNTIME_V3}".containerd.runtimes.nvidia.options]\n  ' \
              'BinaryName = "/usr/bin/nvidia-container-runtime"\n'
    text = f'version = 3\nimports = ["{folder}/*.toml"]\n{handler}'
    host = Host({main: text}, version, main, owner)
    assert host.run(default_runtime="nvidia").strategy == "drop_in"
    assert list(host.files) == [main, f"{folder}/99-nvidia.toml"]
    host.run("absent")
    assert host.files == {main: text}, "what it wrote itself is never touched"


def test_in_the_folder_of_k0s() -> None:
    main = "/etc/k0s/containerd.toml"
    text = '# k0s_managed=true\nversion = 3\nimports = ["/run/k0s/containerd-cri.toml"]\n'
    cri = f'version = 3\n[plugins."{RUNTIME_V3}".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
    files = {main: text, "/run/k0s/containerd-cri.toml": cri}
    host = Host(files, "2.1.9", main, "k0s")
    decision = host.run()
    assert decision.disturbs and decision.trial == "/etc/k0s/containerd.d/99-nvidia.toml"
    assert "/etc/k0s/containerd.d/99-nvidia.toml" in host.files
    assert host.run("absent").trial is None and host.files == files


def test_in_the_template_of_microk8s() -> None:
    main = "/var/snap/microk8s/current/args/containerd.toml"
    template = main.replace("containerd.toml", "containerd-template.toml")
    files = {main: V2, template: V2.replace('"crun"', '"${RUNTIME}"')}
    host = Host(files, "1.7.27", main, "microk8s")
    decision = host.run()
    assert decision.trial == template and decision.units == ("snap.microk8s.daemon-containerd.service",)
    assert host.files[main] == V2 and "runtimes.nvidia" in host.files[template]
    assert host.run("absent").strategy == "remove" and host.files == files


CASES = [folder for base in (ROOT / "tests/cases/containerd", ROOT / "../shared/cases/containerd") if base.is_dir()
         for folder in sorted(base.iterdir()) if containerd_case.is_case(folder)]


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_every_case_there_and_back(folder: pathlib.Path) -> None:
    """Whatever the files are: what is in force afterwards is what was in force before, comments included."""
    case = containerd_case.Case(folder)
    version = case.facts.get("version")
    host = Host(case.before, version, case.main, case.facts.get("owner") or "host")
    had = "nvidia" in "".join(case.before.values())
    decision = host.run(default_runtime=(case.want.get("policy") or {}).get("gpu_containerd_default_runtime"),
                        runtime_path=case.want["runtime_path"], settings=case.settings)
    if decision.refused or not decision.edits or had:
        return
    host.run("absent", runtime_path=case.want["runtime_path"])
    assert differences(Host(case.before, version, case.main).effective(), host.effective()) == []
    for path, text in case.before.items():
        assert host.files[path].split() == text.split()


@pytest.mark.parametrize(("line", "version", "text"), [
    ("1.6", "1.6.20", V2), ("1.7", "1.7.24", V2), ("2.1", "2.1.9", V3)])
def test_containerd_itself_prints_what_it_printed_before(line: str, version: str, text: str,
                                                         tmp_path: pathlib.Path) -> None:
    program = containerds.program(line)
    host = Host({MAIN: text}, version)
    _rc, before, _why = containerds.dump(program, containerds.place(tmp_path / "a", copy.deepcopy(host.files)))
    wish = Settings("registry.k8s.io/pause:3.10", "/etc/containerd/certs.d", False)
    host.run(default_runtime="nvidia", settings=wish)
    rc, between, why = containerds.dump(program, containerds.place(tmp_path / "b", host.files))
    assert rc == 0, why
    plugin = between["plugins"].get(RUNTIME_V3) or between["plugins"][CRI_V2]
    assert plugin["containerd"]["default_runtime_name"] == "nvidia"
    assert plugin["containerd"]["runtimes"]["crun"]["options"]["SystemdCgroup"] is False
    images = between["plugins"].get("io.containerd.cri.v1.images") or plugin
    assert images["registry"]["config_path"] == "/etc/containerd/certs.d"
    assert "pause:3.10" in str(images.get("pinned_images") or images["sandbox_image"])
    host.run("absent")
    rc, after, why = containerds.dump(program, containerds.place(tmp_path / "a", host.files))
    assert rc == 0 and after == before, why
