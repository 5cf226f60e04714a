# SPDX-License-Identifier: GPL-3.0-or-later
"""Is the kernel that came in as good as the present one? Each way in which it is not is said."""
from __future__ import annotations

import pathlib
import struct
import sys
from collections.abc import Sequence
from typing import Any

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "facts"))
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import kernel
from ansible_collections.baremetal.nvidia.plugins.module_utils.stage import complete
from facts_helpers import module
from test_initramfs import image

OLD, NEW = "6.1.0-47-amd64", "6.1.0-57-amd64"
DISK, OTHER = "kernel/drivers/nvme/host/nvme.ko", "kernel/drivers/hid/hid.ko"
MODULE = {"version": "535.309.01", "flavour": "proprietary", "vermagic_ok": True, "signed": False}


@pytest.fixture
def root(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    for release in (OLD, NEW):
        (tmp_path / "lib/modules" / release / "kernel").mkdir(parents=True)
        (tmp_path / "lib/modules" / release / "modules.dep").write_text(f"{DISK}:\n{OTHER}:\n")
        (tmp_path / "boot").mkdir(exist_ok=True)
        (tmp_path / f"boot/vmlinuz-{release}").write_text("kernel")
        put(tmp_path, release, (DISK, OTHER))
    monkeypatch.setattr(kernel, "nvidia_module", lambda *_args: dict(MODULE))
    monkeypatch.setattr(kernel, "extra_modules", lambda _tree, _release: ["zfs"])
    return tmp_path


def put(root: pathlib.Path, release: str, modules: Sequence[str], of: str | None = None) -> None:
    (root / f"boot/initrd.img-{release}").write_bytes(image(modules, kernel=of or release))


def problems(root: pathlib.Path, **more: Any) -> list[str]:
    given: dict[str, Any] = {"driver": MODULE["version"], "flavour": MODULE["flavour"], "signed": False,
                             "others": ["zfs"]}
    given.update(more)
    return complete.problems(str(root), NEW, OLD, **given)


def test_a_whole_kernel(root: pathlib.Path) -> None:
    assert problems(root) == []


def test_no_image_is_all_that_is_said(root: pathlib.Path) -> None:
    (root / f"boot/vmlinuz-{NEW}").unlink()
    assert problems(root) == [f"kernel {NEW} has no image"]


@pytest.mark.parametrize(("modules", "of", "says"), [
    ((OTHER,), NEW, "lacks nvme, which that of the present kernel has"),
    ((), NEW, "has no kernel module in it"),
    (("kernel/a/strange.ko", "kernel/b/stranger.ko"), OLD, "holds modules of another kernel"),
])
def test_an_initrd_that_does_not_do(root: pathlib.Path, modules: Sequence[str], of: str, says: str) -> None:
    put(root, NEW, modules, of)
    assert says in problems(root)[0]


def test_an_initrd_that_is_missing_or_torn(root: pathlib.Path) -> None:
    path = root / f"boot/initrd.img-{NEW}"
    path.write_bytes(path.read_bytes()[:40])
    assert "cannot be read" in problems(root)[0]
    path.write_bytes(b"")
    assert problems(root) == [f"kernel {NEW} has no initrd"]
    path.unlink()
    assert problems(root) == [f"kernel {NEW} has no initrd"]


def test_the_present_initrd_needs_not_be_readable(root: pathlib.Path) -> None:
    (root / f"boot/initrd.img-{OLD}").write_text("strange")
    assert problems(root) == []


@pytest.mark.parametrize(("change", "says"), [
    ({"version": "550.1"}, "is 550.1, not 535.309.01"),
    ({"flavour": "open"}, "is open, not proprietary"),
    ({"vermagic_ok": False}, "was built for another kernel"),
])
def test_a_module_that_is_another(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch, change: Any, says: str) -> None:
    monkeypatch.setattr(kernel, "nvidia_module", lambda *_args: {**MODULE, **change})
    assert says in problems(root)[0]


def test_a_module_that_is_missing_torn_or_unsigned(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "is not signed" in problems(root, signed=True)[0]
    monkeypatch.setattr(kernel, "nvidia_module", lambda *_args: None)
    assert problems(root) == [f"kernel {NEW} has no nvidia module"]

    def torn(*_args: object) -> None:
        raise ValueError("it is no ELF file")

    monkeypatch.setattr(kernel, "nvidia_module", torn)
    assert "cannot be read: it is no ELF file" in problems(root)[0]


KEYS = "0c5bd29b I------     1 perm 1f030000     0     0 asymmetri Debian: {}: 5a7b0c: X509.rsa 0c6b2f []\n"


def own(root: pathlib.Path, name: str, release: str = NEW, signed_by: str | None = "Debian Key") -> None:
    """A module of its own directory, signed (the common name as DER has it at the end) or not."""
    data = module(release)
    if signed_by is not None:
        signature = bytes.fromhex("0603550403") + bytes([0x0C, len(signed_by)]) + signed_by.encode()
        data += signature + struct.pack(">BBBBB3xI", 0, 0, 2, 0, 0, len(signature)) + b"~Module signature appended~\n"
    path = root / f"lib/modules/{release}/updates/dkms/{name}.ko"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@pytest.fixture
def secure(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setattr(kernel, "nvidia_module", lambda *_args: {**MODULE, "signed": True})
    (root / "proc").mkdir()
    (root / "proc/keys").write_text(KEYS.format("Debian Key"))
    for release in (OLD, NEW):
        for name in ("nvidia", "nvidia-uvm", "zfs"):
            own(root, name, release)
    return root


def test_signed_by_a_key_of_the_kernel(secure: pathlib.Path) -> None:
    assert problems(secure, signed=True) == []


@pytest.mark.parametrize(("name", "what"), [("zfs", f"zfs of {NEW}"), ("nvidia-uvm", f"nvidia-uvm of {NEW}")])
def test_secure_boot_refuses_another_module_that_is_unsigned(secure: pathlib.Path, name: str, what: str) -> None:
    own(secure, name, signed_by=None)
    assert problems(secure, signed=True) == [f"Secure Boot is on and {what} is not signed"]
    assert problems(secure, signed=False) == []


def test_secure_boot_refuses_a_signer_that_nobody_knows(secure: pathlib.Path) -> None:
    own(secure, "zfs", signed_by="Stranger")
    own(secure, "nvidia", signed_by="Other stranger")
    said = "; ".join(problems(secure, signed=True))
    assert f"zfs of {NEW} is signed by Stranger, which is neither" in said
    assert f"nvidia of {NEW} is signed by Other stranger, which is neither" in said
    own(secure, "zfs", OLD, signed_by="Stranger")
    assert "zfs" not in "; ".join(problems(secure, signed=True)), "the present kernel has it from the same signer"


def test_where_the_kernel_does_not_tell_its_keys_no_signer_is_refused(secure: pathlib.Path) -> None:
    own(secure, "zfs", signed_by="Stranger")
    (secure / "proc/keys").unlink()
    assert problems(secure, signed=True) == []


def test_what_the_host_does_not_live_on_needs_no_signature(secure: pathlib.Path) -> None:
    own(secure, "zfs", signed_by=None)
    own(secure, "zfs", OLD, signed_by=None)
    own(secure, "gdrdrv", signed_by=None)
    assert problems(secure, signed=True) == [], "unsigned beside too, and not among the modules that it must have"
    own(secure, "nvidia-uvm", signed_by=None)
    own(secure, "nvidia-uvm", OLD, signed_by=None)
    assert problems(secure, signed=True) == [f"Secure Boot is on and nvidia-uvm of {NEW} is not signed"]


def test_a_module_whose_signature_cannot_be_read(secure: pathlib.Path) -> None:
    (secure / f"lib/modules/{NEW}/updates/dkms/zfs.ko").write_bytes(b"torn")
    assert problems(secure, signed=True)[0].startswith(f"the signature of zfs of {NEW} cannot be read")


def test_another_module_that_the_present_kernel_has(root: pathlib.Path) -> None:
    assert problems(root, others=["zfs", "lustre"]) == [f"kernel {NEW} has no lustre, which {OLD} has"]
