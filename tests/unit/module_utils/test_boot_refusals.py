# SPDX-License-Identifier: GPL-3.0-or-later
"""What boot control refuses to believe: a menu or an environment that is not what was written."""
from __future__ import annotations

import os
import pathlib

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot import bls_entry, loader, sections, settle
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot.default import BootDefault
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot.loader import BootError
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot.once import BootOnce, Request
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.grub import Entry
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result
from grub_host import NEW, OLD, Grub, debian, el, tree


@pytest.fixture
def grub(tmp_path: pathlib.Path) -> Grub:
    host = debian(tmp_path)
    BootDefault(host, str(tmp_path)).set(OLD, False)
    return host


def once(grub: Grub) -> BootOnce:
    return BootOnce(grub, str(grub.root))


def test_a_directory_that_cannot_be_written(grub: Grub, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(grub.root)
    monkeypatch.setattr(os, "access", lambda *_words: False)
    with pytest.raises(BootError, match=r"is not writable: the boot loader cannot be set"):
        BootDefault(grub, str(grub.root)).set(NEW, False)
    assert tree(grub.root) == before


def test_a_trial_that_would_become_the_default_is_taken_back(grub: Grub, monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(grub.env)
    publish = loader.Loader.publish

    def otherwise(self: loader.Loader, text: str) -> None:
        publish(self, text.replace('set default="${saved_entry}"', f'set default="baremetal-nvidia-trial-{NEW}"'))

    monkeypatch.setattr(loader.Loader, "publish", otherwise)
    with pytest.raises(BootError, match=r"with the trial's entry in the menu, .* would be the default"):
        once(grub).arm(Request(NEW), False)
    assert grub.env == before, "next_entry was never set"


def test_a_next_entry_that_cannot_be_cleared_is_said(grub: Grub, monkeypatch: pytest.MonkeyPatch) -> None:
    once(grub).arm(Request(NEW), False)
    monkeypatch.setattr(loader.Loader, "save", lambda _self, **_variables: None)
    with pytest.raises(BootError, match=r"next_entry was cleared and is still there: do not reboot this host"):
        once(grub).end(False)
    assert (grub.root / "var/lib/baremetal-nvidia/trial.conf").exists(), "the early unit can still clear it"


def test_a_trials_entry_that_stays_in_the_menu_is_said(grub: Grub, monkeypatch: pytest.MonkeyPatch) -> None:
    once(grub).arm(Request(NEW), False)
    monkeypatch.setattr(loader.Loader, "publish", lambda _self, _text: None)
    with pytest.raises(BootError, match=r"the trial's entry is still in grub.cfg: run grub-mkconfig"):
        once(grub).end(False)


def test_an_entry_whose_file_is_gone(tmp_path: pathlib.Path) -> None:
    el(tmp_path)
    with pytest.raises(BootError, match=r"/boot/loader/entries/gone-1.conf is not there"):
        bls_entry.trial(Tree(str(tmp_path)), Entry("x", "gone-1"), "panic=30")


def test_an_entry_that_does_not_stand_in_the_menu() -> None:
    with pytest.raises(BootError, match=r"the entry x does not stand in grub.cfg"):
        sections.trial("", Entry("x", "x"), "trial", "panic=30")


def test_a_block_that_was_not_written_whole(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = tmp_path / "grubenv"
    block.write_bytes(b"x" * 1024)
    monkeypatch.setattr(os, "pwrite", lambda _fd, data, _at: len(data) - 1)
    with pytest.raises(OSError, match=r"grubenv was not written whole"):
        settle.overwrite(str(block), b"y" * 1024)


def test_a_menu_that_lost_a_kernel_between_check_and_write(grub: Grub, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new menu in which the kernel has no entry of its own: all settings are put back."""
    before = tree(grub.root)
    grub.releases = [NEW]
    path = grub.root / "boot/grub/grub.cfg"
    path.write_text(path.read_text().replace(OLD, "6.1.0-1-amd64"))
    changed = path.read_text()
    with pytest.raises(BootError, match=rf"the new menu has no entry for kernel {OLD}: grub.cfg is left as it was"):
        BootDefault(grub, str(grub.root)).set(OLD, False)
    assert path.read_text() == changed and {**tree(grub.root), "boot/grub/grub.cfg": 0} == {
        **before, "boot/grub/grub.cfg": 0}


def test_grub_itself_has_the_last_word(grub: Grub) -> None:
    grub.fail["grub-editenv"] = Result(1, "", "cannot rename the file")
    with pytest.raises(BootError, match=r"grub-editenv failed .*cannot rename the file"):
        BootDefault(grub, str(grub.root)).set(NEW, False)
