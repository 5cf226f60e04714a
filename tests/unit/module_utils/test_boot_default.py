# SPDX-License-Identifier: GPL-3.0-or-later
"""What GRUB starts: set by id, read back, and never from a half-written menu."""
from __future__ import annotations

import errno
import os
import pathlib

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import atomic
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot import loader, sections, settle
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot.default import BootDefault, Outcome
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot.loader import BootError
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot.settings import SNIPPET_PATH, snippet
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result
from grub_host import (
    EL_NEW,
    EL_OLD,
    ENTRY,
    MACHINE,
    NEW,
    OLD,
    El,
    Grub,
    block,
    debian,
    el,
    grub_cfg,
    put,
    tree,
    write_block,
)


@pytest.fixture
def grub(tmp_path: pathlib.Path) -> Grub:
    return debian(tmp_path)


@pytest.fixture
def rocky(tmp_path: pathlib.Path) -> El:
    return el(tmp_path)


def make(grub: Grub, release: str = OLD, check: bool = False, *entries: str) -> Outcome:
    return BootDefault(grub, str(grub.root)).set(release, check, entries)


def test_the_older_kernel_becomes_the_default_by_its_id(grub: Grub) -> None:
    outcome = make(grub)
    assert outcome.changed and outcome.boots == OLD and outcome.entry == ENTRY
    assert grub.env["saved_entry"] == ENTRY
    assert "GRUB_DEFAULT=saved\n" in (grub.root / SNIPPET_PATH.lstrip("/")).read_text()
    assert sorted(p.name for p in (grub.root / "boot/grub").iterdir()) == ["grub.cfg", "grubenv"], "no litter"


def test_second_run_changes_nothing_and_generates_nothing(grub: Grub) -> None:
    make(grub)
    before = tree(grub.root)
    grub.calls.clear()
    outcome = make(grub)
    assert not outcome.changed and outcome.boots == OLD and tree(grub.root) == before
    assert {call[0] for call in grub.calls} == {"grub-probe"}


def test_check_mode_foretells_and_touches_nothing(grub: Grub) -> None:
    before = tree(grub.root)
    foretold = make(grub, check=True)
    assert tree(grub.root) == before
    done = make(grub)
    assert foretold.actions == done.actions and foretold.diff == done.diff and foretold.boots == done.boots


def test_the_simple_entry_is_not_taken_for_a_kernels_own(grub: Grub) -> None:
    """Debian's first entry starts the newest kernel today and another one tomorrow."""
    assert make(grub, NEW).entry == f"gnulinux-advanced-u>gnulinux-{NEW}-advanced-u"


def test_a_newer_kernel_in_the_menu_does_not_take_the_default(grub: Grub) -> None:
    make(grub)
    grub.releases = ["7.2.12", NEW, OLD]
    (grub.root / "boot/grub/grub.cfg").write_text(grub_cfg("${saved_entry}", grub.releases, grub.root))
    outcome = make(grub)
    assert not outcome.changed and outcome.boots == OLD


def test_a_kernel_that_is_not_in_the_menu_yet_is_put_there(grub: Grub) -> None:
    (grub.root / "boot/grub/grub.cfg").write_text(grub_cfg("${saved_entry}", [NEW]))
    atomic.write(str(grub.root / SNIPPET_PATH.lstrip("/")), snippet())
    assert make(grub).boots == OLD


def test_other_variables_of_the_block_stay_and_next_entry_is_told(grub: Grub) -> None:
    write_block(grub.root / "boot/grub/grubenv", {"next_entry": "x", "mine": "1", "prev_saved_entry": "y"})
    assert make(grub).once == "x"
    values = block(grub.root / "boot/grub/grubenv")
    assert values == {"next_entry": "x", "mine": "1", "saved_entry": ENTRY}


@pytest.mark.parametrize("missing, words", [("vmlinuz", "no kernel in /boot"), ("initrd.img", "no initrd in /boot")])
def test_a_kernel_that_cannot_start_is_refused(grub: Grub, missing: str, words: str) -> None:
    (grub.root / f"boot/{missing}-{OLD}").unlink()
    before = tree(grub.root)
    with pytest.raises(BootError, match=rf"kernel {OLD} has {words}"):
        make(grub)
    assert tree(grub.root) == before


