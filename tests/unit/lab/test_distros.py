# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in archives: every description expands, files are what dpkg and modinfo read, module files can be told."""
from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "molecule" / "shared"))

from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import modinfo
from lab import debs, kmodule, rpms, settings, standins

SYSTEMS = sorted(path.stem for path in standins.FOLDER.glob("*-*.yml"))


def packages(system):
    described = standins.load(system)
    return described, standins.packages(described)


def named(found, name):
    return [one for one in found if one.name == name]


@pytest.mark.parametrize("system", SYSTEMS)
def test_each_name_and_version_is_there_once_an_archive(system):
    _described, found = packages(system)
    keys = [(one.name, one.version, archive) for one in found for archive in one.archives]
    assert len(keys) == len(set(keys))
    assert len(found) > 40


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_is_installed_first_is_in_the_archive(system):
    described, found = packages(system)
    names = {one.name for one in found}
    for word in described["install"]["packages"]:
        name = word.partition("=")[0]
        assert name in names or any(name == f"{one.name}-{one.version}" for one in found), word


@pytest.mark.parametrize(("system", "newest", "modules"), [
    ("ubuntu-22.04", "5.15.0-204-generic", "5.15.0-203-generic"),
    ("ubuntu-22.04", "6.8.0-150-generic", "6.8.0-149-generic"),
    ("ubuntu-24.04", "6.8.0-150-generic", "6.8.0-149-generic"),
    ("ubuntu-24.04", "6.17.0-42-generic", "6.17.0-41-generic")])
def test_precompiled_modules_lag_one_kernel_behind(system, newest, modules):
    _described, found = packages(system)
    names = {one.name for one in found}
    assert f"linux-image-{newest}" in names
    assert f"linux-modules-nvidia-580-server-open-{modules}" in names
    assert f"linux-modules-nvidia-580-server-open-{newest}" not in names


def test_an_unknown_system_is_named():
    with pytest.raises(settings.LabError, match=r"'arch-1' is unknown; the lab has el-9, sles-15, ubuntu-22.04"):
        standins.load("arch-1")


def test_a_word_that_no_row_has_is_named():
    described = {"lists": {"a": [{"in": "x"}]}, "contents": {},
                 "packages": [{"name": "p", "each": "a", "version": "{nope}"}]}
    with pytest.raises(settings.LabError, match=r"p: '\{nope\}' names 'nope'"):
        standins.packages(described)


def test_a_deb_is_one_that_dpkg_reads(tmp_path):
    if not shutil.which("dpkg-deb"):
        pytest.skip("dpkg-deb is not here")
    _described, found = packages("ubuntu-22.04")
    one = named(found, "linux-image-5.15.0-203-generic")[0]
    path, stanza = debs.write(one, tmp_path)
    assert "Size: " in stanza and "SHA256: " in stanza
    told = subprocess.run(["dpkg-deb", "-f", path, "Depends"], check=True, capture_output=True, text=True).stdout
    assert told.strip() == "kmod, linux-base (>= 4.5), linux-modules-5.15.0-203-generic"
    listed = subprocess.run(["dpkg-deb", "-c", path], check=True, capture_output=True, text=True).stdout
    assert "./boot/vmlinuz-5.15.0-203-generic" in listed


def test_the_same_description_makes_the_same_bytes(tmp_path):
    one = named(packages("ubuntu-22.04")[1], "linux-generic")[0]
    first = debs.write(one, tmp_path)[0].read_bytes()
    assert debs.write(one, tmp_path)[0].read_bytes() == first


def test_suites_have_what_the_description_says(tmp_path):
    _described, found = packages("ubuntu-24.04")
    debs.suites(found, tmp_path, "Ubuntu")
    old = (tmp_path / "dists/noble/main/binary-amd64/Packages").read_text()
    new = (tmp_path / "dists/noble-security/main/binary-amd64/Packages").read_text()
    assert "Package: linux-image-6.8.0-147-generic\n" in old and "6.8.0-150" not in old
    assert "Package: linux-image-6.8.0-150-generic\n" in new
    assert "Filename: ../pool/nvidia-open_" in (tmp_path / "cuda/Packages").read_text()


@pytest.mark.parametrize("signed", [True, False])
def test_a_module_says_what_a_real_one_says(signed):
    data = kmodule.module("nvidia", "6.8.0-1-generic", {"version": "580.1", "license": "NVIDIA"}, signed)
    told = modinfo.fields(data)
    assert told["version"] == "580.1" and told["vermagic"].split()[0] == "6.8.0-1-generic"
    assert told["signed"] == ("yes" if signed else "no")


def test_a_build_for_a_kernel_that_the_driver_does_not_know_fails(tmp_path, capsys):
    wanted = {"version": "580.1", "license": "NVIDIA", "modules": ["nvidia", "nvidia-uvm"], "newest_kernel": "6.17"}
    (tmp_path / "stand-in.json").write_text(json.dumps(wanted))
    assert kmodule.build("6.18.0-1-generic", tmp_path) == 2
    assert "error: implicit declaration" in capsys.readouterr().err
    assert kmodule.build("6.17.0-99-generic", tmp_path) == 0
    assert modinfo.fields((tmp_path / "nvidia-uvm.ko").read_bytes())["name"] == "nvidia_uvm"


def test_a_spec_file_has_no_name_and_no_path_twice():
    _described, found = packages("el-9")
    for members in rpms.specs(found):
        names = [one.name for one in members]
        paths = [path for one in members for path in [*one.files, *one.links]]
        assert len(names) == len(set(names)) and len(paths) == len(set(paths))


def test_module_streams_list_their_packages_and_no_others():
    described, found = packages("el-9")
    cuda = [one for one in found if "cuda" in one.archives]
    documents = {one["data"].get("stream"): one["data"] for one in yaml.safe_load_all(rpms.modules(described, cuda))}
    opened = documents["580-open"]["artifacts"]["rpms"]
    assert "kmod-nvidia-open-dkms-3:580.178.04-1.el9.x86_64" in opened
    assert not [name for name in opened if "latest-dkms" in name or "595" in name]
    assert "kmod-nvidia-580.178.04-5.14.0-687.12.1-3:580.178.04-2.el9_8.x86_64" in documents["580"]["artifacts"]["rpms"]


def test_an_advisory_lists_the_packages_of_its_versions():
    described, found = packages("el-9")
    text = rpms.updateinfo(described["advisories"]["baseos"], [one for one in found if "baseos" in one.archives])
    first, second = text.split("</update>")[:2]
    assert 'type="security"' in first and "687.12.1" in first and "687.15.1" not in first
    assert 'type="bugfix"' in second and "687.15.1" in second


def test_a_cut_off_can_be_asked_for_at_every_package():
    one = named(packages("sles-15")[1], "kernel-default")[0]
    assert "/run/standin-hook kernel-default post" in rpms._section(one)
