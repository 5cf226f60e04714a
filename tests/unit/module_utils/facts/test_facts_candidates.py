# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E501 - lines of real answers are kept whole
"""Kernels that an upgrade would bring. The answers of apt, dnf and zypper are taken from the real ones."""

from __future__ import annotations

import gzip
import json
import pathlib

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import run as children
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import (
    advisories,
    candidate,
    candidates,
    candidates_apt,
    candidates_dnf,
    candidates_zypper,
    collector,
    kmps,
    names,
    rpmdb,
)
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.candidate import Candidate
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.context import Context
from facts_helpers import AsHost, Programs

# ---- apt

JAMMY = """\
Reading package lists...
Building dependency tree...
Calculating upgrade...
The following NEW packages will be installed:
  linux-headers-5.15.0-204 linux-headers-5.15.0-204-generic
Inst cloud-init [24.4-0ubuntu1~22.04.2] (25.2-0ubuntu1~22.04.1 Ubuntu:jammy-updates, Ubuntu:jammy-security [all])
Inst linux-modules-5.15.0-204-generic (5.15.0-204.215 Ubuntu:jammy-updates, Ubuntu:jammy-security [amd64])
Inst linux-image-5.15.0-204-generic (5.15.0-204.215 Ubuntu:jammy-updates, Ubuntu:jammy-security [amd64])
Inst linux-modules-extra-5.15.0-204-generic (5.15.0-204.215 Ubuntu:jammy-updates, Ubuntu:jammy-security [amd64])
Inst linux-generic [5.15.0.201.197] (5.15.0.204.200 Ubuntu:jammy-updates, Ubuntu:jammy-security [amd64]) []
Inst linux-image-generic [5.15.0.201.197] (5.15.0.204.200 Ubuntu:jammy-updates, Ubuntu:jammy-security [amd64]) []
Inst linux-headers-5.15.0-204 (5.15.0-204.215 Ubuntu:jammy-updates, Ubuntu:jammy-security [all]) []
Inst linux-headers-5.15.0-204-generic (5.15.0-204.215 Ubuntu:jammy-updates, Ubuntu:jammy-security [amd64]) []
Inst linux-headers-generic [5.15.0.201.197] (5.15.0.204.200 Ubuntu:jammy-updates, Ubuntu:jammy-security [amd64])
Inst linux-modules-nvidia-580-server-open-generic [5.15.0-201.212+1] (5.15.0-203.214+1 Ubuntu:jammy-updates [amd64])
Inst linux-tools-5.15.0-204-generic (5.15.0-204.215 Ubuntu:jammy-updates [amd64])
Conf linux-image-5.15.0-204-generic (5.15.0-204.215 Ubuntu:jammy-updates, Ubuntu:jammy-security [amd64])
"""
GENERIC_204 = {
    "linux-generic": "5.15.0.204.200", "linux-headers-5.15.0-204": "5.15.0-204.215",
    "linux-headers-5.15.0-204-generic": "5.15.0-204.215", "linux-headers-generic": "5.15.0.204.200",
    "linux-image-5.15.0-204-generic": "5.15.0-204.215", "linux-image-generic": "5.15.0.204.200",
    "linux-modules-5.15.0-204-generic": "5.15.0-204.215", "linux-modules-extra-5.15.0-204-generic": "5.15.0-204.215",
}  # fmt: skip
HWE = """\
Inst linux-image-6.8.0-150-generic (6.8.0-150.150~22.04.1 Ubuntu:22.04/jammy-updates [amd64])
Inst linux-image-generic-hwe-22.04 [6.8.0-149.149~22.04.1] (6.8.0-150.150~22.04.1 Ubuntu:22.04/jammy-updates [amd64])
Inst linux-hwe-6.8-headers-6.8.0-150 (6.8.0-150.150~22.04.1 Ubuntu:22.04/jammy-updates [all])
Inst linux-headers-6.8.0-150-generic (6.8.0-150.150~22.04.1 Ubuntu:22.04/jammy-updates [amd64])
"""
BOOKWORM = """\
Inst linux-headers-6.1.0-50-common (6.1.176-1 Debian-Security:12/oldstable-security [all]) []
Inst linux-image-amd64 [6.1.170-1] (6.1.176-1 Debian-Security:12/oldstable-security [amd64]) []
Inst linux-image-6.1.0-50-amd64 (6.1.176-1 Debian-Security:12/oldstable-security [amd64])
Inst linux-kbuild-6.1 [6.1.170-1] (6.1.176-1 Debian-Security:12/oldstable-security [amd64])
Inst linux-headers-6.1.0-50-amd64 (6.1.176-1 Debian-Security:12/oldstable-security [amd64])
Inst linux-headers-amd64 [6.1.170-1] (6.1.176-1 Debian-Security:12/oldstable-security [amd64])
Inst linux-libc-dev [6.1.170-1] (6.1.176-1 Debian-Security:12/oldstable-security [amd64])
"""
OLD = "5.15.0-201-generic"