def test_an_empty_initrd_is_none(grub: Grub) -> None:
    (grub.root / f"boot/initrd.img-{OLD}").write_text("")
    with pytest.raises(BootError, match="no initrd"):
        make(grub)


def test_a_file_that_outweighs_ours_is_said_and_nothing_is_left_behind(grub: Grub) -> None:
    grub.overruled = "2"
    before = tree(grub.root)
    with pytest.raises(BootError, match=r"GRUB_DEFAULT=saved has no effect \(the menu says '2'\)"):
        make(grub)
    assert tree(grub.root) == before


def test_a_menu_without_the_kernel_does_not_replace_the_good_one(grub: Grub) -> None:
    grub.releases = [NEW]
    before = tree(grub.root)
    with pytest.raises(BootError, match=f"no entry for kernel {OLD}: grub.cfg is left as it was"):
        make(grub)
    assert tree(grub.root) == before


def test_a_failing_generator_leaves_everything(grub: Grub) -> None:
    grub.fail["grub-mkconfig"] = Result(1, "", "syntax error")
    before = tree(grub.root)
    with pytest.raises(BootError, match=r"grub-mkconfig failed \(1\): syntax error"):
        make(grub)
    assert tree(grub.root) == before


def test_a_generator_that_hangs_is_named(grub: Grub) -> None:
    grub.fail["grub-mkconfig"] = Result(124, timed_out=True)
    with pytest.raises(BootError, match=r"grub-mkconfig failed \(no answer in time"):
        make(grub)


def test_a_read_only_boot_is_refused(grub: Grub, monkeypatch: pytest.MonkeyPatch) -> None:
    class ReadOnly:
        f_flag = os.ST_RDONLY

    monkeypatch.setattr(loader.os, "statvfs", lambda path: ReadOnly())
    with pytest.raises(BootError, match="mounted read-only"):
        make(grub)


def test_an_environment_that_was_not_set_is_noticed(grub: Grub) -> None:
    """grub-editenv says yes and does nothing: the reading back finds it."""
    grub.fail["grub-editenv"] = Result(0)
    with pytest.raises(BootError, match=rf"reads back as {OLD} \(saved_entry None.*do not reboot"):
        make(grub)


def test_a_damaged_environment_is_refused(grub: Grub) -> None:
    (grub.root / "boot/grub/grubenv").write_text("saved_entry=0\n")
    with pytest.raises(BootError, match="grubenv is damaged: the environment block has 14 bytes, not 1024"):
        make(grub)


def test_a_missing_environment_is_made(grub: Grub) -> None:
    (grub.root / "boot/grub/grubenv").unlink()
    assert make(grub).boots == OLD


def test_a_linked_environment_stays_linked(grub: Grub) -> None:
    """EL keeps it on the EFI partition."""
    efi = grub.root / "boot/efi/EFI/debian"
    efi.mkdir(parents=True)
    (grub.root / "boot/grub/grubenv").rename(efi / "grubenv")
    (grub.root / "boot/grub/grubenv").symlink_to("../efi/EFI/debian/grubenv")
    make(grub)
    assert (grub.root / "boot/grub/grubenv").is_symlink() and block(efi / "grubenv")["saved_entry"] == ENTRY


@pytest.mark.parametrize("abstraction, file_system, writable, reason", [
    ("", "ext2", True, None),
    ("mdraid1x", "ext2", False, "/boot is on mdraid1x, which GRUB only reads"),
    ("lvm", "ext2", False, "/boot is on lvm, which GRUB only reads"),
    ("", "btrfs", False, "/boot is on btrfs, which GRUB only reads"),
    ("", "zfs", False, "/boot is on zfs, which GRUB only reads"),
])
def test_whether_grub_can_write_is_told(grub: Grub, abstraction: str, file_system: str, writable: bool,
                                        reason: str | None) -> None:
    """The default is set by the system, so it works either way; a trial boot needs GRUB to clear next_entry."""
    grub.abstraction, grub.file_system = abstraction, file_system
    outcome = make(grub)
    assert (outcome.env_writable, outcome.env_reason, outcome.boots) == (writable, reason, OLD)


