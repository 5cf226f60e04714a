# SPDX-License-Identifier: GPL-3.0-or-later
"""A default that is right now, and that a setting would move with the next kernel or the next menu."""
from __future__ import annotations

from typing import Any

import as_planned
import hosts
import pytest


def boot_changes(made: dict[str, Any]) -> list[tuple[Any, Any]]:
    return [(one["before"], one["after"]) for one in made["changes"] if one["action"] == "boot_default"]


@pytest.mark.parametrize(("boot", "change"), [
    ({"menu": "bls", "update_default": True}, ("UPDATEDEFAULT=yes", "UPDATEDEFAULT=no")),
    ({"menu": "bls", "update_default": False}, None),
    ({"menu": "bls"}, None),
    ({"menu": "grub_cfg", "configured_default": "0"}, ("GRUB_DEFAULT=0", "GRUB_DEFAULT=saved")),
    ({"menu": "grub_cfg", "configured_default": "saved"}, None),
    ({"menu": "grub_cfg", "configured_default": None}, None),
    ({"menu": "bls", "configured_default": "0"}, ("GRUB_DEFAULT=0", "GRUB_DEFAULT=saved")),
    ({"menu": "bls", "configured_default": "saved", "update_default": False}, None),
    ({"menu": "bls", "configured_default": None}, None),
])
def test_settings_that_would_move_the_default(plan: Any, boot: dict[str, Any], change: tuple[str, str] | None) -> None:
    facts = hosts.fresh()
    done = as_planned.carry_out(facts, plan(facts))
    assert plan(done)["verdict"] == "ok"
    done["boot"].update(boot)
    made = plan(done)
    assert boot_changes(made) == ([change] if change else [])
    assert made["verdict"] == ("change" if change else "ok")
    assert boot_changes(plan(done, gpu_kernel_policy="off")) == []
