# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel is started once, from an entry that is nobody's default, and everything of it goes away again."""
from __future__ import annotations

import errno
import os
import pathlib

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import atomic
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot import host, loader, sections, trial_files
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot.default import BootDefault
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot.loader import BootError
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot.once import BootOnce, Outcome, Request
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import bls, trial
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import grub as grub_facts
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store
from grub_host import EL_NEW, EL_OLD, ENTRY, MACHINE, NEW, OLD, El, Grub, debian, el, grub_cfg, put, tree, write_block

TRIAL = f"baremetal-nvidia-trial-{NEW}"
WATCHDOG = "/sys/class/watchdog/watchdog0/identity"


@pytest.fixture
def grub(tmp_path: pathlib.Path) -> Grub:
    """A Debian host whose default is the older kernel."""
    made = debian(tmp_path)
    BootDefault(made, str(tmp_path)).set(OLD, False)
    return made


@pytest.fixture
def rocky(tmp_path: pathlib.Path) -> El:
    made = el(tmp_path)
    BootDefault(made, str(tmp_path)).set(EL_OLD, False)
    return made


def on(host: Grub) -> BootOnce:
    return BootOnce(host, str(host.root), Store(str(host.root), clock=lambda: 1796000000.0))


def arm(host: Grub, release: str = NEW, check: bool = False, **more: object) -> Outcome:
    return on(host).arm(Request(release, **more), check)    # type: ignore[arg-type]


def end(host: Grub, check: bool = False, release: str | None = None) -> Outcome:
    return on(host).end(check, release)


def files(host: Grub) -> dict[str, object]:
    """The tree without what a state file keeps of its own."""
    return {path: what for path, what in tree(host.root).items() if "var/lib/baremetal-nvidia" not in path}


def boots(host: Grub) -> tuple[str | None, str | None]:
    """What starts next and what starts after that, as GRUB reads the files."""
    one = loader.Loader(host, str(host.root))
    menu, env = one.menu(), one.environment()
    default = grub_facts.default_entry(menu, env)
    first = grub_facts.find(menu.entries, env["next_entry"]) if env.get("next_entry") else default
    return first.release if first else None, default.release if default else None


def test_the_kernel_starts_once_and_the_default_stays(grub: Grub) -> None:
    outcome = arm(grub)
    assert outcome.changed and outcome.entry == TRIAL and outcome.boots == OLD
    assert boots(grub) == (NEW, OLD)
    assert grub.env == {"saved_entry": ENTRY, "next_entry": TRIAL}
    line = next(line for line in grub.cfg.split(f"'{TRIAL}'")[1].splitlines() if line.startswith("\tlinux"))
    assert line.split() == [
        "linux", f"/boot/vmlinuz-{NEW}", "root=UUID=u", "ro", "quiet", "panic=30", "oops=panic", "softlockup_panic=1",
        "nmi_watchdog=panic", "watchdog_thresh=30"]


def test_second_time_nothing_changes(grub: Grub) -> None:
    arm(grub)
    before = tree(grub.root)
    assert not arm(grub).changed and tree(grub.root) == before


def test_check_mode_foretells_and_touches_nothing(grub: Grub) -> None:
    before = tree(grub.root)
    foretold = arm(grub, check=True)
    assert tree(grub.root) == before
    done = arm(grub)
    assert foretold.actions == done.actions and foretold.diff == done.diff
    armed = tree(grub.root)
    assert end(grub, check=True).actions == [*end(grub).actions] and armed != tree(grub.root)


def test_the_end_takes_all_of_it_out(grub: Grub) -> None:
    before = files(grub)
    arm(grub, watchdog="auto")
    assert files(grub) != before
    outcome = end(grub)
    assert outcome.changed and files(grub) == before, "to the last byte"
    assert Store(str(grub.root)).read()["trial"] is None and boots(grub) == (OLD, OLD)
    assert not end(grub).changed, "a second end finds nothing"


def test_a_menu_made_meanwhile_has_the_trial_and_no_other_default(grub: Grub) -> None:
    """update-grub runs while a trial is armed, and again after its end."""
    arm(grub)
    put(grub.root, "/boot/grub/grub.cfg", grub_cfg("${saved_entry}", ["6.1.0-51-amd64", NEW, OLD], grub.root))
    assert boots(grub) == (NEW, OLD)
    end(grub)
    assert TRIAL not in grub.cfg and TRIAL not in grub_cfg("${saved_entry}", [NEW, OLD], grub.root)


