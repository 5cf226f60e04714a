# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secure Boot: the key that modules built here are signed with, as a decision."""

from __future__ import annotations

from typing import Any

from ..model.host import Module, SigningKey
from ..rules import kernels, secure_boot
from ..rules.context import Candidate, Context

# Where the facts do not say it: as DKMS has it on Debian, EL and SUSE.
_DEFAULT = ("/var/lib/dkms/mok.pub", "/var/lib/dkms/mok.key")
PACKAGES = ("mokutil", "openssl")


def decision(context: Context, chosen: Candidate) -> dict[str, Any] | None:
    """Return ``{certificate, private_key, name, state}``, None where no key is needed or nobody can tell.

    ``state``: wanted (to be asked for), requested (waits for the console) or enrolled.
    """
    if not secure_boot.needs_key(context, chosen):
        return None
    key, state = context.host.signing_key, secure_boot.key_state(context)
    if state == "unknown" or (state != "enrolled" and not secure_boot.waits(context, chosen)):
        return None    # what loads now is signed by another way, which is left alone
    known = isinstance(key, SigningKey)
    if state == "enrolled" and not known:
        return None
    return {
        "certificate": key.certificate if isinstance(key, SigningKey) else _DEFAULT[0],
        "private_key": key.private_key if isinstance(key, SigningKey) else _DEFAULT[1],
        "name": key.name if isinstance(key, SigningKey) and isinstance(key.name, str) else None,
        "state": {"absent": "wanted"}.get(state, state),
    }


def unsigned(context: Context, chosen: Candidate) -> list[str]:
    """Return the kernels whose module of this driver is not signed with the enrolled key of this host."""
    mok = context.driver.mok
    if mok is None or mok["state"] != "enrolled" or not chosen.installed:
        return []
    found = []
    for release in context.driver.kernels:
        kernel = context.host.kernel(release)
        module = kernel.module if kernel is not None else None
        if not isinstance(module, Module) or kernel is None or not kernels.has_module_of(kernel, chosen):
            continue
        strange = isinstance(module.signer, str) and mok["name"] is not None and module.signer != mok["name"]
        if module.origin == "dkms" and (module.signed is False or (strange and not secure_boot.is_taken(context))):
            found.append(release)
    return found
