# SPDX-License-Identifier: GPL-3.0-or-later
"""Initial ramdisks: what is packed in them, however it is packed."""

from __future__ import annotations

import gzip
import lzma
import subprocess
import time

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import initrd, nouveau
from facts_helpers import cpio, module

REL = "6.1.0-50-amd64"
EARLY = cpio({"kernel/x86/microcode/GenuineIntel.bin": b"\1" * 300})
NOUVEAU = {f"usr/lib/modules/{REL}/kernel/drivers/gpu/drm/nouveau/nouveau.ko": b"x" * 5000, "init": "#!/bin/sh\n"}
PLAIN = {f"usr/lib/modules/{REL}/kernel/fs/ext4/ext4.ko.xz": b"y" * 100, "init": "#!/bin/sh\n"}
BLOCKED = {**NOUVEAU, "etc/modprobe.d/baremetal-nvidia.conf": "blacklist nouveau\noptions nouveau modeset=0\n"}


def packed_by(program):
    def pack(data):
        try:
            return subprocess.run(
                [program, "-c"], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
            ).stdout
        except FileNotFoundError:
            pytest.skip(f"{program} is not installed")

    return pack


def write(tmp_path, data):
    path = tmp_path / "initrd.img"
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize(
    "pack",
    [
        bytes,
        gzip.compress,
        lzma.compress,
        lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE),
        packed_by("zstd"),
        packed_by("lz4"),
    ],
    ids=["plain", "gzip", "xz", "lzma", "zstd", "lz4"],
)
@pytest.mark.parametrize("early", [b"", EARLY], ids=["", "microcode"])
def test_every_packing(tmp_path, pack, early):
    found = initrd.inspect(write(tmp_path, early + pack(cpio(NOUVEAU))))
    assert found.modules == {"nouveau"} and found.loads("nouveau")
    assert not initrd.inspect(write(tmp_path, early + pack(cpio(PLAIN)))).loads("nouveau")


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress), (".zst", packed_by("zstd"))],
    ids=["ko", "xz", "gz", "zst"],
)
def test_the_version_of_the_nvidia_module(tmp_path, suffix, pack):
    base = f"usr/lib/modules/{REL}/updates/dkms/"
    files = {f"{base}nvidia.ko{suffix}": pack(module(REL, "570.133.20")), f"{base}nvidia-uvm.ko{suffix}": b"no module"}
    found = initrd.inspect(write(tmp_path, gzip.compress(cpio({**PLAIN, **files, "z": "after it"}))))
    assert list(found.drivers) == ["nvidia"] and found.drivers["nvidia"]["version"] == "570.133.20"
    assert found.modules == {"ext4", "nvidia", "nvidia-uvm"}


def test_of_two_nvidia_modules_the_one_that_modprobe_would_take(tmp_path):
    files = {f"usr/lib/modules/{REL}/{name}.ko": module(REL, f"{version}.10")
             for name, version in (("nvidia-current", 535), ("nvidia-legacy-470xx", 470))}
    alias = {"etc/modprobe.d/nvidia.conf": "install nvidia modprobe -i nvidia-legacy-470xx $CMDLINE_OPTS\n"}
    assert initrd.inspect(write(tmp_path, cpio({**files, **alias}))).driver == "nvidia-legacy-470xx"
    assert initrd.inspect(write(tmp_path, cpio(files))).driver == "nvidia-current"
    assert initrd.inspect(write(tmp_path, cpio(PLAIN))).driver is None


def test_several_archives_with_padding(tmp_path):
    data = (
        EARLY
        + bytes(1024)
        + cpio(PLAIN)
        + bytes(512)
        + gzip.compress(cpio(NOUVEAU) + bytes(2048) + cpio({"a.ko": "z"}))
    )
    assert initrd.inspect(write(tmp_path, data)).modules == {"ext4", "nouveau", "a"}


def test_module_that_the_image_itself_blocks(tmp_path):
    found = initrd.inspect(write(tmp_path, gzip.compress(cpio(BLOCKED))))
    assert "nouveau" in found.modules and not found.loads("nouveau")


