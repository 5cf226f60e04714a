# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E501 - lines of real files are kept whole
"""gpu_facts as Ansible calls it, on bad days too."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.baremetal.nvidia.plugins.module_utils import run as children
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import collector, driver
from ansible_collections.baremetal.nvidia.plugins.modules import gpu_facts

ROOT = pathlib.Path(__file__).resolve().parents[3]
HANGS = """#!/bin/sh
echo $$ > {note}
trap '' TERM HUP INT
while :; do sleep 0.1; done
"""


def call(**args):
    """What the module prints, as a dictionary."""
    out = io.StringIO()
    with patch_module_args(args), contextlib.redirect_stdout(out), pytest.raises(SystemExit) as ended:
        gpu_facts.main()
    answer = json.loads(out.getvalue().strip().splitlines()[-1])
    assert bool(answer.get("failed")) == (ended.value.code != 0)
    return answer


def test_facts_of_a_tree(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('ID=debian\nVERSION_ID="13"\n')
    answer = call(root=str(tmp_path))
    assert answer["changed"] is False
    assert answer["ansible_facts"]["gpu_facts"]["os"]["id"] == "debian"


def test_check_mode_reads_all_the_same(tmp_path):
    answer = call(root=str(tmp_path), _ansible_check_mode=True)
    assert answer["changed"] is False and "unknown" in answer["ansible_facts"]["gpu_facts"]


def test_root_that_is_not_there(tmp_path):
    answer = call(root=str(tmp_path / "nothing"))
    assert answer["failed"] and str(tmp_path / "nothing") in answer["msg"] and "root" in answer["msg"]


@pytest.mark.parametrize("option", ["timeout", "smi_timeout", "command_timeout"])
def test_deadlines_are_at_least_a_second(tmp_path, option):
    answer = call(root=str(tmp_path), **{option: 0})
    assert answer["failed"] and f"{option} is 0" in answer["msg"]


@pytest.fixture
def driver_loaded(monkeypatch):
    """As if the module were loaded on this machine; without it nvidia-smi is not started."""
    monkeypatch.setattr(driver, "loaded", lambda _tree, touch=True: {"version": "580.95.05", "flavour": "open"})


@pytest.fixture
def hanging_smi(tmp_path, monkeypatch, driver_loaded):
    """An nvidia-smi that sleeps for ever and ignores every signal that can be ignored."""
    note = tmp_path / "pid"
    stub = tmp_path / "bin" / "nvidia-smi"
    stub.parent.mkdir()
    stub.write_text(HANGS.format(note=note))
    stub.chmod(0o755)
    monkeypatch.setattr(children, "PATH", f"{stub.parent}:{children.PATH}")
    return note


def test_hanging_smi(hanging_smi):
    before = time.monotonic()
    answer = call(smi_timeout=1)
    facts = answer["ansible_facts"]["gpu_facts"]
    assert time.monotonic() - before < 20
    assert facts["driver"]["smi"] == {"status": "timeout", "rc": None, "driver": None, "cuda": None, "gpus": None}
    assert facts["kernel"]["running"] == os.uname().release and facts["packages"]
    assert facts["driver"]["loaded"] == {"version": "580.95.05", "flavour": "open"}
    assert "health.ecc_uncorrected" in facts["unknown"]
    assert not pathlib.Path(f"/proc/{hanging_smi.read_text().strip()}").exists()


def test_the_modules_deadline_wins(hanging_smi):
    before = time.monotonic()
    facts = call(timeout=4, smi_timeout=60)["ansible_facts"]["gpu_facts"]
    assert time.monotonic() - before < 10
    assert facts["driver"].get("smi", {}).get("status") == "timeout" or "driver.smi" in facts["unknown"]


def test_smi_that_cannot_be_killed(hanging_smi, monkeypatch):
    """As if it hung in the kernel: signals are lost, and it is left behind."""
    monkeypatch.setattr(children, "kill_group", lambda _child: False)
    before = time.monotonic()
    facts = call(smi_timeout=1)["ansible_facts"]["gpu_facts"]
    assert time.monotonic() - before < 20
    pid = int(hanging_smi.read_text())
    os.kill(pid, 9)
    assert facts["driver"]["smi"]["status"] == "timeout"
    assert f"cannot be killed (pid {pid}" in facts["unknown"]["health.ecc_uncorrected"]


def test_a_stuck_program_does_not_hold_the_caller(hanging_smi, monkeypatch):
    """What Ansible waits for is the end of our output: nobody else may hold it open."""
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r}); import _bootstrap\n"
        "from ansible_collections.baremetal.nvidia.plugins.module_utils import run\n"
        "from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import collector\n"
        "collector.driver.loaded = lambda tree, touch=True: {'version': '580.95.05', 'flavour': 'open'}\n"
        f"run.PATH = {children.PATH!r}; run.kill_group = lambda child: False\n"
        "print(collector.collect(smi_timeout=1)['driver']['smi']['status'])\n"
    )
    before = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    pid = int(hanging_smi.read_text())
    os.kill(pid, 9)
    assert done.stdout.strip() == "timeout" and time.monotonic() - before < 20


def test_failing_smi(tmp_path, monkeypatch, driver_loaded):
    stub = tmp_path / "nvidia-smi"
    stub.write_text("#!/bin/sh\necho 'Failed to initialize NVML: Driver/library version mismatch'\nexit 18\n")
    stub.chmod(0o755)
    monkeypatch.setattr(children, "PATH", f"{tmp_path}:{children.PATH}")
    smi = call()["ansible_facts"]["gpu_facts"]["driver"]["smi"]
    assert (smi["status"], smi["rc"]) == ("failed", 18) and "mismatch" in smi["error"]


def test_documentation():
    documented = yaml.safe_load(gpu_facts.DOCUMENTATION)
    assert set(documented["options"]) == {"root", "timeout", "smi_timeout", "command_timeout", "candidates"}
    assert {"check_mode", "diff_mode", "facts", "platform"} <= set(documented["attributes"])
    returned = yaml.safe_load(gpu_facts.RETURN)["ansible_facts"]["contains"]["gpu_facts"]["contains"]
    sections = {subject.paths[0].split(".")[0] for group in collector.groups(60) for subject in group} - {
        "nouveau_images",
        "nvidia_images",
    }
    assert sections | {"read_at", "unknown", "host"} <= set(returned) | {"host"}
    yaml.safe_load(gpu_facts.EXAMPLES)


def _works(path: str | None) -> bool:
    """Whether this is a Python 3.9 (a shim of pyenv may be none)."""
    if not path or not os.path.exists(path):
        return False
    check = "import sys; sys.exit(sys.version_info[:2] != (3, 9))"
    return subprocess.run([path, "-c", check], stderr=subprocess.DEVNULL, check=False).returncode == 0


_PLACES = (shutil.which("python3.9"), *map(str, pathlib.Path.home().glob(".pyenv/versions/3.9*/bin/python")))
OLDEST = next(filter(_works, _PLACES), None)
ON_OLD_PYTHON = """
import importlib, json, pkgutil, sys, types
for name, path in (("ansible_collections", ""), ("ansible_collections.baremetal", ""), ("ansible_collections.baremetal.nvidia", ""),
                   ("ansible_collections.baremetal.nvidia.plugins", sys.argv[1])):
    module = types.ModuleType(name)
    module.__path__ = [path] if path else []
    sys.modules[name] = module
base = "ansible_collections.baremetal.nvidia.plugins.module_utils"
package = importlib.import_module(base + ".facts")
for one in pkgutil.iter_modules(package.__path__):
    importlib.import_module(base + ".facts." + one.name)
facts = importlib.import_module(base + ".facts.collector").collect()
print(json.dumps([list(sys.version_info[:2]), facts["os"], facts["unknown"], sorted(facts)]))
"""


@pytest.mark.skipif(OLDEST is None, reason="no Python 3.9 here")
def test_oldest_python_of_a_target():
    done = subprocess.run(
        [OLDEST, "-c", ON_OLD_PYTHON, str(ROOT / "plugins")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    version, os_facts, unknown, keys = json.loads(done.stdout)
    assert version == [3, 9] and os_facts["family"]
    assert not [why for why in unknown.values() if "Error:" in why], unknown
    assert {"kernel", "packages", "driver", "containers"} <= set(keys)
