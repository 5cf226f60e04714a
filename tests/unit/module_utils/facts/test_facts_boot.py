# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E501 - lines of real files are kept whole
from __future__ import annotations

import json

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import boot, grub

HEAD = """
if [ -s $prefix/grubenv ]; then
  set have_grubenv=true
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="%s"
fi
if [ x"${feature_menuentry_id}" = xy ]; then
  menuentry_id_option="--id"
else
  menuentry_id_option=""
fi
export menuentry_id_option
function savedefault {
  if [ -z "${boot_once}" ]; then
    saved_entry="${chosen}"
    save_env saved_entry
  fi
}
"""
MENU = """
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-U' {
\tload_video
\tif [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi
\tset root='hd0,gpt2'
\tlinux\t/vmlinuz-6.1.0-50-amd64 root=UUID=U ro quiet
\tinitrd\t/initrd.img-6.1.0-50-amd64
}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-U' {
\tmenuentry 'Debian GNU/Linux, with Linux 6.1.0-50-amd64' --class debian $menuentry_id_option 'gnulinux-6.1.0-50-amd64-advanced-U' {
\t\tlinux\t/boot/vmlinuz-6.1.0-50-amd64 root=UUID=U ro quiet
\t}
\tmenuentry 'Debian GNU/Linux, with Linux 6.1.0-50-amd64 (recovery mode)' $menuentry_id_option 'gnulinux-6.1.0-50-amd64-recovery-U' {
\t\tlinux\t/boot/vmlinuz-6.1.0-50-amd64 root=UUID=U ro single
\t}
\tmenuentry 'Debian GNU/Linux, with Linux 6.1.0-47-amd64' $menuentry_id_option 'gnulinux-6.1.0-47-amd64-advanced-U' {
\t\tlinux\t/boot/vmlinuz-6.1.0-47-amd64 root=UUID=U ro quiet
\t}
}
menuentry "UEFI Firmware Settings" $menuentry_id_option 'uefi-firmware' {
\tfwsetup
}
"""
FORTY_SEVEN = "gnulinux-advanced-U>gnulinux-6.1.0-47-amd64-advanced-U"


def put_grub(host, default="0", env="saved_entry=\n", directory="/boot/grub", menu=MENU, config=None):
    host.put(f"{directory}/grub.cfg", HEAD % default + menu)
    if env is not None:
        host.put(f"{directory}/grubenv", f"# GRUB Environment Block\n{env}".ljust(1024, "#"))
    host.put("/etc/default/grub", config if config is not None else f'GRUB_DEFAULT="{default}"\nGRUB_TIMEOUT=5\n')
    host.directory("/sys/firmware")
    put_mounts(host)


def put_mounts(host, fstype="ext4", source="/dev/sda2", device="8:2", point="/boot"):
    host.put(
        "/proc/self/mountinfo",
        f"20 1 8:1 / / rw - ext4 /dev/sda1 rw\n21 20 {device} / {point} rw - {fstype} {source} rw\n",
    )
    host.link("/sys/dev/block/8:2", "../../devices/pci/block/sda/sda2")
    host.put("/sys/devices/pci/block/sda/sda2/partition", "2")
    host.link("/sys/class/block/sda2", "../../devices/pci/block/sda/sda2")


def read(host):
    return host.read(boot.read)


def default_boot(host):
    return read(host).facts["kernel"]["default_boot"]


@pytest.mark.parametrize(
    ("default", "env", "release"),
    [
        ("0", "", "6.1.0-50-amd64"),
        ("${saved_entry}", f"saved_entry={FORTY_SEVEN}\n", "6.1.0-47-amd64"),
        ("${saved_entry}", "saved_entry=\n", "6.1.0-50-amd64"),
        ("${saved_entry}", "saved_entry=gone\n", "6.1.0-50-amd64"),
        ("${saved_entry}", "saved_entry=1>2\n", "6.1.0-47-amd64"),
        (
            "${saved_entry}",
            "saved_entry=gnulinux-advanced-U>Debian GNU/Linux, with Linux 6.1.0-47-amd64\n",
            "6.1.0-47-amd64",
        ),
        ("${saved_entry}", "saved_entry=gnulinux-advanced-U>gone\n", "6.1.0-50-amd64"),
        ("1>2", "", "6.1.0-47-amd64"),
        ("1", "", "6.1.0-50-amd64"),
        ("9", "", "6.1.0-50-amd64"),
        (FORTY_SEVEN, "", "6.1.0-47-amd64"),
        ("Advanced options for Debian GNU/Linux>2", "", "6.1.0-47-amd64"),
    ],
)
def test_default_boot(host, default, env, release):
    put_grub(host, default, env)
    assert default_boot(host) == release