def test_the_files_of_a_trial(grub: Grub) -> None:
    arm(grub, module="nvidia-current", version="535.261.03", timeout=300, fallback_reboot=True)
    conf = trial.result((grub.root / "var/lib/baremetal-nvidia/trial.conf").read_text())
    assert conf == {"AT": "2026-11-30T00:53:20Z", "RELEASE": NEW, "FORMER": OLD, "MODULE": "nvidia-current",
                    "VERSION": "535.261.03", "TIMEOUT": "300", "ROUTE": "no", "FALLBACK_REBOOT": "yes",
                    "GRUBENV": "/boot/grub/grubenv", "EDITENV": "grub-editenv", "BOOT_ID": "boot-1"}
    for name in (trial_files.EARLY, trial_files.JUDGE):
        link = grub.root / f"etc/systemd/system/sysinit.target.wants/{name}"
        assert os.readlink(link) == f"../{name}" and link.exists()
    assert os.access(grub.root / "usr/local/lib/baremetal-nvidia/kernel-trial", os.X_OK)
    state = Store(str(grub.root)).read()["trial"]
    assert (state["release"], state["former"], state["entry"]) == (NEW, OLD, TRIAL)
    assert trial.read(Tree(str(grub.root))) == {
        "release": NEW, "phase": "armed", "since": "2026-11-30T00:53:20Z", "reason": None}


def test_a_default_route_is_asked_of_the_trial_where_there_is_one(grub: Grub) -> None:
    put(grub.root, "/proc/net/route", "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\n"
                                      "eth0\t00000000\t0202000A\t0003\t0\t0\t0\t00000000\t0\n")
    arm(grub)
    assert "ROUTE=yes\n" in (grub.root / "var/lib/baremetal-nvidia/trial.conf").read_text()


@pytest.mark.parametrize("identity, own, armed, words", [
    ("iTCO_wdt", None, True, "armed by systemd: a kernel that hangs before that"),
    ("Software Watchdog", None, True, "is in the kernel"),
    ("iTCO_wdt", "RuntimeWatchdogSec=20s", False, "armed by systemd"),
    (None, None, False, "no watchdog: a kernel that hangs without a panic needs a power cycle"),
])
def test_the_watchdog(grub: Grub, identity: str | None, own: str | None, armed: bool, words: str) -> None:
    if identity:
        put(grub.root, WATCHDOG, identity + "\n")
    if own:
        put(grub.root, "/etc/systemd/system.conf", f"[Manager]\n#RuntimeWatchdogSec=off\n{own}\n")
    outcome = arm(grub)
    drop_in = grub.root / trial_files.WATCHDOG_PATH.lstrip("/")
    assert drop_in.exists() is armed and any(words in text for text in outcome.not_covered)
    assert outcome.watchdog == ({"device": "/dev/watchdog0", "identity": identity} if identity else None)
    end(grub)
    assert not drop_in.exists()


def test_no_watchdog_is_armed_when_it_is_off(grub: Grub) -> None:
    put(grub.root, WATCHDOG, "iTCO_wdt\n")
    outcome = arm(grub, watchdog="off")
    assert outcome.watchdog is None and not (grub.root / trial_files.WATCHDOG_PATH.lstrip("/")).exists()


# what is refused, before anything changes


def refused(host: Grub, words: str, release: str = NEW) -> None:
    before = tree(host.root)
    with pytest.raises(BootError, match=words):
        arm(host, release)
    assert tree(host.root) == before


@pytest.mark.parametrize("abstraction, file_system", [
    ("mdraid1x", "ext2"), ("lvm", "ext2"), ("", "btrfs"), ("", "zfs")])
def test_where_grub_cannot_write(grub: Grub, abstraction: str, file_system: str) -> None:
    grub.abstraction, grub.file_system = abstraction, file_system
    refused(grub, f"GRUB cannot write its environment here .*{abstraction or file_system}.*again and again")


def test_what_grub_probe_does_not_see_the_system_does(grub: Grub) -> None:
    (grub.root / "sys/devices/pci/block/sda/sda1/partition").unlink()
    put(grub.root, "/sys/devices/pci/block/sda/sda1/dm/uuid", "LVM-abc\n")
    refused(grub, r"/ is on lvm, which GRUB only reads")


