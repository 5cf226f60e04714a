# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of API server, helm and their clients in words that name the way out."""

from __future__ import annotations

import re

_CREDENTIALS = ("the API server does not take the credentials (a token that ran out, or another user's): log in again, "
                "or name another file with gpu_operator_kubeconfig")
_AWAY = ("the API server does not answer: see that it runs and that gpu_operator_kubeconfig names it "
         "(a proxy, an address that moved)")
_CERTIFICATE = ("the certificate of the API server is not the one that gpu_operator_kubeconfig expects: it was made "
                "anew, or this is another server")
_WEBHOOK = "an admission webhook refuses the change: its owner has to let it through, or it is away itself"
_RIGHTS = "the user of gpu_operator_kubeconfig may not do this: the role needs the rights that docs/operator.md lists"
_PENDING = "another helm run is at work on the release, or one was cut off: the next run mends that"
_CONFLICT = ("somebody else set a field that the release sets, and helm 4 does not write over it: have its manager "
             "(kubectl edit, GitOps) give the field up, or send the object once with kubectl apply --server-side "
             "--field-manager=helm --force-conflicts")
_KUBECONFIG = "gpu_operator_kubeconfig or gpu_operator_context names nothing that can be read"

#: The first that matches counts; each with what it means.
_KNOWN = (
    (r"\b401\b|Unauthorized|must be logged in", _CREDENTIALS),
    (r"admission webhook|failed calling webhook", _WEBHOOK),
    (r"Apply failed with \d+ conflict", _CONFLICT),
    (r"\b403\b|Forbidden|forbidden:", _RIGHTS),
    (r"certificate|CERTIFICATE_VERIFY_FAILED|x509", _CERTIFICATE),
    (r"another operation \(install/upgrade/rollback\) is in progress", _PENDING),
    (r"Invalid kube-config|could not be loaded|context .* does not exist|Could not find config|"
     r"no configuration has been provided", _KUBECONFIG),
    (r"\b50[234]\b|ServiceUnavailable|currently unable to handle|Connection refused|connection refused|"
     r"Max retries exceeded|timed out|Name or service not known|No route to host|unreachable|EOF", _AWAY),
)


def words(message: str) -> str:
    """Return the message, short, behind what it means."""
    short = " ".join(_reason(message).split())
    short = short if len(short) <= 400 else f"{short[:400]}…"
    for pattern, meaning in _KNOWN:
        if re.search(pattern, message):
            return f"{meaning} ({short})"
    return short


def is_final(message: str) -> bool:
    """Say whether waiting changes nothing: the server is there and does not take us."""
    return _CREDENTIALS in message or _KUBECONFIG in message or _CERTIFICATE in message


def _reason(message: str) -> str:
    """Return what a server said out of what its client made of it."""
    told = re.search(r'"message":\s*"((?:[^"\\]|\\.)*)"', message)
    return told.group(1).replace('\\"', '"') if told else message
