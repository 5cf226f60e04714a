# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import dkms

REL = "6.1.0-50-amd64"
HOME = "/var/lib/dkms/nvidia-current"


def add(host, version="535.261.03"):
    host.directory(f"/usr/src/nvidia-current-{version}")
    host.directory(HOME)
    host.directory(f"{HOME}/{version}")
    host.link(f"{HOME}/{version}/source", f"/usr/src/nvidia-current-{version}")


def build(host, version="535.261.03", kernel=REL):
    host.put(f"{HOME}/{version}/{kernel}/x86_64/module/nvidia-current.ko", "x")
    host.put(f"{HOME}/{version}/{kernel}/x86_64/log/make.log", "x")


def install(host, version="535.261.03", kernel=REL, where="updates/dkms", suffix=""):
    host.link(f"{HOME}/kernel-{kernel}-x86_64", f"{version}/{kernel}/x86_64")
    host.put(f"/lib/modules/{kernel}/{where}/nvidia-current.ko{suffix}", "x")


def rows(host):
    return host.read(dkms.read).facts["driver"]["dkms"]


def row(state, kernel=REL, version="535.261.03"):
    return {"name": "nvidia-current", "version": version, "kernel": kernel, "state": state}


def test_none(host):
    assert rows(host) == []


def test_added(host):
    add(host)
    assert rows(host) == [row("added", None)]


def test_built(host):
    add(host)
    build(host)
    assert rows(host) == [row("built")]


@pytest.mark.parametrize(
    ("where", "suffix"), [("updates/dkms", ""), ("updates/dkms", ".xz"), ("extra", ".zst"), ("updates", "")]
)
def test_installed(host, where, suffix):
    add(host)
    build(host)
    install(host, where=where, suffix=suffix)
    assert rows(host) == [row("installed")]


def test_installed_but_the_module_is_gone(host):
    add(host)
    build(host)
    install(host)
    host.path(f"/lib/modules/{REL}/updates/dkms/nvidia-current.ko").unlink()
    assert rows(host) == [row("broken")]


def test_source_gone(host):
    add(host)
    host.path("/usr/src/nvidia-current-535.261.03").rmdir()
    assert rows(host) == [row("broken", None)]


LOG = f"{HOME}/535.261.03/build/make.log"


@pytest.mark.parametrize(
    "head",
    [
        "DKMS make.log for nvidia-current-535.261.03 for kernel 7.2.12-amd64 (x86_64)\n",
        "DKMS (dkms-3.2.2) make.log for nvidia-current/535.261.03 for kernel 7.2.12-amd64 (x86_64)\n",
    ],
)
@pytest.mark.parametrize("tail", ["make[1]: *** [/usr/src/x/Makefile:2] Error 2\n", "# exit code: 2\n"])
def test_failed_build_names_its_kernel(host, head, tail):
    add(host)
    build(host)
    install(host)
    host.put(LOG, head + tail)
    assert rows(host) == [row("installed"), row("broken", "7.2.12-amd64")]


def test_build_that_still_runs(host):
    add(host)
    path = host.put(LOG, "DKMS make.log for nvidia-current-535.261.03 for kernel 7.2.12-amd64 (x86_64)\n CC [M] nv.o\n")
    assert rows(host) == [row("added", None)]
    os.utime(path, (1000, 1000))
    assert rows(host) == [row("broken", "7.2.12-amd64")]


def test_two_versions(host):
    for version in ("535.261.03", "550.163.01"):
        add(host, version)
    build(host, "550.163.01")
    install(host, "550.163.01")
    build(host, "535.261.03")
    assert rows(host) == [row("built"), row("installed", version="550.163.01")]


def test_built_is_asked_by_module_and_kernel(host):
    add(host)
    build(host)
    assert dkms.built(host.tree, "nvidia-current", REL)
    assert not dkms.built(host.tree, "nvidia", REL)
    assert not dkms.built(host.tree, "nvidia-current", "6.1.0-51-amd64")
