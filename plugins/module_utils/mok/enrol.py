# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Enrolment of a key: asked for on the host, confirmed by a person at the console, recognised afterwards.

No program can enrol a key: shim's MokManager asks for the one-time password before the system starts. So this ends at
the request. Source: mokutil(1); shim, MokManager.c (the request is gone once MokManager has run, confirmed or not).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Callable

from ..facts import secure_boot
from ..facts.tree import Tree
from .keys import MokError, Pair

Runner = Callable[..., Any]
ENROLLED, REQUESTED, WANTED = "enrolled", "requested", "wanted"
SHORTEST, LONGEST = 8, 64


@dataclass
class Outcome:
    """How the key stands, and what was done, or in check mode would be."""

    state: str
    changed: bool = False
    name: str | None = None
    fingerprint: str | None = None
    actions: list[str] = field(default_factory=list)


def check_password(password: str | None) -> str:
    """The password, if MokManager can take it. Raises MokError, in words that do not have it."""
    if not password:
        raise MokError("password is empty: choose a one-time password (gpu_mok_password); it is asked for once more, "
                       "at the console, and is of no use after that")
    if not SHORTEST <= len(password) <= LONGEST:
        raise MokError(f"password has {len(password)} characters; allowed are {SHORTEST} to {LONGEST}")
    if not all(" " < char <= "~" for char in password):
        raise MokError("password has characters that cannot be typed at the console; allowed are letters, digits and "
                       "signs of ASCII without blanks (MokManager has the keys of a US keyboard)")
    return password


def console_steps(name: str | None, fingerprint: str | None) -> list[str]:
    """What a person does at the console, in order."""
    return [
        "restart the host with a person at its console (the BMC's remote console will do)",
        "MokManager (a blue screen) waits ten seconds: press a key",
        f"choose Enroll MOK, View key, and see that it is {name or 'the key'}"
        + (f" with SHA1 {fingerprint}" if fingerprint else ""),
        "choose Continue, Yes, type the one-time password, choose Reboot",
        "run the playbook again: it sees the enrolled key and goes on",
    ]


class Enrolment:
    """One pair on one host."""

    def __init__(self, pair: Pair, run: Runner, root: str = "/") -> None:
        self.pair, self.run, self.tree = pair, run, Tree(root)

    def state(self) -> str:
        """How the certificate stands with the firmware. Raises MokError where that cannot be read."""
        data = self.pair.data if os.path.exists(self.pair.private_key) else None    # a lost key is made again
        try:
            if data is not None and data in secure_boot.enrolled(self.tree):
                return ENROLLED
            if data is not None and data in secure_boot.requested(self.tree):
                return REQUESTED
        except (OSError, ValueError) as exc:
            raise MokError(f"the machine owner's keys cannot be read: {exc}") from exc
        return WANTED

    def bring(self, name: str, password: str | None, check: bool) -> Outcome:
        """Make the key where there is none, and ask for its enrolment. Raises MokError, OSError.

        Nothing is made before it is known that the enrolment can be asked for.
        """
        if not self.tree.isdir("/sys/firmware/efi"):
            raise MokError("this host was not started by UEFI: there is no Secure Boot, and no key to enrol")
        outcome = Outcome(self.state(), actions=self.pair.missing())
        if outcome.state == WANTED:
            check_password(password)
            self._see_mokutil()
            outcome.actions.append(f"ask for the enrolment of {self.pair.certificate} (mokutil --import)")
        outcome.changed = bool(outcome.actions)
        if not check:
            self.pair.make(name)
            outcome.state = self.state()    # a certificate that was made from its key may be one that is known already
            if outcome.state == WANTED:
                self._request(str(password))
                outcome.state = REQUESTED
        if self.pair.data is not None:
            outcome.name = secure_boot.common_name(self.pair.data)
            outcome.fingerprint = self.pair.fingerprint()
        return outcome

    def _see_mokutil(self) -> None:
        if self.run(["mokutil", "--help"], timeout=30).missing:
            raise MokError("mokutil is not installed: it asks the firmware's boot loader to enrol a key. Install the "
                           "package mokutil")

    def _request(self, password: str) -> None:
        # asked for twice by mokutil, which reads its standard input; never an argument, which every user could read
        result = self.run(["mokutil", "--import", self.pair.certificate], timeout=60, input=f"{password}\n{password}\n")
        if self.state() == REQUESTED:
            return
        said = result.why("mokutil") if result.rc != 0 or result.timed_out else "mokutil ended without an error"
        said = said.replace(password, "***")
        raise MokError(f"the enrolment was asked for, and is not among the requests ({said}). See that "
                       "/sys/firmware/efi/efivars is mounted for writing and that the firmware has room for variables")
