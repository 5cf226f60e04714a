# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other DKMS modules of the present kernel (ZFS, OFED, GDRCopy), built in scratch for one that is not installed.

Their source is on the host already, in /usr/src. What is built is looked at and thrown away: DKMS builds it again in
the package transaction, and now it is known that it can.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Callable

from ..mok.trust import Trust
from ..mok.trust import signers as trusted_signers
from . import dkms, modinfo
from .errors import ProofError
from .headers import Headers

Runner = Callable[..., Any]
SOURCES = "/usr/src"


def signed(others: Iterable[Mapping[str, Any]], trust: Trust, release: str, root: str) -> dict[str, list[str]]:
    """See that Secure Boot takes what DKMS will sign here. Raises ProofError; name → what cannot be told.

    What is built in scratch is not signed: DKMS signs when it installs, with the key of this host.
    """
    doubts: dict[str, list[str]] = {}
    own = trust.own.get("name")
    for other in others:
        name, takes = str(other["name"]), trust.takes_own()
        # a host may have DKMS sign by a program of its own: the present module tells
        if takes is not True and any(trust.takes(signer) for signer in trusted_signers(root, name)):
            takes = True
        if takes is False:
            key = f"the key that it signs with ({own}, {trust.own.get('certificate')}) is not enrolled" if own else (
                f"it has no key to sign with ({trust.own.get('certificate')})")
            raise ProofError(f"{name}: Secure Boot is on, DKMS builds it here, and {key}: kernel {release} would not "
                             f"load it. Have the key enrolled (gpu_mok_password), or let the kernel go without {name} "
                             "(gpu_kernel_modules_waived)", release)
        if takes is None:
            doubts[name] = [trust.doubt(f"what DKMS builds for {name}", own)]
    return doubts


def build(others: Iterable[Mapping[str, Any]], headers: Headers, *, arch: str, place: str, timeout: float,
          niceness: int, run: Runner, root: str = "/",
          beat: Callable[[], None] = lambda: None) -> list[dict[str, Any]]:
    """Build each of ``others`` (name, dkms, version) against ``headers``. Raises ProofError for one that fails."""
    sources, done = os.path.join(root, SOURCES.lstrip("/")), []
    for index, other in enumerate(others):
        name = dkms.safe_word(str(other["dkms"]), "dkms name")
        version = dkms.safe_word(str(other["version"]), "version")
        beat()
        if not os.path.isfile(os.path.join(sources, f"{name}-{version}", "dkms.conf")):
            raise ProofError(f"{other['name']}: {SOURCES}/{name}-{version} has no dkms.conf, so it cannot be built for "
                             f"kernel {headers.release}", headers.release)
        scratch = os.path.join(place, f"other-{index}")
        os.makedirs(scratch)
        files, seconds = dkms.build(headers, name=name, version=version, arch=arch, sources=sources, scratch=scratch,
                                    timeout=timeout, run=run, niceness=niceness)
        wrong = [f"{module.stem}.ko is for kernel {module.release}" for module in
                 (modinfo.read(path, run) for path in files) if module.release != headers.release]
        if wrong:
            raise ProofError(f"{other['name']}: {'; '.join(wrong)}, not {headers.release}", headers.release)
        done.append({"name": other["name"], "version": version, "seconds": round(seconds, 1), "modules": len(files)})
    return done