def test_an_unknown_layout_is_unknown(grub: Grub) -> None:
    grub.fail["grub-probe"] = Result(1, "", "grub-probe: error: cannot find a device for /boot/grub\nmore")
    outcome = make(grub)
    assert outcome.env_writable is None and "cannot find a device" in str(outcome.env_reason)


def test_no_boot_loader_is_skipped_with_a_reason(tmp_path: pathlib.Path) -> None:
    outcome = make(Grub(tmp_path))
    assert not outcome.changed and outcome.skipped_reason == "there is no boot loader here: no /boot/grub/grub.cfg"
    (tmp_path / "boot/loader").mkdir(parents=True)
    (tmp_path / "boot/loader/loader.conf").touch()
    assert "systemd-boot (/boot/loader/loader.conf)" in str(make(Grub(tmp_path)).skipped_reason)


def test_a_lost_environment_still_starts_the_kernel(grub: Grub) -> None:
    """Debian truncates the block at each boot before it writes it; a power cut there must not start the newest one."""
    make(grub)
    assert f"set default='{ENTRY}'" in grub.cfg
    (grub.root / "boot/grub/grubenv").write_bytes(b"")
    menu = loader.Loader(grub, str(grub.root)).menu()
    assert loader.grub.default_entry(menu, {}).release == OLD
    # and a menu that someone generates is the same, byte for byte but for space
    again = grub_cfg("${saved_entry}", grub.releases, grub.root)
    assert again.split() == grub.cfg.split()


def test_a_menu_by_hand_is_left_as_it_is(grub: Grub) -> None:
    by_hand = "\n".join(line for line in grub_cfg("${saved_entry}", [NEW, OLD]).splitlines() if line[:3] != "###")
    put(grub.root, SNIPPET_PATH, snippet())
    put(grub.root, "/boot/grub/grub.cfg", by_hand)
    assert make(grub).actions == [f"set saved_entry to {ENTRY}"]
    assert not make(grub).changed and grub.cfg == by_hand and not (grub.root / sections.LOST_PATH.lstrip("/")).exists()


def test_the_lost_default_moves_with_the_default(grub: Grub) -> None:
    make(grub)
    calls = len(grub.calls)
    assert make(grub, NEW).boots == NEW
    assert OLD not in (grub.root / sections.LOST_PATH.lstrip("/")).read_text() and f"{NEW}-advanced-u'\nfi" in grub.cfg
    assert not [call for call in grub.calls[calls:] if call[0] == "grub-mkconfig"], "an id moves without a new menu"


def test_a_new_kernel_gets_its_entry_while_the_default_stays(grub: Grub) -> None:
    grub.releases = [OLD]
    put(grub.root, "/boot/grub/grub.cfg", grub_cfg("${saved_entry}", [OLD]))
    make(grub)
    grub.releases = [NEW, OLD]
    outcome = make(grub, OLD, False, NEW)
    assert outcome.boots == OLD and outcome.changed
    assert outcome.entries == {OLD: ENTRY, NEW: f"gnulinux-advanced-u>gnulinux-{NEW}-advanced-u"}
    assert not make(grub, OLD, False, NEW).changed


def test_an_entry_that_does_not_come_is_an_error_and_changes_nothing(grub: Grub) -> None:
    grub.releases = [OLD]
    put(grub.root, "/boot/grub/grub.cfg", grub_cfg("${saved_entry}", [OLD]))
    make(grub)
    before = tree(grub.root)
    with pytest.raises(BootError, match=f"no entry for kernel {NEW}: grub.cfg is left as it was"):
        make(grub, OLD, False, NEW)
    assert tree(grub.root) == before


@pytest.mark.parametrize("default", [
    "1>2", "1>Debian GNU/Linux, with Linux 6.1.0-50-amd64", "gone",
    "Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux 6.1.0-50-amd64"])
def test_a_custom_default_with_titles_gives_way_to_the_saved_one(grub: Grub, default: str) -> None:
    put(grub.root, "/etc/default/grub", f'GRUB_DEFAULT="{default}"\n')
    put(grub.root, "/boot/grub/grub.cfg", grub_cfg(default, grub.releases))
    outcome = make(grub)
    assert outcome.boots == OLD and outcome.entry == ENTRY and not make(grub).changed


