# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of two repositories the driver's packages come from, where both have them: module and libraries from one, and
of NVIDIA's, which has every branch, in one version.

dnf and zypper have it in the repository's own file (priority). apt has it in a file of preferences, by the address.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from ..model.facts import each
from ..rules.context import Candidate, Context
from . import candidates, family, repositories

PATH = "/etc/apt/preferences.d/baremetal-nvidia-driver"
_NAMES = ("nvidia-* libnvidia-* cuda-drivers* libcuda1 libcudadebugger1 libxnvctrl* xserver-xorg-video-nvidia* "
          "linux-modules-nvidia-* linux-objects-nvidia-* linux-signatures-nvidia-* firmware-nvidia-*")
_HEAD = "# Managed by the Ansible collection baremetal.nvidia: changes are overwritten.\n"
# the container toolkit comes from a repository of its own, which is not to be pushed back
_TOOLKIT = ("Package: nvidia-container-* libnvidia-container*\nPin: version *\nPin-Priority: 500\n")


def preferences(context: Context, chosen: Candidate) -> dict[str, str] | None:
    """Return the file of preferences, which names a place where there are two that their addresses tell apart."""
    packaging = context.packaging
    if packaging is None or packaging.manager != "apt" or context.wishes.driver_offline is not None:
        return None
    written = [one for one in context.driver.repositories if one["purpose"] != "distro"]
    theirs = [one for one in map(repositories.address_in, written) if one]
    wish = context.wishes.driver_repository
    others: list[str] = []
    for one in each(context.host.packages.repositories):
        nvidia = family.is_cuda_url(one.url) or (wish is not None and repositories.same(one.url, wish["url"]))
        if one.enabled and not family.is_of_other_release(context, one.url):
            (theirs if nvidia else others).append(one.url)
    hosts = {urlsplit(url).hostname for url in theirs}
    host = next(iter(hosts)) if len(hosts) == 1 else None
    exact = _exactly(chosen)
    if not host or not others or any(urlsplit(url).hostname == host for url in others):
        text = f"{_HEAD}# Libraries and module are of one version.\n{_TOOLKIT}\n{exact.rstrip()}\n"
        return {"path": PATH, "content": text} if exact else None
    if chosen.source == "nvidia":
        # NVIDIA's pinning packages give 1000 to every version of the branch, the archive's too
        what, priority = "Libraries and module come from NVIDIA's repository, whatever the others have.", 1001
    elif chosen.source == "distro" and candidates.cuda_repository(context):
        what, priority = "Libraries and module come from the distribution's archive, whatever NVIDIA's has.", 100
    else:
        return None
    return {"path": PATH, "content": f"{_HEAD}# {what}\n{_TOOLKIT}\n{exact}Package: {_NAMES}\n"
                                     f"Pin: origin \"{host}\"\nPin-Priority: {priority}\n"}


def _exactly(chosen: Candidate) -> str:
    """Return the preference for the chosen version: apt takes no other one for what a package needs beside it.

    NVIDIA's repository has every branch under one name, and its parts ask for each other at exactly their version.
    """
    if chosen.source != "nvidia" or chosen.version is None:
        return ""
    return f"Package: {_NAMES}\nPin: version {chosen.version}*\nPin-Priority: 1002\n\n"
