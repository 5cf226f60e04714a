# SPDX-License-Identifier: GPL-3.0-or-later
"""A small fleet with something of everything, for the tests of the page."""

from __future__ import annotations

from typing import Any

HOSTILE = "</script><script>document.title='taken'</script><img src=http://192.0.2.1/x onerror=alert(1)>"
LONG = "a-name-without-any-place-to-break-" * 8


def plan(verdict: str, gpus: str, kernel: str, driver: str | None, **more: Any) -> dict[str, Any]:
    """Return a plan in the shape that the action gives it."""
    return {
        "verdict": verdict,
        "decisions": {"driver": {"version": "580.178.04", "flavour": "open", "owner": "host"}},
        "changes": [],
        "pending": [],
        "findings": [],
        "subject": {"gpus": gpus, "os": "debian 13", "kernel": kernel, "driver": driver, "containerd": "1.7.24"},
        **more,
    }


def finding(rule: str, severity: str, subject: str, summary: str, **more: Any) -> dict[str, Any]:
    """Return a finding with a remedy and two sources, one of them with an address."""
    return {
        "rule": rule,
        "severity": severity,
        "subject": subject,
        "summary": summary,
        "remedy": f"set gpu_driver_branch for {subject}",
        "sources": ["https://docs.nvidia.com/datacenter/tesla/drivers/", "our own tests"],
        **more,
    }


def change(action: str, target: str, **more: Any) -> dict[str, Any]:
    """Return a change of the role gpu_driver."""
    return {
        "role": "gpu_driver",
        "action": action,
        "target": target,
        "before": None,
        "after": "580.178.04-1",
        "disruption": "none",
        **more,
    }


REBOOT = change("reboot", "nouveau", disruption="reboot", needs="gpu_reboot_allowed")
INSTALL = change("install", "nvidia-open")
VOLTA = finding("GPU002", "error", "10de:1db6 (V100)", "R595 does not support Volta")
OLD = finding("DRV004", "warning", "580.126.09", "580.126.09 is below the security floor")


def plans() -> dict[str, dict[str, Any]]:
    """Return plans of 24 hosts in seven shapes."""
    t4, h100, v100 = "4 x Tesla T4", "8 x H100 SXM5 80GB", "2 x Tesla V100"
    found = {f"gpu-a{number:02}": plan("ok", t4, "6.1.0-57-amd64", "580.178.04 open") for number in range(1, 13)}
    found |= {
        f"gpu-b{number:02}": plan("change", h100, "6.12.118+deb13-amd64", None, changes=[INSTALL])
        for number in range(1, 7)
    }
    found["gpu-c01"] = plan("blocked", v100, "6.12.118+deb13-amd64", None, findings=[VOLTA, OLD])
    found["gpu-c02"] = plan("ok", t4, "6.1.0-57-amd64", "580.126.09 open", findings=[OLD], pending=[REBOOT])
    found["gpu-d01"] = plan("ok", "1 x L4, 1 x Tesla T4", "6.1.0-57-amd64", "580.178.04 open", findings=[
        {**OLD, "waived": "until 2027-01-31: the vendor asked for it"}])
    found[HOSTILE] = plan("blocked", HOSTILE, HOSTILE, HOSTILE, findings=[finding(HOSTILE, "error", HOSTILE, HOSTILE)])
    found[LONG] = plan("ok", LONG, LONG, LONG, findings=[finding("SYS001", "info", LONG, LONG)])
    return found


UNREAD = ["gpu-lost"]
