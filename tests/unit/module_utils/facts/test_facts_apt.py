# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E501 - lines of real files are kept whole
"""Packages on Debian and Ubuntu, by files alone."""

from __future__ import annotations

import os
import subprocess
import time

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import (
    aptlists,
    dpkg,
    names,
    packages,
    packages_apt,
)
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree
from apt_host import MAIN, SECURITY, offer, read, stanza


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


def test_the_driver_that_ready_modules_are_made_for(debian):
    """Only from what they ask of the driver's other half; what asks nothing tells nothing."""
    debian.put("/boot/vmlinuz-6.8.0-60-generic")
    names_ = [f"linux-modules-nvidia-{set_}-6.8.0-60-generic" for set_ in ("580-server", "580", "570")]
    half = "linux-signatures-nvidia-6.8.0-60-generic (= 6.8.0-60.63), nvidia-kernel-common-{0} (<= {1}-1), nvidia-kernel-common-{0} (>= {1})"
    rows = [(names_[0], "6.8.0-60.63", half.format("580-server", "580.159.03")),
            (names_[0], "6.8.0-60.63+1", half.format("580-server", "580.173.02")),
            (names_[1], "6.8.0-60.63", "nvidia-kernel-common-580"),
            ("nvidia-driver-580", "580.173.02-0ubuntu1", half.format("580", "580.173.02"))]
    text = "".join(f"Package: {name}\nVersion: {version}\nDepends: {asks}\n\n" for name, version, asks in rows)
    debian.put(f"/var/lib/apt/lists/{MAIN}", text)
    facts, _context = read(debian)
    assert facts["made_for"] == {names_[0]: {"6.8.0-60.63": "580.159.03", "6.8.0-60.63+1": "580.173.02"}}
    assert set(facts["available"]) >= {names_[0], names_[1]}
