# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E501 - lines of real files are kept whole
from __future__ import annotations

import gzip
import lzma

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import run as children
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import kernel, modinfo
from facts_helpers import Programs, module

REL = "6.1.0-50-amd64"
CONFIG = 'CONFIG_CC_VERSION_TEXT="gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0"\n'


def put_kernel(host, release=REL, headers=True, initrd=True):
    host.put(f"/boot/vmlinuz-{release}", "image")
    host.put(f"/boot/config-{release}", CONFIG)
    if initrd:
        host.put(f"/boot/initrd.img-{release}", "initrd")
    host.put(f"/lib/modules/{release}/modules.order", "")
    if headers:
        host.put(f"/usr/src/linux-headers-{release}/Makefile", "")
        host.put(f"/usr/src/linux-headers-{release}/.config", CONFIG)
        host.link(f"/lib/modules/{release}/build", f"/usr/src/linux-headers-{release}")


def installed(host, **options):
    context = host.read(kernel.read, **options)
    return {row["release"]: row for row in context.facts["kernel"]["installed"]}, context


def test_a_whole_kernel(host):
    put_kernel(host)
    rows, context = installed(host)
    assert rows[REL] == {
        "release": REL, "image": True, "initrd": True, "headers": True, "compiler": "gcc-12", "nvidia": None, "extra_modules": [],
    }  # fmt: skip
    assert not [path for path in context.unknown if "installed" in path]


def test_headers_link_that_leads_nowhere(host):
    put_kernel(host, headers=False)
    host.link(f"/lib/modules/{REL}/build", f"/usr/src/linux-headers-{REL}")
    assert installed(host)[0][REL]["headers"] is False


def test_image_without_initrd_and_without_modules(host):
    """What a failed installation of a kernel leaves behind."""
    host.put("/boot/vmlinuz-7.2.12-amd64", "image")
    rows, context = installed(host)
    row = rows["7.2.12-amd64"]
    assert (row["image"], row["initrd"], row["headers"], row["nvidia"]) == (True, False, False, None)
    assert "compiler" not in row and "kernel.installed[7.2.12-amd64].compiler" in context.unknown


def test_what_is_no_kernel(host):
    put_kernel(host)
    for name in (
        "vmlinuz-0-rescue-abc",
        f"vmlinuz-{REL}.old",
        f"vmlinuz-{REL}.dpkg-tmp",
        "System.map-6.1",
        f"vmlinuz-{REL}.baremetal-nvidia.old",
    ):
        host.put(f"/boot/{name}", "")
    host.directory("/lib/modules/5.10.0-leftover/updates/dkms")
    assert list(installed(host)[0]) == [REL]


def test_headers_only(host):
    host.put("/usr/src/linux-headers-6.1.0-51-amd64/Makefile")
    host.link("/lib/modules/6.1.0-51-amd64/build", "/usr/src/linux-headers-6.1.0-51-amd64")
    row = installed(host)[0]["6.1.0-51-amd64"]
    assert (row["image"], row["headers"]) == (False, True)


def test_order_is_by_number(host):
    for release in ("6.1.0-9-amd64", "6.1.0-50-amd64", "6.1.0-10-amd64"):
        put_kernel(host, release)
    assert list(installed(host)[0]) == ["6.1.0-9-amd64", "6.1.0-10-amd64", "6.1.0-50-amd64"]


def test_image_beside_its_modules_and_dracut_names(host):
    release = "5.14.0-427.el9.x86_64"
    host.put(f"/usr/lib/modules/{release}/vmlinuz", "image")
    host.link("/lib", "usr/lib")
    host.put(f"/boot/initramfs-{release}.img", "")
    row = installed(host)[0][release]
    assert row["image"] and row["initrd"]


@pytest.mark.parametrize(
    ("text", "compiler"),
    [
        ("gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0", "gcc-12"),
        ("x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0", "gcc-14"),
        ("gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", "gcc-11"),
        ("gcc (GCC) 11.4.1 20231218 (Red Hat 11.4.1-3)", "gcc-11"),
        ("gcc (SUSE Linux) 7.5.0", "gcc-7"),
        ("aarch64-linux-gnu-gcc-13 (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0", "gcc-13"),
        ("Ubuntu clang version 17.0.6", "clang-17"),
        (
            "Linux version 5.15.0-112-generic (buildd@lcy02-amd64-051) (gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0, "
            "GNU ld (GNU Binutils for Ubuntu) 2.38) #122-Ubuntu SMP Thu May 23 07:48:21 UTC 2024",
            "gcc-11",
        ),
        (
            "Linux version 6.12.1 (user@host) (x86_64-linux-gnu-gcc-13 (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0, GNU ld 2.42) #1",
            "gcc-13",
        ),
        (
            "Linux version 5.14.0-427.el9.x86_64 (mockbuild@x86-64-03.example.com) (gcc (GCC) 11.4.1 20231218 (Red Hat "
            "11.4.1-3), GNU ld version 2.35.2-43.el9) #1 SMP",
            "gcc-11",
        ),
        ("Linux version 4.18.0 (gcc version 8.5.0 20210514 (Red Hat 8.5.0-20) (GCC)) #1 SMP", "gcc-8"),
        ("tcc 0.9", None),
        ("", None),
    ],
)
def test_compiler(text, compiler):
    assert kernel.compiler_of(text) == compiler


