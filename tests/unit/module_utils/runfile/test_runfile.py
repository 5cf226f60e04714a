# SPDX-License-Identifier: GPL-3.0-or-later
"""A runfile goes by its own uninstaller; what it leaves is set aside, and a run that was cut off is finished."""
from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result
from ansible_collections.baremetal.nvidia.plugins.module_utils.runfile import traces
from ansible_collections.baremetal.nvidia.plugins.module_utils.runfile.remove import INVENTORY, Remover, RunfileError
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store, facts_view

VERSION = "570.172.08"
UNINSTALL = "/usr/bin/nvidia-uninstall"
LIBRARY = f"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{VERSION}"
STRAY = f"/usr/lib/x86_64-linux-gnu/libcuda.so.{VERSION}"
MODULE = "/lib/modules/6.8.0-1-generic/kernel/drivers/video/nvidia.ko"
OTHER = "/lib/modules/6.8.0-2-generic/kernel/drivers/video/nvidia.ko"
OWNED = "/usr/lib/x86_64-linux-gnu/libGL.so.1"
LOG = f"{VERSION}\nNVIDIA Accelerated Graphics Driver\n1: {UNINSTALL}\n12\n1: {LIBRARY}\n34\n" + (
    f"1: {MODULE}\n56\n1: {OWNED}\n7\n")


