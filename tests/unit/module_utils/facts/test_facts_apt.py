# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E501 - lines of real files are kept whole
"""Packages on Debian and Ubuntu, by files alone."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import sys
import time

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import (
    aptconf,
    aptlists,
    debversion,
    dpkg,
    locks,
    names,
    packages,
    packages_apt,
)
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.context import Context
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree

OS = 'ID=debian\nVERSION_ID="12"\n'
SOURCES = """Types: deb deb-src
URIs: http://user:hunter2@deb.debian.org/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://deb.debian.org/debian-security
Suites: bookworm-security
Components: main
Enabled: yes
"""
MAIN = "deb.debian.org_debian_dists_bookworm_main_binary-amd64_Packages"
SECURITY = "deb.debian.org_debian-security_dists_bookworm-security_main_binary-amd64_Packages"


def stanza(name, version="1.0", status="install ok installed", arch="amd64"):
    return f"Package: {name}\nStatus: {status}\nPriority: optional\nArchitecture: {arch}\nVersion: {version}\nDescription: x\n more\n\n"


def offer(name, version):
    return f"Package: {name}\nSource: x\nVersion: {version}\nInstalled-Size: 1\nDepends: nvidia-x (= 9)\nDescription: x\n\n"


@pytest.fixture
def debian(host):
    host.put("/etc/os-release", OS)
    host.put("/var/lib/dpkg/arch", "amd64\n")
    host.put("/var/lib/dpkg/status", stanza("bash") + stanza("linux-image-amd64", "6.1.176-1"))
    host.put("/etc/apt/sources.list.d/debian.sources", SOURCES)
    host.put(f"/var/lib/apt/lists/{MAIN}", offer("linux-image-amd64", "6.1.176-1") + offer("bash", "5"))
    host.put(
        f"/var/lib/apt/lists/{SECURITY}",
        offer("nvidia-kernel-dkms", "535.309.01-0") + offer("linux-image-amd64", "6.1.192-3"),
    )
    return host


def read(host):
    context = host.read(packages.read)
    return context.facts["packages"], context


def test_installed_is_what_matters(debian):
    names = [
        "linux-image-6.1.0-50-amd64", "linux-headers-6.1.0-50-amd64", "nvidia-kernel-dkms", "libcuda1", "libnvidia-ml1", "dkms", "gcc-12",
        "build-essential", "containerd.io", "nvidia-container-toolkit", "unattended-upgrades", "cuda-toolkit-12-4", "zfs-dkms",
        "libelf-dev", "make", "linux-modules-nvidia-580-open-6.8.0-60-generic", "linux-generic-hwe-22.04", "nvidia-fabricmanager-535",
    ]  # fmt: skip
    others = [
        "bash",
        "linux-libc-dev",
        "python3",
        "libc6",
        "cuda-documentation-12-4",
        "linux-perf",
        "vim",
        "linux-doc-6.1",
    ]
    debian.put("/var/lib/dpkg/status", "".join(stanza(name) for name in names + others))
    facts, context = read(debian)
    assert sorted(facts["installed"]) == sorted(names)
    assert context.unknown.keys() <= {"packages.locked_by", "packages.guard"}


def test_states(debian):
    debian.put(
        "/var/lib/dpkg/status",
        stanza("linux-image-amd64", "1", "hold ok installed")
        + stanza("vim", "1", "hold ok installed")
        + stanza("nvidia-dkms-535", "2", "install ok half-configured")
        + stanza("libc6", "2", "install reinstreq half-installed")
        + stanza("linux-image-7.2.12-amd64", "7", "install ok unpacked")
        + stanza("nvidia-smi", "3", "deinstall ok config-files")
        + stanza("man-db", "3", "install ok triggers-pending"),
    )
    facts, _rest = read(debian)
    assert facts["held"] == ["linux-image-amd64", "vim"]
    assert facts["broken"] == ["libc6", "linux-image-7.2.12-amd64", "nvidia-dkms-535"]
    assert "nvidia-smi" not in facts["installed"] and "linux-image-7.2.12-amd64" in facts["installed"]


def test_foreign_architecture(debian):
    debian.put(
        "/var/lib/dpkg/status", stanza("libnvidia-compute-580", "1") + stanza("libnvidia-compute-580", "2", arch="i386")
    )
    assert read(debian)[0]["installed"] == {"libnvidia-compute-580": "1", "libnvidia-compute-580:i386": "2"}


def test_updates_that_dpkg_has_not_written_back(debian):
    debian.put("/var/lib/dpkg/updates/0000", stanza("linux-image-amd64", "6.1.192-3", "install ok half-configured"))
    facts, _rest = read(debian)
    assert facts["installed"]["linux-image-amd64"] == "6.1.192-3" and facts["broken"] == ["linux-image-amd64"]


def test_manual(debian):
    debian.put(
        "/var/lib/dpkg/status", stanza("linux-image-amd64") + stanza("linux-image-6.1.0-50-amd64") + stanza("dkms")
    )
    debian.put(
        "/var/lib/apt/extended_states",
        "Package: linux-image-6.1.0-50-amd64\nArchitecture: amd64\nAuto-Installed: 1\n\n",
    )
    assert read(debian)[0]["manual"] == ["linux-image-amd64"]


def test_kernel_owners(debian):
    debian.put("/boot/vmlinuz-6.1.0-50-amd64")
    debian.put("/boot/vmlinuz-6.2.0-custom")
    debian.put("/var/lib/dpkg/status", stanza("linux-image-6.1.0-50-amd64"))
    assert read(debian)[1].facts["kernel_packages"] == {
        "6.1.0-50-amd64": {"image": "linux-image-6.1.0-50-amd64", "headers": None},
        "6.2.0-custom": {"image": None, "headers": None},
    }


def test_available_newest_first_with_origins(debian):
    facts, _rest = read(debian)
    assert facts["available"] == {
        "linux-image-amd64": ["6.1.192-3", "6.1.176-1"],
        "nvidia-kernel-dkms": ["535.309.01-0"],
    }
    assert facts["origins"]["linux-image-amd64"] == {"6.1.192-3": "debian-bookworm-security", "6.1.176-1": "debian"}
    assert {one["id"] for one in facts["repositories"]} == {"debian", "debian-bookworm-security"}


def test_only_the_newest_three(debian):
    debian.put(f"/var/lib/apt/lists/{MAIN}", "".join(offer("nvidia-driver", f"535.{n}-1") for n in (9, 10, 100, 2, 54)))
    assert read(debian)[0]["available"]["nvidia-driver"] == ["535.100-1", "535.54-1", "535.10-1"]


def test_pins_and_denials_do_not_change_what_is_available(debian):
    """Otherwise a deny list that is computed from it would flip on each run."""
    before = read(debian)[0]["available"]
    debian.put(
        "/etc/apt/preferences.d/baremetal-nvidia", "Package: linux-image-amd64\nPin: release *\nPin-Priority: -1\n"
    )
    facts, _rest = read(debian)
    assert facts["available"] == before
    assert facts["pins"] == [
        {
            "package": "linux-image-amd64",
            "pin": "release *",
            "priority": -1,
            "file": "/etc/apt/preferences.d/baremetal-nvidia",
        }
    ]


def test_headers_of_installed_kernels_only(debian):
    debian.put("/boot/vmlinuz-6.1.0-47-amd64")
    debian.put(
        f"/var/lib/apt/lists/{MAIN}",
        offer("linux-headers-6.1.0-47-amd64", "1") + offer("linux-headers-6.1.0-50-amd64", "1"),
    )
    assert "linux-headers-6.1.0-47-amd64" in read(debian)[0]["available"]
    assert "linux-headers-6.1.0-50-amd64" not in read(debian)[0]["available"]


@pytest.mark.parametrize(
    ("kernels", "offered"),
    [
        (
            ["6.8.0-60-generic"],
            [
                "linux-generic",
                "linux-image-generic-hwe-24.04",
                "linux-headers-generic-6.14",
                "linux-modules-nvidia-580-open-generic-hwe-24.04",
                "linux-modules-nvidia-580-server-6.8.0-60-generic",
            ],
        ),
        (["6.12.117+deb13-amd64"], ["linux-image-amd64", "linux-headers-amd64"]),
        (["6.1.0-50-cloud-amd64"], ["linux-image-cloud-amd64"]),
        (["6.17.0-1008-nvidia-64k"], ["linux-nvidia-64k-hwe-24.04", "linux-image-nvidia-64k"]),
        (
            [],
            [
                "linux-generic",
                "linux-image-generic-hwe-24.04",
                "linux-headers-generic-6.14",
                "linux-modules-nvidia-580-open-generic-hwe-24.04",
                "linux-image-amd64",
                "linux-headers-amd64",
            ],
        ),
    ],
)
def test_metas_of_the_installed_flavours(kernels, offered):
    every = {
        "linux-generic", "linux-image-generic-hwe-24.04", "linux-headers-generic-6.14", "linux-modules-nvidia-580-open-generic-hwe-24.04",
        "linux-modules-nvidia-580-server-6.8.0-60-generic", "linux-modules-nvidia-580-server-6.8.0-64-generic", "linux-image-amd64",
        "linux-headers-amd64", "linux-image-cloud-amd64", "linux-nvidia-64k-hwe-24.04", "linux-image-nvidia-64k", "linux-image-rt-amd64",
        "linux-image-6.8.0-99-generic", "linux-libc-dev", "linux-firmware", "linux-tools-generic", "linux-image-aws",
    }  # fmt: skip
    assert set(filter(names.wanted_by(kernels), every)) == set(offered)


def test_lists_of_a_source_that_is_gone_or_off(debian):
    debian.put("/var/lib/apt/lists/example.net_x_dists_y_main_binary-amd64_Packages", offer("nvidia-driver", "999"))
    debian.put(
        "/etc/apt/sources.list.d/off.sources",
        "Types: deb\nURIs: http://example.net/x\nSuites: y\nComponents: main\nEnabled: no\n",
    )
    facts, _rest = read(debian)
    assert "nvidia-driver" not in facts["available"]
    assert [one["enabled"] for one in facts["repositories"] if one["id"] == "off"] == [False]


def test_other_components_and_architectures(debian):
    base = "deb.debian.org_debian_dists_bookworm"
    debian.put(f"/var/lib/apt/lists/{base}_non-free_binary-amd64_Packages", offer("nvidia-driver", "1"))
    debian.put(f"/var/lib/apt/lists/{base}_main_binary-i386_Packages", offer("nvidia-driver", "2"))
    debian.put(f"/var/lib/apt/lists/{base}_contrib_binary-amd64_Packages", offer("nvidia-persistenced", "3"))
    facts, _rest = read(debian)
    assert "nvidia-driver" not in facts["available"] and facts["available"]["nvidia-persistenced"] == ["3"]


@pytest.mark.parametrize(
    ("line", "file"),
    [
        (
            "deb https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/ /",
            "developer.download.nvidia.com_compute_cuda_repos_debian12_x86%5f64_Packages",
        ),
        ("deb [signed-by=/k.gpg] https://u:p@example.net/a/ ./", "example.net_a_._Packages"),
        ("deb file:/srv/lab/cuda /", "_srv_lab_cuda_Packages"),
        ("deb file:///srv/lab/cuda/ /", "_srv_lab_cuda_Packages"),
        (
            "deb mirror+file:/etc/apt/mirrors/x.list b main",
            "_etc_apt_mirrors_x.list_dists_b_main_binary-amd64_Packages",
        ),
        (
            "deb http://localhost:8080/x~y bookworm main",
            "localhost:8080_x%7ey_dists_bookworm_main_binary-amd64_Packages",
        ),
    ],
)
def test_list_names(debian, line, file):
    debian.put("/etc/apt/sources.list", line + "\n")
    debian.put(f"/var/lib/apt/lists/{file}", offer("nvidia-open-580", "580.1-1"))
    facts, _rest = read(debian)
    assert facts["available"]["nvidia-open-580"] == ["580.1-1"]


def test_compressed_list_that_cannot_be_unpacked_is_unknown(debian, monkeypatch):
    debian.put(f"/var/lib/apt/lists/{SECURITY}.lz4", b"\x04\x22\x4d\x18broken")
    debian.path(f"/var/lib/apt/lists/{SECURITY}").unlink()
    facts, context = read(debian)
    assert "packages.available[debian-bookworm-security]" in context.unknown
    assert facts["available"] == {"linux-image-amd64": ["6.1.176-1"]}


def test_compressed_list(debian):
    if not os.path.exists("/usr/lib/apt/apt-helper"):
        pytest.skip("apt-helper is not installed")
    import gzip

    debian.put(f"/var/lib/apt/lists/{MAIN}.gz", gzip.compress(offer("nvidia-driver", "1").encode()))
    assert read(debian)[0]["available"]["nvidia-driver"] == ["1"]


def test_empty_list(debian):
    debian.put(f"/var/lib/apt/lists/{MAIN}", "")
    assert read(debian)[0]["available"]["linux-image-amd64"] == ["6.1.192-3"]


def test_cache_age(debian):
    for path in ("/var/lib/apt/lists/partial", "/var/lib/apt/lists"):
        debian.directory(path)
        os.utime(debian.path(path), (1000, 1000))
    assert aptlists.age(debian.tree, 4600.0) == 3600
    debian.put("/var/lib/apt/periodic/update-success-stamp")
    os.utime(debian.path("/var/lib/apt/periodic/update-success-stamp"), (4000, 4000))
    assert aptlists.age(debian.tree, 4600.0) == 600
    assert aptlists.age(debian.tree, 3000.0) == 0


def test_our_source_without_a_list_is_one_that_was_never_fetched(debian):
    """A run that is cut off between the source and its lists must not plan from the lists of the others."""
    assert read(debian)[0]["cache_age"] is not None
    stanza = "Types: deb\nURIs: http://deb.debian.org/nowhere\nSuites: bookworm\nComponents: contrib\n"
    debian.put("/etc/apt/sources.list.d/of-a-person.sources", stanza)
    assert read(debian)[0]["cache_age"] is not None
    debian.put("/etc/apt/sources.list.d/baremetal-nvidia-debian.sources", stanza)
    assert read(debian)[0]["cache_age"] is None


def test_lists_never_fetched(host):
    assert aptlists.age(host.tree, time.time()) is None


# ---- sources


def sources(host):
    return {one["id"]: one for one in read(host)[0]["repositories"]}


def test_repositories(debian):
    rows = sources(debian)
    assert rows["debian"] == {
        "id": "debian", "url": "http://********@deb.debian.org/debian", "suites": ["bookworm", "bookworm-updates"],
        "components": ["main", "contrib"], "signed_by": "/usr/share/keyrings/debian-archive-keyring.gpg",
        "file": "/etc/apt/sources.list.d/debian.sources", "enabled": True,
    }  # fmt: skip
    assert rows["debian-bookworm-security"]["signed_by"] is None


def test_one_line_sources(debian):
    debian.put(
        "/etc/apt/sources.list",
        "# deb http://off.example.net x main\n"
        "deb http://archive.example.net/ubuntu jammy main universe # a comment\n"
        "deb http://archive.example.net/ubuntu jammy-updates main universe\n"
        "deb-src http://archive.example.net/ubuntu jammy main\n"
        "deb [arch=amd64 trusted=yes] http://evil.example.net/ ./\n",
    )
    rows = sources(debian)
    assert rows["debian-jammy"]["suites"] == ["jammy", "jammy-updates"]
    evil = next(row for row in rows.values() if "evil" in row["url"])
    assert evil["trusted"] is True and evil["suites"] == ["./"]
    assert not any("off.example" in row["url"] for row in rows.values())


def test_inline_key(debian):
    debian.put(
        "/etc/apt/sources.list.d/a.sources",
        "Types: deb\nURIs: http://a.example.net\nSuites: x\nComponents: main\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQ\n",
    )
    assert sources(debian)["a"]["signed_by"] == "inline"


def test_ids_are_unique(debian):
    text = "".join(f"deb http://{host}.example.net stable main\n" for host in "abc")
    debian.put("/etc/apt/sources.list.d/x.list", text)
    ids = [one["id"] for one in read(debian)[0]["repositories"]]
    assert len(ids) == len(set(ids)) == 5


def test_files_that_apt_ignores(debian):
    debian.put("/etc/apt/sources.list.d/x.list.save", "deb http://x.example.net a main\n")
    debian.put("/etc/apt/preferences.d/x.bak", "Package: *\nPin: release a=x\nPin-Priority: 1\n")
    debian.put("/etc/apt/apt.conf.d/20auto.dpkg-old", 'APT::Periodic::Unattended-Upgrade "1";\n')
    facts, _rest = read(debian)
    assert len(facts["repositories"]) == 2 and facts["pins"] == []
    assert facts["auto_upgrades"]["enabled"] is False


# ---- preferences and configuration


def test_pins(debian):
    debian.put("/etc/apt/preferences", "Explanation: why\nPackage: *\nPin: release o=Debian\nPin-Priority: 500\n")
    debian.put(
        "/etc/apt/preferences.d/cuda.pref",
        "Package: nvidia-*\n libnvidia-*\nPin: version 535.*\nPin-Priority: 1001\n\nPackage: x\nPin: release *\nPin-Priority: not a number\n",
    )
    assert read(debian)[0]["pins"] == [
        {"package": "*", "pin": "release o=Debian", "priority": 500, "file": "/etc/apt/preferences"},
        {
            "package": "nvidia-* libnvidia-*",
            "pin": "version 535.*",
            "priority": 1001,
            "file": "/etc/apt/preferences.d/cuda.pref",
        },
    ]


BLACKLIST = """// comment "x";
Unattended-Upgrade::Origins-Pattern {
        "origin=Debian,codename=${distro_codename},label=Debian"; // "o=x";
};
/* Unattended-Upgrade::Package-Blacklist { "no"; }; */
Unattended-Upgrade::Package-Blacklist {
    // The following matches all packages starting with linux-
//  "linux-";
    "linux-image-.*";
    "nvidia-.*";
};
"""


@pytest.mark.parametrize(
    ("settings", "there", "expected"),
    [
        ('APT::Periodic::Unattended-Upgrade "1";\nAPT::Periodic::Update-Package-Lists "1";\n', True, True),
        ('APT::Periodic { Unattended-Upgrade "1"; };\n', True, True),
        ('APT { Periodic { Unattended-Upgrade "1"; }; };\n', True, True),
        ('APT::Periodic::Unattended-Upgrade "0";\n', True, False),
        ('APT::Periodic::Unattended-Upgrade "1";\nAPT::Periodic::Enable "0";\n', True, False),
        ('apt::periodic::unattended-upgrade "always";\n', True, True),
        ('APT::Periodic::Unattended-Upgrade "1";\n#clear APT::Periodic::Unattended-Upgrade;\n', True, False),
        ("", True, False),
        ('APT::Periodic::Unattended-Upgrade "1";\n', False, False),
    ],
)
def test_auto_upgrades(debian, settings, there, expected):
    debian.put("/etc/apt/apt.conf.d/20auto-upgrades", settings)
    debian.put("/etc/apt/apt.conf.d/50unattended-upgrades", BLACKLIST)
    if there:
        debian.put("/var/lib/dpkg/status", stanza("unattended-upgrades"))
    assert read(debian)[0]["auto_upgrades"] == {"enabled": expected, "excluded": ["linux-image-.*", "nvidia-.*"]}


def test_a_later_file_adds_to_the_list_or_clears_it(debian):
    debian.put("/etc/apt/apt.conf.d/50unattended-upgrades", BLACKLIST)
    debian.put("/etc/apt/apt.conf.d/52baremetal-nvidia", 'Unattended-Upgrade::Package-Blacklist:: "^linux-modules-";\n')
    assert read(debian)[0]["auto_upgrades"]["excluded"] == ["linux-image-.*", "nvidia-.*", "^linux-modules-"]
    debian.put(
        "/etc/apt/apt.conf.d/60x",
        '#clear Unattended-Upgrade::Package-Blacklist;\nUnattended-Upgrade::Package-Blacklist { "z"; };\n',
    )
    assert read(debian)[0]["auto_upgrades"]["excluded"] == ["z"]


def test_our_reader_of_apt_conf_agrees_with_apt(tmp_path):
    config = tmp_path / "x.conf"
    config.write_text(BLACKLIST + 'APT::Periodic { Unattended-Upgrade "1"; Enable "0"; };\nA::B:: "1";\nA::B:: "2";\n')
    try:
        dump = subprocess.run(
            ["apt-config", "dump", "-c", str(config)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env={"APT_CONFIG": "/dev/null"},
        ).stdout
    except FileNotFoundError:
        pytest.skip("apt is not installed")
    values: dict[str, list[str]] = {}
    aptconf.merge(values, config.read_text())
    for name, expected in (
        ("Unattended-Upgrade::Package-Blacklist", ["linux-image-.*", "nvidia-.*"]),
        ("A::B", ["1", "2"]),
    ):
        told = [line.split('"')[1] for line in dump.splitlines() if line.startswith(f"{name}:: ")]
        assert told == values[name.lower()] == expected
    assert values["apt::periodic::enable"] == ["0"]


# ---- versions


@pytest.mark.parametrize(
    "versions",
    [
        ["1.0~rc1", "1.0", "1.0-1", "1.0-1+b1", "1.0a", "1.0+x", "1.1", "1.10", "1:0.5"],
        ["535.216.03-2~bpo12+1", "535.216.03-2", "535.261.03-1", "535.309.01-0+deb12u1"],
        ["6.1.176-1", "6.1.192-3", "6.12.117-1", "7.2.12-1"],
        ["1.6.20~ds1-1", "1.6.20~ds1-1+deb12u2", "1.6.20~ds1-1+deb12u3", "1.6.20"],
    ],
)
def test_order_of_versions(versions):
    import functools

    shuffled = versions[::2][::-1] + versions[1::2]
    assert sorted(shuffled, key=functools.cmp_to_key(debversion.compare)) == versions
    for older, newer in zip(versions, versions[1:]):
        assert debversion.compare(older, newer) < 0 < debversion.compare(newer, older)
        if shutil.which("dpkg"):
            assert subprocess.run(["dpkg", "--compare-versions", older, "lt", newer], check=False).returncode == 0


def test_equal_versions():
    assert debversion.compare("1.0", "0:1.0") == 0 and debversion.compare("1.00", "1.0") == 0


# ---- degraded


def test_no_dpkg_status(debian):
    debian.path("/var/lib/dpkg/status").unlink()
    facts, context = read(debian)
    assert {f"packages.{key}" for key in ("installed", "held", "broken", "manual", "auto_upgrades")} <= set(
        context.unknown
    )
    assert "installed" not in facts and facts["available"]


def test_unreadable_sources(debian):
    debian.path("/etc/apt/sources.list.d/debian.sources").unlink()
    debian.directory("/etc/apt/sources.list.d/debian.sources")
    facts, context = read(debian)
    assert {"packages.repositories", "packages.available", "packages.origins"} <= set(context.unknown)
    assert facts["installed"]


def test_no_sources_at_all(debian):
    debian.path("/etc/apt/sources.list.d/debian.sources").unlink()
    facts, _rest = read(debian)
    assert facts["repositories"] == [] and facts["available"] == {} and facts["origins"] == {}


def test_no_package_manager(host):
    host.put("/etc/os-release", "ID=alpine\n")
    context = host.read(packages.read)
    assert "packages" in context.unknown and context.facts == {}


# ---- locks

HOLD = "import fcntl,sys,time; f=open(sys.argv[1],'r+'); fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"


@pytest.fixture
def lock(tmp_path):
    path = tmp_path / "lock-frontend"
    path.write_text("")
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline().strip() == "held"
    yield str(path), child
    child.kill()
    child.wait()
    child.stdout.close()


def context():
    return Context(Tree())


def test_lock_holder(lock):
    path, child = lock
    found = locks.holder(context(), ["/nonexistent/lock", path])
    assert found["pid"] == child.pid and found["command"].startswith("python")


def test_free_lock(tmp_path):
    path = tmp_path / "lock"
    path.write_text("")
    assert locks.holder(context(), [str(path)]) is None


def test_lock_that_may_not_be_opened(lock, monkeypatch):
    path, child = lock

    def denied(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(locks, "_asked", denied)
    assert locks.holder(context(), [path])["pid"] == child.pid


def test_flock_layout():
    """The answer of F_GETLK is read with the kernel's layout: 32 bytes on 64-bit machines."""
    assert struct.calcsize(locks._FLOCK) == 32 and fcntl.F_GETLK


def test_pid_file(host):
    host.put("/run/zypp.pid", "4711\n")
    read_context = Context(host.tree)
    assert locks.by_pid_file(read_context, locks.PID_FILES) is None
    host.put("/proc/4711/comm", "zypper\n")
    assert locks.by_pid_file(read_context, locks.PID_FILES) == {"pid": 4711, "command": "zypper"}


def test_this_machine_agrees_with_dpkg():
    if not os.path.exists("/var/lib/dpkg/status"):
        pytest.skip("no dpkg here")
    told = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Abbrev}|${Package}|${Version}\n"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    expected = {(line.split("|")[1], line.split("|")[2]) for line in told.splitlines() if line[1] == "i"}
    ours = {(one.name, one.version) for one in dpkg.packages(Tree()) if one.state == "installed"}
    assert ours == expected
    assert packages_apt.owners({"linux-image-unsigned-1"}, "1")["image"] == "linux-image-unsigned-1"
