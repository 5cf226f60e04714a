# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the lab that need no host."""
from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "molecule" / "shared"))

from lab import archives, cli, hosts, images, inventory, pci, ports, settings, shell


@pytest.fixture
def lab(monkeypatch, tmp_path):
    monkeypatch.setenv("LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LAB_NAME", "unit")
    monkeypatch.delenv("LAB_PORT", raising=False)
    return settings.from_environment()


@pytest.mark.parametrize(("variable", "value"), [("LAB_NAME", "My Lab"), ("LAB_NAME", "../x"), ("LAB_PORT", "22"),
                                                 ("LAB_PORT", "many"), ("LAB_TWINS", "gpu-deb12"),
                                                 ("LAB_TWINS", "gpu-deb12=0")])
def test_bad_settings_name_variable_and_value(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(settings.LabError, match=f"{variable} is {value!r}.*allowed"):
        settings.from_environment()


def test_several_of_a_host_are_alike_and_have_names_of_their_own(monkeypatch, lab):
    monkeypatch.setenv("LAB_TWINS", "gpu-deb12=3")
    several = hosts.known(settings.from_environment())
    assert set(several) - set(hosts.known(lab)) == {"gpu-deb12-2", "gpu-deb12-3"}
    twin = several["gpu-deb12-3"]
    assert (twin.suite, twin.devices) == (several["gpu-deb12"].suite, several["gpu-deb12"].devices)
    assert twin.container.endswith("-unit-gpu-deb12-3") and twin.folder.name == "gpu-deb12-3"


def test_the_pci_trees_have_the_gpus(lab, tmp_path):
    found = {}
    for host in hosts.known(lab).values():
        pci.write_tree(tmp_path / host.name, host.devices)
        found[host.name] = sorted(
            f"{(path / 'vendor').read_text().strip()[2:]}:{(path / 'device').read_text().strip()[2:]}"
            for path in (tmp_path / host.name).iterdir() if (path / "vendor").read_text() == "0x10de\n")
    assert found == {"gpu-deb12": ["10de:1eb8"] * 4, "gpu-deb13": ["10de:22a3"] * 4 + ["10de:2330"] * 8,
                     "gpu-ub2204": ["10de:1eb8"] * 4, "gpu-ub2404": ["10de:1b38"] * 2, "gpu-el9": ["10de:2330"] * 2,
                     "gpu-sles15": ["10de:20b2"] * 2}


def test_a_device_has_the_files_of_sysfs(lab, tmp_path):
    pci.write_tree(tmp_path / "tree", hosts.known(lab)["gpu-deb12"].devices)
    device = tmp_path / "tree" / "0000:3b:00.0"
    assert (device / "class").read_text() == "0x030200\n"
    assert (device / "max_link_speed").read_text() == "8.0 GT/s PCIe\n"
    assert (device / "uevent").read_text().splitlines()[:2] == ["PCI_CLASS=30200", "PCI_ID=10DE:1EB8"]
    regions = [[int(word, 16) for word in line.split()] for line in (device / "resource").read_text().splitlines()]
    assert len(regions) == 13
    assert regions[1][1] - regions[1][0] + 1 == 256 << 20


def test_an_unknown_model_is_named(tmp_path):
    with pytest.raises(settings.LabError, match=r"'t5' is unknown; known: .*t4"):
        pci.write_tree(tmp_path / "x", [{"model": "t5", "addresses": ["0000:01:00.0"], "numa": [0]}])


def test_an_unknown_host_is_named(lab):
    with pytest.raises(settings.LabError, match=r"gpu-deb99.*gpu-deb12, gpu-deb13"):
        hosts.pick(lab, ["gpu-deb99"])


def test_ports_are_kept_and_differ(lab):
    first, second, *_more = hosts.known(lab).values()
    chosen = [hosts.port(lab, first), hosts.port(lab, second)]
    assert chosen[0] != chosen[1]
    assert [hosts.port(lab, first), hosts.port(lab, second)] == chosen


def test_a_port_of_a_lab_that_only_starts_is_not_given_to_another(lab, tmp_path):
    other = dataclasses.replace(lab, name="other", cache=tmp_path / "elsewhere")
    first = next(iter(hosts.known(lab).values()))
    ours = hosts.port(lab, first)
    assert hosts.port(other, first) != ours
    ports.forget(lab)
    third = dataclasses.replace(lab, name="third", cache=tmp_path / "third", first_port=ours)
    assert hosts.port(third, first) == ours
    for gone in (other, third):
        ports.forget(gone)


def test_the_inventory_has_hosts_groups_and_checked_keys(lab):
    up = [hosts.known(lab)[name] for name in hosts.usual(lab)]
    path = inventory.write(lab, up, {"toolkit": {"url": "file:/srv/x"}})
    content = yaml.safe_load(path.read_text())["all"]
    assert set(content["children"]) >= {"gpu_hosts", "gpu_ok", "gpu_change", "gpu_blocked"}
    assert content["vars"]["lab_repositories"]["toolkit"]["url"] == "file:/srv/x"
    host = content["children"]["gpu_hosts"]["hosts"]["gpu-deb13"]
    assert host["ansible_user"] == "ops" and host["ansible_become"] is True
    assert "StrictHostKeyChecking=yes" in host["ansible_ssh_common_args"]
    known = (lab.state / "keys" / "known_hosts").read_text()
    assert known.count("ssh-ed25519") == 2 and f"]:{host['ansible_port']} " in known
    assert {entry.name for entry in lab.inventory.iterdir()} == {"hosts.yml", "group_vars"}  # no more


def test_downloads_go_to_the_pool_and_to_the_next_host(tmp_path):
    first = archives.fill(tmp_path / "first", tmp_path / "pool")
    (first / "x_1_amd64.deb").write_text("x")
    (first / "lock").write_text("")
    archives.harvest(first, tmp_path / "pool")
    second = archives.fill(tmp_path / "second", tmp_path / "pool")
    assert sorted(path.name for path in second.iterdir()) == ["partial", "x_1_amd64.deb"]


def test_the_image_changes_with_the_mirror(lab, monkeypatch):
    monkeypatch.setattr(images, "apt_options", list)
    before = images.name("bookworm", lab)
    monkeypatch.setenv("LAB_MIRROR", "http://mirror.example")
    assert images.name("bookworm", settings.from_environment()) != before
    assert images.name("trixie", lab) != before


def test_a_failed_step_shows_the_end_of_its_log(tmp_path):
    with pytest.raises(settings.LabError, match=r"step: rc 3, see .*step.log\nlast words"):
        shell.run_long("step", ["sh", "-c", "echo last words; exit 3"], tmp_path / "step.log")


def test_a_missing_program_is_named():
    with pytest.raises(settings.LabError, match=r"no-such-program is not installed; scripts/setup.sh"):
        shell.run(["no-such-program"])


def test_an_unknown_lab_host_is_one_line_not_a_trace():
    done = subprocess.run([sys.executable, "-m", "lab", "reset", "nobody"], cwd=ROOT / "molecule" / "shared",
                          check=False, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("lab: error: host 'nobody' is unknown")


def test_a_command_that_is_tried_keeps_its_own_options(lab):
    parsed = cli.parser().parse_args(["try", "gpu-el9", "ready", "dnf", "-y", "upgrade", "--security"])
    assert (parsed.host, parsed.label, parsed.command) == ("gpu-el9", "ready", ["dnf", "-y", "upgrade", "--security"])


def test_other_distributions_start_when_they_are_named(lab):
    assert hosts.usual(lab) == ["gpu-deb12", "gpu-deb13"]
    assert {host.system for host in hosts.pick(lab, ["gpu-el9", "gpu-sles15"])} == {"el-9", "sles-15"}
