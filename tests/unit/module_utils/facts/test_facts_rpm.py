# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E501 - lines of real files are kept whole
"""Packages on Red Hat and SUSE systems. The answers of rpm, dnf and zypper are taken from the real ones."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import run as children
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import (
    boot,
    collector,
    packages,
    packages_zypper,
    rpmdb,
)
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree
from facts_helpers import Programs

ROCKY = 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.5"\n'
SLES = 'ID="sles"\nID_LIKE="suse"\nVERSION_ID="15.6"\n'
OLD, NEW = "5.14.0-503.14.1.el9_5", "5.14.0-503.40.1.el9_5"


def rpms(*rows):
    return "".join(f"{name}\t{epoch}\t{version}\t{arch}\n" for name, epoch, version, arch in rows)


ARCH = os.uname().machine
RPM_QA = rpms(
    ("kernel-core", 0, NEW, ARCH), ("kernel-core", 0, OLD, ARCH), ("kernel", 0, OLD, ARCH), ("kernel", 0, NEW, ARCH),
    ("kernel-devel", 0, NEW, ARCH), ("nvidia-driver-cuda", 3, "580.95.05-1.el9", ARCH), ("bash", 0, "5.1.8-9.el9", ARCH),
    ("dkms", 0, "3.2.1-1.el9", "noarch"), ("kmod-nvidia-580.95.05-5.14.0-503.40.1", 3, "580.95.05-1.el9_5", ARCH),
    ("gpg-pubkey", 0, "1-1", "(none)"), ("gpg-pubkey", 0, "2-1", "(none)"), ("dnf-automatic", 0, "4.14.0-17.el9", "noarch"),
)  # fmt: skip
REPOQUERY = "\n\n".join(
    [
        "kernel-core|0|5.14.0-687.12.1.el9_8|baseos", f"kernel-core|0|{NEW}|baseos", f"kernel-core|0|{OLD}|baseos", "kernel-core|0|5.14.0-1.el9|baseos",
        "nvidia-driver-cuda|3|580.178.04-1.el9|cuda-rhel9-x86_64", "nvidia-driver-cuda|3|595.10.01-1.el9|cuda-rhel9-x86_64",
        "kmod-nvidia-580.95.05-5.14.0-503.40.1|3|580.95.05-1.el9_5|cuda-rhel9-x86_64",
        "kmod-nvidia-580.95.05-5.14.0-999.1.1|3|580.95.05-1.el9_9|cuda-rhel9-x86_64",
        "kernel-doc|0|5.14.0-687.12.1.el9_8|baseos", "nvidia-settings|3|595.10.01-1.el9|cuda-rhel9-x86_64",
    ]
)  # fmt: skip


def programs(**more):
    answers = {"rpm": children.Result(rc=0, out=RPM_QA), "dnf": children.Result(rc=0, out=REPOQUERY)}
    return Programs(**{**answers, **more})


@pytest.fixture
def rocky(host):
    host.put("/etc/os-release", ROCKY)
    for version in (OLD, NEW):
        host.put(f"/boot/vmlinuz-{version}.{ARCH}")
    host.put(
        "/etc/yum.repos.d/cuda.repo",
        "[cuda-rhel9-x86_64]\nname=cuda\nbaseurl=https://robot:hunter2@example.net/rhel$releasever/$basearch/$site\n"
        "gpgkey=https://example.net/${basearch}/D42D0685.pub\nenabled=1\ngpgcheck=1\n"
        "[off]\nname=off\nmirrorlist=https://example.net/list\nenabled=0\ngpgcheck=0\n",
    )
    host.put("/etc/dnf/vars/site", "taipei\n")
    return host


def read(as_host, runner=None):
    context = as_host(packages.read, runner or programs())
    return context.facts["packages"], context


def test_installed(rocky, as_host):
    facts, context = read(as_host)
    assert facts["manager"] == "dnf"
    assert facts["installed"] == {
        "kernel": NEW, "kernel-core": NEW, "kernel-devel": NEW, "nvidia-driver-cuda": "3:580.95.05-1.el9", "dkms": "3.2.1-1.el9",
        "kmod-nvidia-580.95.05-5.14.0-503.40.1": "3:580.95.05-1.el9_5", "dnf-automatic": "4.14.0-17.el9",
    }  # fmt: skip
    assert facts["broken"] == []
    assert context.facts["kernel_packages"] == {
        f"{OLD}.{ARCH}": {"image": f"kernel-core-{OLD}.{ARCH}", "headers": None},
        f"{NEW}.{ARCH}": {"image": f"kernel-core-{NEW}.{ARCH}", "headers": f"kernel-devel-{NEW}.{ARCH}"},
    }


def test_foreign_architecture(rocky, as_host):
    out = rpms(("libnvidia-ml", 3, "580-1", ARCH), ("libnvidia-ml", 3, "580-1", "i686"))
    facts, _rest = read(as_host, programs(rpm=children.Result(rc=0, out=out)))
    assert facts["installed"] == {"libnvidia-ml": "3:580-1", "libnvidia-ml.i686": "3:580-1"} and facts["broken"] == []


def test_what_a_cut_off_transaction_leaves(rocky, as_host):
    out = RPM_QA + rpms(("nvidia-driver-cuda", 3, "580.178.04-1.el9", ARCH))
    assert read(as_host, programs(rpm=children.Result(rc=0, out=out)))[0]["broken"] == ["nvidia-driver-cuda"]


def test_available(rocky, as_host):
    runner = programs()
    facts, _rest = read(as_host, runner)
    assert facts["available"] == {
        "kernel-core": ["5.14.0-687.12.1.el9_8", NEW, OLD],
        "kmod-nvidia-580.95.05-5.14.0-503.40.1": ["3:580.95.05-1.el9_5"],
        "nvidia-driver-cuda": ["3:595.10.01-1.el9", "3:580.178.04-1.el9"],
    }
    assert facts["origins"]["nvidia-driver-cuda"]["3:595.10.01-1.el9"] == "cuda-rhel9-x86_64"
    asked = next(call for call in runner.calls if call[0] == "dnf")
    assert "-C" in asked and "--disable-modular-filtering" in asked


def test_dnf5(rocky, as_host):
    rocky.put("/usr/bin/dnf5")
    runner = programs(dnf5=children.Result(rc=0, out=REPOQUERY))
    assert read(as_host, runner)[0]["available"]["kernel-core"]
    assert "--disable-modular-filtering" not in next(call for call in runner.calls if call[0] == "dnf5")


@pytest.mark.parametrize(
    "answer",
    [
        children.Result(rc=1, err="Error: Cache-only enabled but no cache for 'cuda'", pid=1),
        children.Result(rc=124, timed_out=True, pid=1),
    ],
)
def test_dnf_does_not_answer(rocky, as_host, answer):
    facts, context = read(as_host, programs(dnf=answer))
    assert {"packages.available", "packages.origins"} <= set(context.unknown) and "available" not in facts
    assert facts["installed"]


def test_no_credentials_in_a_reason(rocky, as_host):
    err = "Error: Failed to download metadata for repo 'cuda': https://robot:hunter2@example.net/x?token=hunter2"
    _facts, context = read(as_host, programs(dnf=children.Result(rc=1, err=err, pid=1)))
    assert "hunter2" not in str(context.unknown) and "example.net" in context.unknown["packages.available"]


def test_no_credentials_in_a_key(rocky, as_host):
    rocky.put(
        "/etc/yum.repos.d/x.repo", "[x]\nbaseurl=https://example.net\ngpgkey=https://robot:hunter2@example.net/key\n"
    )
    facts, _context = read(as_host)
    assert "hunter2" not in str(facts["repositories"])


def test_rpm_does_not_answer(rocky, as_host):
    facts, context = read(
        as_host, programs(rpm=children.Result(rc=1, err="error: cannot open Packages database", pid=1))
    )
    assert {"packages.installed", "packages.broken", "packages.auto_upgrades"} <= set(context.unknown)
    assert "cannot open" in context.unknown["packages.installed"] and facts["repositories"]


def test_repositories(rocky, as_host):
    rows = {row["id"]: row for row in read(as_host)[0]["repositories"]}
    assert rows["cuda-rhel9-x86_64"] == {
        "id": "cuda-rhel9-x86_64", "url": f"https://********@example.net/rhel9/{ARCH}/taipei", "suites": [], "components": [],
        "signed_by": f"https://example.net/{ARCH}/D42D0685.pub", "file": "/etc/yum.repos.d/cuda.repo", "enabled": True,
    }  # fmt: skip
    assert (
        rows["off"]["enabled"] is False
        and rows["off"]["trusted"] is True
        and rows["off"]["url"] == "https://example.net/list"
    )


LOCKS = f"# Added lock on Mon\nkernel-core-0:{NEW}.*\nnvidia-driver-cuda-3:580.95.05-1.el9.*\n!kernel-modules-0:5.14.0-687.12.1.el9_8.*\nplain-name\n"


def test_versionlock(rocky, as_host):
    rocky.put("/etc/dnf/plugins/versionlock.list", LOCKS)
    assert read(as_host)[0]["held"] == [], "without the plugin the list has no effect"
    rocky.put("/usr/lib/python3.9/site-packages/dnf-plugins/versionlock.py")
    facts, _rest = read(as_host)
    assert facts["held"] == ["kernel-core", "nvidia-driver-cuda"], "a name without a version locks nothing"
    pins = {row["package"]: (row["pin"], row["priority"]) for row in facts["pins"]}
    assert pins["kernel-core"] == (f"version {NEW}", 1001)
    assert pins["nvidia-driver-cuda"] == ("version 3:580.95.05-1.el9", 1001)
    assert pins["kernel-modules"] == ("version 5.14.0-687.12.1.el9_8", -1)
    rocky.put("/etc/dnf/plugins/versionlock.conf", "[main]\nenabled = 0\n")
    assert read(as_host)[0]["held"] == []


def test_a_number_in_a_name_is_no_version(rocky, as_host):
    rocky.put("/usr/lib/python3.9/site-packages/dnf-plugins/versionlock.py")
    rocky.put("/etc/dnf/plugins/versionlock.list", "!kernel-64k-core\n!kernel-64k-devel\n")
    assert read(as_host)[0]["held"] == ["kernel-64k-core", "kernel-64k-devel"]


def test_versionlock_is_not_enough_where_packagekit_is(rocky, as_host):
    rocky.put("/usr/lib/python3.9/site-packages/dnf-plugins/versionlock.py")
    rocky.put("/etc/dnf/plugins/versionlock.list", LOCKS)
    more = programs(rpm=children.Result(rc=0, out=RPM_QA + rpms(("PackageKit", 0, "1.2-1", ARCH))))
    assert read(as_host, more)[0]["held"] == []
    rocky.put("/etc/dnf/dnf.conf", "[main]\nexclude=kernel-core\n")
    assert read(as_host, more)[0]["held"] == ["kernel-core"]


def test_versionlock_of_dnf5(rocky, as_host):
    rocky.put(
        "/etc/dnf/versionlock.toml",
        'version = "1.0"\n\n[[packages]]\nname = "kernel-core"\ncomment = "x"\n[[packages.conditions]]\nkey = "evr"\ncomparator = "="\nvalue = "0:VERSION"\n'
        '[[packages]]\nname = "kernel-rt"\n[[packages.conditions]]\nkey = "evr"\ncomparator = "<"\nvalue = "0"\n'.replace("VERSION", NEW),
    )
    facts, _rest = read(as_host)
    assert facts["held"] == ["kernel-core", "kernel-rt"] and facts["versionlock"] == "plugin"
    assert [row["pin"] for row in facts["pins"]] == [f"version 0:{NEW}", "version *"]
    text = (rocky.root / "etc/dnf/versionlock.toml").read_text()
    rocky.put("/etc/dnf/versionlock.toml", text.replace(NEW, "99-1"))
    assert read(as_host)[0]["held"] == ["kernel-rt"], "it may move to that version"


def test_what_holds_with_both_generations_of_dnf(rocky, as_host):
    rocky.put("/usr/bin/dnf-3")
    rocky.put("/usr/bin/dnf5")
    rocky.put("/usr/lib/python3.9/site-packages/dnf-plugins/versionlock.py")
    rocky.put("/etc/dnf/plugins/versionlock.list", "!kernel-devel\n!kernel\n")
    rocky.put("/etc/dnf/versionlock.toml", 'version = "1.0"\n[[packages]]\n'
              'name = "kernel"\n[[packages.conditions]]\nkey = "evr"\ncomparator = "<"\nvalue = "0"\n')
    assert read(as_host)[0]["held"] == ["kernel"], "held is what both hold"
    rocky.put("/etc/dnf/dnf.conf", "[main]\nexclude=kernel-d*\n")
    assert read(as_host)[0]["held"] == ["kernel", "kernel-devel"], "both read dnf.conf"


@pytest.mark.parametrize("conf, drop_in, five, limit", [
    (None, None, False, 3), ("[main]\n", None, False, 3), ("[main]\ninstallonly_limit=7\n", None, False, 7),
    ("[main]\ninstallonly_limit = <off>\n", None, False, 0), ("[main]\n", "[main]\ninstallonly_limit=0\n", True, 0),
    ("[main]\ninstallonly_limit=4\n", "[main]\ninstallonly_limit=0\n", True, 4), ("[main]\n", "[main]\ninstallonly_limit=9\n", False, 3),
])  # fmt: skip
def test_how_many_kernels_stand_side_by_side(rocky, as_host, conf, drop_in, five, limit):
    rocky.put("/usr/bin/dnf5" if five else "/usr/bin/dnf-3")
    if conf is not None:
        rocky.put("/etc/dnf/dnf.conf", conf)
    if drop_in is not None:
        rocky.put("/etc/dnf/libdnf5.conf.d/50-x.conf", drop_in)
    facts, _rest = read(as_host)
    assert facts["installonly_limit"] == limit and facts["versionlock"] == ("plugin" if five else "missing")


def test_excludes(rocky, as_host):
    rocky.put("/etc/dnf/dnf.conf", "[main]\nexclude=kernel-rt* linux-firmware\nexcludepkgs=nvidia-settings,\n  x\n")
    rocky.link("/etc/yum.conf", "dnf/dnf.conf")
    facts, _rest = read(as_host)
    assert [row["package"] for row in facts["pins"]] == ["kernel-rt*", "linux-firmware", "nvidia-settings", "x"]
    assert facts["held"] == ["linux-firmware", "nvidia-settings", "x"]
    assert facts["auto_upgrades"]["excluded"] == ["kernel-rt*", "linux-firmware", "nvidia-settings", "x"]


@pytest.mark.parametrize(("value", "enabled"), [("yes", True), ("no", False)])
def test_dnf_automatic(rocky, as_host, value, enabled):
    rocky.put("/etc/dnf/automatic.conf", f"[commands]\nupgrade_type = default\napply_updates = {value}\n")
    assert read(as_host)[0]["auto_upgrades"]["enabled"] is enabled


@pytest.mark.parametrize(
    ("timers", "configured", "enabled"),
    [
        ({"dnf-automatic.timer": True}, True, True),
        ({"dnf-automatic.timer": False}, True, False),
        ({"dnf-automatic.timer": True}, False, False),
        ({"dnf-automatic.timer": False, "dnf-automatic-install.timer": True}, False, True),
        ({}, True, True),
    ],
)
def test_timers_of_dnf_automatic(timers, configured, enabled):
    services = {name: {"enabled": on, "active": on, "failed": False} for name, on in timers.items()}
    facts = {
        "packages": {"manager": "dnf", "installed": {}, "auto_upgrades": {"enabled": configured}},
        "services": services,
    }
    collector.join(facts, {}, Tree("/nonexistent"))
    assert facts["packages"]["auto_upgrades"]["enabled"] is enabled


def test_module_streams(rocky, as_host):
    rocky.put(
        "/etc/dnf/modules.d/nvidia-driver.module",
        "[nvidia-driver]\nname=nvidia-driver\nstream=open-dkms\nprofiles=\nstate=enabled\n",
    )
    assert read(as_host)[0]["modules"] == {"nvidia-driver": {"stream": "open-dkms", "state": "enabled"}}


def test_cache_age(rocky, as_host):
    assert read(as_host)[0]["cache_age"] is None
    path = rocky.put("/var/cache/dnf/cuda-123/repodata/repomd.xml", "x")
    os.utime(path, (1000, 1000))
    context = as_host(packages.read, programs(), now=4600.0)
    assert context.facts["packages"]["cache_age"] == 3600


def test_lists_that_were_found_to_be_the_newest_are_fresh(rocky, as_host):
    """dnf leaves the index as it is then, and touches the list of packages."""
    for name, when in (("repomd.xml", 1000), ("ab12-primary.xml.gz", 4000)):
        os.utime(rocky.put(f"/var/cache/dnf/cuda-123/repodata/{name}", "x"), (when, when))
    assert as_host(packages.read, programs(), now=4600.0).facts["packages"]["cache_age"] == 600


def test_another_tree(rocky):
    calls = []

    def runner(argv, **_options):
        calls.append(argv)
        return children.Result(rc=0, out=RPM_QA)

    (rocky.root / "var/lib/rpm").mkdir(parents=True)
    context = rocky.read(packages.read, runner=runner)
    assert {call[0] for call in calls} == {"rpm"} and all(str(rocky.root / "var/lib/rpm") in call for call in calls)
    assert context.facts["packages"]["installed"] and "packages.available" in context.unknown


def test_tree_without_a_database(rocky):
    assert "no rpm database" in rocky.read(packages.read).unknown["packages.installed"]


# ---- zypper

SEARCH = """<?xml version='1.0'?>
<stream>
<message type="info">Loading repository data...</message>
<search-result version="0.0">
<solvable-list>
<solvable status="installed" name="kernel-default" kind="package" edition="6.4.0-150600.23.47.2" arch="x86_64" repository="(System Packages)"/>
<solvable status="other-version" name="kernel-default" kind="package" edition="6.4.0-150600.23.50.1" arch="x86_64" repository="SLES updates"/>
<solvable status="not-installed" name="nvidia-compute-G06" kind="package" edition="570.172.08-1" arch="x86_64" repository="NVIDIA CUDA for SLES"/>
<solvable status="not-installed" name="cuda-drivers" kind="package" edition="3:580.95.05-1" arch="x86_64" repository="NVIDIA CUDA for SLES"/>
<solvable status="not-installed" name="cuda-drivers" kind="srcpackage" edition="9-1" arch="noarch" repository="NVIDIA CUDA for SLES"/>
</solvable-list>
</search-result>
</stream>
"""
SUSE_QA = rpms(
    ("kernel-default", 0, "6.4.0-150600.23.47.2", ARCH), ("kernel-default-devel", 0, "6.4.0-150600.23.47.2", ARCH),
    ("nvidia-open-driver-G06-signed-kmp-default", 0, "570.172.08_k6.4.0_150600.21-1", ARCH), ("vim", 0, "9-1", ARCH),
)  # fmt: skip


@pytest.fixture
def sles(host):
    host.put("/etc/os-release", SLES)
    host.put("/boot/vmlinuz-6.4.0-150600.23.47-default")
    host.put(
        "/etc/zypp/repos.d/cuda.repo",
        "[cuda-sles15]\nname=NVIDIA CUDA for SLES\nbaseurl=https://example.net/sles15\nenabled=1\ngpgcheck=1\n",
    )
    return host


def read_sles(as_host, search=None):
    answer = search or children.Result(rc=0, out=SEARCH)
    return read(as_host, Programs(rpm=children.Result(rc=0, out=SUSE_QA), zypper=answer))


def test_sles(sles, as_host):
    facts, context = read_sles(as_host)
    assert facts["manager"] == "zypper"
    assert set(facts["installed"]) == {
        "kernel-default",
        "kernel-default-devel",
        "nvidia-open-driver-G06-signed-kmp-default",
    }
    assert facts["available"] == {
        "cuda-drivers": ["3:580.95.05-1"], "kernel-default": ["6.4.0-150600.23.50.1"], "nvidia-compute-G06": ["570.172.08-1"],
    }  # fmt: skip
    assert facts["origins"]["cuda-drivers"] == {"3:580.95.05-1": "cuda-sles15"}
    assert context.facts["kernel_packages"]["6.4.0-150600.23.47-default"] == {
        "image": f"kernel-default-6.4.0-150600.23.47.2.{ARCH}", "headers": f"kernel-default-devel-6.4.0-150600.23.47.2.{ARCH}",
    }  # fmt: skip


def test_zypper_lists_that_were_found_to_be_the_newest_are_fresh(sles, as_host):
    for path, when in (("solv/cuda/cookie", 1000), ("raw/cuda/repodata/repomd.xml", 4000), ("solv/@System/cookie", 4500)):
        os.utime(sles.put(f"/var/cache/zypp/{path}", "x"), (when, when))
    answer = children.Result(rc=0, out="")
    found = as_host(packages.read, Programs(rpm=children.Result(rc=0, out=SUSE_QA), zypper=answer), now=4600.0)
    assert found.facts["packages"]["cache_age"] == 600


def test_zypper_locks(sles, as_host):
    sles.put(
        "/etc/zypp/locks",
        "\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: kernel-default*\n\n"
        "type: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: nvidia-compute-G06\nversion: > 570\n\n"
        "type: patch\nmatch_type: glob\nsolvable_name: some-patch\n\n"
        "type: package\nmatch_type: regex\nsolvable_name: ^nvidia-open\n\ntype: package\nmatch_type: regex\nsolvable_name: (\n\n",
    )
    facts, _rest = read_sles(as_host)
    assert facts["held"] == [
        "(", "^nvidia-open", "kernel-default", "kernel-default*", "kernel-default-devel", "nvidia-compute-G06",
        "nvidia-open-driver-G06-signed-kmp-default",
    ]  # fmt: skip
    assert {"package": "nvidia-compute-G06", "pin": "lock > 570", "priority": 1001, "file": "/etc/zypp/locks"} in facts[
        "pins"
    ]


@pytest.mark.parametrize(
    "answer",
    [
        children.Result(
            rc=7, out="<stream/>", err="System management is locked by the application with pid 4711", pid=1
        ),
        children.Result(rc=0, out="nonsense", pid=1),
        children.Result(rc=0, out='<!DOCTYPE x [<!ENTITY a "b">]><stream/>', pid=1),
    ],
)
def test_zypper_does_not_answer(sles, as_host, answer):
    facts, context = read_sles(as_host, answer)
    assert "packages.available" in context.unknown and "available" not in facts


def test_zypper_finds_nothing(sles, as_host):
    facts, _rest = read_sles(as_host, children.Result(rc=104, out="<stream><search-result/></stream>", pid=1))
    assert facts["available"] == {}


def test_search_names_unknown_repositories_as_they_are():
    assert packages_zypper.search(SEARCH, {}).splitlines()[0] == "kernel-default|0|6.4.0-150600.23.50.1|SLES updates"


# ---- versions


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("5.14.0-503.14.1.el9_5", "5.14.0-503.40.1.el9_5"),
        ("5.14.0-503.40.1.el9_5", "5.14.0-687.12.1.el9_8"),
        ("600-1", "1:1-1"),
        ("1.0~rc1-1", "1.0-1"),
        ("1.0-1", "1.0^git1-1"),
        ("1.0^git1-1", "1.0.1-1"),
        ("1.0a-1", "1.0.1-1"),
        ("1.0-1.el9", "1.0-1.el10"),
        ("1.0a-1", "1.0b-1"),
        ("1.0-9", "1.0-10"),
        ("1.0", "1.0.0"),
        ("580.95.05-1", "3:570.1-1"),
    ],
)
def test_order(older, newer):
    assert rpmdb.compare(older, newer) < 0 < rpmdb.compare(newer, older)
    if shutil.which("rpm"):
        told = subprocess.run(
            ["rpm", "--eval", f'%{{lua:print(rpm.vercmp("{older}","{newer}"))}}'],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert told.stdout.strip() == "-1"


def test_equal():
    assert rpmdb.compare("1.0-1", "0:1.0-1") == 0 == rpmdb.compare("1.05-1", "1.5-1")


@pytest.mark.parametrize(
    ("name", "version", "release", "fits"),
    [
        ("kernel-core", "5.14.0-503.el9", f"5.14.0-503.el9.{ARCH}", True),
        ("kernel-64k-core", "5.14.0-503.el9", f"5.14.0-503.el9.{ARCH}+64k", True),
        ("kernel-default", "6.4.0-150600.23.47.2", "6.4.0-150600.23.47-default", True),
        ("kernel-default", "6.4.0-150600.23.47.2", "6.4.0-150600.23.4-default", False),
        ("kernel-azure", "6.4.0-150600.23.47.2", "6.4.0-150600.23.47-default", False),
        ("kernel-core", "5.14.0-504.el9", f"5.14.0-503.el9.{ARCH}", False),
    ],
)
def test_which_package_a_kernel_came_with(name, version, release, fits):
    owner = rpmdb.owners([rpmdb.Rpm(name, 0, version, ARCH)], release)["image"]
    assert owner == (f"{name}-{version}.{ARCH}" if fits else None)


# ---- boot loader of EL

GRUB = 'if [ "${next_entry}" ] ; then\n set default="${next_entry}"\nelse\n set default="${saved_entry}"\nfi\nblscfg\n'


@pytest.mark.parametrize(
    ("text", "value"),
    [("UPDATEDEFAULT=yes\nDEFAULTKERNEL=kernel-core\n", True), ("UPDATEDEFAULT=no\n", False), ("# x\n", None)],
)
def test_update_default(host, text, value):
    host.put("/etc/sysconfig/kernel", text)
    host.put("/boot/grub2/grub.cfg", GRUB)
    assert host.read(boot.read).facts["boot"].get("update_default") is value


def test_menu_beside_the_loader(host):
    """EL 8 on UEFI."""
    host.put("/boot/efi/EFI/redhat/grub.cfg", GRUB)
    host.put(
        "/boot/efi/EFI/redhat/grubenv",
        "# GRUB Environment Block\nsaved_entry=abc-4.18.0-553.el8.x86_64\n".ljust(1024, "#"),
    )
    for release in ("4.18.0-553.el8.x86_64", "4.18.0-560.el8.x86_64"):
        host.put(f"/boot/loader/entries/abc-{release}.conf", f"title x\nversion {release}\nlinux /vmlinuz-{release}\n")
    context = host.read(boot.read)
    assert context.facts["boot"]["loader"] == "grub"
    assert context.facts["kernel"]["default_boot"] == "4.18.0-553.el8.x86_64"
