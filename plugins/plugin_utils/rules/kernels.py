# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions about one kernel and one driver that rules and planner both ask."""

from __future__ import annotations

from typing import Any, Literal

from ..model.facts import UNKNOWN
from ..model.host import Kernel, Module
from .context import Candidate, Context

_ARCHES = (".x86_64", ".aarch64")


def fit(context: Context, candidate: Candidate, release: str | None) -> Any:
    """Return the matrix' answer for a driver on a kernel; None where nothing has to be built or asked."""
    if release is None or candidate.version is None or candidate.method == "precompiled" or context.borrowed_kernel:
        return None
    kernel = context.host.kernel(release)
    if kernel is not None and has_module_of(kernel, candidate):
        return None
    system = context.host.os
    source = "distro" if candidate.source == "distro" else "nvidia"
    return context.matrix.kernel_fit(
        candidate.version,
        candidate.flavour,
        release,
        system.id if isinstance(system.id, str) else "",
        system.version if isinstance(system.version, str) else "",
        source,
        package_version(candidate),
    )


def package_version(candidate: Candidate) -> str | None:
    """Return the version of the package that holds the module's source: distributions patch it."""
    if candidate.packages is None or candidate.packages.source_package is None:
        return None
    return candidate.versions.get(candidate.packages.source_package.replace("{branch}", candidate.branch))


def reason(answer: Any) -> str:
    """Return the reason in an answer of the matrix for a message, without what the message says itself."""
    words = str(answer.why or "").partition(": ")[2]
    return f": {words}" if words else ""


def sources(answer: Any) -> tuple[str, ...]:
    """Return the sources of an answer of the matrix."""
    return tuple(dict.fromkeys(source for row in answer.rows for source in getattr(row, "source", ())))


def has_module(kernel: Kernel) -> bool:
    """Say whether a kernel has an nvidia module that fits it."""
    return isinstance(kernel.module, Module) and kernel.module.vermagic_ok is not False


def lacks_modules(kernel: Kernel | None, beside: Kernel | None) -> list[str]:
    """Return the out-of-tree modules that one kernel has and the other lacks; nothing where either is not known."""
    if kernel is None or beside is None or kernel is beside:
        return []
    if not isinstance(kernel.extra_modules, tuple) or not isinstance(beside.extra_modules, tuple):
        return []
    return [name for name in beside.extra_modules if name not in kernel.extra_modules]


def failed_trial(context: Context) -> tuple[str, str] | None:
    """Return the release whose trial boot failed and why, None if none did.

    A kernel that panicked cannot say so: its entry was used up, and the host runs another one.
    """
    here, running = context.host.boot, context.host.running
    release = here.trial_release
    if not isinstance(release, str) or release == context.boot:
        return None
    if here.trial_phase == "failed":
        return release, here.trial_reason if isinstance(here.trial_reason, str) else "no reason was written down"
    used_up = here.next_entry is None and isinstance(running, str) and running != release
    if here.trial_phase in ("armed", "booted") and used_up:
        return release, f"it was started and the host runs {running} again, so it did not come up"
    return None


def has_module_of(kernel: Kernel, candidate: Candidate) -> bool:
    """Say whether a kernel has the module of this driver, in this flavour."""
    module = kernel.module
    return (
        isinstance(module, Module)
        and module.version == candidate.version
        and module.vermagic_ok is not False
        and (not isinstance(module.flavour, str) or module.flavour == candidate.flavour)
    )


def compiler_package(context: Context, kernel: Kernel) -> str | None:
    """Return the package with the compiler that a kernel was built with, None if that is not known."""
    compiler = kernel.compiler
    if not isinstance(compiler, str) and kernel.release == context.host.running:
        compiler = context.host.running_compiler
    system = context.host.os
    if not isinstance(compiler, str) and isinstance(system.id, str) and isinstance(system.version, str):
        row = context.matrix.kernel_line(system.id, system.version, kernel.release)
        compiler = row.compiler if row is not None else None
    if not isinstance(compiler, str) or not compiler.startswith("gcc"):
        return None
    return compiler if context.packaging is None or context.packaging.manager == "apt" else "gcc"


def compiler_is_there(context: Context, name: str) -> bool | None:
    """Say whether a compiler is installed, None if nobody can tell."""
    installed = context.host.packages.installed
    if not isinstance(installed, dict):
        return None
    return name in installed or f"{name}-for-host" in installed


def headers_package(context: Context, kernel: Kernel) -> tuple[str, str | None]:
    """Return the package with the headers of a kernel and, where the name does not say it, its version."""
    if isinstance(kernel.headers_package, str):
        return kernel.headers_package, None
    packaging = context.packaging
    pattern = str(packaging.kernel.headers_pattern) if packaging is not None else "linux-headers-{release}"
    if packaging is not None and packaging.manager != "apt":
        release = kernel.release
        for arch in _ARCHES:
            release = release.replace(arch, "")
        return pattern.replace("-{release}", ""), release
    return pattern.replace("{release}", kernel.release), None


def headers_state(context: Context, kernel: Kernel) -> Literal["there", "offered", "missing", "unknown"]:
    """Say whether the headers of a kernel are installed, on offer, neither, or nobody can tell."""
    if kernel.headers is True:
        return "there"
    name, version = headers_package(context, kernel)
    offers = context.host.packages.offers(name)
    if offers is UNKNOWN or not _names_kernels(context):
        return "unknown"
    if not isinstance(offers, tuple):
        return "missing"
    if version is None:
        return "offered" if offers else "missing"
    return "offered" if any(_same(one, version) for one in offers) else "missing"


def _same(offered: str, version: str) -> bool:
    return offered == version or offered.partition(":")[2] == version


def _names_kernels(context: Context) -> bool:
    """Say whether the facts list candidates of kernel packages at all."""
    available = context.host.packages.available
    return isinstance(available, dict) and any(name.startswith(("linux-", "kernel")) for name in available)