def test_running(host):
    host.put("/proc/sys/kernel/osrelease", f"{REL}\n")
    host.put(
        "/proc/version",
        f"Linux version {REL} (debian-kernel@lists.debian.org) (gcc-12 (Debian 12.2.0-14) 12.2.0, GNU ld) #1\n",
    )
    host.put("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 password=hunter2\n")
    host.put(
        "/proc/modules",
        "nvidia_uvm 1 0 - Live 0x0 (POE)\nnvidia 2 1 nvidia_uvm, Live 0x0 (POE)\next4 3 1 - Live 0x0\nodd 1 0 - Live 0x0 (OE)\n"
        "ib_umad 1 0 - Live 0x0\n",
    )
    facts = host.read(kernel.read).facts["kernel"]
    assert facts["running"] == REL and facts["running_compiler"] == "gcc-12"
    assert facts["modules"] == ["ib_umad", "nvidia", "nvidia_uvm", "odd"]
    assert "hunter2" not in facts["cmdline"] and "root=/dev/sda1" in facts["cmdline"]


def test_without_proc(host):
    put_kernel(host)
    context = host.read(kernel.read)
    assert {f"kernel.{key}" for key in ("running", "running_compiler", "cmdline", "modules")} <= set(context.unknown)
    assert len(context.facts["kernel"]["installed"]) == 1


def test_kernel_without_loadable_modules(host):
    host.put("/proc/sys/kernel/osrelease", REL)
    context = host.read(kernel.read)
    assert context.facts["kernel"]["modules"] == [] and "kernel.modules" not in context.unknown


def test_no_modules_loaded_is_not_unknown(host):
    host.put("/proc/modules", "")
    assert host.read(kernel.read).facts["kernel"]["modules"] == []


# ---- the module


def nvidia(host, **options):
    rows, context = installed(host, **options)
    return rows[REL].get("nvidia", "absent"), context


@pytest.mark.parametrize(("license_", "flavour"), [("Dual MIT/GPL", "open"), ("NVIDIA", "proprietary")])
def test_dkms_module(host, license_, flavour):
    put_kernel(host)
    host.put(f"/lib/modules/{REL}/updates/dkms/nvidia.ko", module(REL, "580.95.05", license_))
    row, _rest = nvidia(host)
    assert row == {
        "version": "580.95.05", "flavour": flavour, "origin": "dkms", "signed": False, "vermagic_ok": True, "module": "nvidia",
    }  # fmt: skip


def test_signed_and_another_kernels_module(host):
    put_kernel(host)
    host.put(f"/lib/modules/{REL}/updates/dkms/nvidia.ko", module("6.1.0-49-amd64", signed=True))
    row, _rest = nvidia(host)
    assert row["signed"] is True and row["vermagic_ok"] is False


def test_debians_name(host):
    put_kernel(host)
    for part in ("nvidia-current", "nvidia-current-drm", "nvidia-current-uvm"):
        host.put(f"/lib/modules/{REL}/updates/dkms/{part}.ko", module(REL))
    row, context = nvidia(host)
    assert row["module"] == "nvidia-current"
    assert host.read(kernel.read).facts["kernel"]["installed"][0]["extra_modules"] == []
    assert not [path for path in context.unknown if "nvidia" in path]


def test_debians_alias_chooses(host):
    put_kernel(host)
    host.put(f"/lib/modules/{REL}/updates/dkms/nvidia-current.ko", module(REL, "535.261.03"))
    host.put(f"/lib/modules/{REL}/updates/dkms/nvidia-tesla-470.ko", module(REL, "470.256.02"))
    assert nvidia(host)[0]["version"] == "535.261.03"
    host.put("/etc/modprobe.d/nvidia.conf", "install nvidia modprobe -i nvidia-tesla-470 $CMDLINE_OPTS\n")
    assert nvidia(host)[0]["version"] == "470.256.02"


def test_updates_are_preferred(host):
    put_kernel(host)
    host.put(f"/lib/modules/{REL}/kernel/nvidia-580/nvidia.ko", module(REL, "580.1.1"))
    host.put(f"/lib/modules/{REL}/updates/dkms/nvidia.ko", module(REL, "575.2.2"))
    assert nvidia(host)[0]["version"] == "575.2.2"


@pytest.mark.parametrize(
    ("path", "origin"),
    [
        ("kernel/nvidia-580/nvidia.ko", "precompiled"),
        ("extra/nvidia/nvidia.ko", "precompiled"),
        ("kernel/drivers/video/nvidia.ko", "runfile"),
        ("updates/dkms/nvidia.ko", "dkms"),
    ],
)
def test_origin(host, path, origin):
    put_kernel(host)
    host.put(f"/lib/modules/{REL}/{path}", module(REL))
    assert nvidia(host)[0]["origin"] == origin


