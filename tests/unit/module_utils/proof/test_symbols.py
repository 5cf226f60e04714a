# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module made for another kernel counts where it fits this one's symbols, and is refused where it does not."""
from __future__ import annotations

import gzip
import lzma
import os
import pathlib
import struct
from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof import candidate, symbols
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.errors import ProofError
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.rpm import Dnf, Zypper
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store

BUILT_FOR, NEW = "5.14.0-570.12.1.el9_6.x86_64", "5.14.0-611.5.1.el9_7.x86_64"
EXTRA = f"lib/modules/{BUILT_FOR}/extra/nvidia"
KERNEL = {"module_layout": 0x8A7D1C31, "drm_open": 0x1122AABB, "kmalloc_noprof": 0x00000F05}


def elf(sections: Mapping[str, bytes]) -> bytes:
    """A 64-bit ELF file of these sections, as elf(5) lays it out."""
    names, bodies, rows = b"\0", b"", [bytes(64)]
    for name, body in (*sections.items(), (".shstrtab", None)):
        at = len(names)
        names += name.encode() + b"\0"
        content = names if body is None else body
        rows.append(struct.pack("<IIQQQQIIQQ", at, 1, 0, 0, 64 + len(bodies), len(content), 0, 0, 1, 0))
        bodies += content
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, 64 + len(bodies), 0, 64, 0, 0, 64, len(rows), len(rows) - 1)
    return head + bodies + b"".join(rows)


def module(needs: Mapping[str, int], gives: tuple[str, ...] = (), extended: bool = False) -> bytes:
    """A module file: what it needs in __versions (or, as since 6.14, in two sections), what it gives."""
    sections = {".modinfo": b"vermagic=x\0", "__ksymtab_strings": b"".join(name.encode() + b"\0" for name in gives)}
    if extended:
        sections["__version_ext_crcs"] = b"".join(struct.pack("<I", value) for value in needs.values())
        sections["__version_ext_names"] = b"".join(name.encode() + b"\0" for name in needs)
    else:
        sections["__versions"] = b"".join(struct.pack("<Q56s", value, name.encode()) for name, value in needs.items())
    return elf(sections)


class Source:
    """One package with the module files of ``files``, and what rpm says of symbols."""

    def __init__(self, files: Mapping[str, bytes], asked: Mapping[str, str], offered: Mapping[str, str]) -> None:
        self.files, self.asked, self.offered = files, dict(asked), dict(offered)

    def download(self, wanted: Mapping[str, str], into: str) -> list[str]:
        pathlib.Path(into, "kmod.rpm").write_text("")
        return [os.path.join(into, "kmod.rpm")]

    def unpack(self, package: str, into: str) -> None:
        for path, data in self.files.items():
            target = pathlib.Path(into, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)

    def required_symbols(self, package: str) -> dict[str, str]:
        assert os.path.exists(package)
        return self.asked

    def provided_symbols(self, release: str) -> dict[str, str]:
        assert release == NEW
        return self.offered


def modinfo(argv: list[str], **_options: Any) -> Result:
    assert argv[0] == "modinfo"
    return Result(0, f"version: 580.178.04\nlicense: Dual MIT/GPL\nvermagic: {BUILT_FOR} SMP\n")


def prove(root: pathlib.Path, files: Mapping[str, bytes], *, asked: Mapping[str, str] | None = None,
          offered: Mapping[str, str] | None = None) -> None:
    (root / "scratch").mkdir(exist_ok=True)
    wish = candidate.Candidate(release=NEW, driver="580.178.04", flavour="open", prebuilt={"kmod-nvidia": "1"},
                               scratch_dir=str(root / "scratch"))
    candidate.prove(wish, Source(files, asked or {}, offered or {}), modinfo, Store(str(root)), str(root))
    assert os.listdir(root / "scratch") == []


def listed(values: Mapping[str, int]) -> str:
    return "".join(f"0x{value:08x}\t{name}\tvmlinux\tEXPORT_SYMBOL_GPL\t\n" for name, value in values.items())


def put(root: pathlib.Path, path: str, data: bytes) -> None:
    target = root / path.format(NEW)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)