def test_ubuntu_the_kernel_of_the_metas_with_all_that_belongs_to_it():
    (one,) = candidates_apt.candidates(candidates_apt.moves(JAMMY), {OLD})
    assert one == Candidate("5.15.0-204-generic", GENERIC_204, True, "jammy-updates")


def test_a_kernel_and_a_hwe_kernel_share_no_package():
    ga, hwe = candidates_apt.candidates(candidates_apt.moves(JAMMY + HWE), {OLD})
    assert ga.packages == GENERIC_204
    assert hwe.release == "6.8.0-150-generic" and hwe.security is False
    assert set(hwe.packages) == {"linux-image-6.8.0-150-generic", "linux-image-generic-hwe-22.04",
                                 "linux-hwe-6.8-headers-6.8.0-150", "linux-headers-6.8.0-150-generic"}


def test_debian_a_meta_goes_by_its_flavour_and_the_archive_tells_security():
    (one,) = candidates_apt.candidates(candidates_apt.moves(BOOKWORM), {"6.1.0-47-amd64"})
    assert one.release == "6.1.0-50-amd64" and one.security is True and one.origin == "oldstable-security"
    assert set(one.packages) == {"linux-image-6.1.0-50-amd64", "linux-image-amd64", "linux-headers-6.1.0-50-amd64",
                                 "linux-headers-6.1.0-50-common", "linux-headers-amd64"}


@pytest.mark.parametrize("text", ["", "Inst cloud-init [1] (2 Ubuntu:jammy [all])\n", BOOKWORM])
def test_what_is_installed_is_no_candidate(text):
    assert candidates_apt.candidates(candidates_apt.moves(text), {"6.1.0-50-amd64"}) == []


SOURCES = "deb http://archive.ubuntu.com/ubuntu jammy-updates main\ndeb http://security.ubuntu.com/ubuntu jammy-security main\n"
STATUS = """\
Package: linux-image-generic
Status: {want} ok installed
Architecture: amd64
Version: 5.15.0.201.197

Package: linux-image-5.15.0-201-generic
Status: install ok installed
Architecture: amd64
Version: 5.15.0-201.212
"""


def packages(*rows):
    return "\n".join(f"Package: {name}\nArchitecture: amd64\nVersion: {version}\nDepends: x\n" for name, version in rows)


def kernel(number, upload):
    version = f"5.15.0-{number}.{upload}"
    return [(f"linux-{part}-5.15.0-{number}{flavour}", version) for part, flavour in
            (("image", "-generic"), ("modules", "-generic"), ("modules-extra", "-generic"), ("headers", ""),
             ("headers", "-generic"), ("tools", "-generic"))]