class Machine:
    """A host in a directory: its programs are played by methods."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.called: list[str] = []
        self.license = "Dual MIT/GPL"
        self.leaves: tuple[str, ...] = ()
        self.stops: Callable[[], None] | None = None
        for path in (UNINSTALL, LIBRARY, STRAY, MODULE, OTHER, OWNED):
            self.write(path, path)
        self.write(traces.LOG, LOG)
        self.write(f"/var/lib/dkms/nvidia/{VERSION}/x", "")
        self.write(f"/usr/src/nvidia-{VERSION}/dkms.conf", "")

    def write(self, path: str, text: str) -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def there(self, path: str) -> bool:
        return (self.root / path.lstrip("/")).exists()

    def run(self, argv: list[str], **_more: Any) -> Result:
        self.called.append(" ".join(argv))
        if argv[0] == "dpkg-query":
            return Result(0, f"libgl1:amd64: {OWNED}\n")
        if argv[0] == "modinfo":
            return Result(0, f"{self.license}\n") if os.path.exists(argv[-1]) else Result(1)
        if argv[0] == UNINSTALL:
            for number, path in enumerate((UNINSTALL, LIBRARY, MODULE)):
                if self.stops and number == 2:
                    self.stops()
                if path not in self.leaves:
                    (self.root / path.lstrip("/")).unlink()
            (self.root / traces.LOG.lstrip("/")).unlink()
        if argv[:2] == ["dkms", "remove"]:
            (self.root / f"var/lib/dkms/nvidia/{VERSION}/x").unlink()
            (self.root / f"var/lib/dkms/nvidia/{VERSION}").rmdir()
        return Result(0)

    def remover(self) -> Remover:
        return Remover(self.run, "apt", Store(str(self.root)), str(self.root))


@pytest.fixture
def machine(tmp_path: pathlib.Path) -> Machine:
    return Machine(tmp_path)


def test_it_goes_by_its_own_uninstaller_and_what_it_leaves_is_set_aside(machine: Machine) -> None:
    assert machine.remover().remove("run", False, check=True).changed and machine.there(LIBRARY)
    outcome = machine.remover().remove("run", allowed=False)
    assert f"{UNINSTALL} --silent" in machine.called and "ldconfig" in machine.called
    assert outcome.version == VERSION and set(outcome.moved) == {STRAY, OTHER}
    assert (machine.root / f"var/lib/baremetal-nvidia/backups/runfile-{VERSION}{STRAY}").read_text() == STRAY
    assert machine.there(OWNED) and not any(map(machine.there, (LIBRARY, MODULE, STRAY, OTHER, UNINSTALL)))
    assert not machine.there(f"/var/lib/dkms/nvidia/{VERSION}")
    assert {"depmod -a 6.8.0-1-generic", "depmod -a 6.8.0-2-generic"} <= set(machine.called)
    opened = Store(str(machine.root)).read()["open"]
    assert opened["role"] == "gpu_driver" and opened["what"].endswith(VERSION)
    assert [step["name"] for step in opened["steps"]] == ["uninstall", "leftovers", "packages"]
    assert not machine.remover().remove("next", False).changed
    assert machine.remover().finish().changed and not machine.remover().finish().changed
    assert Store(str(machine.root)).read()["open"] is None and not machine.there(INVENTORY)
    assert not machine.remover().remove("later", False).changed


@pytest.mark.parametrize(("license_", "flavour"), [("NVIDIA", "proprietary"), ("Dual MIT/GPL", "open"), ("GPL", None)])
def test_the_flavour_is_written_down_before_the_first_file_goes(machine: Machine, license_: str,
                                                                flavour: str | None) -> None:
    """A run that was cut off leaves no module that would tell it."""
    machine.license = license_
    machine.remover().remove("run", False)
    opened = facts_view(Store(str(machine.root)).read())["open"]
    assert opened["was"] == {"flavour": flavour}


def test_the_flavour_of_modules_in_dkms_and_of_the_loaded_one(machine: Machine) -> None:
    for path in (MODULE, OTHER):
        (machine.root / path[1:]).unlink()
    machine.write("/proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX Open Kernel Module for   {VERSION}\n")
    tree, machine.license = Tree(str(machine.root)), "NVIDIA"
    found = traces.find(tree, machine.run, "apt")
    assert traces.flavour(tree, machine.run, found) == "open"
    machine.write("/lib/modules/6.8.0-1-generic/updates/dkms/nvidia.ko.zst", "")
    assert traces.flavour(tree, machine.run, found) == "proprietary"


def test_cut_off_in_the_middle_of_the_uninstaller(machine: Machine) -> None:
    def power() -> None:
        raise KeyboardInterrupt

    machine.stops = power
    with pytest.raises(KeyboardInterrupt):
        machine.remover().remove("run", False)
    assert not machine.there(LIBRARY) and machine.there(MODULE) and not machine.there(UNINSTALL)
    machine.stops = None
    outcome = machine.remover().remove("next", False)
    assert outcome.resumed and set(outcome.moved) == {MODULE, STRAY, OTHER} and not machine.there(MODULE)
    assert machine.remover().finish().changed


def test_never_under_gpu_processes_unless_allowed(machine: Machine) -> None:
    machine.write("/dev/nvidia0", "")
    for pid, name in ((41, "python3"), (42, "nvidia-persiste")):
        machine.write(f"/proc/{pid}/comm", f"{name}\n")
        (machine.root / f"proc/{pid}/fd").mkdir()
        os.symlink("/dev/nvidia0", machine.root / f"proc/{pid}/fd/3")
    with pytest.raises(RunfileError, match=r"^python3 \(41\) use the GPUs.*Nothing was.*gpu_processes_may_stop"):
        machine.remover().remove("run", allowed=False)
    assert machine.there(LIBRARY) and Store(str(machine.root)).read()["open"] is None
    assert machine.remover().remove("run", allowed=True).changed


def test_without_an_uninstaller_nothing_is_touched(machine: Machine) -> None:
    (machine.root / UNINSTALL[1:]).unlink()
    with pytest.raises(RunfileError, match=r"no uninstaller.*Nothing was touched.*--uninstall"):
        machine.remover().remove("run", False)
    assert machine.there(LIBRARY)


def test_an_uninstaller_that_fails_is_told_and_run_again(machine: Machine) -> None:
    good = machine.run

    def bad(argv: list[str], **more: Any) -> Result:
        return Result(1, "ERROR: cannot unlink\n") if argv[0] == UNINSTALL else good(argv, **more)

    with pytest.raises(RunfileError, match=r"did not take the runfile out: ERROR: cannot unlink.*run this again"):
        Remover(bad, "apt", Store(str(machine.root)), str(machine.root)).remove("run", False)
    assert machine.remover().remove("next", False).resumed and not machine.there(LIBRARY)


def test_another_role_s_open_transaction_comes_first(machine: Machine) -> None:
    Store(str(machine.root)).begin("x", "gpu_kernel", "bring in kernel 6.8")
    with pytest.raises(RunfileError, match="gpu_kernel"):
        machine.remover().remove("run", False)


def test_files_of_others_that_it_had_set_aside_are_named(machine: Machine) -> None:
    machine.write(traces.LOG, LOG + "100: /usr/lib/libGL.so.1\n1 0644 0 0\n")
    machine.write("/var/lib/nvidia/100", "")
    assert traces.kept_of_others(Tree(str(machine.root))) == ["/var/lib/nvidia/100 (was /usr/lib/libGL.so.1)"]


def test_paths_without_usr_are_those_with_it(machine: Machine) -> None:
    def run(argv: list[str], **_more: Any) -> Result:
        return Result(1, "nvidia-x: /lib/modules/1/kernel/drivers/video/nvidia.ko\n")

    path = "/usr/lib/modules/1/kernel/drivers/video/nvidia.ko"
    assert traces.owners([path, "/usr/lib/none"], run, "apt") == {path}