def test_an_unknown_layout(grub: Grub) -> None:
    grub.fail["grub-probe"] = Result(1, "", "grub-probe: error: cannot find a device for /boot/grub")
    refused(grub, "cannot find a device")


def test_without_an_environment_block(grub: Grub) -> None:
    (grub.root / "boot/grub/grubenv").unlink()
    refused(grub, "there is no environment block")


def test_a_damaged_environment(grub: Grub) -> None:
    (grub.root / "boot/grub/grubenv").write_bytes(b"# GRUB Environment Block\n" + b"#" * 100)
    refused(grub, "grubenv is damaged: the environment block has 125 bytes, not 1024")


def test_variables_that_one_write_does_not_reach(grub: Grub) -> None:
    write_block(grub.root / "boot/grub/grubenv", {"long": "x" * 600, "saved_entry": ENTRY})
    refused(grub, "variables beyond its first 512 bytes")


def test_a_default_that_is_not_saved(tmp_path: pathlib.Path) -> None:
    refused(debian(tmp_path), "no saved boot default to come back to")


def test_a_saved_default_that_is_not_an_id(grub: Grub) -> None:
    write_block(grub.root / "boot/grub/grubenv", {"saved_entry": "1>2"})
    refused(grub, r"saved_entry '1>2' is not the default's own id")


def test_the_default_itself(grub: Grub) -> None:
    refused(grub, "is the boot default already: there is nothing to come back to", release=OLD)


@pytest.mark.parametrize("dracut", [False, True])
def test_the_arguments_of_a_trial_are_known_again(dracut: bool) -> None:
    given = host.arguments(45, dracut)
    assert host.arguments_in(f"BOOT_IMAGE=/vmlinuz root=/dev/sda2 ro {given}") == given
    assert host.arguments_in(f"{given} quiet\n") == given
    assert host.arguments_in("BOOT_IMAGE=/vmlinuz root=/dev/sda2 ro panic=45 oops=panic quiet") is None
    assert host.arguments_in("") is None


def test_a_kernel_without_entry(grub: Grub) -> None:
    put(grub.root, "/boot/grub/grub.cfg", grub_cfg("${saved_entry}", [OLD], grub.root))
    refused(grub, f"no entry of its own for kernel {NEW}.*module boot_default")
    BootDefault(grub, str(grub.root)).set(OLD, False, [OLD, NEW])    # as trial.yml does before it arms
    assert arm(grub).changed


@pytest.mark.parametrize("files, words", [
    ({"/sys/kernel/kexec_loaded": "1\n"}, "a kernel is loaded for kexec"),
    ({"/etc/default/kexec": "LOAD_KEXEC=true\n", "/sbin/kexec": ""}, "LOAD_KEXEC=true in /etc/default/kexec"),
    ({"/etc/default/kexec.d/fleet": "LOAD_KEXEC=true\n", "/usr/sbin/kexec": ""}, "LOAD_KEXEC=true in .*d/fleet"),
])
def test_a_restart_that_goes_past_the_boot_loader(grub: Grub, files: dict[str, str], words: str) -> None:
    for path, text in files.items():
        put(grub.root, path, text)
    refused(grub, words)


@pytest.mark.parametrize("files", [
    {"/sys/kernel/kexec_loaded": "0\n", "/sys/kernel/kexec_crash_loaded": "1\n"},
    {"/etc/default/kexec": "LOAD_KEXEC=false\n", "/sbin/kexec": ""},
    {"/etc/default/kexec": "LOAD_KEXEC=true\n"},    # left of a package that was removed
])
def test_a_restart_that_does_not(grub: Grub, files: dict[str, str]) -> None:
    for path, text in files.items():
        put(grub.root, path, text)
    assert arm(grub).changed


@pytest.mark.parametrize("name, words", [("vmlinuz", "no kernel"), ("initrd.img", "no initrd")])
def test_a_kernel_that_is_not_whole(grub: Grub, name: str, words: str) -> None:
    (grub.root / f"boot/{name}-{NEW}").unlink()
    refused(grub, words)


def test_a_default_that_is_not_whole(grub: Grub) -> None:
    (grub.root / f"boot/initrd.img-{OLD}").write_text("")
    refused(grub, f"kernel {OLD} has no initrd")


