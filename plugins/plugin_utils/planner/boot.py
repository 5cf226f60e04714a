# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernel the host starts: under every policy the present one, unless it would come up without a module."""

from __future__ import annotations

from ..model.facts import each
from ..model.host import Kernel
from ..model.version import KernelRelease
from ..rules.context import Context
from ..rules.kernels import has_module, lacks_modules


def choose(context: Context) -> str | None:
    """Return the release of the kernel that the host is to start, None if it cannot be told."""
    host, asked = context.host, context.wishes.kernel_release
    if context.borrowed_kernel:
        return None
    # under "gated" a kernel becomes the default after its trial, also one that is asked for
    if asked is not None and host.kernel(asked) is not None and context.wishes.kernel_policy != "gated":
        return asked
    kernels = [kernel for kernel in each(host.kernels) if can_start(context, kernel)]
    if not kernels:
        return next((release for release in (host.default_boot, host.running) if isinstance(release, str)), None)
    by_release = {kernel.release: kernel for kernel in kernels}
    default = by_release.get(host.default_boot) if isinstance(host.default_boot, str) else None
    running = by_release.get(host.running) if isinstance(host.running, str) else None
    works = default is not None and (has_module(default) or not any(has_module(kernel) for kernel in kernels))
    if default is not None and works and not lacks_modules(default, running):
        return default.release
    if running is not None:
        return running.release
    with_module = [kernel for kernel in kernels if has_module(kernel)]
    return newest(with_module or kernels).release


def can_start(context: Context, kernel: Kernel) -> bool:
    """Say whether an installed kernel is complete: image, initrd, and no half-configured package."""
    if kernel.image is False or kernel.image is None or kernel.initrd is False:
        return False
    broken = context.host.packages.broken
    return not (isinstance(broken, tuple) and image_package(context, kernel) in broken)


def image_package(context: Context, kernel: Kernel) -> str:
    """Return the name of the package that brings the image of a kernel."""
    if isinstance(kernel.image_package, str):
        return kernel.image_package
    pattern = context.packaging.kernel.image_pattern if context.packaging is not None else "linux-image-{release}"
    return str(pattern).replace("{release}", package_release(context, kernel.release))


def headers_package(context: Context, kernel: Kernel) -> str:
    """Return the name of the package that brings the headers of a kernel."""
    if isinstance(kernel.headers_package, str):
        return kernel.headers_package
    pattern = context.packaging.kernel.headers_pattern if context.packaging is not None else "linux-headers-{release}"
    return str(pattern).replace("{release}", package_release(context, kernel.release))


def package_release(context: Context, release: str) -> str:
    """Return the release as package names and versions spell it: rpm leaves the architecture out."""
    if context.packaging is not None and context.packaging.manager == "apt":
        return release
    for arch in (".x86_64", ".aarch64"):
        if arch in release:
            return release.replace(arch, "")
    return release


def newest(kernels: list[Kernel]) -> Kernel:
    """Return the newest kernel of a list that is not empty."""

    def key(kernel: Kernel) -> tuple[object, ...]:
        parsed = KernelRelease.try_parse(kernel.release)
        return (parsed is not None, parsed.key if parsed is not None else (), kernel.release)

    return max(kernels, key=key)
