# SPDX-License-Identifier: GPL-3.0-or-later
"""Verifying leaves a host as it was."""

from __future__ import annotations


def test_the_driver_is_still_held(host):
    with host.sudo():
        assert "nvidia-kernel-dkms" in host.check_output("apt-mark showhold").split()


def test_no_file_of_a_module_is_left(host):
    with host.sudo():
        assert host.check_output("ls -A /root/.ansible/tmp 2>/dev/null || true") == ""
