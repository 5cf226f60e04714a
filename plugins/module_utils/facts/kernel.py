# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The running kernel, and every kernel that is installed with what it needs to run a GPU."""

from __future__ import annotations

import os
import re
from typing import Any

from . import dkms, modinfo, modprobe
from .context import Context
from .masking import text as masked
from .tree import Tree

# /lib is a symlink to usr/lib on all but very old systems; either spelling leads there
MODULES = "/lib/modules"
_IMAGE = re.compile(r"^(?:vmlinuz|vmlinux|Image|kernel)-(?P<release>\d.*)$")
_INITRDS = ("initrd.img-{}", "initramfs-{}.img", "initrd-{}", "initrd-{}.img", "initramfs-{}")
_NOT_A_RELEASE = re.compile(
    r"(?i)rescue|\.(?:old|bak|dpkg-\w+|rpm\w+|hmac|sig|signed|efi\.signed|tmp)$|\.baremetal-nvidia\."
)
_OWN_DIRECTORIES = ("updates", "extra", "weak-updates", "extramodules")
_NVIDIA_FAMILY = re.compile(r"^nvidia[-_]")
_EXTRA = {
    "mlx5_core": "mlnx-ofed",
    "mlx_compat": "mlnx-ofed",
    "mlx4_core": "mlnx-ofed",
    "ib_core": "mlnx-ofed",
    "zfs": "zfs",
    "spl": "zfs",
    "lustre": "lustre",
    "lnet": "lustre",
    "libcfs": "lustre",
    "gdrdrv": "gdrcopy",
    "nvidia-fs": "nvidia-fs",
    "nv_peer_mem": "nv_peer_mem",
    "knem": "knem",
    "xpmem": "xpmem",
    "beegfs": "beegfs",
    "mmfs26": "gpfs",
    "mmfslinux": "gpfs",
    "tracedev": "gpfs",
    "wekafsio": "weka",
    "wekafsgw": "weka",
    "drbd": "drbd",
    "openafs": "openafs",
    "amdgpu": "amdgpu",
}
# parts of a set named above: not worth a name of their own
_EXTRA_PARTS = re.compile(
    r"^(?:mlx|ib_|rdma_|iw_|mst_|mlxdevm|mlxfw|memtrack|auxiliary|znvpair|zavl|zcommon|zunicode|zlua|zzstd|icp|"
    r"obd|ptlrpc|ksocklnd|ko2iblnd|kgnilnd|ko\w*lnd|lov|lmv|lod|osc|osp|osd_|ost|ofd|mdc|mdd|mdt|mgc|mgs|fid|fld|llite|"
    r"lquota|nodemap|rpcrdma|svcrdma|xprtrdma|nvme|amd(?:kcl|ttm|drm|xcp)|amd-sched|drm_|nv-)"
)
_MODULE_WORTH = re.compile(
    r"^(?:nvidia|nouveau|nova|gdrdrv|nv_peer|ib_|rdma_|mlx|iw_|vfio|zfs$|spl$|lustre$|lnet$|beegfs$|mmfs|wekafs|xpmem$|"
    r"knem$|overlay$|br_netfilter$|iommufd$|amdgpu$|efivarfs$)"
)
_MOST_EXTRA = 20


def read(ctx: Context) -> None:
    tree = ctx.tree
    with ctx.attempt("kernel.running"):
        release = tree.text("/proc/sys/kernel/osrelease", 256)
        if release is None and tree.is_host:
            release = os.uname().release
        if release is None:
            ctx.cannot("kernel.running", "another tree is read, and it has no /proc")
        else:
            ctx.set("kernel.running", release)
    with ctx.attempt("kernel.running_compiler"):
        version = tree.text("/proc/version", 4096)
        compiler = compiler_of(version or "")
        if compiler is None:
            missing = "/proc/version is not there" if version is None else "/proc/version names no compiler"
            ctx.cannot("kernel.running_compiler", missing)
        else:
            ctx.set("kernel.running_compiler", compiler)
    with ctx.attempt("kernel.cmdline"):
        cmdline = tree.text("/proc/cmdline", 8192)
        if cmdline is None:
            ctx.cannot("kernel.cmdline", "/proc/cmdline is not there")
        else:
            ctx.set("kernel.cmdline", masked(cmdline)[:2048])
    with ctx.attempt("kernel.modules"):
        table = tree.text("/proc/modules", 1024 * 1024)
        if table is None and tree.exists("/proc/sys/kernel/osrelease"):
            table = ""  # a kernel that is built without loadable modules
        if table is None:
            ctx.cannot("kernel.modules", "/proc/modules is not there")
        else:
            ctx.set("kernel.modules", loaded(table))
    with ctx.attempt("kernel.installed"):
        ctx.set("kernel.installed", installed(ctx))