@pytest.mark.parametrize(("path", "pack"), [
    ("lib/modules/{}/symvers.gz", gzip.compress), ("lib/modules/{}/symvers.xz", lzma.compress),
    ("boot/symvers-{}.gz", gzip.compress), ("lib/modules/{}/build/Module.symvers", bytes)])
def test_a_module_with_the_kernels_own_symbols_counts(tmp_path: pathlib.Path, path: str, pack: Any) -> None:
    put(tmp_path, path, pack(listed(KERNEL).encode()))
    needs = {name: KERNEL[name] for name in ("module_layout", "drm_open")}
    prove(tmp_path, {f"{EXTRA}/nvidia.ko": module(needs)})
    assert NEW in Store(str(tmp_path)).read()["proved_kernels"]


@pytest.mark.parametrize("extended", [False, True])
def test_one_other_checksum_and_one_symbol_that_is_gone_are_named(tmp_path: pathlib.Path, extended: bool) -> None:
    put(tmp_path, "lib/modules/{}/symvers.gz", gzip.compress(listed(KERNEL).encode()))
    needs = {**KERNEL, "drm_open": 0x1122AABC, "drm_gone": 1}
    with pytest.raises(ProofError, match=rf"nvidia.ko was made for kernel {BUILT_FOR}, and {NEW} has no such "
                                         r"drm_gone, drm_open \(other symbol versions\)"):
        prove(tmp_path, {f"{EXTRA}/nvidia.ko": module(needs, extended=extended)})
    assert Store(str(tmp_path)).read()["proved_kernels"] == {}, "nothing counts as proved"


def test_of_many_the_first_are_named_and_the_rest_counted(tmp_path: pathlib.Path) -> None:
    put(tmp_path, "lib/modules/{}/symvers.gz", gzip.compress(listed(KERNEL).encode()))
    with pytest.raises(ProofError, match="has no such a0, a1, a2, a3, a4 and 4 more"):
        prove(tmp_path, {f"{EXTRA}/nvidia.ko": module({f"a{number}": number for number in range(9)})})


def test_what_the_modules_give_to_each_other_the_kernel_need_not_have(tmp_path: pathlib.Path) -> None:
    put(tmp_path, "lib/modules/{}/symvers.gz", gzip.compress(listed(KERNEL).encode()))
    files = {f"{EXTRA}/nvidia.ko.xz": lzma.compress(module(KERNEL, gives=("nvUvmInterfaceRegisterGpu",))),
             f"{EXTRA}/nvidia-uvm.ko": module({"nvUvmInterfaceRegisterGpu": 0x77, **KERNEL})}
    prove(tmp_path, files)
    del files[f"{EXTRA}/nvidia.ko.xz"]
    files[f"{EXTRA}/nvidia.ko"] = module(KERNEL)
    with pytest.raises(ProofError, match="has no such nvUvmInterfaceRegisterGpu"):
        prove(tmp_path, files)


def test_the_package_speaks_for_modules_that_name_no_symbols(tmp_path: pathlib.Path) -> None:
    """What SUSE's packages and Red Hat's say; the kernel on offer is not installed."""
    bare = {f"{EXTRA}/nvidia.ko": module({})}
    offered = {"ksym(default:module_layout)": "4f1c0d5a", "kernel(drm_open)": "0x1122aabb"}
    prove(tmp_path, bare, asked={"ksym(default:module_layout)": "4f1c0d5a"}, offered=offered)
    prove(tmp_path, bare, asked={"kernel(drm_open)": "0x1122aabb"}, offered=offered)
    with pytest.raises(ProofError, match="has no such module_layout"):
        prove(tmp_path, bare, asked={"ksym(default:module_layout)": "9b27e113"}, offered=offered)


def test_what_the_package_leaves_out_the_file_still_needs(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ProofError, match="has no such drm_open"):
        prove(tmp_path, {f"{EXTRA}/nvidia.ko": module(KERNEL)}, asked={"kernel(module_layout)": "0x8a7d1c31"},
              offered={"kernel(module_layout)": "0x8a7d1c31", "kernel(kmalloc_noprof)": "0xf05"})