def test_next_entry_does_not_change_the_default(host):
    put_grub(host, "${saved_entry}", f"saved_entry=0\nnext_entry={FORTY_SEVEN}\n")
    context = read(host)
    assert context.facts["boot"]["next_entry"] == FORTY_SEVEN
    assert context.facts["kernel"]["default_boot"] == "6.1.0-50-amd64"


@pytest.mark.parametrize(
    ("default", "mode"),
    [("0", "index"), ("1>2", "index"), ("${saved_entry}", "saved"), (FORTY_SEVEN, "entry")],
)
def test_mode(host, default, mode):
    put_grub(host, default)
    assert read(host).facts["boot"]["default_mode"] == mode


def test_grub_is_described(host):
    put_grub(host, "${saved_entry}", f"saved_entry={FORTY_SEVEN}\n")
    facts = read(host).facts["boot"]
    assert (facts["firmware"], facts["loader"], facts["next_entry"], facts["saved_entry"]) == (
        "bios",
        "grub",
        None,
        FORTY_SEVEN,
    )
    assert (facts["boot_fs"], facts["boot_layout"], facts["env_writable"], facts["watchdog"]) == (
        "ext4",
        "partition",
        True,
        None,
    )
    assert facts["entries"][3] == {
        "id": FORTY_SEVEN,
        "title": "Debian GNU/Linux, with Linux 6.1.0-47-amd64",
        "release": "6.1.0-47-amd64",
    }
    assert facts["entries"][-1] == {"id": "uefi-firmware", "title": "UEFI Firmware Settings", "release": None}


def test_settings_that_have_not_reached_grub_cfg(host):
    """default_mode is what is in force; configured_default what the next update-grub would write."""
    put_grub(host, "0", config="GRUB_DEFAULT=0\n")
    host.put("/etc/default/grub.d/zz-baremetal-nvidia.cfg", "GRUB_DEFAULT=saved\n")
    facts = read(host).facts["boot"]
    assert (facts["default_mode"], facts["configured_default"]) == ("index", "saved")


def test_the_last_snippet_counts(host):
    put_grub(host, config="GRUB_DEFAULT=0\n")
    host.put("/etc/default/grub.d/50-cloudimg.cfg", 'GRUB_DEFAULT="1>2" # why\nexport GRUB_X=1\n')
    host.put("/etc/default/grub.d/10-a.cfg", "GRUB_DEFAULT=saved\n")
    host.put("/etc/default/grub.d/99-not-a-snippet.txt", "GRUB_DEFAULT=9\n")
    assert boot.grub_settings(host.tree)["GRUB_DEFAULT"] == "1>2"


def test_unreadable_menu_is_unknown(host):
    put_grub(host)
    host.path("/boot/grub/grub.cfg").unlink()
    host.directory("/boot/grub/grub.cfg")
    context = read(host)
    assert {"boot.default_mode", "boot.entries", "kernel.default_boot"} <= set(context.unknown)
    assert "default_boot" not in context.facts.get("kernel", {})
    assert context.facts["boot"]["loader"] == "grub"


def test_damaged_environment(host):
    put_grub(host, "${saved_entry}")
    host.put("/boot/grub/grubenv", "garbage")
    context = read(host)
    assert {"boot.next_entry", "boot.env_writable", "kernel.default_boot"} <= set(context.unknown)


def test_no_environment_block(host):
    put_grub(host, "${saved_entry}", env=None)
    context = read(host)
    assert context.facts["boot"]["env_writable"] is False and context.facts["boot"]["next_entry"] is None
    assert context.facts["kernel"]["default_boot"] == "6.1.0-50-amd64"


