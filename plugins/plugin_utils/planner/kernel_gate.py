# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policy ``gated``: which of the kernels on offer can be had with everything that the present one has.

The newest that can is the candidate. It is only staged after its module was proved on the host; what is refused here
is refused without a build.
"""

from __future__ import annotations

import re
from typing import Any

from ..model import version as versions
from ..model.facts import UNKNOWN, each
from ..model.host import Kernel, Offer
from ..model.version import KernelRelease
from ..rules import kernels, secure_boot
from ..rules.context import Candidate, Context
from . import boot, candidates, family, kernel_offers, kernel_others


class Refused(Exception):
    """A kernel cannot be had with its modules; the message says why."""


def fill(context: Context) -> None:
    """Fill in candidate, refused and stage of ``context.kernel``."""
    decision, wishes = context.kernel, context.wishes
    if wishes.kernel_policy != "gated" or not context.wants_driver or context.boot is None:
        return
    for offer in _in_order(context):
        try:
            stage = _stage(context, offer)
        except Refused as why:
            decision.refused.append({"release": offer.release, "why": str(why)})
            continue
        decision.candidate = _as_dict(offer)
        if context.host.offers is UNKNOWN:
            decision.because.append(f"{offer.release} is told by the package lists, not by the resolver")
        decision.stage = stage
        return


def _in_order(context: Context) -> list[Offer]:
    """Return the kernels on offer that are newer than what starts, or the one that is asked for, newest first.

    Another flavour (lowlatency, rt, 64k) is another kernel: it comes only when it is asked for.
    """
    asked, present = context.wishes.kernel_release, KernelRelease.try_parse(context.boot)
    found = []
    for offer in kernel_offers.offers(context):
        parsed = KernelRelease.try_parse(offer.release)
        there = context.host.kernel(offer.release)
        if there is not None and there.image is True:
            continue
        newer = parsed is not None and (present is None or parsed.succeeds(present))
        if offer.release == asked if asked is not None else newer:
            found.append((parsed.key if parsed is not None else ((), ()), offer))
    return [offer for _key, offer in sorted(found, key=lambda one: one[0], reverse=True)]


def _as_dict(offer: Offer) -> dict[str, Any]:
    return {
        "release": offer.release,
        "packages": dict(offer.packages),
        "security": offer.security if offer.security is not UNKNOWN else None,
        "origin": offer.origin if isinstance(offer.origin, str) else None,
    }


def _stage(context: Context, offer: Offer) -> dict[str, Any]:
    """Return what brings this kernel onto the host, whole; raises Refused."""
    chosen, failed = context.candidate, kernels.failed_trial(context)
    if failed is not None and failed[0] == offer.release != context.wishes.kernel_release:
        raise Refused(f"its trial boot failed: {failed[1]}")
    if chosen is None or chosen.version is None:
        raise Refused("no driver is chosen for this host, so nothing can be proved for it")
    packages: dict[str, str | None] = dict(offer.packages)
    headers: list[str] = []
    if chosen.method == "precompiled":
        module = _prebuilt(context, chosen, offer)
        if module["package"] is not None:
            packages.update(dict.fromkeys([module["package"], *_parts(module["package"])], module["version"]))
    else:
        module = _dkms(context, chosen, offer)
        headers = _headers(context, offer, packages)
    others = _others(context, offer)
    packages.update({one["package"]: one["version"] for one in others if one["package"] is not None})
    compiler = _compiler(context, offer) if headers or any(one["method"] == "dkms" for one in others) else None
    if headers == [] and any(one["method"] == "dkms" for one in others):
        headers = _headers(context, offer, packages)
    return {
        "release": offer.release,
        "packages": packages,
        "headers": headers,
        "module": module,
        "extra_modules": others,
        "compiler": compiler,
        "from": context.boot,
    }


def _prebuilt(context: Context, chosen: Candidate, offer: Offer) -> dict[str, Any]:
    """Return the package with the ready module for this kernel."""
    packages = chosen.packages
    if packages is None:
        raise Refused(f"the matrix does not know which package brings the module of {chosen.label} for it")
    if not candidates.needs_own_module(packages):
        return _shared(context, chosen, offer)
    name = candidates.module_package(packages, chosen.branch, chosen.version,
                                     boot.package_release(context, offer.release))
    version = next(each(context.host.packages.offers(name)), None) or offer.packages.get(name)
    made_for = offer.modules.get(name) if isinstance(offer.modules, dict) else None
    if isinstance(made_for, dict):  # Ubuntu: package versions with the driver that each is made for
        version = next((one for one, driver in made_for.items() if driver == chosen.version), None)
        if version is None:
            drivers = ", ".join(sorted({str(driver) for driver in made_for.values()}))
            raise Refused(f"{name} is made for driver {drivers}, and this host has {chosen.version}: move the driver "
                          "first (gpu_driver_version), then the kernel")
    if version is None:
        raise Refused(f"no package source has its module: {name} is not on offer")
    return {"method": "precompiled", "package": name, "version": version, "driver": chosen.version}


def _parts(name: str) -> list[str]:
    """Return the packages that Ubuntu's proprietary modules are linked from on the host: they are pinned with them."""
    match = re.match(r"linux-modules-nvidia-(?P<branch>\d{3}(?:-server)?)-(?P<release>\d.*)$", name)
    return [] if match is None else [f"linux-objects-nvidia-{match['branch']}-{match['release']}",
                                     f"linux-signatures-nvidia-{match['release']}"]


