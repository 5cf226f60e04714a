# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that are linked on the host: Ubuntu's proprietary ones, and those of NVIDIA's repositories for RHEL."""
from __future__ import annotations

import pathlib

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.mok.trust import Trust
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof import precompiled
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.errors import ProofError
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.symbols import Abi

RELEASE = "6.8.0-149-generic"


def nothing(*_words, **_options):
    """No program is asked."""


@pytest.mark.parametrize(("name", "objects"), [
    (f"linux-modules-nvidia-580-server-{RELEASE}", f"linux-objects-nvidia-580-server-{RELEASE}"),
    (f"linux-modules-nvidia-580-{RELEASE}", f"linux-objects-nvidia-580-{RELEASE}"),
    (f"linux-modules-nvidia-580-server-open-{RELEASE}", None),
    ("linux-modules-nvidia-580-server-generic", None), ("kmod-nvidia-580.178.04-5.14.0-687.12.1", None)])
def test_which_package_has_the_objects(name, objects):
    assert precompiled.objects_of(name) == objects


def test_the_objects_are_fetched_and_opened_with_it(tmp_path):
    class Backend:
        def __init__(self):
            self.asked = None

        def download(self, wanted, into):
            self.asked = dict(wanted)
            for name in wanted:
                pathlib.Path(into, name).write_text("x")
            return [str(pathlib.Path(into, name)) for name in wanted]

        def unpack(self, package, tree):
            if pathlib.Path(package).name.startswith("linux-objects-"):
                path = pathlib.Path(tree, "lib/modules", RELEASE, "kernel/nvidia-580srv/bits/nvidia.o")
                path.parent.mkdir(parents=True)
                path.write_text("x")

        def required_symbols(self, package):
            return {}

    backend, name = Backend(), f"linux-modules-nvidia-580-server-{RELEASE}"
    package = precompiled.open_package(name, "6.8.0-149.149+1", backend, str(tmp_path))
    assert backend.asked == {name: "6.8.0-149.149+1", f"linux-objects-nvidia-580-server-{RELEASE}": "6.8.0-149.149+1"}
    found = precompiled.check(package, name, release=RELEASE, driver="580.178.04", flavour="proprietary", signed=False,
                              run=nothing, abi=Abi(RELEASE, backend, nothing, str(tmp_path)), trust=Trust())
    assert found == {"modules": ["nvidia"], "signer": None, "notes": []}


NOBODY = Trust()
EL, DRIVER = "5.14.0-611.30.1.el9_7.x86_64", "580.178.04"


def kmod(tree: pathlib.Path, driver: str = DRIVER, kernel: str = "5.14.0-611.30.1.el9_7", without: str = "") -> None:
    """Lay out what kmod-nvidia-580.178.04-5.14.0-611.30.1 holds: objects, signatures and a linker, no module."""
    folder = tree / "usr/lib64/nvidia/x86_64-redhat-linux-gnu" / driver / kernel
    for name in ("nvidia.mod.o", "nvidia.sig", "nvidia/nv-interface.o", "nvidia/nv-kernel.o", "nvidia-uvm.mod.o",
                 "nvidia-uvm.sig", "nvidia-uvm/nvidia-uvm.o"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name != without:
            (folder / name).write_text("x")
    (tree / f"usr/share/nvidia-{kernel}").mkdir(parents=True)
    (tree / f"usr/share/nvidia-{kernel}/module-common.lds").write_text("x")


def opened(tree: pathlib.Path, signed: bool = True, trust: Trust = NOBODY) -> dict[str, object]:
    return precompiled.check(precompiled.Opened(str(tree), {}), "kmod-nvidia", release=EL, driver=DRIVER,
                             flavour="proprietary", signed=signed, run=nothing, abi=Abi(EL, None, nothing, str(tree)),
                             trust=trust)


def test_nvidias_kmods_are_known_by_the_folder_of_driver_and_kernel(tmp_path: pathlib.Path) -> None:
    kmod(tmp_path)
    assert opened(tmp_path, signed=False) == {"modules": ["nvidia", "nvidia-uvm"], "signer": None, "notes": []}


def test_who_signed_nvidias_kmods_stands_in_the_signature_beside_the_objects(tmp_path: pathlib.Path) -> None:
    kmod(tmp_path)
    (note,) = opened(tmp_path)["notes"]
    assert "who signed nvidia.ko is not told" in note, "a signature that names nobody"
    for path in tmp_path.rglob("*.sig"):
        path.write_bytes(bytes.fromhex("30820603550403") + b"\x0c\x06NVIDIA")
    assert opened(tmp_path, trust=Trust(frozenset({"Red Hat", "NVIDIA"}))) == {
        "modules": ["nvidia", "nvidia-uvm"], "signer": "NVIDIA", "notes": []}
    assert opened(tmp_path, trust=Trust(frozenset({"Red Hat"}), frozenset({"NVIDIA"})))["notes"] == []
    with pytest.raises(ProofError, match=r"nvidia-uvm.ko is signed by NVIDIA, which is neither among the kernel"):
        opened(tmp_path, trust=Trust(frozenset({"Red Hat"})))


@pytest.mark.parametrize("other", [{"driver": "580.159.03"}, {"kernel": "5.14.0-611.5.1.el9_7"},
                                   {"without": "nvidia.mod.o"}])
def test_a_kmod_of_another_driver_or_kernel_or_without_its_main_module_is_refused(
    tmp_path: pathlib.Path, other: dict[str, str]
) -> None:
    kmod(tmp_path, **other)
    with pytest.raises(ProofError, match=f"holds no module for kernel {EL} and driver {DRIVER}"):
        opened(tmp_path)


def test_a_kmod_without_a_signature_is_refused_where_the_kernel_insists(tmp_path: pathlib.Path) -> None:
    kmod(tmp_path, without="nvidia-uvm.sig")
    with pytest.raises(ProofError, match="no signature for nvidia-uvm"):
        opened(tmp_path)
    assert opened(tmp_path, signed=False)["modules"] == ["nvidia", "nvidia-uvm"]