def test_a_read_only_boot(grub: Grub, monkeypatch: pytest.MonkeyPatch) -> None:
    class ReadOnly:
        f_flag = os.ST_RDONLY

    monkeypatch.setattr(loader.os, "statvfs", lambda path: ReadOnly())
    refused(grub, "mounted read-only")


def test_another_loader(tmp_path: pathlib.Path) -> None:
    put(tmp_path, "/boot/loader/loader.conf", "timeout 3\n")
    refused(Grub(tmp_path), "cannot be started once: the boot loader is systemd-boot")


def test_a_xen_entry(grub: Grub) -> None:
    put(grub.root, "/boot/grub/grub.cfg", grub.cfg.replace("\tlinux\t", "\tmodule2\t"))
    refused(grub, "starts no Linux kernel directly")


def test_while_the_trial_of_another_kernel_is_open(grub: Grub) -> None:
    Store(str(grub.root)).arm_trial({"release": "6.1.0-51-amd64", "at": "2026-11-29T00:00:00Z"})
    refused(grub, "a trial of kernel 6.1.0-51-amd64 is open since 2026-11-29T00:00:00Z: end it first")


def test_while_the_trial_runs(grub: Grub) -> None:
    arm(grub)
    put(grub.root, "/proc/sys/kernel/random/boot_id", "boot-2\n")
    put(grub.root, "/var/lib/baremetal-nvidia/trial",
        "AT=2026-11-30T00:53:20Z\nPHASE=healthy\nSINCE=2026-11-30T01:00:00Z\nBOOT_ID=boot-2\n")
    refused(grub, f"the trial of kernel {NEW} is running \\(healthy\\)")


def test_a_failed_trial_can_be_armed_again(grub: Grub) -> None:
    arm(grub)
    put(grub.root, "/proc/sys/kernel/random/boot_id", "boot-2\n")
    put(grub.root, "/var/lib/baremetal-nvidia/trial",
        "AT=2026-11-30T00:53:20Z\nPHASE=failed\nREASON=x\nBOOT_ID=boot-2\n")
    write_block(grub.root / "boot/grub/grubenv", {"saved_entry": ENTRY})
    assert trial.read(Tree(str(grub.root)))["phase"] == "failed"    # type: ignore[index]
    assert arm(grub).changed and trial.read(Tree(str(grub.root)))["phase"] == "armed"    # type: ignore[index]
    assert boots(grub) == (NEW, OLD)


def test_the_end_of_another_trial_is_refused(grub: Grub) -> None:
    arm(grub)
    with pytest.raises(BootError, match=f"the open trial is that of kernel {NEW}, not of {OLD}"):
        end(grub, release=OLD)


def test_a_trial_entry_that_became_the_default_is_not_taken_away(grub: Grub) -> None:
    arm(grub)
    write_block(grub.root / "boot/grub/grubenv", {"saved_entry": TRIAL})
    with pytest.raises(BootError, match="is the boot default: set the default"):
        end(grub)
    assert BootDefault(grub, str(grub.root)).set(NEW, False).entry == f"gnulinux-advanced-u>gnulinux-{NEW}-advanced-u"
    assert end(grub).changed and boots(grub) == (NEW, NEW)


def test_an_environment_that_was_not_set_is_noticed(grub: Grub) -> None:
    grub.fail["grub-editenv"] = Result(0)
    before = files(grub)
    with pytest.raises(BootError, match=r"armed and reads back as next_entry None"):
        arm(grub)
    assert files(grub) == before and Store(str(grub.root)).read()["trial"] is None


def test_a_full_boot_leaves_nothing_of_a_trial(grub: Grub, monkeypatch: pytest.MonkeyPatch) -> None:
    before, write = files(grub), atomic.write

    def full(path: str, data: str, mode: int = 0o644, dir_mode: int = 0o755) -> None:
        if "/boot/" in path:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        write(path, data, mode, dir_mode)

    monkeypatch.setattr(atomic, "write", full)
    with pytest.raises(OSError, match="No space left"):
        arm(grub)
    assert files(grub) == before and Store(str(grub.root)).read()["trial"] is None and boots(grub) == (OLD, OLD)


