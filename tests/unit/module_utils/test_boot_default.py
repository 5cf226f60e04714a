# SPDX-License-Identifier: GPL-3.0-or-later
"""What GRUB starts: set by id, read back, and never from a half-written menu."""
from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import atomic, boot_default
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot_default import BootDefault, BootError, snippet
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.grub import ENV_SIGNATURE
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result

OLD, NEW = "6.1.0-47-amd64", "6.1.0-50-amd64"
LINUX = """menuentry '{title}' --class debian --class os $menuentry_id_option '{id}' {{
\tload_video
\tif [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi
\techo\t'Loading Linux {release} ...'
\tlinux\t/boot/vmlinuz-{release} root=UUID=u ro {more} quiet
\tinitrd\t/boot/initrd.img-{release}
}}
"""


def grub_cfg(default: str, releases: Sequence[str]) -> str:
    """A menu as Debian's grub-mkconfig writes it."""
    entries = ""
    for release in releases:
        title = f"Debian GNU/Linux, with Linux {release}"
        entries += LINUX.format(title=title, id=f"gnulinux-{release}-advanced-u", release=release, more="")
        entries += LINUX.format(title=f"{title} (recovery mode)", id=f"gnulinux-{release}-recovery-u", release=release,
                                more="single")
    first = LINUX.format(title="Debian GNU/Linux", id="gnulinux-simple-u", release=releases[0], more="")
    return (f'if [ "${{next_entry}}" ] ; then\n   set default="${{next_entry}}"\n   set next_entry=\n'
            f'   set boot_once=true\nelse\n   set default="{default}"\nfi\n{first}'
            "submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-u' {\n"
            f"{entries}}}\n")


class Grub:
    """grub-mkconfig, grub-editenv and grub-probe over a tree."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.releases = [NEW, OLD]
        self.abstraction, self.file_system = "", "ext2"
        self.overruled: str | None = None    # what a file read after ours sets GRUB_DEFAULT to
        self.calls: list[list[str]] = []
        self.fail: dict[str, Result] = {}

    def __call__(self, argv: Sequence[str], timeout: float = 10, env: object = None, input: object = None) -> Result:
        self.calls.append(list(argv))
        if argv[0] in self.fail:
            return self.fail[argv[0]]
        if argv[0] == "grub-probe":
            return Result(0, {"abstraction": self.abstraction, "fs": self.file_system}[argv[1].split("=")[1]] + "\n")
        if argv[0] == "grub-mkconfig":
            own = self.root / boot_default.SNIPPET_PATH.lstrip("/")
            default = "${saved_entry}" if own.exists() and own.read_text() == snippet() else "0"
            pathlib.Path(argv[2]).write_text(grub_cfg(self.overruled or default, self.releases))
            return Result(0)
        assert argv[0] == "grub-editenv", argv
        path, verb, *words = argv[1:]
        values = {} if verb == "create" else block(pathlib.Path(path))
        if verb == "set":
            key, value = words[0].split("=", 1)
            values[key] = value
        elif verb == "unset":
            values.pop(words[0], None)
        write_block(pathlib.Path(path), values)
        return Result(0)


def block(path: pathlib.Path) -> dict[str, str]:
    lines = path.read_text().splitlines()[1:]
    return dict(line.split("=", 1) for line in lines if "=" in line)


def write_block(path: pathlib.Path, values: dict[str, str]) -> None:
    text = ENV_SIGNATURE + "\n" + "".join(f"{k}={v}\n" for k, v in values.items())
    path.write_text(text + "#" * (1024 - len(text)))


@pytest.fixture
def grub(tmp_path: pathlib.Path) -> Grub:
    (tmp_path / "boot/grub").mkdir(parents=True)
    for release in (OLD, NEW):
        (tmp_path / f"boot/vmlinuz-{release}").write_text("k")
        (tmp_path / f"boot/initrd.img-{release}").write_text("i")
    (tmp_path / "boot/grub/grub.cfg").write_text(grub_cfg("0", [NEW, OLD]))
    write_block(tmp_path / "boot/grub/grubenv", {})
    return Grub(tmp_path)


def tree(root: pathlib.Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def make(grub: Grub, release: str = OLD, check: bool = False) -> boot_default.Outcome:
    return BootDefault(grub, str(grub.root)).set(release, check)


ENTRY = f"gnulinux-advanced-u>gnulinux-{OLD}-advanced-u"


def test_the_older_kernel_becomes_the_default_by_its_id(grub: Grub) -> None:
    outcome = make(grub)
    assert outcome.changed and outcome.boots == OLD and outcome.entry == ENTRY
    assert block(grub.root / "boot/grub/grubenv")["saved_entry"] == ENTRY
    assert "GRUB_DEFAULT=saved\n" in (grub.root / boot_default.SNIPPET_PATH.lstrip("/")).read_text()
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
    (grub.root / "boot/grub/grub.cfg").write_text(grub_cfg("${saved_entry}", grub.releases))
    outcome = make(grub)
    assert not outcome.changed and outcome.boots == OLD


def test_a_kernel_that_is_not_in_the_menu_yet_is_put_there(grub: Grub) -> None:
    (grub.root / "boot/grub/grub.cfg").write_text(grub_cfg("${saved_entry}", [NEW]))
    atomic.write(str(grub.root / boot_default.SNIPPET_PATH.lstrip("/")), snippet())
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

    monkeypatch.setattr(boot_default.os, "statvfs", lambda path: ReadOnly())
    with pytest.raises(BootError, match="mounted read-only"):
        make(grub)


def test_an_environment_that_was_not_set_is_noticed(grub: Grub) -> None:
    """grub-editenv says yes and does nothing: the reading back finds it."""
    grub.fail["grub-editenv"] = Result(0)
    with pytest.raises(BootError, match=rf"set to kernel {OLD} and reads back as {NEW}.*do not reboot"):
        make(grub)


def test_a_damaged_environment_is_refused(grub: Grub) -> None:
    (grub.root / "boot/grub/grubenv").write_text("saved_entry=0\n")
    with pytest.raises(BootError, match="grubenv is damaged: it has 14 bytes"):
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