@pytest.fixture
def ubuntu(host):
    lists = "/var/lib/apt/lists"
    host.many({
        "/etc/os-release": 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"\n',
        "/etc/apt/sources.list": SOURCES, "/var/lib/dpkg/arch": "amd64\n",
        "/var/lib/dpkg/status": STATUS.format(want="install"), f"/boot/vmlinuz-{OLD}": "x", f"/boot/vmlinuz-{OLD}.old": "x",
        f"{lists}/archive.ubuntu.com_ubuntu_dists_jammy-updates_main_binary-amd64_Packages":
            packages(*kernel(200, 211), *kernel(202, 213), *kernel(203, 214), *kernel(204, 215),
                     ("linux-image-5.15.0-203-lowlatency", "5.15.0-203.214"), ("linux-image-6.8.0-149-generic", "6.8.0-149.149~22.04.1")),
        f"{lists}/security.ubuntu.com_ubuntu_dists_jammy-security_main_binary-amd64_Packages": packages(*kernel(203, 214)),
    })  # fmt: skip
    return host


def ask(host, **answers):
    runner = Programs(**answers)
    context = Context(AsHost(str(host.root)), runner=runner)
    candidates.read(context)
    return context, runner


def apt(text=JAMMY, rc=0):
    return {"apt_get": children.Result(rc=rc, out=text)}


def test_older_ones_that_the_lists_still_have_come_below(ubuntu):
    context, runner = ask(ubuntu, **apt())
    rows = context.facts["kernel"]["candidates"]
    assert [row["release"] for row in rows] == ["5.15.0-204-generic", "5.15.0-203-generic", "5.15.0-202-generic"]
    assert [row["security"] for row in rows] == [True, True, False]
    assert rows[1]["packages"] == {name: version for name, version in kernel(203, 214) if "tools" not in name}
    assert rows[0]["packages"] == dict(sorted(GENERIC_204.items()))
    assert len(runner.calls) == 1 and "--ignore-hold" in runner.calls[0]


MADE = """Package: linux-modules-nvidia-580-server-open-5.15.0-{number}-generic
Version: 5.15.0-{number}.215{again}
Depends: linux-image-5.15.0-{number}-generic | linux-image-unsigned-5.15.0-{number}-generic, \
nvidia-kernel-common-580-server (<= {driver}-1), nvidia-kernel-common-580-server (>= {driver})

"""


def test_ready_modules_are_told_with_the_driver_that_they_are_made_for(ubuntu):
    path = "/var/lib/apt/lists/archive.ubuntu.com_ubuntu_dists_jammy-updates_main_binary-amd64_Packages"
    rows = [(204, "", "580.178.04"), (203, "+1", "580.178.04"), (203, "", "580.159.03"), (200, "", "580.159.03")]
    text = (ubuntu.root / path[1:]).read_text()
    ubuntu.many({path: text + "\n" + "".join(MADE.format(number=number, again=again, driver=driver) for number, again, driver in rows)})
    context, _runner = ask(ubuntu, **apt())
    name = "linux-modules-nvidia-580-server-open-5.15.0-{}-generic"
    assert [one["modules"] for one in context.facts["kernel"]["candidates"]] == [
        {name.format(204): {"5.15.0-204.215": "580.178.04"}},
        {name.format(203): {"5.15.0-203.215+1": "580.178.04", "5.15.0-203.215": "580.159.03"}},
        {},
    ]


def test_our_preferences_are_left_out_for_the_run_and_theirs_are_not(ubuntu, monkeypatch):
    ubuntu.many({"/etc/apt/preferences.d/baremetal-nvidia": "Package: linux-generic\nPin: version *\nPin-Priority: -1\n",
                 "/etc/apt/preferences.d/theirs": "Package: x\nPin: version 1\nPin-Priority: 1001\n"})
    seen = {}

    def look(argv, **_options):
        directory = next(word for word in argv if word.startswith("Dir::Etc::PreferencesParts=")).partition("=")[2]
        seen.update({path.name: path.read_text() for path in pathlib.Path(directory).iterdir()})
        seen["directory"] = directory
        return children.Result(rc=0, out=JAMMY)

    context = Context(AsHost(str(ubuntu.root)), runner=look)
    candidates.read(context)
    directory = seen.pop("directory")
    assert list(seen) == ["theirs"] and "1001" in seen["theirs"]
    assert not ubuntu.path(directory).exists() and len(context.facts["kernel"]["candidates"]) == 3


