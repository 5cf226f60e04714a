# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that boot: names, disks and process ids, without starting one."""
from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "molecule" / "shared"))
sys.path.insert(0, str(ROOT / "tests" / "drills"))

from boot import cuts, drills, rig
from lab import ports, settings, vm, vm_cli, vm_disks, vm_machine, vm_power


@pytest.fixture
def where(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_CACHE", str(tmp_path))
    monkeypatch.delenv("LAB_NAME", raising=False)
    return vm.settings()


def machine(where, name="one", base="/nowhere/bookworm-fresh-bios-0123456789.raw"):
    folder = where.state / name
    folder.mkdir(parents=True)
    made = vm.Machine(name=name, suite="bookworm", content="fresh", firmware="bios", layout="plain", base=base,
                      user="root", port=22999, folder=folder)
    vm.keep(made)
    return made


@pytest.mark.parametrize("name", ["", "a/b", "Upper", "base", "keys", "..", "a b"])
def test_a_name_that_is_no_host_name_is_refused(where, name):
    with pytest.raises(settings.LabError, match="small letters"):
        vm.folder_of(where.state, name)


def test_machines_have_a_folder_of_their_own_beside_the_labs(where):
    assert where.state == where.cache / "vm"
    made = machine(where)
    assert vm.known(where) == {"one": made}
    with pytest.raises(settings.LabError, match="there is one: scripts/vm up two"):
        vm.get(where, "two")


def test_the_first_sector_has_the_code_and_four_parts_that_do_not_overlap():
    sector = vm_disks._table(b"\xeb" * 512)
    assert len(sector) == 512 and sector[510:] == b"\x55\xaa" and sector[:440] == b"\xeb" * 440
    parts = [struct.unpack("<II", sector[446 + 16 * number + 8:446 + 16 * number + 16]) for number in range(4)]
    assert parts[0][0] == 2048
    for (start, size), (following, _size) in zip(parts, parts[1:], strict=False):
        assert start + size == following
    assert sector[446 + 16 + 4] == 0xEF


def test_a_process_id_that_another_program_has_by_now_is_not_the_machine(where):
    made = machine(where)
    assert vm_machine.pid(made) is None
    (made.folder / "pid").write_text(f"{os.getpid()}\n")
    assert vm_machine.pid(made) is None
    vm_machine.cut(made)  # kills nothing
    assert "power cut" in made.console.read_text()


def test_a_machine_that_restarts_gets_a_new_process_and_one_that_goes_off_gets_none(tmp_path):
    starts = tmp_path / "starts"
    program = tmp_path / "qemu"
    program.write_text(
        f"#!/bin/sh\necho \"$@\" >>{starts}\nread -r hello\n"
        f"""if [ "$(wc -l <{starts})" -lt 3 ]; then why=guest-reset; else why=guest-shutdown; fi\n"""
        """echo '{"QMP": {}}'\necho '{"event": "SHUTDOWN", "data": {"reason": "'$why'"}}'\n""")
    program.chmod(0o755)
    subprocess.run([sys.executable, vm_power.__file__, str(program), "-m", "1"], check=True, timeout=30)
    assert starts.read_text().splitlines() == ["-m 1 -action reboot=shutdown -qmp stdio"] * 3
    program.write_text("#!/bin/sh\necho broken >&2; exit 3\n")
    assert subprocess.run([sys.executable, vm_power.__file__, str(program)], check=False, timeout=30,
                          capture_output=True).returncode == 3


def test_a_cut_ends_the_whole_group_at_once(where):
    made = machine(where)
    script = f"import subprocess; subprocess.run(['sleep', '60'])  # {made.disk}"
    mains = subprocess.Popen([sys.executable, "-c", script, str(made.disk)], start_new_session=True)
    (made.folder / "pid").write_text(str(mains.pid))
    while vm_machine.pid(made) is None:  # until it has its own command line
        time.sleep(0.01)
    vm_machine.cut(made)
    assert mains.wait(10) == -9
    assert not vm_machine._lives(mains.pid)


def test_a_niceness_out_of_range_is_refused(monkeypatch):
    monkeypatch.setenv("VM_NICE", "-30")
    with pytest.raises(settings.LabError, match="'-30': a number from -20 to 19"):
        vm_machine.niceness()


def test_bases_of_an_older_recipe_go_unless_a_machine_or_a_saved_disk_stands_on_them(where):
    folder = where.state / "base"
    folder.mkdir(parents=True)
    machine(where)
    (where.state / "saved").mkdir()
    (where.state / "saved" / "kept.json").write_text(json.dumps({"base": "/x/bookworm-fresh-bios-1111111111.raw"}))
    for digest in ("0123456789", "1111111111", "2222222222", "3333333333"):
        (folder / f"bookworm-fresh-bios-{digest}.raw").touch()
    (folder / "bookworm-fresh-bios-storage-2222222222.raw").touch()
    (folder / "bookworm-fresh-bios-mke2fs.log").touch()
    gone = vm_disks._older(where, folder, "bookworm-fresh-bios", "3333333333")
    assert [path.name for path in gone] == ["bookworm-fresh-bios-2222222222.raw"]


def test_a_port_is_given_back(where):
    first = ports.of(where, "one")
    ports.release(where, "one")
    assert ports.of(where, "two") == first


def test_an_unknown_accelerator_is_refused(monkeypatch):
    monkeypatch.setenv("VM_ACCEL", "magic")
    with pytest.raises(settings.LabError, match="'magic': tcg"):
        vm_machine.accelerator()


def test_a_disk_that_was_not_saved_is_named(where, capsys):
    assert vm_cli.main(["up", "one", "--disk", "gone"]) == 1
    assert "no disk was saved as 'gone'" in capsys.readouterr().err


def test_drills_say_what_differs_and_fail_with_what_they_saw():
    assert rig.differ(["a", "b"], ["b", "c"]) == ["- a", "+ c"]
    assert rig.said("The trial\n  of 6.1 failed", ["trial of 6.1", "failed"])
    with pytest.raises(rig.DrillError, match=r"it boots: it is not so\. 42"):
        rig.expect("it boots", False, 42)


def test_each_drill_is_described():
    text = (ROOT / "tests" / "drills" / "README.md").read_text()
    assert [name for name in drills.ALL if f"| `{name}` |" not in text] == []


def test_the_watcher_is_a_program():
    compile(cuts._WATCH, "watch", "exec")
