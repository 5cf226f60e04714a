# SPDX-License-Identifier: GPL-3.0-or-later
"""Prebuilt modules are opened and read before their package is installed; other DKMS modules are built in scratch."""
from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.mok import trust
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof import candidate
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.apt import Apt, Offer
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.errors import ProofError
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store

NEW = "6.8.0-149-generic"
PACKAGE = f"linux-modules-nvidia-580-server-open-{NEW}"
DIRECTORY = f"lib/modules/{NEW}/kernel/nvidia-580-server-open"


def module(release: str = NEW, version: str = "580.178.04", licence: str = "Dual MIT/GPL", signer: str = "C") -> str:
    return f"version: {version}\nlicense: {licence}\nvermagic: {release} SMP mod_unload\nsigner: {signer}\n"


class Backend:
    """A package source whose packages are tables of files."""

    offered, way_out = Apt.offered, Apt.way_out

    def __init__(self, packages: Mapping[str, Mapping[str, str]]) -> None:
        self.packages = packages

    def installed(self, name: str) -> str | None:
        return None

    def headers_name(self, release: str) -> str:
        return f"linux-headers-{release}"

    def offer(self, name: str, version: str | None = None) -> Offer | None:
        return Offer(name, "1", ()) if name in self.packages else None

    def download(self, wanted: Mapping[str, str], into: str) -> list[str]:
        for name in wanted:
            if name not in self.packages:
                raise ProofError(f"cannot fetch {name}")
            pathlib.Path(into, name).write_text("")
        return [os.path.join(into, name) for name in wanted]

    def unpack(self, package: str, into: str) -> None:
        for path, text in self.packages[os.path.basename(package)].items():
            target = pathlib.Path(into, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)

    def required_symbols(self, package: str) -> dict[str, str]:
        return {}

    def provided_symbols(self, release: str) -> dict[str, str]:
        return {}


