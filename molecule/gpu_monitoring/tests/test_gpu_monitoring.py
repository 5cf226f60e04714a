# SPDX-License-Identifier: GPL-3.0-or-later
"""The collector runs by its timer and says what it found: on this host a driver that is not loaded."""

from __future__ import annotations

import re
import time

PAGE = "/var/lib/prometheus/node-exporter/baremetal-nvidia.prom"


def _collected(host) -> float:
    text = host.file(PAGE).content_string
    found = re.search(r"^baremetal_nvidia_collected_timestamp_seconds ([0-9.e+]+)$", text, re.M)
    assert found
    return float(found.group(1))


def test_the_timer_runs_now_and_after_a_restart(host):
    timer = host.service("baremetal-nvidia-metrics.timer")
    assert timer.is_running and timer.is_enabled


def test_it_collects_again_and_again(host):
    first, end = _collected(host), time.monotonic() + 60
    while _collected(host) == first and time.monotonic() < end:
        time.sleep(1)
    assert _collected(host) > first


def test_a_driver_that_does_not_answer_is_a_metric(host):
    text = host.file(PAGE).content_string
    assert re.search(r"^baremetal_nvidia_smi_up 0$", text, re.M), text
    assert re.search(r"^baremetal_nvidia_gpus_on_bus [0-9]+$", text, re.M), text
    assert "DCGM_" not in text, "nothing is said of GPUs that nobody asked"


def test_everybody_can_read_it_and_only_root_writes(host):
    page = host.file(PAGE)
    assert (page.user, page.mode) == ("root", 0o644)


def test_the_unit_is_confined(host):
    with host.sudo():
        shown = host.check_output("systemctl show -p ProtectSystem -p NoNewPrivileges baremetal-nvidia-metrics.service")
    assert set(shown.splitlines()) == {"ProtectSystem=strict", "NoNewPrivileges=yes"}
