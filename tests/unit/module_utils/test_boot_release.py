# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot default given back: all as before, and never another kernel than the one that starts now."""
from __future__ import annotations

import pathlib
import re

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import atomic
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot import settings
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot.default import BootDefault, Outcome
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot.loader import BootError
from ansible_collections.baremetal.nvidia.plugins.module_utils.boot.release import BootRelease
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result
from grub_host import EL_NEW, NEW, OLD, Grub, block, debian, el, put, tree


@pytest.fixture
def grub(tmp_path: pathlib.Path) -> Grub:
    return debian(tmp_path)


def default(grub: Grub, release: str = NEW) -> Outcome:
    return BootDefault(grub, str(grub.root)).set(release, False)


def release(grub: Grub, check: bool = False) -> Outcome:
    return BootRelease(grub, str(grub.root)).release(check)


def test_the_host_is_as_before_to_the_byte(grub: Grub) -> None:
    before = tree(grub.root)
    default(grub)
    outcome = release(grub)
    assert outcome.changed and outcome.boots == NEW and outcome.skipped_reason is None
    assert tree(grub.root) == before
    assert not release(grub).changed, "a second time changes nothing"


def test_check_mode_foretells_and_touches_nothing(grub: Grub) -> None:
    default(grub)
    before = tree(grub.root)
    foretold = release(grub, check=True)
    assert tree(grub.root) == before
    done = release(grub)
    assert (foretold.actions, foretold.diff, foretold.changed) == (done.actions, done.diff, True)


def test_where_another_kernel_would_start_the_default_stays_and_it_is_said(grub: Grub) -> None:
    default(grub, OLD)
    before = tree(grub.root)
    outcome = release(grub)
    assert not outcome.changed and outcome.boots == OLD
    assert re.search(f"{OLD} starts by default, and without .* would be {NEW}", outcome.skipped_reason or "")
    assert tree(grub.root) == before


def test_a_menu_that_turns_out_otherwise_is_not_put_in_place(grub: Grub) -> None:
    default(grub)
    before = tree(grub.root)
    grub.overruled = f"gnulinux-advanced-u>gnulinux-{OLD}-advanced-u"
    with pytest.raises(BootError, match=f"the new menu would start {OLD} by default and not {NEW}: all was left"):
        release(grub)
    assert tree(grub.root) == before


def test_a_menu_that_cannot_be_made_leaves_all_as_it_was(grub: Grub) -> None:
    default(grub)
    before = tree(grub.root)
    grub.fail["grub-mkconfig"] = Result(1, "", "no space left on device")
    with pytest.raises(BootError, match="no space left on device"):
        release(grub)
    assert tree(grub.root) == before


def test_cut_off_before_the_menu_was_made_the_next_run_makes_it(grub: Grub) -> None:
    before = tree(grub.root)
    default(grub)
    for path in (settings.SNIPPET_PATH, "/etc/grub.d/01_baremetal_nvidia"):
        atomic.remove(str(grub.root / path.lstrip("/")))
    assert release(grub).changed and tree(grub.root) == before


def test_a_saved_default_of_the_distribution_stays_with_its_entry(grub: Grub) -> None:
    put(grub.root, "/etc/default/grub", "GRUB_DEFAULT=saved\n")
    default(grub, OLD)
    outcome = release(grub)
    assert outcome.changed and outcome.boots == OLD, "the entry is saved in the environment, ours or not"
    assert block(grub.root / "boot/grub/grubenv")["saved_entry"].endswith(f"gnulinux-{OLD}-advanced-u")


def test_el_gets_its_updatedefault_back(tmp_path: pathlib.Path) -> None:
    rocky = el(tmp_path)
    before = tree(tmp_path)
    BootDefault(rocky, str(tmp_path)).set(EL_NEW, False)
    assert tree(tmp_path) != before
    assert release(rocky).actions == ["restore /etc/sysconfig/kernel"] and tree(tmp_path) == before


def test_a_line_that_somebody_changed_since_stays_theirs() -> None:
    text = settings.assign("UPDATEDEFAULT=yes\n", "UPDATEDEFAULT", "no")
    text = text.replace("UPDATEDEFAULT=no", "UPDATEDEFAULT=yes # mine")
    assert settings.restored(text) == "UPDATEDEFAULT=yes # mine\n"
    assert settings.restored(settings.assign("A=1\n", "UPDATEDEFAULT", "no")) == "A=1\n"
    assert settings.restored("A=1") == "A=1", "a file without a line of ours is not touched"


def test_a_host_without_a_boot_loader_is_left_alone(grub: Grub) -> None:
    (grub.root / "boot/grub/grub.cfg").unlink()
    assert "no boot loader here" in (release(grub).skipped_reason or "")