class Tools:
    """modinfo, a compiler, and dkms, which builds text files."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.built: str | None = module(version="2.1")
        self.compiler = True

    def __call__(self, argv: Sequence[str], **_more: Any) -> Result:
        self.calls.append(list(argv))
        if argv[0] == "modinfo":
            return Result(0, pathlib.Path(argv[1]).read_text())
        if argv[0].startswith("gcc"):
            return Result(0, "gcc 13\n") if self.compiler else Result(127)
        tree = argv[argv.index("--dkmstree") + 1]
        name, version, release, arch = (argv[argv.index(option) + 1] for option in ("-m", "-v", "-k", "-a"))
        if self.built is None:
            return Result(10, "", "Error! Bad return status")
        where = pathlib.Path(tree, name, version, release, arch, "module")
        where.mkdir(parents=True)
        (where / "zfs.ko").write_text(self.built)
        return Result(0)


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    source = tmp_path / "usr/src/zfs-2.1.11"
    source.mkdir(parents=True)
    (source / "dkms.conf").write_text("")
    (tmp_path / "scratch").mkdir()
    build = tmp_path / "lib/modules" / NEW / "build/include/config"
    build.mkdir(parents=True)
    (build / "auto.conf").write_text('CONFIG_CC_VERSION_TEXT="gcc-13 (x) 13.2.0"\n')
    return tmp_path


def prove(root: pathlib.Path, packages: Mapping[str, Mapping[str, str]], tools: Tools | None = None,
          **more: Any) -> list[dict[str, Any]]:
    given: dict[str, Any] = {"release": NEW, "driver": "580.178.04", "flavour": "open", "prebuilt": {PACKAGE: "1"},
                             "scratch_dir": str(root / "scratch"), **more}
    wish, store = candidate.Candidate(**given), Store(str(root))
    found = candidate.prove(wish, Backend(packages), tools or Tools(), store, str(root))
    assert os.listdir(root / "scratch") == [], "nothing is left in scratch"
    return found


def test_what_the_kernel_needs_is_proved_and_remembered(root: pathlib.Path) -> None:
    files = {f"{DIRECTORY}/{name}.ko": module() for name in ("nvidia", "nvidia-uvm")}
    rows = prove(root, {PACKAGE: files}, signed=True)
    assert rows[0]["modules"] == ["nvidia", "nvidia-uvm"] and rows[0]["signer"] == "C"
    assert Store(str(root)).read()["proved_kernels"][NEW]["sources"] == {PACKAGE: "1"}


@pytest.mark.parametrize(("text", "says"), [
    (module(release="6.8.0-150-generic"), "is for kernel 6.8.0-150-generic, not 6.8.0-149-generic"),
    (module(version="580.159.03"), "has version 580.159.03, not 580.178.04"),
    (module(licence="NVIDIA"), "it is not the open flavour"),
    (module(signer=""), "is not signed"),
])
def test_what_does_not_fit_is_refused_by_name(root: pathlib.Path, text: str, says: str) -> None:
    with pytest.raises(ProofError, match=says):
        prove(root, {PACKAGE: {f"{DIRECTORY}/nvidia.ko": text}}, signed=True)
    assert Store(str(root)).read()["proved_kernels"] == {}


KEYS = """\
0a1b2c3d I--Q---     2 perm 3f030000     0     0 keyring   _ses: 1
0c5bd29b I------     1 perm 1f030000     0     0 asymmetri Canonical Ltd. Kernel Module Signing: 88f7: X509.rsa 0c6b []
1d5bd29b I------     1 perm 1f030000     0     0 asymmetri Example Inc: Module key: 5a7b0c: X509.ecdsa 0c6b2f []
"""


def keys(root: pathlib.Path, text: str = KEYS) -> None:
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc/keys").write_text(text)


@pytest.mark.parametrize("signer", ["Canonical Ltd. Kernel Module Signing", "Module key"])
def test_a_signer_among_the_kernels_keys_is_taken_without_a_word(root: pathlib.Path, signer: str) -> None:
    keys(root)
    rows = prove(root, {PACKAGE: {f"{DIRECTORY}/nvidia.ko": module(signer=signer)}}, signed=True)
    assert rows[0]["notes"] == []


def test_a_signer_that_the_kernel_does_not_have_is_refused_under_secure_boot(root: pathlib.Path) -> None:
    keys(root)
    files = {f"{DIRECTORY}/nvidia.ko": module(signer="ELRepo.org Secure Boot Key")}
    with pytest.raises(ProofError, match=r"nvidia.ko is signed by ELRepo.org Secure Boot Key, which is neither among "
                                         r"the kernel's keys \(/proc/keys\) nor enrolled"):
        prove(root, {PACKAGE: files}, signed=True)
    assert Store(str(root)).read()["proved_kernels"] == {}
    assert prove(root, {PACKAGE: files}, signed=False)[0]["notes"] == []


def test_who_signed_the_driver_that_is_loaded_is_taken(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signature names who issued the key; the kernel may know it by its own name alone."""
    keys(root)
    monkeypatch.setattr(trust.platform, "release", lambda: "6.8.0-1-generic")
    path = root / "lib/modules/6.8.0-1-generic/updates/nvidia.ko"
    path.parent.mkdir(parents=True)
    path.write_text("")
    monkeypatch.setattr(trust.modinfo, "inspect", lambda _context, _path: {"signed": "yes", "signer": "Example CA"})
    files = {f"{DIRECTORY}/nvidia.ko": module(signer="Example CA")}
    with pytest.raises(ProofError, match="signed by Example CA, which is neither"):
        prove(root, {PACKAGE: files}, signed=True)
    (root / "proc/modules").write_text("nvidia 56000 0 - Live 0x0 (OE)\n")
    assert prove(root, {PACKAGE: files}, signed=True)[0]["notes"] == []


def test_where_the_kernel_does_not_tell_its_keys_the_signer_is_a_note(root: pathlib.Path) -> None:
    files = {f"{DIRECTORY}/{name}.ko": module(signer="ELRepo") for name in ("nvidia", "nvidia-uvm")}
    for text in ("", KEYS.splitlines()[0]):
        keys(root, text)
        (note,) = prove(root, {PACKAGE: files}, signed=True)[0]["notes"]
        assert "signed by ELRepo; whether the kernel takes that key cannot be told" in note


NAMED = bytes.fromhex("0603550403")  # a common name follows
ZFS = ({"name": "zfs", "dkms": "zfs", "version": "2.1.11"},)


def own_key(monkeypatch: pytest.MonkeyPatch, name: str | None, enrolled: bool) -> None:
    key = {"certificate": "/var/lib/dkms/mok.pub", "name": name, "enrolled": enrolled}
    monkeypatch.setattr(trust.secure_boot, "signing_key", lambda _tree: key)


@pytest.mark.parametrize(("name", "says"), [
    ("DKMS module signing key", r"the key that it signs with \(DKMS module signing key, .*mok.pub\) is not enrolled"),
    (None, "it has no key to sign with")])
def test_secure_boot_refuses_what_dkms_would_sign_with_a_key_that_is_not_enrolled(
    root: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str | None, says: str
) -> None:
    keys(root)
    own_key(monkeypatch, name, enrolled=False)
    tools = Tools()
    with pytest.raises(ProofError, match=f"zfs: Secure Boot is on, DKMS builds it here, and {says}"):
        prove(root, {}, tools, prebuilt={}, others=ZFS, signed=True)
    assert not tools.calls, "nothing is built for it"
    assert prove(root, {}, prebuilt={}, others=ZFS, signed=False)[0]["notes"] == []


