# SPDX-License-Identifier: GPL-3.0-or-later
"""The thin modules: arguments, check mode, errors as results. What they call is tested beside it."""
from __future__ import annotations

import importlib
import json
import pathlib
import sys
from typing import Any

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import pytest
from ansible.module_utils.testing import patch_module_args

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "module_utils"))
from ansible_collections.baremetal.nvidia.plugins.module_utils import state
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages import detect
from fake_apt import FakeApt

MODULES = "ansible_collections.baremetal.nvidia.plugins.modules."
UTILS = "ansible_collections.baremetal.nvidia.plugins.module_utils."
KERNEL = ["linux-image-amd64", "linux-image-6.1.0-50-amd64"]


class Call:
    """Runs a module in this process against a tree."""

    def __init__(self, root: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.monkeypatch, self.capsys = root, monkeypatch, capsys
        self.host = FakeApt(root)
        self.said = ""

    def __call__(self, name: str, **arguments: Any) -> dict[str, Any]:
        module = importlib.import_module(MODULES + name)
        real = state.Store
        self.monkeypatch.setattr(module, "Store", lambda: real(str(self.root)))
        if hasattr(module, "Guard"):
            guard = importlib.import_module(f"{UTILS}kernel_guard.guard").Guard
            self.monkeypatch.setattr(module, "Guard", lambda manager, run: guard(manager, run, str(self.root)))
            self.monkeypatch.setattr(module, "detect", lambda: detect.detect(str(self.root)))
        for place, helper in (("pin", "Pin"), ("boot.default", "BootDefault"), ("boot.once", "BootOnce"),
                              ("initramfs", "Initramfs")):
            if hasattr(module, helper):
                original = getattr(importlib.import_module(f"{UTILS}{place}"), helper)
                self.monkeypatch.setattr(module, helper,
                                         lambda *a, cls=original, **k: cls(*a, str(self.root), **k))
        if hasattr(module, "backend"):
            self.monkeypatch.setattr(module, "backend", lambda run: detect.backend(self.host, str(self.root)))
        with patch_module_args(arguments), pytest.raises(SystemExit):
            module.main()
        told = self.capsys.readouterr()
        self.said = told.err.replace("\n", " ")
        return json.loads(told.out.splitlines()[-1])


@pytest.fixture
def call(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    (tmp_path / "var/lib/dpkg").mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").touch()
    return Call(tmp_path, monkeypatch, capsys)


def test_kernel_pin_holds_reports_and_is_idempotent(call: Call) -> None:
    call.host.install(*KERNEL)
    first = call("kernel_pin", packages=KERNEL, deny=["linux-image-rt-amd64"], lease="run-1")
    assert first["changed"] and first["actions"][0] == "hold linux-image-6.1.0-50-amd64" and first["diff"]
    assert {row["how"] for row in first["held"]} == {"hold", "preference"} and first["waited"] == 0.0
    second = call("kernel_pin", packages=KERNEL, deny=["linux-image-rt-amd64"], lease="run-1")
    assert not second["changed"] and second["actions"] == []
    assert call("kernel_pin", state="absent", lease="run-1")["changed"] and call.host.held == set()


def test_kernel_pin_in_check_mode_takes_no_lease(call: Call) -> None:
    call.host.install(*KERNEL)
    result = call("kernel_pin", packages=KERNEL, lease="run-1", _ansible_check_mode=True)
    assert result["changed"] and call.host.held == set()
    assert not (call.root / "var/lib/baremetal-nvidia").exists()


@pytest.mark.parametrize("name, arguments", [
    ("kernel_pin", {"packages": KERNEL}),
    ("kernel_guard", {"allowed": ["6.1.0-50-amd64"]}),
    ("boot_default", {"release": "6.1.0-50-amd64"}),
    ("boot_once", {"release": "6.1.0-50-amd64"}),
    ("boot_once", {"state": "absent"}),
    ("initramfs", {"kernels": ["6.1.0-50-amd64"]}),
])
@pytest.mark.parametrize("own", [{"lease": "run-2"}, {}])
def test_every_changing_module_keeps_out_while_another_run_has_the_lease(
        call: Call, name: str, arguments: dict[str, Any], own: dict[str, str]) -> None:
    call.host.install(*KERNEL)
    state.Store(str(call.root)).renew("run-1")
    result = call(name, **arguments, **own)
    assert result["failed"] and "run run-1 is changing this host" in result["msg"]
    assert call.host.held == set()


def test_a_refused_pin_is_a_message_not_a_traceback(call: Call) -> None:
    call.host.install(*KERNEL)
    result = call("kernel_pin", packages=KERNEL[:1])
    assert result["failed"] and "half a pin" in result["msg"] and KERNEL[1] in result["msg"]


def test_kernel_guard_reports_and_is_idempotent(call: Call) -> None:
    asked = {"allowed": ["6.1.0-50-amd64"], "proved": ["6.1.0-50-amd64"]}
    foretold = call("kernel_guard", **asked, _ansible_check_mode=True)
    assert foretold["changed"] and not (call.root / "etc").exists()
    first = call("kernel_guard", **asked, lease="run-1")
    assert first["actions"] == foretold["actions"] and first["via"] == ["hook"] and first["skipped_reason"] is None
    assert not call("kernel_guard", **asked, lease="run-1")["changed"]
    assert "which is no kernel release" in call("kernel_guard", allowed=["linux"], lease="run-1")["msg"]
    assert call("kernel_guard", state="absent", lease="run-1")["changed"]
    (call.root / "var/lib/dpkg/status").unlink()
    (call.root / "usr/bin").mkdir(parents=True)
    (call.root / "usr/bin/zypper").touch()
    assert "zypper" in call("kernel_guard", **asked, lease="run-1")["skipped_reason"]


def test_another_package_manager_is_named(call: Call) -> None:
    (call.root / "var/lib/dpkg/status").unlink()
    (call.root / "usr/bin").mkdir(parents=True)
    (call.root / "usr/bin/pacman").touch()
    assert "pacman is not supported" in call("kernel_pin", packages=KERNEL)["msg"]


def test_hosts_without_boot_loader_and_initramfs_are_skipped_with_a_reason(call: Call) -> None:
    boot = call("boot_default", release="6.1.0-50-amd64")
    assert not boot["changed"] and "no boot loader" in boot["skipped_reason"]
    once = call("boot_once", release="6.1.0-50-amd64")
    assert once["failed"] and "cannot be started once: there is no boot loader here" in once["msg"]
    assert not call("boot_once", state="absent")["changed"]
    image = call("initramfs", kernels=["6.1.0-50-amd64"])
    assert not image["changed"] and "neither initramfs-tools nor dracut" in image["skipped_reason"]


def test_lease_is_taken_renewed_refused_and_given_back(call: Call) -> None:
    first = call("host_lease", run_id="run-1")
    assert first["acquired_here"] and not first["changed"] and first["left_open"] is None
    assert not call("host_lease", run_id="run-1")["acquired_here"]
    assert "run run-1" in call("host_lease", run_id="run-2")["msg"]
    assert "run run-1" in call("host_lease", run_id="run-2", _ansible_check_mode=True)["msg"]
    assert call("host_lease", run_id="run-2", state="released")["released"] is False
    assert call("host_lease", run_id="run-1", state="released")["released"] is True
    assert call("host_lease", run_id="run-2")["acquired_here"]


def test_lease_tells_of_what_it_took_over_and_of_what_was_left_open(call: Call) -> None:
    store = state.Store(str(call.root), clock=lambda: 1000.0)
    store.renew("run-1", ttl=10)
    store.begin("run-1", "gpu_driver", "install 535")
    result = call("host_lease", run_id="run-2")
    assert result["took_over"] == "run-1" and "it expired at" in result["note"]
    # in a process that loaded the controller's code too, the warning is displayed instead of returned
    assert "took over" in str(result.get("warnings", "")) + call.said
    assert result["left_open"]["role"] == "gpu_driver"


@pytest.mark.parametrize("arguments, words", [
    ({"run_id": " "}, "run_id is empty"), ({"run_id": "r", "ttl": 0}, "ttl is 0"),
])
def test_bad_arguments_of_the_lease_are_named(call: Call, arguments: dict[str, Any], words: str) -> None:
    assert words in call("host_lease", **arguments)["msg"]


def test_kernel_stage_refuses_what_is_not_open(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = importlib.import_module(f"{UTILS}stage.stage")
    module = importlib.import_module(MODULES + "kernel_stage")
    real = stage.Stage
    monkeypatch.setattr(module, "Stage", lambda run, store, **more: real(call.host, store, str(call.root), **more))
    assert "no kernel is being brought in" in call("kernel_stage", state="checked", lease="run-1")["msg"]
    assert call("kernel_stage", state="recovered", lease="run-1")["how"] == "nothing"
    assert not call("kernel_stage", state="undone", lease="run-1", _ansible_check_mode=True)["changed"]
    assert "release, beside, packages, driver" in call("kernel_stage", state="opened")["msg"].replace("missing: ", "")


def test_module_proof_names_what_an_entry_lacks(call: Call) -> None:
    told = call("module_proof", release="6.1.0-57-amd64", driver="535.309.01", others=[{"name": "zfs"}])
    assert "has no dkms, version" in told["msg"]
    assert call("module_proof", release="6.1.0-57-amd64", driver="1", _ansible_check_mode=True)["proved"] == []


def test_module_proof_warns_of_what_could_not_be_told(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module(MODULES + "module_proof")
    monkeypatch.setattr(module, "source_of", lambda _files: None)
    rows = [{"name": "a", "how": "opened", "version": "1", "notes": ["who signed it is not told"]},
            {"name": "b", "how": "built", "version": "1", "notes": []}]
    monkeypatch.setattr(module, "prove", lambda *_args, **_more: rows)
    told = call("module_proof", release="6.1.0-57-amd64", driver="1")
    # as above: displayed instead of returned where the controller's code is loaded too
    assert told["proved"] == rows and "who signed it is not told" in json.dumps(told.get("warnings", "")) + call.said


def test_module_proof_takes_files_in_the_place_of_repositories(tmp_path: Any) -> None:
    module = importlib.import_module(MODULES + "module_proof")
    files = importlib.import_module(f"{UTILS}proof.files")
    name, version = "linux-modules-nvidia-580-open-6.8.0-149-generic", "6.8.0-149.149"
    path = tmp_path / f"{name}_{version}_amd64.deb"
    path.write_text("x")

    def told(argv: Any, **_more: Any) -> Any:
        assert str(path) in argv
        return importlib.import_module(f"{UTILS}run").Result(0, f"Package: {name}\nVersion: {version}\n")

    source, into = module.source_of({str(path): "0" * 64}, told), tmp_path / "into"
    into.mkdir()
    assert isinstance(source, files.Files)
    with pytest.raises(importlib.import_module(f"{UTILS}proof.errors").ProofError, match="not the file that was meant"):
        source.download({name: version}, str(into))
    assert not isinstance(module.source_of({}, told), files.Files)
