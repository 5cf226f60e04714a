# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E501 - lines of real files are kept whole
"""Sources of apt, and what is pinned."""

from __future__ import annotations

from apt_host import read


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