@pytest.mark.parametrize(
    ("fstype", "name", "files", "layout", "writable"),
    [
        ("ext4", "sda2", {"partition": "2"}, "partition", True),
        ("xfs", "sda2", {"partition": "2"}, "partition", True),
        ("btrfs", "sda2", {"partition": "2"}, "btrfs", False),
        ("ext4", "md0", {"md/level": "raid1"}, "mdraid", False),
        ("ext4", "dm-0", {"dm/uuid": "LVM-abc"}, "lvm", False),
        ("ext4", "dm-0", {"dm/uuid": "CRYPT-LUKS2-abc"}, "crypt", False),
        ("ext4", "dm-0", {"dm/uuid": "part2-mpath-3600"}, "multipath", False),
        ("ext4", "dm-0", {"dm/uuid": ""}, "dm", False),
        ("ext4", "sda", {"size": "1"}, "disk", False),
    ],
)
def test_layout(host, fstype, name, files, layout, writable):
    put_grub(host)
    host.put(
        "/proc/self/mountinfo",
        f"20 1 0:30 / / rw - overlay overlay rw\n21 20 9:9 / /boot rw - {fstype} /dev/{name} rw\n",
    )
    for file, content in files.items():
        host.put(f"/sys/class/block/{name}/{file}", content)
    facts = read(host).facts["boot"]
    assert (facts["boot_layout"], facts["env_writable"]) == (layout, writable)


def test_zfs_and_containers(host):
    put_grub(host)
    host.put("/proc/self/mountinfo", "20 1 0:30 / / rw - zfs rpool/ROOT rw\n")
    assert read(host).facts["boot"]["boot_layout"] == "zfs"
    host.put("/proc/self/mountinfo", "20 1 0:30 / / rw - overlay overlay rw\n")
    facts = read(host).facts["boot"]
    assert facts["boot_layout"] is None and facts["env_writable"] is False and facts["boot_fs"] == "overlay"


def test_layout_that_sysfs_does_not_tell(host):
    put_grub(host)
    host.put("/proc/self/mountinfo", "20 1 9:9 / / rw - ext4 /dev/sdz1 rw\n")
    context = read(host)
    assert "sdz1" in context.unknown["boot.boot_layout"] and "boot_layout" not in context.facts["boot"]
    assert "boot.env_writable" in context.unknown


def test_grubenv_on_the_efi_partition(host):
    """RHEL 8: grub2/grubenv is a link into the FAT file system, which GRUB can write."""
    put_grub(host, "${saved_entry}", env=None, directory="/boot/grub2")
    host.put("/boot/efi/EFI/redhat/grubenv", "# GRUB Environment Block\nsaved_entry=1>2\n".ljust(1024, "#"))
    host.link("/boot/grub2/grubenv", "../efi/EFI/redhat/grubenv")
    host.put(
        "/proc/self/mountinfo", "20 1 8:1 / / rw - btrfs /dev/sda1 rw\n21 20 8:2 / /boot/efi rw - vfat /dev/sda2 rw\n"
    )
    context = read(host)
    assert context.facts["boot"]["env_writable"] is True
    assert context.facts["kernel"]["default_boot"] == "6.1.0-47-amd64"


BLS = {
    "/boot/loader/entries/abc-5.14.0-427.el9.x86_64.conf": "title RHEL 5.14.0-427\nversion 5.14.0-427.el9.x86_64\nlinux /vmlinuz-5.14.0-427.el9.x86_64\n",
    "/boot/loader/entries/abc-5.14.0-503.el9.x86_64.conf": "title RHEL 5.14.0-503\nversion 5.14.0-503.el9.x86_64\nlinux /vmlinuz-5.14.0-503.el9.x86_64\n",
    "/boot/loader/entries/abc-0-rescue.conf": "title rescue\nversion 0-rescue-abc\nlinux /vmlinuz-0-rescue-abc\n",
}


@pytest.mark.parametrize(
    ("env", "release"),
    [
        ("saved_entry=abc-5.14.0-427.el9.x86_64\n", "5.14.0-427.el9.x86_64"),
        ("saved_entry=0\n", "5.14.0-503.el9.x86_64"),
        ("saved_entry=1\n", "5.14.0-427.el9.x86_64"),
        ("", "5.14.0-503.el9.x86_64"),
    ],
)
def test_grub_with_bls(host, env, release):
    host.many(BLS)
    put_grub(host, "${saved_entry}", env, "/boot/grub2", "insmod blscfg\nblscfg\n")
    context = read(host)
    assert context.facts["kernel"]["default_boot"] == release
    assert context.facts["boot"]["entries"][0]["id"] == "abc-5.14.0-503.el9.x86_64"