def test_a_full_boot_leaves_menu_and_default(grub: Grub, monkeypatch: pytest.MonkeyPatch) -> None:
    before, publish = tree(grub.root), atomic.write

    def write(path: str, data: str, mode: int = 0o644, dir_mode: int = 0o755) -> None:
        if "/boot/" in path:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        publish(path, data, mode, dir_mode)

    monkeypatch.setattr(atomic, "write", write)
    with pytest.raises(OSError, match="No space left"):
        make(grub)
    assert tree(grub.root) == before


def test_a_menu_that_grub_cannot_read_is_not_put_in_place(grub: Grub) -> None:
    grub.fail["grub-script-check"] = Result(1, "", "Syntax error at line 3")
    before = tree(grub.root)
    with pytest.raises(BootError, match=r"grub-script-check failed .*line 3"):
        make(grub)
    assert tree(grub.root) == before


def test_two_loaders_the_one_that_started_the_host_counts(grub: Grub) -> None:
    put(grub.root, "/boot/loader/loader.conf", "timeout 3\n")
    assert make(grub).skipped_reason is None
    name = "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
    (grub.root / name).parent.mkdir(parents=True)
    (grub.root / name).write_bytes(b"\x06\0\0\0" + "systemd-boot 252".encode("utf-16-le"))
    assert "systemd-boot (/boot/loader/loader.conf)" in str(make(grub).skipped_reason)


# EL: entries are files


def test_el_default_by_the_id_of_a_file(rocky: El) -> None:
    outcome = make(rocky, EL_OLD)
    assert outcome.menu == "bls" and outcome.boots == EL_OLD and outcome.entry == f"{MACHINE}-{EL_OLD}"
    assert rocky.env == {"saved_entry": f"{MACHINE}-{EL_OLD}", "boot_success": "0"}
    assert (rocky.root / "etc/sysconfig/kernel").read_text() == (
        "# as anaconda writes it\n# before baremetal.nvidia: UPDATEDEFAULT=yes\nUPDATEDEFAULT=no\n"
        "DEFAULTKERNEL=kernel-core\n")
    assert not any("mkconfig" in call[0] for call in rocky.calls), "the menu is left as the distribution made it"
    before = tree(rocky.root)
    assert not make(rocky, EL_OLD).changed and tree(rocky.root) == before


def test_el_check_mode_foretells(rocky: El) -> None:
    before = tree(rocky.root)
    foretold = make(rocky, EL_OLD, check=True)
    assert tree(rocky.root) == before
    assert foretold.actions == ["write /etc/sysconfig/kernel", f"set saved_entry to {MACHINE}-{EL_OLD}"]
    assert make(rocky, EL_OLD).actions == foretold.actions


def test_el_without_saved_default_is_set_in_the_file_that_grub2_mkconfig_reads(rocky: El) -> None:
    put(rocky.root, "/etc/default/grub", "GRUB_TIMEOUT=5\nGRUB_DEFAULT=0\n")
    text = (rocky.root / "boot/grub2/grub.cfg").read_text()
    put(rocky.root, "/boot/grub2/grub.cfg", text.replace("${saved_entry}", "0"))
    put(rocky.root, "/usr/sbin/grub2-mkconfig", "#!/bin/sh\n. ${sysconfdir}/default/grub\n")
    mkconfig = Grub.__call__

    def run(argv: list[str], **more: object) -> Result:
        if argv[0] == "grub2-mkconfig":
            pathlib.Path(argv[2]).write_text(text.replace("${saved_entry}", rocky.default()))
            return Result(0)
        return mkconfig(rocky, argv)

    outcome = BootDefault(run, str(rocky.root)).set(EL_OLD, False)
    assert outcome.boots == EL_OLD and not (rocky.root / SNIPPET_PATH.lstrip("/")).exists()
    assert (rocky.root / "etc/default/grub").read_text() == (
        "GRUB_TIMEOUT=5\n# before baremetal.nvidia: GRUB_DEFAULT=0\nGRUB_DEFAULT=saved\n")