def _shared(context: Context, chosen: Candidate, offer: Offer) -> dict[str, Any]:
    """Return the module package that serves several kernels: the installed one, or the version that fits this one."""
    packages, host = chosen.packages, context.host.packages
    names = [family.fill(name, chosen.branch, chosen.version)
             for name in (packages.source_package, packages.precompiled, *packages.packages) if name]
    known = [*names, *(offer.modules if isinstance(offer.modules, dict) else ())]  # SUSE's own and NVIDIA's build of it
    name = next((one for one in known if "kmp" in one and isinstance(host.version(one), str)), names[0])
    there = host.version(name)
    module = {"method": "precompiled", "package": None, "version": None, "driver": chosen.version}
    if not isinstance(offer.modules, dict):
        return {**module, **_to_open(context, chosen, name)}
    fitting = [str(one) for one in offer.modules.get(name) or ()]
    if there in fitting:
        return {**module, "package": name, "version": there}
    newer = next((one for one in fitting if versions.upstream(one) == chosen.version), None)
    if newer is None:
        raise Refused(f"no version of {name} fits it: the module asks for symbols that this kernel does not have")
    return {**module, "package": name, "version": newer}


def _to_open(context: Context, chosen: Candidate, name: str) -> dict[str, str]:
    """Return the package whose modules are looked into before anything moves, where the facts tell no symbols.

    It may have another name than the matrix has: then it is the installed package of modules, if there is one alone.
    """
    host = context.host.packages
    there = host.version(name)
    if isinstance(there, str):
        return {"package": name, "version": there}
    installed = host.installed if isinstance(host.installed, dict) else {}
    kmods = [one for one in installed if one.startswith("kmod-nvidia") or "-kmp-" in one]
    kmods = [one for one in kmods if family.is_module_package(one) and "dkms" not in one
             and versions.upstream(installed[one]) == chosen.version]
    if len(kmods) == 1:
        return {"package": kmods[0], "version": installed[kmods[0]]}
    offered = next((one for one in each(host.offers(name)) if versions.upstream(one) == chosen.version), None)
    if offered is None:
        found = f"{', '.join(kmods)} all could" if kmods else f"{name} is neither installed nor on offer as it"
        raise Refused(f"which package brings the ready modules of {chosen.label} is not known ({found}), so none can "
                      "be opened before this kernel comes in")
    return {"package": name, "version": str(offered)}


def _dkms(context: Context, chosen: Candidate, offer: Offer) -> dict[str, Any]:
    """Return what is built for this kernel, unless the matrix knows that it fails or nobody could load it."""
    fit = kernels.fit(context, chosen, offer.release)
    if fit is not None and fit.answer == "fails":
        raise Refused(f"{chosen.label} does not build on it: {fit.why or 'the matrix says so'}")
    if (context.host.secure_boot is True and context.host.mok == ()) or secure_boot.waits(context, chosen):
        raise Refused("Secure Boot is on and no machine owner key is enrolled: a module built here would not load")
    source = chosen.packages.source_package if chosen.packages is not None else None
    return {
        "method": "dkms",
        "package": family.fill(source, chosen.branch, chosen.version) if source is not None else None,
        "version": kernels.package_version(chosen),
        "driver": chosen.version,
    }


def _headers(context: Context, offer: Offer, packages: dict[str, str | None]) -> list[str]:
    """Return the headers packages and see that ``packages`` has them."""
    stub = _stub(offer.release)
    name, version = kernels.headers_package(context, stub)
    if name not in packages:
        if kernels.headers_state(context, stub) == "missing":
            raise Refused(f"no package source has its headers: {name}{' ' + version if version else ''} is not on "
                          "offer, so no module can be built for it")
        packages[name] = version or next(each(context.host.packages.offers(name)), None)
    return [name]


def _compiler(context: Context, offer: Offer) -> str | None:
    """Return the compiler of this kernel: that of its line, else that of the present kernel."""
    name = kernels.compiler_package(context, _stub(offer.release))
    if name is None:
        present = context.host.kernel(context.boot)
        name = kernels.compiler_package(context, present) if present is not None else None
    if name is not None and kernels.compiler_is_there(context, name) is False:
        offers = context.host.packages.offers(name)
        if offers is None or offers == ():
            raise Refused(f"it was built with {name}, which is neither installed nor on offer")
    return name


def _others(context: Context, offer: Offer) -> list[dict[str, Any]]:
    """Return how each other module of the present kernel comes to this one."""
    present = context.host.kernel(context.boot)
    if present is None:
        return []
    if not isinstance(present.extra_modules, tuple):
        raise Refused(f"which other modules {present.release} has could not be read "
                      f"({context.host.why_unknown(f'kernel.installed[{present.release}].extra_modules')})")
    found = []
    for name in present.extra_modules:
        if name in context.wishes.kernel_modules_waived:
            continue
        way = kernel_others.way(context, name, present, offer)
        if way is None:
            raise Refused(f"{name}, which {present.release} has, is neither on offer for it nor built by DKMS; "
                          "gpu_kernel_modules_waived lets it go without")
        found.append(way)
    return found


def _stub(release: str) -> Kernel:
    """Return a kernel of which nothing is on the host."""
    return Kernel(release, None, None, None, UNKNOWN, None, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
