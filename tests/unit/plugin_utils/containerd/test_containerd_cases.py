# SPDX-License-Identifier: GPL-3.0-or-later
"""Every containerd case, and each of them against the containerd it is about."""
from __future__ import annotations

import copy
import pathlib
import posixpath
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT / "tests" / "cases"), str(pathlib.Path(__file__).parent)]
import containerd_case
import containerds
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.diff import differences, leaves
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.generation import (
    CRI_V1,
    CRI_V2,
    RUNTIME_V3,
    generation,
)
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.merge import load, migrate

FOLDERS = [folder for base in (ROOT / "tests/cases/containerd", ROOT / "../shared/cases/containerd") if base.is_dir()
           for folder in sorted(base.iterdir()) if containerd_case.is_case(folder)]
IDS = [f"{folder.parent.parent.parent.name}-{folder.name}" for folder in FOLDERS]


@pytest.mark.parametrize("folder", FOLDERS, ids=IDS)
def test_case(folder: pathlib.Path) -> None:
    assert containerd_case.run(folder) == []


def test_runner_sees_a_wrong_outcome(tmp_path: pathlib.Path) -> None:
    source = ROOT / "tests/cases/containerd/relative-import-2.1"
    for path in source.rglob("*"):
        if path.is_file():
            target = tmp_path / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    expect = tmp_path / "expect.yml"
    expect.write_text(expect.read_text().replace("strategy: drop_in", "strategy: edit").replace(
        "may_change: [/etc/containerd/conf.d/99-nvidia.toml]", "may_change: []").replace(
        "/usr/bin/nvidia-container-runtime", "/usr/bin/other"))
    found = " | ".join(containerd_case.run(tmp_path))
    for word in ("strategy is drop_in", "changed /etc/containerd/conf.d/99-nvidia.toml", "/usr/bin/other"):
        assert word in found


LINES = {"1.6": "1.6", "1.7": "1.7", "2.0": "2.1", "2.1": "2.1", "2.2": "2.1"}


@pytest.mark.parametrize("folder", FOLDERS, ids=IDS)
def test_against_real_containerd(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """What that containerd prints before and after differs in our settings alone, and is what we computed."""
    case = containerd_case.Case(folder)
    gen = generation(case.facts["version"])
    assert gen is not None
    if gen.name not in LINES:
        pytest.skip(f"Debian has no containerd {gen.name}")
    if case.facts["owner"] in ("k3s", "rke2", "k0s", "microk8s"):
        pytest.skip("a containerd of its own")
    program = containerds.program(LINES[gen.name])
    base = posixpath.dirname(case.main)
    _decision, written, refusal = case.compute(case.before)
    old_rc, old, _complaint = containerds.dump(program, containerds.place(tmp_path / "before", case.before, base))
    after_files = {**case.before, **written}
    loaded = load(after_files, case.main, gen)
    if refusal is not None:
        return
    rc, new, complaint = containerds.dump(program, containerds.place(tmp_path / "after", after_files, base))
    assert rc == 0, complaint
    assert new, "nothing was printed"
    name = RUNTIME_V3 if gen.deep_merge else CRI_V1 if loaded.version == 1 else CRI_V2
    runtimes = new["plugins"].get(name, new["plugins"].get(CRI_V2))["containerd"]["runtimes"]
    if case.facts["owner"] != "operator":  # which has a binary of its own
        assert runtimes["nvidia"]["options"]["BinaryName"] == case.want["runtime_path"]
    assert "runc" in runtimes or case.want["policy"]["gpu_containerd_default_runtime"] not in (None, "runc")
    if old_rc == 0 and old:
        moved = [path for path, _old, _new in differences(old, new)
                 if path[0] not in ("imports", "version") and not _ours(path)]
        assert moved == []
    _computed_is_printed(loaded.effective, loaded.version, gen.deep_merge, new, str(tmp_path / "after"), base)


def _ours(path: tuple[str, ...]) -> bool:
    inner = path[2:]
    return path[0] == "plugins" and (
        inner[:1] in (("enable_cdi",),) or inner[:2] == ("containerd", "default_runtime_name")
        or (inner[:2] == ("containerd", "runtimes") and inner[2] in ("nvidia", "runc")))


def _computed_is_printed(effective: dict, version: int, migrates: bool, printed: dict, folder: str, base: str) -> None:
    """Each computed setting that this containerd knows has the computed value in its own output."""
    computed = copy.deepcopy(effective)
    if migrates:
        computed = migrate(computed, version, 3)
    elif version == 1:
        return  # printed under the full names of version 2
    there = dict(leaves(printed))
    compared = 0
    for path, value in leaves(computed):
        if path[0] in ("version", "imports") or path not in there:
            continue
        compared += 1
        found = there[path]
        assert (found.replace(folder, base) if isinstance(found, str) else found) == value, path
    assert compared > 0