def test_a_hold_of_a_person_stays_and_one_of_ours_does_not(ubuntu):
    ubuntu.put("/var/lib/dpkg/status", STATUS.format(want="hold"))
    context, _runner = ask(ubuntu, **apt())
    assert [row["release"] for row in context.facts["kernel"]["candidates"]] == ["5.15.0-203-generic", "5.15.0-202-generic"]
    ubuntu.put("/var/lib/baremetal-nvidia/state.json", json.dumps({"holds": {"kernel": {"linux-image-generic": {}}}}))
    context, _runner = ask(ubuntu, **apt())
    assert len(context.facts["kernel"]["candidates"]) == 3


@pytest.mark.parametrize(("answer", "why"), [
    (children.Result(rc=100, err="E: Unable to correct problems, you have held broken packages."), "held broken packages"),
    (children.Result(rc=124, timed_out=True), "did not end in time")])
def test_a_resolver_that_fails_makes_it_unknown(ubuntu, answer, why):
    context, _runner = ask(ubuntu, apt_get=answer)
    assert why in context.unknown["kernel.candidates"] and "kernel" not in context.facts


def test_none_comes_and_that_was_looked_at(ubuntu):
    assert ask(ubuntu, **apt("Calculating upgrade...\n"))[0].facts["kernel"]["candidates"] == []


def test_another_tree_is_not_asked(ubuntu):
    assert "another tree" in ubuntu.read(candidates.read).unknown["kernel.candidates"]


# ---- dnf

EL = "5.14.0-687.{}.el9_8"


def el(number, security, *names):
    return [[name, 0, EL.format(number), "x86_64", "baseos", security]
            for name in names or ("kernel", "kernel-core", "kernel-modules", "kernel-modules-core", "kernel-tools")]


DNF = {"coming": el("15.1", False), "there": [*el("5.3", None), *el("12.1", True), *el("15.1", False)]}
ROCKY = 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.8"\n'


@pytest.fixture
def rocky(host):
    host.many({"/etc/os-release": ROCKY, "/usr/bin/dnf-3": "#!/usr/libexec/platform-python\n",
               f"/boot/vmlinuz-{EL.format('5.3')}.x86_64": "x"})
    return host


def test_dnf_says_it_by_its_own_library_and_python(rocky):
    context, runner = ask(rocky, platform_python=children.Result(rc=0, out=f"warning\n{json.dumps(DNF)}\n"))
    rows = context.facts["kernel"]["candidates"]
    assert [(row["release"], row["security"]) for row in rows] == [
        (f"{EL.format('15.1')}.x86_64", True), (f"{EL.format('12.1')}.x86_64", True)]  # the newer one has its fixes
    assert set(rows[0]["packages"]) == {"kernel", "kernel-core", "kernel-modules", "kernel-modules-core"}
    assert rows[1]["packages"]["kernel-core"] == EL.format("12.1") and rows[1]["origin"] == "baseos"
    assert runner.calls[0][0] == "/usr/libexec/platform-python" and "fill_sack_from_repos_in_cache" in runner.calls[0][2]


def test_dnf5_is_asked_where_it_is_the_only_one(rocky):
    rocky.path("/usr/bin/dnf-3").unlink()
    rocky.put("/usr/bin/dnf5", b"\x7fELF")
    context, runner = ask(rocky, python3=children.Result(rc=0, out=json.dumps(DNF)))
    assert len(context.facts["kernel"]["candidates"]) == 2 and "clear_versionlock_excludes" in runner.calls[0][2]


