# SPDX-License-Identifier: GPL-3.0-or-later
"""Is the kernel that came in as good as the present one? Each way in which it is not is said."""
from __future__ import annotations

import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import kernel
from ansible_collections.baremetal.nvidia.plugins.module_utils.stage import complete
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


def test_another_module_that_the_present_kernel_has(root: pathlib.Path) -> None:
    assert problems(root, others=["zfs", "lustre"]) == [f"kernel {NEW} has no lustre, which {OLD} has"]