@pytest.mark.parametrize("wrong", ["0", '"Rocky Linux (5.14.0) 9.4"', f"{MACHINE}-{EL_NEW}"])
def test_el_setting_that_the_next_menu_would_follow_is_put_right_and_the_menu_stays(rocky: El, wrong: str) -> None:
    make(rocky, EL_OLD)
    put(rocky.root, "/etc/default/grub", f"GRUB_TIMEOUT=5\nGRUB_DEFAULT={wrong}\n")
    menu = (rocky.root / "boot/grub2/grub.cfg").read_text()
    before = tree(rocky.root)
    foretold = make(rocky, EL_OLD, check=True)
    assert foretold.actions == ["write /etc/default/grub"] and tree(rocky.root) == before
    assert make(rocky, EL_OLD).actions == foretold.actions
    assert (rocky.root / "etc/default/grub").read_text() == (
        f"GRUB_TIMEOUT=5\n# before baremetal.nvidia: GRUB_DEFAULT={wrong}\nGRUB_DEFAULT=saved\n")
    assert (rocky.root / "boot/grub2/grub.cfg").read_text() == menu
    assert not any("mkconfig" in call[0] for call in rocky.calls)
    assert not make(rocky, EL_OLD).changed


@pytest.mark.parametrize(
    "right", ["GRUB_TIMEOUT=5\n", "GRUB_DEFAULT=\n", "GRUB_DEFAULT=saved\n", 'GRUB_DEFAULT="saved"\n'])
def test_el_settings_that_make_the_same_menu_again_are_left_alone(rocky: El, right: str) -> None:
    put(rocky.root, "/etc/default/grub", right)
    make(rocky, EL_OLD)
    assert (rocky.root / "etc/default/grub").read_text() == right


def test_a_setting_read_after_ours_is_said_before_any_menu_follows_it(grub: Grub) -> None:
    make(grub)
    put(grub.root, "/etc/default/grub.d/zzz-fleet.cfg", "GRUB_DEFAULT=2\n")
    before = tree(grub.root)
    with pytest.raises(BootError, match="GRUB_DEFAULT=saved has no effect: a file that is read after"):
        make(grub)
    with pytest.raises(BootError, match="which the next menu would follow"):
        make(grub, NEW)
    assert tree(grub.root) == before, "nothing of another default is begun"


def test_el_entry_that_is_missing_is_named(rocky: El) -> None:
    (rocky.root / f"boot/loader/entries/{MACHINE}-{EL_OLD}.conf").unlink()
    before = tree(rocky.root)
    with pytest.raises(BootError, match=f"no entry for kernel {EL_OLD}: kernel-install add {EL_OLD}"):
        make(rocky, EL_OLD)
    assert tree(rocky.root) == before


@pytest.mark.parametrize("said, right", [(f"/boot/vmlinuz-{EL_OLD}", True), (f"/boot/vmlinuz-{EL_NEW}", False)])
def test_el_grubby_is_asked_as_well(rocky: El, said: str, right: bool) -> None:
    put(rocky.root, "/usr/sbin/grubby", "")
    rocky.grubby = said
    if right:
        assert make(rocky, EL_OLD).boots == EL_OLD
    else:
        with pytest.raises(BootError, match=f"set to kernel {EL_OLD}, and grubby --default-kernel says"):
            make(rocky, EL_OLD)


def test_el_8_keeps_the_environment_on_the_efi_partition(rocky: El) -> None:
    efi = rocky.root / "boot/efi/EFI/rocky"
    efi.mkdir(parents=True)
    (rocky.root / "sys/firmware/efi").mkdir(parents=True)
    (rocky.root / "boot/grub2/grub.cfg").rename(efi / "grub.cfg")
    (rocky.root / "boot/grub2/grubenv").rename(efi / "grubenv")
    (rocky.root / "boot/grub2/grubenv").symlink_to("../efi/EFI/rocky/grubenv")
    assert make(rocky, EL_OLD).boots == EL_OLD
    assert (rocky.root / "boot/grub2/grubenv").is_symlink()
    assert block(efi / "grubenv")["saved_entry"] == f"{MACHINE}-{EL_OLD}"