def test_our_exclusions_are_told_to_dnf(rocky):
    state = {"locks": {"kernel": {"/etc/dnf/dnf.conf": ["kernel*"]}}}
    rocky.put("/var/lib/baremetal-nvidia/state.json", json.dumps(state))
    _context, runner = ask(rocky, platform_python=children.Result(rc=0, out=json.dumps(DNF)))
    assert json.loads(runner.calls[0][3]) == ["kernel*"]


def test_a_versionlock_of_a_person_stays(rocky):
    rocky.many({"/usr/lib/python3.9/site-packages/dnf-plugins/versionlock.py": "", "/etc/dnf/plugins/versionlock.conf": "[main]\nenabled=1\n",
                "/etc/dnf/plugins/versionlock.list": f"kernel-core-0:{EL.format('5.3')}.*\n"})
    answer = {"platform_python": children.Result(rc=0, out=json.dumps(DNF))}
    assert ask(rocky, **answer)[0].facts["kernel"]["candidates"] == []
    rocky.put("/var/lib/baremetal-nvidia/state.json", json.dumps({"holds": {"kernel": {"kernel-core": {}}}}))
    assert len(ask(rocky, **answer)[0].facts["kernel"]["candidates"]) == 2


@pytest.mark.parametrize(("answer", "why"), [
    (children.Result(rc=1, err="Traceback\ndnf.exceptions.RepoError: Cache-only enabled but no cache for 'baseos'"), "no cache for"),
    (children.Result(rc=0, out="not json"), "JSONDecodeError"), (children.Result(rc=0, out="[]"), "something else")])
def test_a_dnf_that_does_not_answer_makes_it_unknown(rocky, answer, why):
    assert why in ask(rocky, platform_python=answer)[0].unknown["kernel.candidates"]


def test_a_real_time_kernel_has_its_mark_and_its_own_packages():
    rows = [*el("15.1", None, "kernel-rt", "kernel-rt-core", "kernel-rt-modules"), *el("15.1", None)]
    plain, realtime = sorted(candidates_dnf.candidates({"coming": rows, "there": rows}, set()), key=lambda one: one.release)
    assert realtime.release == f"{EL.format('15.1')}.x86_64+rt" and set(realtime.packages) == {"kernel-rt", "kernel-rt-core", "kernel-rt-modules"}
    assert "kernel-rt-core" not in plain.packages


# ---- zypper

SUMMARY = """<?xml version='1.0'?>
<stream><message type="info">Loading repository data...</message>
<install-summary download-size="15923" packages-to-change="2">
<to-upgrade>
<solvable type="package" name="timezone" edition="2025b-150600.91.6.2" arch="noarch" repository="Updates"
  edition-old="2024b-150600.91.3.1" arch-old="noarch" summary="x"/>
</to-upgrade>
<to-install>
<solvable type="package" name="kernel-default" edition="6.4.0-150600.23.73.1" arch="x86_64"
  repository="SLE-Product-SLES15-SP6-Updates" summary="The Standard Kernel">
<description>Stand-in</description></solvable>
</to-install>
</install-summary></stream>
"""
SEARCH = """<?xml version='1.0'?>
<stream><search-result><solvable-list>
<solvable status="not-installed" name="kernel-default" kind="package" edition="6.4.0-150600.23.73.1" arch="x86_64" repository="SLE-Product-SLES15-SP6-Updates"/>
<solvable status="not-installed" name="kernel-default" kind="package" edition="6.4.0-150600.23.60.5" arch="x86_64" repository="SLE-Product-SLES15-SP6-Updates"/>
<solvable status="not-installed" name="kernel-default" kind="package" edition="6.4.0-150600.23.60.4" arch="x86_64" repository="SLE-Product-SLES15-SP6-Updates"/>
<solvable status="installed" name="kernel-default" kind="package" edition="6.4.0-150600.23.47.2" arch="x86_64" repository="SLE-Product-SLES15-SP6-Pool"/>
</solvable-list></search-result></stream>
"""
UPDATEINFO = """<?xml version="1.0"?><updates><update from="x" status="stable" type="security" version="1"><id>S-9001</id>
<pkglist><collection><package name="kernel-default" epoch="0" version="6.4.0" release="150600.23.60.5"
  arch="x86_64"><filename>f</filename></package></collection></pkglist></update>
<update from="x" status="stable" type="recommended" version="1"><id>S-9044</id>
<pkglist><collection><package name="kernel-default" epoch="0" version="6.4.0" release="150600.23.73.1" arch="x86_64"/></collection></pkglist></update></updates>
"""


