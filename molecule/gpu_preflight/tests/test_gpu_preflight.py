# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning leaves a host as it was."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("path", [
    "/var/lib/baremetal-nvidia/state.json",
    "/etc/modprobe.d/baremetal-nvidia.conf",
    "/etc/apt/preferences.d/baremetal-nvidia",
    "/etc/apt/apt.conf.d/52baremetal-nvidia", "/etc/default/grub.d/zz-baremetal-nvidia.cfg",
])
def test_nothing_was_written(host, path):
    assert not host.file(path).exists


def test_nothing_is_held_and_nothing_was_installed(host):
    with host.sudo():
        assert host.check_output("apt-mark showhold") == ""
        assert not host.package("nvidia-kernel-dkms").is_installed


def test_no_file_of_a_module_is_left(host):
    with host.sudo():
        assert host.check_output("ls -A /root/.ansible/tmp 2>/dev/null || true") == ""