def test_dkms_where_it_puts_modules_on_el(host):
    put_kernel(host)
    host.put(f"/lib/modules/{REL}/extra/nvidia.ko.xz", lzma.compress(module(REL)))
    host.put(f"/var/lib/dkms/nvidia/550.163.01/{REL}/x86_64/module/nvidia.ko.xz", "")
    assert nvidia(host)[0]["origin"] == "dkms"


def test_weak_update_is_taken(host):
    put_kernel(host)
    host.put("/lib/modules/old/extra/nvidia.ko", module("old"))
    host.link(f"/lib/modules/{REL}/weak-updates/nvidia.ko", "/lib/modules/old/extra/nvidia.ko")
    assert nvidia(host)[0]["vermagic_ok"] is True


def test_damaged_module_is_unknown_and_not_none(host):
    put_kernel(host)
    host.put(f"/lib/modules/{REL}/updates/dkms/nvidia.ko", b"\x7fELF" + bytes(100))
    row, context = nvidia(host)
    assert row == "absent"
    assert f"kernel.installed[{REL}].nvidia" in context.unknown


def test_empty_module_file_is_unknown(host):
    put_kernel(host)
    host.put(f"/lib/modules/{REL}/updates/dkms/nvidia.ko", b"")
    row, context = nvidia(host)
    assert row == "absent" and f"kernel.installed[{REL}].nvidia" in context.unknown


def test_foreign_license_has_no_flavour(host):
    put_kernel(host)
    host.put(f"/lib/modules/{REL}/updates/dkms/nvidia.ko", module(REL, license="GPL"))
    row, context = nvidia(host)
    assert "flavour" not in row and "GPL" in context.unknown[f"kernel.installed[{REL}].nvidia.flavour"]


@pytest.mark.parametrize(("suffix", "pack"), [("xz", lzma.compress), ("gz", gzip.compress)])
def test_packed_module_without_modinfo(host, suffix, pack):
    put_kernel(host)
    host.put(f"/lib/modules/{REL}/updates/dkms/nvidia.ko.{suffix}", pack(module(REL, signed=True)))
    row, _rest = nvidia(host, runner=Programs())
    assert row["version"] == "550.163.01" and row["signed"] is True


def test_zstd_module_by_modinfo(host):
    put_kernel(host)
    host.put(f"/lib/modules/{REL}/updates/dkms/nvidia.ko.zst", b"\x28\xb5\x2f\xfd")
    text = f"filename: /x\nlicense:        Dual MIT/GPL\nversion:        580.95.05\nvermagic:       {REL} SMP\nsig_id:         PKCS#7\n"
    row, _rest = nvidia(host, runner=Programs(modinfo=children.Result(rc=0, out=text)))
    assert row["version"] == "580.95.05" and row["flavour"] == "open" and row["signed"] is True


def test_zstd_module_that_nothing_can_unpack(host):
    put_kernel(host)
    host.put(f"/lib/modules/{REL}/updates/dkms/nvidia.ko.zst", b"no zstd at all")
    row, context = nvidia(host, runner=Programs())
    assert row == "absent" and "zstd" in context.unknown[f"kernel.installed[{REL}].nvidia"]


def test_modinfo_and_our_own_reader_agree(tmp_path):
    from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run

    path = tmp_path / "nvidia.ko"
    path.write_bytes(module(REL, "580.95.05", "Dual MIT/GPL"))
    answer = run(["modinfo", "-F", "version", str(path)])
    if answer.missing:
        pytest.skip("modinfo is not installed")
    assert answer.out.strip() == modinfo.fields(path.read_bytes())["version"] == "580.95.05"


def test_extra_modules(host):
    put_kernel(host)
    for path in (
        "updates/dkms/mlx5_core.ko", "updates/dkms/ib_core.ko", "updates/dkms/mlx_compat.ko", "extra/zfs/zfs.ko.xz", "extra/spl.ko",
        "updates/dkms/gdrdrv.ko", "updates/dkms/nvidia.ko", "updates/dkms/nvidia-uvm.ko", "extra/lustre/fs/lustre.ko",
        "updates/dkms/nvidia-fs.ko", "updates/dkms/somebodys_own.ko", "weak-updates/knem/knem.ko",
    ):  # fmt: skip
        host.put(f"/lib/modules/{REL}/{path}", module(REL))
    assert installed(host)[0][REL]["extra_modules"] == [
        "gdrcopy", "knem", "lustre", "mlnx-ofed", "nvidia-fs", "somebodys_own", "zfs",
    ]  # fmt: skip


def test_ubuntus_zfs(host):
    put_kernel(host)
    host.put(f"/lib/modules/{REL}/kernel/zfs/zfs.ko.zst", "")
    assert installed(host)[0][REL]["extra_modules"] == ["zfs"]