RED_HAT = """<?xml version="1.0"?><updates>
<update from="x" status="final" type="security" version="3"><id>RHSA-1</id><issued date="2026-10-20 08:15:00"/><references>
<reference href="https://x" id="CVE-2026-1002" type="cve"/><reference href="https://x" id="CVE-2026-1001" type="cve"/></references>
<pkglist><collection><package name="kernel-core" version="5.14.0" release="687.12.1.el9_8" epoch="0" arch="x86_64"/>
<package name="kernel-core" version="5.14.0" release="687.3.1.el9_8" epoch="0" arch="x86_64"/>
<package name="vim" version="9" release="1" epoch="2" arch="x86_64"/></collection></pkglist></update>
<update from="x" status="final" type="bugfix" version="3"><id>RHBA-1</id><issued date="2026-11-20 08:15:00"/>
<pkglist><collection><package name="kernel-core" version="5.14.0" release="687.15.1.el9_8" epoch="0" arch="x86_64"/></collection></pkglist>
</update></updates>"""


@pytest.mark.parametrize(("path", "pack"), [("a1-x/repodata/1-updateinfo.xml.gz", gzip.compress), ("b/repodata/2-updateinfo.xml", bytes)])
def test_advisories_for_newer_kernels_are_told_with_their_day(host, path, pack):
    target = host.root / "var/cache/dnf" / path
    target.parent.mkdir(parents=True)
    target.write_bytes(pack(RED_HAT.encode()))
    context = Context(AsHost(str(host.root)), runner=Programs())
    advisories.read(context, "dnf", [rpmdb.Rpm("kernel-core", "0", "5.14.0-687.5.3.el9_8", "x86_64")])
    assert context.facts["packages"]["advisories"] == {"kernel-core": {"5.14.0-687.12.1.el9_8": {
        "since": "2026-10-20", "cves": ["CVE-2026-1001", "CVE-2026-1002"]}}}


@pytest.mark.parametrize(("name", "content"), [("1-updateinfo.xml.gz", b"torn"), ("1-updateinfo.xml.xz", b"torn"),
                                               ("1-updateinfo.xml.zst", b"torn")])
def test_advisories_that_cannot_be_read_are_told_beside_those_that_can(host, name, content):
    for path, data in ((f"a/repodata/{name}", content), ("b/repodata/2-updateinfo.xml", RED_HAT.encode())):
        target = host.root / "var/cache/dnf" / path
        target.parent.mkdir(parents=True)
        target.write_bytes(data)
    context = Context(AsHost(str(host.root)), runner=Programs())
    advisories.read(context, "dnf", [rpmdb.Rpm("kernel-core", "0", "5.14.0-687.5.3.el9_8", "x86_64")])
    assert list(context.facts["packages"]["advisories"]) == ["kernel-core"]
    assert list(context.unknown) == [f"packages.advisories[/var/cache/dnf/a/repodata/{name}]"]
    assert "cannot be unpacked" in context.unknown[f"packages.advisories[/var/cache/dnf/a/repodata/{name}]"]