def test_sles_has_its_menu_in_grub2_and_no_snippets(tmp_path: pathlib.Path) -> None:
    grub = debian(tmp_path)
    (tmp_path / "boot/grub").rename(tmp_path / "boot/grub2")
    for release in (OLD, NEW):
        (tmp_path / f"boot/initrd.img-{release}").rename(tmp_path / f"boot/initrd-{release}")
    put(tmp_path, "/etc/default/grub", "GRUB_DEFAULT=0\n")
    outcome = make(grub)
    assert outcome.boots == OLD and {call[0] for call in grub.calls} <= {
        "grub2-mkconfig", "grub2-editenv", "grub2-probe", "grub2-script-check"}
    assert (tmp_path / "etc/default/grub").read_text() == (
        "# before baremetal.nvidia: GRUB_DEFAULT=0\nGRUB_DEFAULT=saved\n")
    assert block(tmp_path / "boot/grub2/grubenv") == {"saved_entry": ENTRY} and not make(grub).changed


def test_next_entry_is_the_last_variable(grub: Grub) -> None:
    """GRUB clears it in place: nothing that stands behind it may move."""
    loader.Loader(grub, str(grub.root)).save(next_entry="x", saved_entry="y")
    assert list(grub.env) == ["saved_entry", "next_entry"]


def test_the_block_is_written_in_its_place(grub: Grub) -> None:
    """GRUB does not replay a journal: an inode that is new to it may not be there yet after a power cut."""
    inode = (grub.root / "boot/grub/grubenv").stat().st_ino
    loader.Loader(grub, str(grub.root)).save(saved_entry="y")
    assert (grub.root / "boot/grub/grubenv").stat().st_ino == inode and grub.env == {"saved_entry": "y"}


def test_a_block_of_two_sectors_is_replaced(grub: Grub) -> None:
    write_block(grub.root / "boot/grub/grubenv", {"long": "x" * 600})
    inode = (grub.root / "boot/grub/grubenv").stat().st_ino
    loader.Loader(grub, str(grub.root)).save(saved_entry="y")
    assert (grub.root / "boot/grub/grubenv").stat().st_ino != inode and grub.env["saved_entry"] == "y"


def test_a_menu_is_at_its_place_before_it_gets_its_name(tmp_path: pathlib.Path,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "grub.cfg", "old")
    put(tmp_path, "new", "new")
    seen: list[tuple[str, bool]] = []

    def checkpoint(directory: str) -> bool:
        seen.append(((tmp_path / "grub.cfg").read_text(), (tmp_path / f"grub.cfg{settle.FORMER}").exists()))
        return True

    monkeypatch.setattr(settle, "checkpoint", checkpoint)
    settle.replace(str(tmp_path / "new"), str(tmp_path / "grub.cfg"), on_host=True)
    assert seen == [("old", True), ("new", True)], "the former file stays until the new one is there"
    assert [path.name for path in tmp_path.iterdir()] == ["grub.cfg"]


@pytest.mark.parametrize("ext4, same, frozen", [(True, True, False), (False, True, False), (False, False, True)])
def test_how_a_journal_is_brought_home(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, ext4: bool, same: bool,
                                       frozen: bool) -> None:
    """By ext4's own call, else by freezing, which the root file system must not be."""
    calls: list[int] = []

    def ioctl(fd: int, number: int, argument: object) -> int:
        calls.append(number)
        if number == 0x4004662B and not ext4:
            raise OSError(errno.ENOTTY, "no")
        return 0

    class Stat:
        def __init__(self, device: int) -> None:
            self.st_dev = device

    monkeypatch.setattr(settle.fcntl, "ioctl", ioctl)
    stat = os.stat
    monkeypatch.setattr(settle.os, "stat", lambda path: Stat(1 if path == "/" or same else 2))
    done = settle.checkpoint(str(tmp_path))
    monkeypatch.setattr(settle.os, "stat", stat)
    assert done is (ext4 or frozen)
    assert calls[1:] == ([0xC0045877, 0xC0045878] if frozen else [])


def test_a_block_that_grub_could_not_read_does_not_take_the_place(grub: Grub) -> None:
    def run(argv: list[str], **more: object) -> Result:
        pathlib.Path(argv[1]).write_text("# GRUB Environment Block\n")
        return Result(0)

    before = tree(grub.root)
    with pytest.raises(BootError, match="a block that GRUB cannot read"):
        loader.Loader(run, str(grub.root)).save(saved_entry="y")
    assert tree(grub.root) == before