def loaded(table: str) -> list[str]:
    """Names of the loaded modules that matter here, and of every out-of-tree one, of /proc/modules."""
    names = []
    for line in table.splitlines():
        fields = line.split()
        if fields and (_MODULE_WORTH.match(fields[0]) or (fields[-1].startswith("(") and "O" in fields[-1])):
            names.append(fields[0])
    return sorted(names)


def compiler_of(text: str) -> str | None:
    """``gcc-12`` or ``clang-17`` of a kernel's build string or CONFIG_CC_VERSION_TEXT; None when it names none.

    A number in the program's own name counts (``x86_64-linux-gnu-gcc-13``), then the version it prints.
    """
    named = re.search(r"(?<![A-Za-z])(gcc|clang)-(\d+)\b", text)
    if named:
        return f"{named.group(1)}-{named.group(2)}"
    clang = re.search(r"clang version (\d+)", text)
    if clang:
        return f"clang-{clang.group(1)}"
    gcc = re.search(r"(?<![A-Za-z])gcc(?:\.exe)?\b(?P<rest>.*)", text, re.S)
    if not gcc:
        return None
    rest = re.split(r", (?:GNU ld|LLD|ld)|\) #", gcc.group("rest"))[0]
    bare = re.sub(r"\([^()]*\)", " ", rest)
    found = re.search(r"\b(\d+)\.\d+(?:\.\d+)?\b", bare) or re.search(r"\b(\d+)\.\d+\.\d+\b", rest)
    return f"gcc-{found.group(1)}" if found else None


def installed(ctx: Context) -> list[dict[str, Any]]:
    """A row for each kernel that has an image, modules or headers; the newest by file order last."""
    tree = ctx.tree
    boot = tree.names("/boot")
    releases = images(tree, boot)
    rows = []
    settings = modprobe.settings(tree)
    for release in sorted(releases, key=natural):
        row: dict[str, Any] = {"release": release, "image": releases[release]}
        row["initrd"] = initrd_path(tree, release, boot) is not None
        row["headers"] = has_headers(tree, release)
        where = f"kernel.installed[{release}]"
        with ctx.attempt(f"{where}.compiler"):
            compiler = compiler_for(tree, release)
            if compiler is None:
                ctx.cannot(f"{where}.compiler", "neither its headers nor its config in /boot tell it")
            else:
                row["compiler"] = compiler
        with ctx.attempt(f"{where}.nvidia"):
            row["nvidia"] = nvidia_module(ctx, release, settings)
        with ctx.attempt(f"{where}.extra_modules"):
            row["extra_modules"] = extra_modules(tree, release)
        rows.append(row)
    return rows


def images(tree: Tree, boot: list[str] | None = None) -> dict[str, bool]:
    """Release → whether it has an image, for every kernel that has an image, modules or headers. Raises OSError."""
    releases: dict[str, bool] = {}
    for name in tree.names("/boot") if boot is None else boot:
        match = _IMAGE.match(name)
        if match and not _NOT_A_RELEASE.search(name) and tree.isfile(f"/boot/{name}"):
            releases[match.group("release")] = True
    for name in tree.names(MODULES):
        if not tree.isdir(f"{MODULES}/{name}"):
            continue
        if tree.isfile(f"{MODULES}/{name}/vmlinuz"):
            releases[name] = True
        elif name not in releases and _is_kernel(tree, name):
            releases[name] = False
    return releases


def installed_releases(tree: Tree) -> list[str]:
    """Releases with an image, oldest first."""
    return sorted((release for release, image in images(tree).items() if image), key=natural)


def _is_kernel(tree: Tree, release: str) -> bool:
    base = f"{MODULES}/{release}"
    return any(tree.lexists(f"{base}/{name}") for name in ("kernel", "modules.order", "modules.builtin", "build"))


def natural(release: str) -> list[tuple[int, int, str]]:
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.findall(r"\d+|\D+", release)]


def initrd_path(tree: Tree, release: str, boot: list[str] | None = None) -> str | None:
    """The initial ramdisk of a kernel, None when there is none. BLS layouts below a machine id are looked through."""
    names = tree.names("/boot") if boot is None else boot
    for pattern in _INITRDS:
        name = pattern.format(release)
        if name in names and tree.isfile(f"/boot/{name}"):
            return f"/boot/{name}"
    for base in ("/boot", "/boot/efi", "/efi"):
        for path in tree.expand(f"{base}/*/{release}/initrd*"):
            return path
    return None


def has_headers(tree: Tree, release: str) -> bool:
    """True when ``build`` leads to a kernel tree that modules can be built against."""
    build = f"{MODULES}/{release}/build"
    return tree.isfile(f"{build}/Makefile") or tree.isfile(f"{build}/.config")


