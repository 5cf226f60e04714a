# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of apt: upgrades that come by themselves."""

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import aptconf
from apt_host import read, stanza

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