def test_a_trial_that_cannot_be_taken_back_is_said(grub: Grub) -> None:
    """grub-script-check fails from its second call on: the entry went in and does not come out."""
    run, calls = grub.__call__, []

    def failing(argv: list[str], **more: object) -> Result:
        calls.append(argv[0])
        if argv[0] == "grub-editenv" and "next_entry=" in argv[-1]:
            return Result(1, "", "no space")
        if argv[0] == "grub-script-check" and calls.count("grub-script-check") > 1:
            return Result(1, "", "broken")
        return run(argv)

    with pytest.raises(BootError, match=r"no space.*could not be taken back .*broken.*end it \(state: absent\)"):
        BootOnce(failing, str(grub.root)).arm(Request(NEW), False)
    assert boots(grub) == (OLD, OLD)
    end(grub)
    assert TRIAL not in grub.cfg


# cut off: after every single write the next boot is one that is watched, or the proved kernel


class Cut(BaseException):
    """The power goes."""


def cut_after(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let ``count`` changes of the disk through, and no more."""
    left = [count]

    def limited(function):    # type: ignore[no-untyped-def]
        def wrapper(*args, **more):    # type: ignore[no-untyped-def]
            if left[0] == 0:
                raise Cut
            left[0] -= 1
            return function(*args, **more)
        return wrapper

    monkeypatch.setattr(os, "rename", limited(os.rename))
    monkeypatch.setattr(os, "symlink", limited(os.symlink))
    monkeypatch.setattr(os, "unlink", limited(os.unlink))


def watched(host: Grub) -> bool:
    wants = host.root / "etc/systemd/system/sysinit.target.wants"
    links = [wants / name for name in (trial_files.EARLY, trial_files.JUDGE)]
    conf = host.root / "var/lib/baremetal-nvidia/trial.conf"
    return all(link.exists() for link in links) and conf.exists()


@pytest.mark.parametrize("what", ["arm", "end"])
def test_cut_off_anywhere(tmp_path: pathlib.Path, what: str) -> None:
    for count in range(60):
        host = debian(tmp_path / str(count))
        BootDefault(host, str(host.root)).set(OLD, False)
        if what == "end":
            arm(host)
        with pytest.MonkeyPatch.context() as patch:
            cut_after(patch, count)
            try:
                arm(host) if what == "arm" else end(host)
            except Cut:
                done = False
            else:
                done = True
        first, after = boots(host)
        assert after == OLD and (first == OLD or (first == NEW and watched(host))), count
        assert first == OLD or Store(str(host.root)).read()["trial"] is not None
        end(host)
        assert boots(host) == (OLD, OLD) and not watched(host) and TRIAL not in host.cfg
        assert not end(host).changed
        if done:
            assert count > 5
            return
    pytest.fail("it never came to an end")


# EL


def test_el_trial_is_a_file_that_sorts_below_all_others(rocky: El) -> None:
    before = files(rocky)
    outcome = arm(rocky, EL_NEW)
    name = f"{MACHINE}-0-baremetal_nvidia_trial"
    assert outcome.entry == name and boots(rocky) == (EL_NEW, EL_OLD) and rocky.env["next_entry"] == name
    order = [item.name for item in bls.grub_items(Tree(str(rocky.root)))]
    assert order[:2] == [f"{MACHINE}-{EL_NEW}", f"{MACHINE}-{EL_OLD}"]
    text = (rocky.root / f"boot/loader/entries/{name}.conf").read_text()
    assert f"title Rocky Linux ({EL_NEW}) 9.4 (trial boot)\nversion {EL_NEW}\n" in text
    assert "options root=UUID=u ro crashkernel=1G $tuned_params panic=30 oops=panic" in text
    assert "rd.shell=0 rd.emergency=reboot\n" in text
    assert "EDITENV=grub2-editenv\n" in (rocky.root / "var/lib/baremetal-nvidia/trial.conf").read_text()
    assert not arm(rocky, EL_NEW).changed
    # without an environment the newest kernel starts, as ever, and not the trial
    assert grub_facts.default_entry(loader.Loader(rocky, str(rocky.root)).menu(), {}).id == f"{MACHINE}-{EL_NEW}"
    end(rocky)
    assert files(rocky) == before


def test_an_environment_on_the_efi_partition(rocky: El) -> None:
    """EL 8 links it there: the program on the host gets the file itself, and the link stays."""
    efi = rocky.root / "boot/efi/EFI/rocky"
    efi.mkdir(parents=True)
    (rocky.root / "boot/grub2/grubenv").rename(efi / "grubenv")
    (rocky.root / "boot/grub2/grubenv").symlink_to("../efi/EFI/rocky/grubenv")
    arm(rocky, EL_NEW)
    assert (rocky.root / "boot/grub2/grubenv").is_symlink() and boots(rocky) == (EL_NEW, EL_OLD)
    assert "GRUBENV=/boot/efi/EFI/rocky/grubenv\n" in (rocky.root / "var/lib/baremetal-nvidia/trial.conf").read_text()
    unit = (rocky.root / "etc/systemd/system" / trial_files.EARLY).read_text()
    assert "RequiresMountsFor=/boot/efi/EFI/rocky " in unit
    end(rocky)
    assert (rocky.root / "boot/grub2/grubenv").is_symlink() and boots(rocky) == (EL_OLD, EL_OLD)


def test_el_entry_whose_name_leaves_no_place_below(rocky: El) -> None:
    (rocky.root / f"boot/loader/entries/{MACHINE}-{EL_NEW}.conf").rename(rocky.root / "boot/loader/entries/a~b.conf")
    refused(rocky, "GRUB would take the trial for the newest kernel", release=EL_NEW)


def test_boot_default_overlooks_the_trial(rocky: El) -> None:
    """Its entry starts the same kernel, and is nobody's default."""
    arm(rocky, EL_NEW)
    assert BootDefault(rocky, str(rocky.root)).set(EL_NEW, False).entry == f"{MACHINE}-{EL_NEW}"


# texts


def test_sections_come_and_go_without_a_trace() -> None:
    text = grub_cfg("0", [NEW, OLD])
    for path in (sections.LOST_PATH, sections.TRIAL_PATH):
        there = sections.put(text, path, "one\n")
        assert there != text and sections.put(there, path, "one\n") == there
        assert sections.put(sections.put(there, path, "two\n"), path, None) == text
        assert sections.put(text, path, None) == text
    # a menu by hand has no place for the first, and the second goes to its end
    assert sections.put("menuentry x {\n}\n", sections.LOST_PATH, "one\n") == "menuentry x {\n}\n"
    assert sections.put("menuentry x {\n}\n", sections.TRIAL_PATH, "one\n").startswith("menuentry x {\n}\n\n### BEGIN")


def test_a_section_without_an_end() -> None:
    with pytest.raises(BootError, match="has no end of the part"):
        sections.put("### BEGIN /etc/grub.d/42_baremetal_nvidia_trial ###\nx\n", sections.TRIAL_PATH, None)


def test_the_header_keeps_classes_and_leave_for_all() -> None:
    text = ("menuentry 'it'\\''s' --class gnu-linux --users \"a,b\" --unrestricted $menuentry_id_option 'old' {\n"
            "\trecordfail\n\tsavedefault\n\tlinux /vmlinuz-1 ro -- single\n}\n")
    entry = grub_facts.parse_menu(text).entries[0]
    assert sections.trial(text, entry, "new", "panic=5") == (
        "menuentry 'it'\\''s (trial boot)' --class gnu-linux --users a,b --unrestricted $menuentry_id_option 'new' {\n"
        "\tlinux /vmlinuz-1 ro panic=5 -- single\n}\n")


@pytest.mark.parametrize("higher, lower", [
    ("m-5.14.0-503.el9.x86_64", "m-5.14.0-427.el9.x86_64"), ("m-5.14.0-70.el9.x86_64", "m-5.14.0-9.el9.x86_64"),
    ("m-5.14.0-1", "m-0-rescue"), ("m-6.12.0-1", "m-5.99.0-9"), ("m-1.0-1", "m-1.0~rc1-1"), ("m-1.0.1-1", "m-1.0-1"),
    ("m-1.0-1", "m-1.a-1"), ("b-1.0-1", "a-2.0-1"), ("m-0-rescue", "m-0-baremetal_nvidia_trial"),
])
def test_order_of_files_in_grub(higher: str, lower: str) -> None:
    assert bls.compare_names(higher, lower) > 0 > bls.compare_names(lower, higher)
    assert bls.compare_names(higher, higher) == 0
