# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E501 - lines of real files are kept whole
"""A Debian host as files: what dpkg and apt have of it."""

from __future__ import annotations

from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import packages

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


def lay(host):
    """A host with two sources and their lists."""
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