def test_a_key_that_was_made_again_is_not_the_enrolled_one(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel has the name from the machine owner's list: the certificate itself has to be there."""
    keys(root, KEYS.replace("Module key", "DKMS key"))
    own_key(monkeypatch, "DKMS key", enrolled=False)
    assert prove(root, {}, prebuilt={}, others=ZFS, signed=True)[0]["notes"] == [], "the firmware's own"
    monkeypatch.setattr(trust.secure_boot, "enrolled", lambda _tree: [NAMED + b"\x0c\x08DKMS key"])
    with pytest.raises(ProofError, match="is not enrolled"):
        prove(root, {}, prebuilt={}, others=ZFS, signed=True)


def test_what_dkms_signs_with_an_enrolled_key_is_built(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys(root)
    own_key(monkeypatch, "DKMS key", enrolled=True)
    assert prove(root, {}, prebuilt={}, others=ZFS, signed=True)[0]["notes"] == []


def test_a_host_that_signs_by_a_program_of_its_own_is_known_by_the_present_module(
    root: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys(root)
    own_key(monkeypatch, None, enrolled=False)
    monkeypatch.setattr(trust.platform, "release", lambda: "6.8.0-1-generic")
    path = root / "lib/modules/6.8.0-1-generic/updates/zfs.ko"
    path.parent.mkdir(parents=True)
    path.write_text("")
    monkeypatch.setattr(trust.modinfo, "inspect", lambda _context, _path: {"signed": "yes", "signer": "Module key"})
    assert prove(root, {}, prebuilt={}, others=ZFS, signed=True)[0]["notes"] == []
    monkeypatch.setattr(trust.modinfo, "inspect", lambda _context, _path: {"signed": "no"})
    with pytest.raises(ProofError, match="no key to sign with"):
        prove(root, {}, prebuilt={}, others=ZFS, signed=True)


def test_where_no_key_can_be_told_that_of_dkms_is_a_note(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_key(monkeypatch, "DKMS key", enrolled=False)
    (note,) = prove(root, {}, prebuilt={}, others=ZFS, signed=True)[0]["notes"]
    assert "what DKMS builds for zfs is signed by DKMS key; whether the kernel takes that key cannot be told" in note


def test_objects_that_are_linked_on_the_host_are_told_by_their_place(root: pathlib.Path) -> None:
    rows = prove(root, {PACKAGE: {f"{DIRECTORY}/bits/nvidia.o": ""}})
    assert rows[0]["modules"] == ["nvidia"]
    with pytest.raises(ProofError, match=f"holds no module for kernel {NEW}"):
        prove(root, {PACKAGE: {"usr/share/doc/x": ""}})


def test_a_package_that_cannot_be_fetched(root: pathlib.Path) -> None:
    with pytest.raises(ProofError, match="cannot fetch"):
        prove(root, {})


def test_other_modules_are_built_for_the_new_kernel(root: pathlib.Path) -> None:
    tools = Tools()
    others = ({"name": "zfs", "dkms": "zfs", "version": "2.1.11"},)
    rows = prove(root, {}, tools, prebuilt={}, others=others)
    assert rows == [{"name": "zfs", "version": "2.1.11", "seconds": rows[0]["seconds"], "modules": 1, "how": "built",
                     "notes": []}]
    built = next(call for call in tools.calls if "dkms" in call)
    assert built[built.index("-k") + 1] == NEW and built[built.index("--sourcetree") + 1] == f"{root}/usr/src"


@pytest.mark.parametrize(("change", "says"), [
    ({"built": None}, "does not fit this kernel"),
    ({"built": module(release="6.8.0-1-generic")}, "zfs.ko is for kernel 6.8.0-1-generic"),
    ({"compiler": False}, "gcc-13, which is not installed"),
])
def test_another_module_that_cannot_be_had(root: pathlib.Path, change: dict[str, Any], says: str) -> None:
    tools = Tools()
    for name, value in change.items():
        setattr(tools, name, value)
    with pytest.raises(ProofError, match=says):
        prove(root, {}, tools, prebuilt={}, others=({"name": "zfs", "dkms": "zfs", "version": "2.1.11"},))


def test_a_source_that_is_not_there(root: pathlib.Path) -> None:
    with pytest.raises(ProofError, match="has no dkms"):
        prove(root, {}, prebuilt={}, others=({"name": "ofed", "dkms": "mlnx-ofed-kernel", "version": "24"},))