@pytest.mark.parametrize(
    ("conf", "release"),
    [
        ("timeout 3\n", "5.14.0-503.el9.x86_64"),
        ("default abc-5.14.0-427*\n", "5.14.0-427.el9.x86_64"),
        ("default abc-5.14.0-427.el9.x86_64.conf\n", "5.14.0-427.el9.x86_64"),
    ],
)
def test_systemd_boot(host, conf, release):
    host.many(BLS)
    host.put("/boot/loader/loader.conf", conf)
    host.directory("/sys/firmware/efi")
    context = read(host)
    assert (context.facts["boot"]["loader"], context.facts["boot"]["firmware"]) == ("systemd-boot", "uefi")
    assert context.facts["kernel"]["default_boot"] == release
    assert context.facts["boot"]["env_writable"] is False


def test_systemd_boot_variables(host):
    host.many(BLS)
    host.put("/boot/loader/loader.conf", "")
    guid = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
    value = bytes(4) + "abc-5.14.0-427.el9.x86_64.conf\0".encode("utf-16-le")
    host.put(f"/sys/firmware/efi/efivars/LoaderEntryDefault-{guid}", value)
    host.put(f"/sys/firmware/efi/efivars/LoaderEntryOneShot-{guid}", value)
    context = read(host)
    assert context.facts["kernel"]["default_boot"] == "5.14.0-427.el9.x86_64"
    assert context.facts["boot"]["next_entry"] == "abc-5.14.0-427.el9.x86_64.conf"


def test_grub_cfg_that_is_left_over(host):
    put_grub(host)
    host.many(BLS)
    host.put("/boot/loader/loader.conf", "")
    name = "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
    host.put(name, bytes(4) + "systemd-boot 257\0".encode("utf-16-le"))
    assert read(host).facts["boot"]["loader"] == "systemd-boot"
    host.put(name, bytes(4) + "GRUB 2.12\0".encode("utf-16-le"))
    assert read(host).facts["boot"]["loader"] == "grub"


def test_no_boot_loader(host):
    host.directory("/boot")
    context = read(host)
    assert context.facts["boot"]["loader"] is None and context.facts["kernel"]["default_boot"] is None
    assert context.facts["boot"]["entries"] == []
    assert "boot.firmware" in context.unknown


def test_other_loaders_say_what_is_not_read(host):
    host.put("/boot/extlinux/extlinux.conf")
    context = read(host)
    assert context.facts["boot"]["loader"] == "extlinux" and "kernel.default_boot" in context.unknown


def test_entry_whose_image_has_no_release(host):
    menu = "menuentry 'Linux' {\n linux /vmlinuz root=x\n}\n"
    put_grub(host, menu=menu)
    assert "kernel.default_boot" in read(host).unknown
    host.link("/vmlinuz", "boot/vmlinuz-6.1.0-50-amd64")
    assert default_boot(host) == "6.1.0-50-amd64"


def test_many_entries_are_cut_and_it_is_said(host):
    menu = "".join(f"menuentry 'L{n}' --id l{n} {{\n linux /vmlinuz-6.{n}\n}}\n" for n in range(30))
    put_grub(host, menu=menu)
    context = read(host)
    assert len(context.facts["boot"]["entries"]) == 16 and "30 entries" in context.unknown["boot.entries[]"]


def test_watchdog(host):
    put_grub(host)
    host.put("/sys/class/watchdog/watchdog0/identity", "iTCO_wdt\n")
    assert read(host).facts["boot"]["watchdog"] == {"device": "/dev/watchdog0", "identity": "iTCO_wdt"}


def test_no_watchdog(host):
    put_grub(host)
    assert read(host).facts["boot"]["watchdog"] is None
    host.put("/dev/watchdog", "")
    assert read(host).facts["boot"]["watchdog"] == {"device": "/dev/watchdog", "identity": "unnamed"}


def test_default_entry_and_where_entries_come_from(host):
    put_grub(host, "${saved_entry}", f"saved_entry={FORTY_SEVEN}\n")
    facts = read(host).facts["boot"]
    assert (facts["default_entry"], facts["menu"]) == (FORTY_SEVEN, "grub_cfg")
    assert (facts["env_writable"], facts["env_reason"]) == (True, None)