def compiler_for(tree: Tree, release: str) -> str | None:
    """The compiler of an installed kernel, by its configuration, then by its headers, then by the running kernel."""
    for path in (f"{MODULES}/{release}/build/.config", f"/boot/config-{release}", f"{MODULES}/{release}/config"):
        try:
            config = tree.read(path, 8192)
        except OSError:
            continue
        found = re.search(r'^CONFIG_CC_VERSION_TEXT="([^"]*)"', config, re.M)
        if found:
            return compiler_of(found.group(1))
    try:
        compile_h = tree.text(f"{MODULES}/{release}/build/include/generated/compile.h", 8192)
    except OSError:
        compile_h = None
    found = re.search(r'LINUX_COMPILER\s+"([^"]*)"', compile_h or "")
    if found:
        return compiler_of(found.group(1))
    version = tree.text("/proc/version", 4096) or ""
    return compiler_of(version) if f"version {release} " in version else None


# ---- modules


def own_modules(tree: Tree, release: str) -> list[str]:
    """Paths of the module files that do not come with the kernel, in the order depmod prefers them."""
    base = f"{MODULES}/{release}"
    found: list[str] = []
    for directory in _OWN_DIRECTORIES:
        found += _walk(tree, f"{base}/{directory}", 5)
    for directory in tree.glob(f"{base}/kernel", "nvidia-*"):
        found += _walk(tree, directory, 3)
    for directory in (
        f"{base}/kernel/drivers/video",
        f"{base}/kernel/drivers/video/nvidia",
        f"{base}/kernel/drivers/char",
    ):
        found += [path for path in tree.glob(directory, "nvidia*.ko*") if modinfo.stem(path)]
    for directory in ("zfs", "spl"):
        found += _walk(tree, f"{base}/kernel/{directory}", 3)
    return found


def _walk(tree: Tree, directory: str, depth: int) -> list[str]:
    found: list[str] = []
    below: list[str] = []
    for name in tree.names(directory):
        path = f"{directory}/{name}"
        if modinfo.stem(name):
            found.append(path)
        elif depth and tree.isdir(path):
            below += _walk(tree, path, depth - 1)
    return found + below


def nvidia_module(ctx: Context, release: str, settings: modprobe.Settings) -> dict[str, Any] | None:
    """The NVIDIA module that this kernel would load, None when it has none.

    Raises OSError or ValueError when there is one that cannot be read.
    """
    tree = ctx.tree
    candidates = [path for path in own_modules(tree, release) if modinfo.NVIDIA.match(_stem(path))]
    if not candidates:
        return None
    # Debian installs it under another name and lets an alias of modprobe choose
    wanted = settings.alias("nvidia")
    path = min(candidates, key=lambda item: (_stem(item) != wanted, _stem(item) != "nvidia"))
    info = modinfo.inspect(ctx, path)
    origin = origin_of(tree, release, path)
    flavour = flavour_of(info)
    if flavour is None:
        where = f"kernel.installed[{release}].nvidia.flavour"
        ctx.cannot(where, f"the module's license is {info.get('license', 'not named')!r}")
    row: dict[str, Any] = {
        "version": info.get("version"),
        "flavour": flavour,
        "origin": origin,
        "signed": info["signed"] == "yes",
        "vermagic_ok": fits(info.get("vermagic", ""), release, path),
        "module": _stem(path),
        "signer": info.get("signer") or None,
    }
    return {key: value for key, value in row.items() if value is not None}


def _stem(path: str) -> str:
    return modinfo.stem(path.rsplit("/", 1)[-1]) or ""


def flavour_of(info: dict[str, str]) -> str | None:
    """open or proprietary by the module's license; None for a license that neither has."""
    return {"Dual MIT/GPL": "open", "NVIDIA": "proprietary"}.get(info.get("license", ""))


def fits(vermagic: str, release: str, path: str) -> bool:
    """Whether the kernel takes the module: same release, or linked by weak-modules, which checks the symbols."""
    return vermagic.split(" ")[0] == release or "/weak-updates/" in path


def origin_of(tree: Tree, release: str, path: str) -> str:
    """dkms, precompiled (by a package) or runfile."""
    if dkms.built(tree, _stem(path), release) or "/updates/dkms/" in path:
        return "dkms"
    if "/kernel/drivers/" in path:
        return "runfile"
    return "precompiled"


def extra_modules(tree: Tree, release: str) -> list[str]:
    """Names of other out-of-tree module sets: those people know by a name of their own, else the file's name."""
    names = {name for path in own_modules(tree, release) if (name := set_of(path)) is not None}
    return sorted(names)[:_MOST_EXTRA]


def set_of(path: str) -> str | None:
    """The name of the set that a module file belongs to; None for the driver's own and for mere parts of a set."""
    bare = _stem(path)
    name = bare if bare in _EXTRA else bare.replace("-", "_")
    if name in _EXTRA:
        return _EXTRA[name]
    return None if is_driver(path) or _EXTRA_PARTS.match(name) else name


def is_driver(path: str) -> bool:
    """Whether a module file is one of the NVIDIA driver's."""
    bare = _stem(path)
    return bare not in _EXTRA and bool(modinfo.NVIDIA.match(bare) or _NVIDIA_FAMILY.match(bare))
