# SPDX-License-Identifier: GPL-3.0-or-later
"""Verifying leaves a host as it was."""

from __future__ import annotations


def test_the_driver_is_still_held(host):
    with host.sudo():
        assert "nvidia-kernel-dkms" in host.check_output("apt-mark showhold").split()


def test_no_lease_is_left(host):
    with host.sudo():
        assert '"lease": null' in host.check_output("cat /var/lib/baremetal-nvidia/state.json") or "run_id" not in host.check_output(
            "python3 -c \"import json; print(json.load(open('/var/lib/baremetal-nvidia/state.json')).get('lease'))\""
        )