LOST = """if [ -z "${saved_entry}" -a "${boot_once}" != "true" ]; then
   set default='gnulinux-advanced-U>gnulinux-6.1.0-47-amd64-advanced-U'
fi
"""


@pytest.mark.parametrize(("env", "release"), [
    ("saved_entry=\n", "6.1.0-47-amd64"), (None, "6.1.0-47-amd64"), ("saved_entry=0\n", "6.1.0-50-amd64")])
def test_a_default_for_a_lost_environment(host, env, release):
    put_grub(host, "${saved_entry}", env, menu=LOST + MENU)
    context = read(host)
    assert context.facts["boot"]["default_mode"] == "saved"
    assert context.facts["kernel"]["default_boot"] == release


def test_an_environment_of_another_size_is_unknown(host):
    put_grub(host, "${saved_entry}", None)
    host.put("/boot/grub/grubenv", "# GRUB Environment Block\nsaved_entry=0\n")
    context = read(host)
    assert "has 39 bytes, not 1024" in context.unknown["boot.next_entry"]
    assert "has 39 bytes" in context.unknown["boot.env_writable"] and "kernel.default_boot" in context.unknown


def test_snippets_count_where_grub_mkconfig_reads_them(host):
    put_grub(host)
    host.put("/etc/default/grub.d/z.cfg", "GRUB_DEFAULT=saved\n")
    host.put("/usr/sbin/grub-mkconfig", "#!/bin/sh\nfor x in ${sysconfdir}/default/grub.d/*.cfg ; do . $x; done\n")
    assert read(host).facts["boot"]["configured_default"] == "saved"
    host.put("/usr/sbin/grub-mkconfig", "#!/bin/sh\n. ${sysconfdir}/default/grub\n")
    assert read(host).facts["boot"]["configured_default"] == "0"


def test_el_8_has_its_menu_on_the_efi_partition_even_if_another_was_made(host):
    host.many(BLS)
    put_grub(host, "0", "saved_entry=0\n", "/boot/grub2", "insmod blscfg\nblscfg\n")
    host.put("/boot/efi/EFI/redhat/grub.cfg", HEAD % "${saved_entry}" + "insmod blscfg\nblscfg\n")
    host.put("/boot/efi/EFI/redhat/grubenv", "# GRUB Environment Block\nsaved_entry=1\n".ljust(1024, "#"))
    host.directory("/sys/firmware/efi")
    assert read(host).facts["kernel"]["default_boot"] == "5.14.0-427.el9.x86_64"
    # from EL 9 on the one there only leads to /boot/grub2
    host.put("/boot/efi/EFI/redhat/grub.cfg", "search --fs-uuid x\nconfigfile $prefix/grub.cfg\n")
    assert read(host).facts["kernel"]["default_boot"] == "5.14.0-503.el9.x86_64"


def test_bls_entries_of_other_places_are_not_grubs(host):
    host.many({**BLS, "/efi/loader/entries/z-9.9.9-1.conf": "title x\nlinux /vmlinuz-9.9.9\n",
               "/boot/loader/entries/abc-9.0-1.conf": "title without a kernel\nversion 9.0\n"})
    put_grub(host, "${saved_entry}", "saved_entry=0\n", "/boot/grub2", "insmod blscfg\nblscfg\n")
    context = read(host)
    assert context.facts["boot"]["menu"] == "bls"
    assert [row["release"] for row in context.facts["boot"]["entries"]] == [
        "5.14.0-503.el9.x86_64", "5.14.0-427.el9.x86_64", "0-rescue-abc"]


ARMED = {"release": "6.1.0-50-amd64", "former": "6.1.0-47-amd64", "at": "2026-11-30T04:00:00Z", "boot_id": "one"}
SAID = "AT=2026-11-30T04:00:00Z\nPHASE={}\nSINCE=2026-11-30T04:05:00Z\nBOOT_ID=two\nREASON={}\n"