@pytest.mark.parametrize(("date", "day"), [("1793232000", "2026-10-29"), ("2026-10-29 00:00:00", "2026-10-29"), ("soon", None)])
def test_the_day_of_an_advisory_as_red_hat_and_suse_write_it(date, day):
    text = UPDATEINFO.replace("<id>S-9001</id>", f'<id>S-9001</id><issued date="{date}"/>')
    assert [one.since for one in advisories.of(text, {"kernel-default"})] == [day, None]


KMP = "nvidia-open-driver-G06-signed-kmp-default"
KMPS = [f"580.{driver}_k6.4.0_150600.23.47-150600.3.{rebuild}.1" for driver, rebuild in (("178.04", 66), ("159.03", 60))]


def stanza(name, version, kind, symbols):
    number, _mark, release = version.rpartition("-")
    rows = "".join(f'<rpm:entry name="ksym({flavour}:{symbol})" flags="EQ" epoch="0" ver="{checksum}"/>' for flavour, symbol, checksum in symbols)
    return (f'<package type="rpm">\n  <name>{name}</name>\n  <arch>x86_64</arch>\n  <version epoch="0" ver="{number}" rel="{release}"/>\n'
            f'<format><rpm:{kind}>{rows}<rpm:entry name="/bin/sh" pre="1"/></rpm:{kind}></format></package>')


OLD_ABI, NEW_ABI = [("default", "module_layout", "4f1c0d5a"), ("default", "kmalloc&amp;x", "01")], [("default", "module_layout", "9b27e113")]
PRIMARY = "<metadata>" + "".join([
    stanza("kernel-default", "6.4.0-150600.23.60.5", "provides", OLD_ABI), stanza("kernel-default", "6.4.0-150600.23.73.1", "provides", NEW_ABI),
    stanza("vim", "9-1", "provides", []), stanza(KMP, KMPS[0], "requires", OLD_ABI[:1])]) + "</metadata>"


class Zypper:
    """Answers by the verb, and keeps what it was asked with which environment."""

    def __init__(self, summary=SUMMARY, rc=0):
        self.summary, self.rc, self.seen = summary, rc, []

    def __call__(self, argv, **options):
        self.seen.append((argv, options.get("env") or {}))
        if argv[0] == "rpm":
            version = f"{KMP}\t0\t{KMPS[1]}\tx86_64\n"
            return children.Result(rc=0, out=version if "-qa" in argv else "/bin/sh\nksym(default:kmalloc&x) = 01\n")
        if "update" in argv:
            conf = (options.get("env") or {}).get("ZYPP_CONF")
            if conf:
                self.conf = pathlib.Path(conf).read_text()
                path = next(line for line in self.conf.splitlines() if line.startswith("locksfile.path")).split("= ")[1]
                self.locks = pathlib.Path(path).read_text()
            return children.Result(rc=self.rc, out=self.summary)
        return children.Result(rc=0, out=SEARCH)


@pytest.fixture
def sles(host):
    host.many({"/etc/os-release": 'ID="sles"\nID_LIKE="suse"\nVERSION_ID="15.6"\n', "/boot/vmlinuz-6.4.0-150600.23.47-default": "x",
               "/etc/zypp/zypp.conf": "[main]\nmultiversion = provides:multiversion(kernel)\nlocksfile.path = /etc/zypp/locks\n",
               "/var/cache/zypp/raw/u/repodata/ab-updateinfo.xml": UPDATEINFO, "/var/cache/zypp/raw/u/repodata/ab-primary.xml": PRIMARY})
    return host


def test_zypper_the_kernel_of_the_summary_and_the_one_below(sles):
    context = Context(AsHost(str(sles.root)), runner=Zypper())
    candidates.read(context)
    origin = "SLE-Product-SLES15-SP6-Updates"
    assert context.facts["kernel"]["candidates"] == [
        {"release": "6.4.0-150600.23.73-default", "packages": {"kernel-default": "6.4.0-150600.23.73.1"}, "security": True, "origin": origin, "modules": {}},
        {"release": "6.4.0-150600.23.60-default", "packages": {"kernel-default": "6.4.0-150600.23.60.5"}, "security": True,
         "origin": origin, "modules": {KMP: KMPS}}]
    assert context.unknown == {}


