# SPDX-License-Identifier: GPL-3.0-or-later
"""Initial ramdisks: the former one stays until a better one has been looked into."""
from __future__ import annotations

import gzip
import os
import pathlib
from collections.abc import Mapping, Sequence

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import atomic, initramfs
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot import settle
from ansible_collections.baremetal.nvidia.plugins.module_utils.initramfs import Initramfs, InitrdError
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result

KERNEL, OTHER = "6.1.0-50-amd64", "6.1.0-47-amd64"
BASE = ("kernel/fs/ext4/ext4.ko", "kernel/drivers/nvme/host/nvme.ko", "kernel/drivers/hid/hid.ko")
NOUVEAU = "kernel/drivers/gpu/drm/nouveau/nouveau.ko"
BLOCKED = {"etc/modprobe.d/baremetal-nvidia.conf": "blacklist nouveau\n"}


def image(modules: Sequence[str], files: Mapping[str, str] | None = None, kernel: str = KERNEL) -> bytes:
    """A gzip-packed cpio archive (newc) as mkinitramfs makes one."""
    members = {f"usr/lib/modules/{kernel}/{path}": "x" for path in modules} | dict(files or {}) | {"TRAILER!!!": ""}
    raw = b""
    for name, text in members.items():
        data = text.encode()
        fields = [0, 0o100644, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        raw += b"070701" + b"".join(f"{value:08x}".encode() for value in fields) + name.encode() + b"\0"
        raw += b"\0" * (-len(raw) % 4) + data
        raw += b"\0" * (-len(raw) % 4)
    return gzip.compress(raw)


class Builder:
    """mkinitramfs that writes the image the test wants."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.builds = image(BASE)
        self.result = Result(0)
        self.calls: list[list[str]] = []

    def __call__(self, argv: Sequence[str], timeout: float = 10, env: object = None, input: object = None) -> Result:
        self.calls.append(list(argv))
        if argv[0] == "mkinitramfs":
            pathlib.Path(argv[2]).write_bytes(self.builds)
        if argv[0] == "dracut":
            pathlib.Path(argv[-2]).write_bytes(self.builds)
        return self.result

    @property
    def built(self) -> list[str]:
        return [call[3] for call in self.calls if call[0] == "mkinitramfs"]


@pytest.fixture
def host(tmp_path: pathlib.Path) -> Builder:
    (tmp_path / "usr/sbin").mkdir(parents=True)
    (tmp_path / "usr/sbin/mkinitramfs").touch()
    (tmp_path / "boot").mkdir()
    for kernel in (KERNEL, OTHER):
        (tmp_path / f"boot/vmlinuz-{kernel}").write_text("k")
        (tmp_path / f"boot/initrd.img-{kernel}").write_bytes(image([*BASE, NOUVEAU], kernel=kernel))
        modules = tmp_path / "lib/modules" / kernel
        modules.mkdir(parents=True)
        (modules / "modules.dep").write_text("".join(f"{path}:\n" for path in [*BASE, NOUVEAU]))
    return Builder(tmp_path)


def rebuild(host: Builder, *kernels: str, force: bool = False, check: bool = False) -> initramfs.Outcome:
    return Initramfs(host, str(host.root)).rebuild(kernels or (KERNEL,), ["nouveau"], force, check)


def boot(host: Builder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((host.root / "boot").iterdir())}


def test_nouveau_goes_and_the_former_image_stays_bootable(host: Builder) -> None:
    before = boot(host)
    outcome = rebuild(host)
    assert [(r.kernel, r.changed, r.reason) for r in outcome.results] == [(KERNEL, True, "it loads nouveau")]
    after = boot(host)
    assert after[f"initrd.img-{KERNEL}"] == host.builds
    assert after[f"initrd.img-{KERNEL}{initramfs.OLD_SUFFIX}"] == before[f"initrd.img-{KERNEL}"]
    assert after[f"initrd.img-{OTHER}"] == before[f"initrd.img-{OTHER}"], "one kernel at a time"
    assert len(after) == len(before) + 1, "no litter"


def test_a_good_image_is_left_alone(host: Builder) -> None:
    rebuild(host)
    before = boot(host)
    host.calls.clear()
    outcome = rebuild(host)
    assert not outcome.changed and not host.calls and boot(host) == before


def test_an_image_that_blocks_the_module_itself_is_good(host: Builder) -> None:
    (host.root / f"boot/initrd.img-{KERNEL}").write_bytes(image([*BASE, NOUVEAU], BLOCKED))
    assert not rebuild(host).changed and not host.calls


def test_a_missing_or_damaged_image_is_built(host: Builder) -> None:
    (host.root / f"boot/initrd.img-{KERNEL}").unlink()
    (host.root / f"boot/initrd.img-{OTHER}").write_bytes(b"rubbish")
    host_reasons = [r.reason for r in rebuild(host, KERNEL, OTHER, check=True).results]
    assert host_reasons[0] == "there is none" and "cannot be read" in str(host_reasons[1])
    assert rebuild(host, KERNEL).changed and (host.root / f"boot/initrd.img-{KERNEL}").read_bytes() == host.builds


def test_check_mode_builds_nothing(host: Builder) -> None:
    before = boot(host)
    outcome = rebuild(host, KERNEL, OTHER, check=True)
    assert outcome.changed and len(outcome.diff) == 2 and boot(host) == before and not host.calls


@pytest.mark.parametrize("content, words", [
    (image([*BASE, NOUVEAU]), "still loads nouveau"),
    (image([]), "has no kernel module in it"),
    (image(BASE[1:]), "lacks ext4, which the former one had"),
    (image(["kernel/a.ko", "kernel/b.ko"]), "modules of another kernel"),
    (b"rubbish", "cannot be read"),
    (image(BASE)[:60], "cannot be read"),
    (b"", "(has no kernel module in it|cannot be read)"),
])
def test_what_fails_the_content_check_never_takes_the_place(host: Builder, content: bytes, words: str) -> None:
    before = boot(host)
    host.builds = content
    with pytest.raises(InitrdError, match=f"{words}.*former one is in place"):
        rebuild(host)
    assert boot(host) == before


def test_losing_what_is_no_disk_driver_is_fine(host: Builder) -> None:
    host.builds = image(BASE[:2])
    assert rebuild(host).changed


def test_a_failing_builder_leaves_the_former_image(host: Builder) -> None:
    before = boot(host)
    host.result = Result(1, "", "E: no space in /var/tmp")
    with pytest.raises(InitrdError, match="no space in /var/tmp"):
        rebuild(host)
    assert boot(host) == before


def test_the_second_kernels_failure_leaves_the_first_done(host: Builder) -> None:
    good = host.builds

    def build(argv: Sequence[str], **options: object) -> Result:
        host.builds = good if argv[3] == KERNEL else b"rubbish"
        return host(argv)

    with pytest.raises(InitrdError, match=OTHER):
        Initramfs(build, str(host.root)).rebuild([KERNEL, OTHER], ["nouveau"], False, False)
    assert boot(host)[f"initrd.img-{KERNEL}"] == good


def test_killed_before_the_rename_leaves_the_former_image_and_the_next_run_cleans_up(
        host: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    before = boot(host)

    def killed(new: str, path: str, on_host: bool) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(settle, "swap", killed)
        patch.setattr(atomic, "remove", lambda path: False)    # a killed process cleans nothing up
        with pytest.raises(KeyboardInterrupt):
            rebuild(host)
    left = boot(host)
    assert left[f"initrd.img-{KERNEL}"] == before[f"initrd.img-{KERNEL}"]
    assert any(name.startswith(atomic.TMP_PREFIX) for name in left)
    rebuild(host)
    assert not any(name.startswith(atomic.TMP_PREFIX) or name.endswith(".new") for name in boot(host))


def test_the_boot_loader_finds_a_whole_image_at_any_moment(host: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    """GRUB does not replay the journal: image and name are in their places before anything relies on them."""
    seen: list[tuple[bool, str]] = []
    path = host.root / f"boot/initrd.img-{KERNEL}"

    def checkpoint(directory: str) -> bool:
        kept = (host.root / f"boot/initrd.img-{KERNEL}{initramfs.OLD_SUFFIX}").exists()
        seen.append((kept, "new" if path.read_bytes() == host.builds else "former"))
        return True

    monkeypatch.setattr(settle, "checkpoint", checkpoint)
    rebuild(host)
    assert not seen, "a tree that nobody boots is left alone"
    monkeypatch.setattr(os.path, "exists", lambda name: True)
    on_host = Initramfs(host, "/")
    monkeypatch.setattr(on_host, "image", lambda kernel: str(path))
    monkeypatch.setattr(on_host, "_look", lambda *rest: None)
    monkeypatch.setattr(on_host, "_hooks", lambda *rest: None)
    host.builds = image(BASE[:2])
    on_host._replace(KERNEL, ["nouveau"])
    assert seen == [(True, "former"), (True, "new")]


def test_an_unknown_kernel_is_refused_before_anything_is_built(host: Builder) -> None:
    with pytest.raises(InitrdError, match=f"9.9.9, which is not installed; installed: {OTHER}, {KERNEL}"):
        rebuild(host, KERNEL, "9.9.9")
    assert not host.calls


def test_a_full_boot_is_refused_before_anything_is_built(host: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        f_flag, f_bavail, f_frsize = 0, 0, 4096

    monkeypatch.setattr(initramfs.os, "statvfs", lambda path: Full())
    with pytest.raises(InitrdError, match="/boot has 0 MiB free"):
        rebuild(host)
    assert not host.calls


def test_a_read_only_boot_is_refused(host: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    class ReadOnly:
        f_flag, f_bavail, f_frsize = os.ST_RDONLY, 10**9, 4096

    monkeypatch.setattr(initramfs.os, "statvfs", lambda path: ReadOnly())
    with pytest.raises(InitrdError, match="read-only"):
        rebuild(host)


def test_without_hard_links_the_former_image_is_copied(host: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    before = boot(host)
    monkeypatch.setattr(initramfs.os, "link", refuse)
    rebuild(host)
    assert boot(host)[f"initrd.img-{KERNEL}{initramfs.OLD_SUFFIX}"] == before[f"initrd.img-{KERNEL}"]


def test_hooks_of_boot_loaders_run_and_their_failure_is_said(host: Builder) -> None:
    hooks = host.root / "etc/initramfs/post-update.d"
    hooks.mkdir(parents=True)
    rebuild(host)
    assert [call[0] for call in host.calls] == ["mkinitramfs"]
    (hooks / "zipl").touch()
    rebuild(host, force=True)
    assert host.calls[-1] == ["run-parts", f"--arg={KERNEL}", f"--arg={host.root}/boot/initrd.img-{KERNEL}", str(hooks)]

    def broken(argv: Sequence[str], **options: object) -> Result:
        return Result(1, "", "zipl broke") if argv[0] == "run-parts" else host(argv)

    with pytest.raises(InitrdError, match="in place, but a boot loader's hook failed: zipl broke"):
        Initramfs(broken, str(host.root)).rebuild([KERNEL], [], True, False)


def test_no_builder_is_skipped_another_one_is_named(host: Builder) -> None:
    (host.root / "usr/sbin/mkinitramfs").unlink()
    outcome = rebuild(host)
    assert not outcome.changed and "neither initramfs-tools nor dracut is installed" in str(outcome.skipped_reason)
    (host.root / "usr/bin").mkdir()
    (host.root / "usr/bin/mkinitcpio").touch()
    with pytest.raises(InitrdError, match="built by mkinitcpio here, which is not supported"):
        rebuild(host)


@pytest.mark.parametrize("name", ["initramfs-{}.img", "initrd-{}"])
def test_dracut_builds_beside_its_own_name_and_leaves_the_driver_out(host: Builder, name: str) -> None:
    (host.root / "usr/sbin/mkinitramfs").rename(host.root / "usr/sbin/dracut")
    if name == "initrd-{}":
        (host.root / "etc/zypp").mkdir(parents=True)
    for kernel in (KERNEL, OTHER):
        (host.root / f"boot/initrd.img-{kernel}").rename(host.root / "boot" / name.format(kernel))
    before = boot(host)
    outcome = rebuild(host, force=True)
    after = boot(host)
    assert outcome.changed and host.calls[0][:2] == ["dracut", "--force"]
    assert host.calls[0][2:4] == ["--omit-drivers", "nouveau"] and host.calls[0][-1] == KERNEL
    assert after[name.format(KERNEL) + initramfs.OLD_SUFFIX] == before[name.format(KERNEL)]
    (host.root / "boot" / name.format(KERNEL)).unlink()
    rebuild(host)
    assert name.format(KERNEL) in boot(host), "the system's own name where there was none"