@pytest.mark.parametrize("line", ["install nouveau /bin/false\n", "alias nouveau off\n", "blacklist nouveau\n"])
def test_ways_to_block(tmp_path, line):
    found = initrd.inspect(write(tmp_path, cpio({**NOUVEAU, "usr/lib/modprobe.d/x.conf": line})))
    assert not found.loads("nouveau")


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense that is no archive",
        EARLY + b"\x1f\x8b" + b"broken" * 10,
        cpio(NOUVEAU)[:200],
        b"",
        bytes(4096),
        gzip.compress(cpio(NOUVEAU))[:-40],
        gzip.compress(cpio(NOUVEAU)[:5400]),
        gzip.compress(b""),
        gzip.compress(b"not an archive" * 20),
        b"\x28\xb5\x2f\xfd" + b"broken" * 10,
    ],
    ids=lambda data: f"{len(data)}-bytes-{data[:4].hex()}",
)
def test_damaged_images_raise_and_are_no_answer(tmp_path, data):
    with pytest.raises(ValueError):
        initrd.inspect(write(tmp_path, data))


def test_deadline(tmp_path):
    with pytest.raises(ValueError, match="within 0 s"):
        initrd.inspect(write(tmp_path, gzip.compress(cpio(NOUVEAU))), timeout=0)


def test_unpacker_that_never_ends(tmp_path, monkeypatch):
    monkeypatch.setitem(initrd._PROGRAMS, b"\x28\xb5\x2f\xfd", ["sh", "-c", "yes 0707010000000000000000000000000000"])
    before = time.monotonic()
    with pytest.raises(ValueError):
        initrd.inspect(write(tmp_path, b"\x28\xb5\x2f\xfd"), timeout=1)
    assert time.monotonic() - before < 4


def test_missing_unpacker_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(initrd._PROGRAMS, b"\x28\xb5\x2f\xfd", ["no-such-program"])
    with pytest.raises(ValueError, match="no-such-program is not installed"):
        initrd.inspect(write(tmp_path, b"\x28\xb5\x2f\xfd"))


# ---- the subject


def put(host, release, files):
    host.put(f"/boot/vmlinuz-{release}")
    if files is not None:
        host.put(f"/boot/initrd.img-{release}", files if isinstance(files, bytes) else gzip.compress(cpio(files)))


def test_each_kernel(host):
    put(host, "6.1.0-47-amd64", NOUVEAU)
    put(host, "6.1.0-50-amd64", BLOCKED)
    put(host, "6.1.0-51-amd64", None)
    put(host, "6.1.0-52-amd64", b"damaged")
    context = host.read(nouveau.read_images)
    assert context.facts["nouveau_images"] == {"6.1.0-47-amd64": True, "6.1.0-50-amd64": False}
    assert set(context.unknown) == {"kernel.installed[6.1.0-52-amd64].nouveau_in_initrd"}


def test_only_so_many_images(host):
    for number in range(1, 8):
        put(host, f"6.{number}.0", PLAIN)
    host.put("/proc/sys/kernel/osrelease", "6.1.0\n")
    context = host.read(nouveau.read_images)
    assert sorted(context.facts["nouveau_images"]) == ["6.1.0", "6.5.0", "6.6.0", "6.7.0"]
    assert len(context.unknown) == 3


def test_no_time_left(host):
    put(host, "6.1.0", PLAIN)
    context = host.read(nouveau.read_images, deadline=time.monotonic() + 1)
    assert context.facts["nouveau_images"] == {} and "no time" in next(iter(context.unknown.values()))


@pytest.mark.parametrize(
    ("files", "loaded", "blocked"),
    [
        ({"/proc/modules": "nouveau 1 0 - Live 0x0\n"}, True, False),
        ({"/proc/modules": "ext4 1 0 - Live 0x0\n", "/etc/modprobe.d/x.conf": "blacklist nouveau\n"}, False, True),
        ({"/proc/modules": "", "/usr/lib/modprobe.d/x.conf": "install nouveau /bin/false\n"}, False, True),
        ({"/proc/modules": "", "/etc/modprobe.d/x.conf": "# blacklist nouveau\nblacklist other\n"}, False, False),
        ({"/proc/modules": "", "/proc/cmdline": "quiet modprobe.blacklist=foo,nouveau"}, False, True),
        (
            {"/proc/modules": "", "/etc/modprobe.d/x.conf": "", "/usr/lib/modprobe.d/x.conf": "blacklist nouveau\n"},
            False,
            False,
        ),
        ({"/sys/module/nouveau/refcnt": "0"}, True, False),
    ],
)
def test_loaded_and_blocked(host, files, loaded, blocked):
    host.many(files)
    facts = host.read(nouveau.read).facts["driver"]["nouveau"]
    assert (facts["loaded"], facts["blocked"]) == (loaded, blocked)


def test_loaded_is_unknown_without_proc_and_sys(host):
    context = host.read(nouveau.read)
    assert "driver.nouveau.loaded" in context.unknown and "loaded" not in context.facts["driver"]["nouveau"]