@pytest.mark.parametrize(("boot_id", "said", "phase", "reason"), [
    ("one", None, "armed", None),
    ("two", None, "failed", "the host restarted while the trial of 6.1.0-50-amd64 was armed"),
    ("two", SAID.format("booted", ""), "booted", None),
    ("two", SAID.format("healthy", ""), "healthy", None),
    ("three", SAID.format("healthy", ""), "failed", "was healthy, and its unit did not say"),
    ("three", SAID.format("failed", "booted 6.1.0-47-amd64 instead"), "failed", "booted 6.1.0-47-amd64 instead"),
    ("one", SAID.replace("T04:00", "T03:00").format("failed", "an earlier trial"), "armed", None),
    ("one", SAID.format("strange", ""), "armed", None),
])
def test_how_far_a_trial_has_come(host, boot_id, said, phase, reason):
    put_grub(host)
    host.put("/var/lib/baremetal-nvidia/state.json", json.dumps({"version": 1, "trial": ARMED}))
    host.put("/proc/sys/kernel/random/boot_id", boot_id + "\n")
    if said:
        host.put("/var/lib/baremetal-nvidia/trial", said)
    found = read(host).facts["boot"]["trial"]
    assert (found["release"], found["phase"]) == ("6.1.0-50-amd64", phase)
    assert found["reason"] is None if reason is None else reason in found["reason"]
    assert found["since"] == ("2026-11-30T04:05:00Z" if said and phase in said else ARMED["at"]) or phase == "failed"


@pytest.mark.parametrize(("state", "unknown"), [(None, False), ('{"version": 1, "trial": null}', False), ("{", True)])
def test_no_trial(host, state, unknown):
    put_grub(host)
    if state:
        host.put("/var/lib/baremetal-nvidia/state.json", state)
    context = read(host)
    assert ("boot.trial" in context.unknown) is unknown
    assert context.facts["boot"].get("trial") is None


@pytest.mark.parametrize(("files", "loaded", "at_restart"), [
    ({}, False, None),
    ({"/sys/kernel/kexec_loaded": "1\n"}, True, None),
    ({"/sys/kernel/kexec_loaded": "0\n", "/sys/kernel/kexec_crash_loaded": "1\n"}, False, None),
    ({"/etc/default/kexec": "LOAD_KEXEC=true\n", "/sbin/kexec": ""}, False, "/etc/default/kexec"),
    ({"/etc/default/kexec": "LOAD_KEXEC=true\n", "/usr/sbin/kexec": ""}, False, "/etc/default/kexec"),
    ({"/etc/default/kexec": "LOAD_KEXEC=false\n", "/sbin/kexec": ""}, False, None),
    ({"/etc/default/kexec": "LOAD_KEXEC=true\n"}, False, None),    # left of a package that was removed
    # snippets count after the file, in their order, and by the names that run-parts takes
    ({"/etc/default/kexec": "LOAD_KEXEC=false\n", "/etc/default/kexec.d/fleet": 'LOAD_KEXEC="true"\n', "/sbin/kexec": ""},
     False, "/etc/default/kexec.d/fleet"),
    ({"/etc/default/kexec": "LOAD_KEXEC=true\n", "/etc/default/kexec.d/fleet": "LOAD_KEXEC=false\n", "/sbin/kexec": ""},
     False, None),
    ({"/etc/default/kexec": "LOAD_KEXEC=true\n", "/etc/default/kexec.d/fleet": "APPEND=quiet\n", "/sbin/kexec": ""},
     False, "/etc/default/kexec"),
    ({"/etc/default/kexec": "LOAD_KEXEC=false\n", "/etc/default/kexec.d/fleet.dpkg-old": "LOAD_KEXEC=true\n",
      "/sbin/kexec": ""}, False, None),
])
def test_restarts_that_go_past_the_loader(host, files, loaded, at_restart):
    put_grub(host)
    host.many(files)
    assert read(host).facts["boot"]["kexec"] == {"loaded": loaded, "load_at_restart": at_restart}


def test_settings_of_kexec_that_cannot_be_read_are_unknown(host):
    put_grub(host)
    host.put("/sbin/kexec")
    host.directory("/etc/default/kexec")
    context = read(host)
    assert "boot.kexec" in context.unknown and "kexec" not in context.facts["boot"]
    assert context.facts["boot"]["loader"] == "grub", "the rest is read"


def test_titles_with_quotes():
    menu = grub.parse_menu("menuentry 'it'\\''s' --id=x {\nlinux /vmlinuz-1.0\n}\n")
    assert (menu.entries[0].title, menu.entries[0].id, menu.entries[0].release) == ("it's", "x", "1.0")


def test_an_empty_menu_boots_nothing():
    assert grub.default_entry(grub.parse_menu(""), {}) is None