def test_without_symbols_nobody_knows_which_kmp_fits(sles):
    sles.put("/var/cache/zypp/raw/u/repodata/ab-primary.xml", "<metadata/>")
    context = Context(AsHost(str(sles.root)), runner=Zypper())
    candidates.read(context)
    assert "modules" not in context.facts["kernel"]["candidates"][0] and "no symbols" in context.unknown["kernel.candidates[].modules"]


def test_a_kmp_without_a_symbol_proves_nothing():
    assert kmps.fitting({"ksym(default:a)": "1"}, {("x", "1-1"): {}, ("y", "1-1"): {"ksym(default:a)": "2"}}) == {}


def test_zypper_reads_locks_without_ours(sles):
    def lock(name):
        return f"\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: {name}\n"

    from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.books import ZyppLocks

    text = lock("kernel-default") + lock("vim")
    sles.put("/etc/zypp/locks", text)
    entries = ZyppLocks().entries(text)
    sles.put("/var/lib/baremetal-nvidia/state.json", json.dumps({"locks": {"kernel": {"/etc/zypp/locks": entries[:1]}}}))
    zypper = Zypper()
    context = Context(AsHost(str(sles.root)), runner=zypper)
    candidates.read(context)
    assert "vim" in zypper.locks and "kernel-default" not in zypper.locks
    assert "multiversion = provides:multiversion(kernel)" in zypper.conf and zypper.conf.count("locksfile.path") == 1


def test_zypper_that_fails_or_is_no_xml_makes_it_unknown(sles):
    for zypper, why in ((Zypper("x", rc=4), "ended with status 4"), (Zypper("<stream>"), "cannot be read"),
                        (Zypper('<!DOCTYPE x [<!ENTITY a "b">]><stream/>'), "entities")):
        context = Context(AsHost(str(sles.root)), runner=zypper)
        candidates.read(context)
        assert why in context.unknown["kernel.candidates"]


@pytest.mark.parametrize(("version", "release"), [
    ("6.4.0-150600.23.73.1", "6.4.0-150600.23.73-default"), ("6.11.3-1.1", "6.11.3-1-default"), ("6.11.3-1", None)])
def test_suse_counts_rebuilds_in_the_last_number(version, release):
    assert candidates_zypper.release_of("kernel-default", version) == release
    assert candidates_zypper.release_of("kernel-default-devel", version) is None


# ---- what goes with it


def test_at_most_three_and_the_newest_first():
    found = [Candidate(f"6.8.0-{number}-generic") for number in (99, 100, 9, 101)]
    assert [row["release"] for row in candidate.newest(found, set())] == [f"6.8.0-{number}-generic" for number in (101, 100, 99)]


def test_it_is_read_when_it_is_asked_for_and_before_the_packages():
    plain = [[one.name for one in group] for group in collector.groups(60)]
    asked = [[one.name for one in group] for group in collector.groups(60, True)]
    assert ["packages"] in plain and ["candidates", "packages"] in asked


def test_what_is_offered_for_a_candidate_is_reported():
    assert candidate.coming({"kernel": {"candidates": [{"release": "5.15.0-203-generic"}]}}) == {"5.15.0-203-generic"}
    wanted = names.wanted_by({OLD, "5.15.0-203-generic"})
    for name in ("linux-modules-nvidia-580-server-open-5.15.0-203-generic", "linux-objects-nvidia-580-server-5.15.0-203-generic",
                 "linux-signatures-nvidia-5.15.0-203-generic", "linux-headers-5.15.0-203-generic"):  # fmt: skip
        assert wanted(name) and not names.wanted_by({OLD})(name)
