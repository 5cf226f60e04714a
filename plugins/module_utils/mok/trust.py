# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose signatures a kernel takes, as far as a host can tell before that kernel runs.

Known are the keys of the running kernel, by their names, and the machine owner's keys. A kernel of the same vendor has
the same ones; which of them vouch for modules (firmware's do on some distributions alone) is not told.

Source: security/keys/proc.c, crypto/asymmetric_keys/x509_public_key.c (O: CN, or CN where that begins with O).
"""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass, field
from typing import Any

from ..facts import kernel, modinfo, secure_boot
from ..facts.context import Context
from ..facts.tree import Tree

_KEYS = "/proc/keys"
_KEY = re.compile(r"\sasymmetri\w*\s+(?P<name>\S.*): [0-9a-f]+: X509\.", re.M)
WAY_OUT = "enrol that key (mokutil --import), or take modules that the distribution signs"


@dataclass(frozen=True)
class Trust:
    """``keys``: names in the running kernel; empty where that does not say. ``own``: the key that DKMS signs with.

    ``shown``: who signed the driver that is loaded. A signature names who issued its key, and that one is not always
    among the keys.
    """

    keys: frozenset[str] = frozenset()
    mok: frozenset[str] = frozenset()
    shown: frozenset[str] = frozenset()
    own: dict[str, Any] = field(default_factory=dict)

    def takes(self, signer: str | None) -> bool | None:
        """Whether a kernel takes what ``signer`` signed; None where that cannot be told."""
        if signer is not None and signer in self.keys | self.mok | self.shown:
            return True
        return None if signer is None or not self.keys else False

    def takes_own(self) -> bool | None:
        """Whether a kernel takes what DKMS signs on this host; None where that cannot be told.

        The certificate itself has to be enrolled: a key that was made again has the name of the former one.
        """
        if self.own.get("enrolled") is True or self.own.get("name") in self.keys - self.mok:
            return True
        return None if not self.keys or not self.own else False

    def refusal(self, what: str, signer: str | None) -> str:
        """The sentence for what :meth:`takes` refuses."""
        return (f"Secure Boot is on, and {what} is signed by {signer}, which is neither among the kernel's keys "
                f"({_KEYS}) nor enrolled: it would not be loaded; {WAY_OUT}")

    @staticmethod
    def doubt(what: str, signer: str | None) -> str:
        """The sentence for what :meth:`takes` cannot tell."""
        if signer is None:
            return f"Secure Boot is on, and who signed {what} is not told before it is installed"
        return (f"Secure Boot is on, and {what} is signed by {signer}; whether the kernel takes that key cannot be "
                f"told ({_KEYS} names none)")


def read(root: str = "/") -> Trust:
    """What the host tells; what cannot be read is left out."""
    tree = Tree(root)
    context = Context(tree)
    with context.attempt("keys"):
        context.set("keys", frozenset(names(tree.text(_KEYS) or "")))
    with context.attempt("mok"):
        context.set("mok", frozenset(secure_boot.names(secure_boot.enrolled(tree))))
    with context.attempt("shown"):
        if re.search(r"^nvidia ", tree.text("/proc/modules") or "", re.M):
            context.set("shown", frozenset(signers(root, None)))
    with context.attempt("own"):
        context.set("own", secure_boot.signing_key(tree))
    return Trust(**context.facts)


def names(text: str) -> set[str]:
    """The names of the asymmetric keys of /proc/keys: as they are written there, and without the organisation."""
    found = {match.group("name") for match in _KEY.finditer(text)}
    return found | {name.split(": ", 1)[1] for name in found if ": " in name}


def signers(root: str, name: str | None) -> set[str]:
    """Who signed the modules of set ``name`` that the running kernel has; None: the driver's."""
    tree, found = Tree(root), set()
    context = Context(tree)
    for path in kernel.own_modules(tree, platform.release()):
        if kernel.is_driver(path) if name is None else kernel.set_of(path) == name:
            with context.attempt(path):
                found.add(modinfo.inspect(context, path).get("signer"))
    return {one for one in found if one}
