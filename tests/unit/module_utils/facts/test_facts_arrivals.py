# SPDX-License-Identifier: GPL-3.0-or-later
"""When a kernel came in, by dpkg.log and the rpm database: also what was typed in past apt, dnf and zypper."""

from __future__ import annotations

import gzip

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import run as children
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import arrivals, collector
from apt_host import stanza
from facts_helpers import Programs

IMAGE = "linux-image-6.1.0-57-amd64"
LOG = f"""\
2026-11-28 09:00:00 startup archives unpack
2026-11-28 09:00:01 install {IMAGE}:amd64 <none> 6.1.190-1
2026-11-28 10:00:00 remove {IMAGE}:amd64 6.1.190-1 <none>
2026-11-29 03:10:00 install {IMAGE}:amd64 6.1.190-1 6.1.192-3
2026-11-29 03:10:02 status half-installed {IMAGE}:amd64 6.1.192-3
2026-11-29 03:10:05 upgrade {IMAGE}:amd64 6.1.192-3 6.1.192-4
2026-11-29 04:00:00 install {IMAGE}-dbg:amd64 <none> 6.1.192-3
"""


pytestmark = pytest.mark.usefixtures("utc")


def read(as_host, manager, images, programs=None):
    def reader(ctx):
        ctx.set("kernel_packages", {release: {"image": image, "headers": None} for release, image in images.items()})
        arrivals.read(ctx, manager)

    context = as_host(reader, programs)
    return context.facts.get("kernel_arrivals"), context


def test_the_newest_line_that_installed_it(host, as_host):
    host.put("/var/log/dpkg.log", LOG)
    images = {"6.1.0-57-amd64": IMAGE, "6.1.0-1-custom": None, "6.1.0-9-amd64": "linux-image-6.1.0-9-amd64"}
    found, context = read(as_host, "apt", images)
    assert found == {
        "6.1.0-57-amd64": {"when": "2026-11-29T03:10:00Z",
                           "record": f"dpkg.log has: install {IMAGE}:amd64 6.1.190-1 6.1.192-3"},
        "6.1.0-9-amd64": None,
    }  # fmt: skip
    assert context.unknown == {}


def test_it_stands_in_a_rotated_log(host, as_host):
    host.put("/var/log/dpkg.log", "2026-11-29 03:10:00 install vim:amd64 <none> 1\n")
    host.put("/var/log/dpkg.log.1", "never install x\n")
    line = f"2026-09-01 00:00:00 install {IMAGE}:amd64 <none> 6.1.170-1\n"
    host.put("/var/log/dpkg.log.2.gz", gzip.compress(line.encode()))
    assert read(as_host, "apt", {"6.1.0-57-amd64": IMAGE})[0]["6.1.0-57-amd64"]["when"] == "2026-09-01T00:00:00Z"
    host.put("/var/log/dpkg.log.2.gz", b"\x1f\x8bnot gzip")
    found, context = read(as_host, "apt", {"6.1.0-57-amd64": IMAGE})
    assert found is None and "dpkg.log.2.gz cannot be unpacked" in context.unknown["kernel.installed[].arrived"]


def test_a_line_without_a_time_is_passed_over(host, as_host):
    host.put("/var/log/dpkg.log", f"some day install {IMAGE}:amd64 <none> 1\n")
    assert read(as_host, "apt", {"6.1.0-57-amd64": IMAGE})[0] == {"6.1.0-57-amd64": None}


EL, PACKAGE = "5.14.0-611.5.1.el9_7.x86_64", "kernel-core-5.14.0-611.5.1.el9_7.x86_64"


@pytest.mark.parametrize("manager", ["dnf", "zypper"])
def test_rpm_knows_when_it_installed_a_kernel(as_host, manager):
    answer = f"{PACKAGE}\t1795921800\nstrange line\n"
    programs = Programs(rpm=children.Result(rc=0, out=answer))
    found, _context = read(as_host, manager, {EL: PACKAGE, "x": None}, programs)
    assert found == {EL: {"when": "2026-11-29T03:10:00Z", "record": f"rpm has {PACKAGE}"}}
    assert programs.calls[0][-1] == PACKAGE and read(as_host, manager, {"x": None}, programs)[0] == {}


def test_rpm_that_does_not_answer_is_told(as_host):
    found, context = read(as_host, "dnf", {EL: PACKAGE})
    assert found is None and "rpm is not installed" in context.unknown["kernel.installed[].arrived"]


def test_without_the_packages_nothing_is_said(as_host):
    context = as_host(lambda ctx: arrivals.read(ctx, "apt"))
    assert "kernel_arrivals" not in context.facts and "kernel.installed[].arrived" in context.unknown


def test_it_stands_with_its_kernel(host):
    host.put("/etc/os-release", 'ID=debian\nVERSION_ID="12"\n')
    for release in ("6.1.0-47-amd64", "6.1.0-57-amd64"):
        host.put(f"/boot/vmlinuz-{release}")
    host.put("/var/lib/dpkg/status", stanza(IMAGE))
    host.put("/var/log/dpkg.log", LOG)
    facts = collector.collect(str(host.root))
    rows = {row["release"]: row["arrived"] for row in facts["kernel"]["installed"]}
    assert rows["6.1.0-57-amd64"]["when"] == "2026-11-29T03:10:00Z" and rows["6.1.0-47-amd64"] is None
    assert "kernel_arrivals" not in facts