def test_nothing_that_tells_is_no_proof(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ProofError, match=f"names no symbol versions: nothing tells whether {NEW} takes it"):
        prove(tmp_path, {f"{EXTRA}/nvidia.ko": module({})}, offered={"kernel(a)": "0x1"})
    with pytest.raises(ProofError, match=r"which symbols .* has is told by no symvers.gz"):
        prove(tmp_path, {f"{EXTRA}/nvidia.ko": module(KERNEL)})
    with pytest.raises(ProofError, match="its symbols cannot be read: not a 64-bit ELF file"):
        prove(tmp_path, {f"{EXTRA}/nvidia.ko": b"torn"}, offered={"kernel(a)": "0x1"})
    put(tmp_path, "lib/modules/{}/symvers.gz", b"torn")
    with pytest.raises(ProofError, match=r"cannot uncompress .*symvers.gz"):
        prove(tmp_path, {f"{EXTRA}/nvidia.ko": module(KERNEL)})


def test_elsewhere_a_module_of_another_kernel_is_refused_whatever_its_symbols(tmp_path: pathlib.Path) -> None:
    put(tmp_path, "lib/modules/{}/symvers.gz", gzip.compress(listed(KERNEL).encode()))
    with pytest.raises(ProofError, match=f"nvidia.ko is for kernel {BUILT_FOR}, not {NEW}"):
        prove(tmp_path, {f"lib/modules/{BUILT_FOR}/kernel/drivers/nvidia.ko": module(KERNEL)})


def test_a_list_of_symbols() -> None:
    assert symbols.symvers(listed(KERNEL) + "no line\n") == KERNEL
    with pytest.raises(ProofError, match="cannot be read"):
        symbols.symvers("0xzz\ta\tvmlinux\tEXPORT_SYMBOL\n")


# what rpm, dnf and the metadata of zypper say


class Programs:
    def __init__(self, **answers: str) -> None:
        self.answers, self.calls = answers, []  # type: ignore[var-annotated]

    def __call__(self, argv: list[str], **_options: Any) -> Result:
        self.calls.append(list(argv))
        words = {"-qp": "file", "-qf": "installed", "repoquery": "offered"}
        kind = next(words[word] for word in argv if word in words)
        return Result(0 if kind in self.answers else 1, self.answers.get(kind, ""), "error: no such file")


def test_dnf_says_what_an_installed_and_an_offered_kernel_provides() -> None:
    here = Programs(installed="kernel-uname-r = x\nkernel(drm_open) = 0x1122aabb\n", file="kernel(a) = 0x1\n/bin/sh\n")
    assert Dnf(here).provided_symbols(NEW) == {"kernel(drm_open)": "0x1122aabb"}
    assert Dnf(here).required_symbols("/x/kmod.rpm") == {"kernel(a)": "0x1"}
    offered = Programs(offered="kernel(drm_open) = 0x5\n")
    assert Dnf(offered).provided_symbols(NEW + "+rt") == {"kernel(drm_open)": "0x5"}
    asked = offered.calls[-1][-1]
    assert f"kernel-uname-r = {NEW}+rt" in asked and f"kernel-rt-modules-core-uname-r = {NEW}+rt" in asked
    assert Dnf(Programs()).provided_symbols(NEW) == {} and Dnf(Programs()).required_symbols("/x") == {}


def test_zypper_reads_what_a_kernel_on_offer_provides(tmp_path: pathlib.Path) -> None:
    def package(rebuild: str, checksum: str) -> str:
        return (f'<package><name>kernel-default</name><version epoch="0" ver="6.4.0" rel="150600.23.{rebuild}"/>'
                f'<rpm:provides><rpm:entry name="ksym(default:module_layout)" flags="EQ" ver="{checksum}"/>'
                "</rpm:provides></package>")

    put(tmp_path, "var/cache/zypp/raw/u/repodata/ab-primary.xml",
        (package("47.2", "0a") + package("60.5", "0b")).encode())
    source = Zypper(Programs(), str(tmp_path))
    assert source.provided_symbols("6.4.0-150600.23.60-default") == {"ksym(default:module_layout)": "0b"}
    assert source.provided_symbols("6.4.0-150600.23.99-default") == {}
