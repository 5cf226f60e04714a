# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the guard goes on each kind of host, and how it gets there and away."""
from __future__ import annotations

import pathlib
import re

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import atomic
from ansible_collections.baremetal.nvidia.plugins.module_utils.kernel_guard import dnf_plugin, script
from ansible_collections.baremetal.nvidia.plugins.module_utils.kernel_guard.guard import Guard, GuardError, Outcome
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result

OLD, NEW = "6.1.0-47-amd64", "6.1.0-50-amd64"
VERSION = "dnf5 version 5.2.17\n\nLoaded libdnf5 plugins:\n  name: systemd-inhibit\n  version: 1.0.0\n\n" \
          "  name: actions\n  version: {}\n  API version: 2.1\n"
SITE = "usr/lib/python3.9/site-packages"


def touch(root: pathlib.Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


def dnf4(root: pathlib.Path) -> None:
    touch(root, "usr/bin/dnf-3", "usr/bin/dnf", f"{SITE}/dnf/plugin.py",
          "usr/lib/python3.12/site-packages/dnf-plugins/x")


def dnf5(root: pathlib.Path) -> None:
    touch(root, "usr/bin/dnf5", "usr/lib64/libdnf5/plugins/actions.so")


def make(root: pathlib.Path, manager: str = "apt", version: str = "1.4.1", present: bool = True,
         allowed: tuple[str, ...] = (OLD, NEW), proved: tuple[str, ...] = (OLD,), check: bool = False) -> Outcome:
    def run(argv: list[str], timeout: float = 10.0) -> Result:
        assert argv == ["dnf5", "--version"]
        return Result(0, VERSION.format(version)) if version else Result(1, "", "broken")

    return Guard(manager, run, str(root)).run(present, allowed, proved, check)


def tree(root: pathlib.Path) -> dict[str, str]:
    return {str(p.relative_to(root)): p.read_text() for p in sorted(root.rglob("*")) if p.is_file()}


def test_apt_gets_a_hook_a_script_and_a_list(tmp_path: pathlib.Path) -> None:
    outcome = make(tmp_path)
    assert outcome.changed and outcome.via == ["hook"] and outcome.skipped_reason is None
    assert [a.split("/")[-1] for a in outcome.actions] == ["guard.list", "kernel-guard", "53baremetal-nvidia-guard"]
    assert atomic.mode_of(str(tmp_path / script.PATH[1:])) == 0o755
    assert atomic.mode_of(str(tmp_path / script.LIST[1:])) == 0o600
    assert script.parse_list((tmp_path / script.LIST[1:]).read_text()) == ([OLD, NEW], [OLD])
    before = tree(tmp_path)
    again = make(tmp_path)
    assert not again.changed and not again.actions and not again.diff and tree(tmp_path) == before


def test_a_change_of_the_list_writes_the_list_alone(tmp_path: pathlib.Path) -> None:
    make(tmp_path)
    outcome = make(tmp_path, allowed=(OLD,))
    assert outcome.actions == [f"write {script.LIST}"] and f"-allowed {NEW}" not in outcome.diff[0]["after"]


def test_check_mode_tells_all_and_does_nothing(tmp_path: pathlib.Path) -> None:
    foretold = make(tmp_path, check=True)
    assert tree(tmp_path) == {}
    assert foretold == make(tmp_path)
    gone = make(tmp_path, present=False, check=True)
    assert len(gone.actions) == 3 and len(tree(tmp_path)) == 3
    assert gone == make(tmp_path, present=False)
    assert tree(tmp_path) == {} and not make(tmp_path, present=False).changed


def test_what_calls_the_script_comes_last_and_goes_first(tmp_path: pathlib.Path) -> None:
    assert make(tmp_path).actions[-1] == f"write {script.APT_HOOK_PATH}"
    assert make(tmp_path, present=False).actions[0] == f"remove {script.APT_HOOK_PATH}"


def test_a_mode_that_changed_is_put_right(tmp_path: pathlib.Path) -> None:
    make(tmp_path)
    (tmp_path / script.PATH[1:]).chmod(0o644)
    outcome = make(tmp_path)
    assert outcome.actions == [f"write {script.PATH}"] and not outcome.diff
    assert atomic.mode_of(str(tmp_path / script.PATH[1:])) == 0o755


def test_dnf4_gets_a_plugin_beside_its_own(tmp_path: pathlib.Path) -> None:
    dnf4(tmp_path)
    outcome = make(tmp_path, "dnf")
    assert outcome.via == ["plugin"] and outcome.actions[-1] == f"write /{SITE}/dnf-plugins/{dnf_plugin.NAME}"
    assert len(make(tmp_path, "dnf", present=False).actions) == 3


def test_dnf5_gets_an_action(tmp_path: pathlib.Path) -> None:
    dnf5(tmp_path)
    outcome = make(tmp_path, "dnf")
    assert outcome.via == ["actions"] and outcome.actions[-1] == f"write {script.ACTIONS_PATH}"


def test_both_generations_are_guarded(tmp_path: pathlib.Path) -> None:
    dnf4(tmp_path)
    dnf5(tmp_path)
    assert make(tmp_path, "dnf").via == ["actions", "plugin"]
    assert len(make(tmp_path, "dnf", present=False).actions) == 4


@pytest.mark.parametrize("plugin, version, said", [
    (False, "1.4.1", "install libdnf5-plugin-actions"),
    (True, "1.3.0", r"1\.3\.0 cannot stop a transaction: that came with 1\.4\.0"),
    (True, "", r"not loaded: see /etc/dnf/libdnf5-plugins/actions\.conf"),
])
def test_dnf5_without_a_plugin_that_can_stop_it_is_said(
        tmp_path: pathlib.Path, plugin: bool, version: str, said: str) -> None:
    touch(tmp_path, "usr/bin/dnf5", *(["usr/lib/x86_64-linux-gnu/libdnf5/plugins/actions.so"] if plugin else []))
    outcome = make(tmp_path, "dnf", version)
    assert not outcome.changed and outcome.via == [] and re.search(said, str(outcome.skipped_reason))


def test_zypper_is_said_to_have_locks_only(tmp_path: pathlib.Path) -> None:
    outcome = make(tmp_path, "zypper")
    assert not outcome.changed and outcome.via == []
    assert "locks of kernel_pin are all there is" in str(outcome.skipped_reason)
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("allowed, proved, said", [
    (("linux-image-amd64",), (), "allowed has 'linux-image-amd64', which is no kernel release"),
    ((OLD,), ("6.1 ",), "proved has '6.1 '"),
    ((f"{OLD}\nallowed 9",), (), "allowed has"),
    (("",), (), "allowed has ''"),
    ((), (), "allowed and proved are both empty"),
])
def test_bad_input_is_refused_before_anything_changes(
        tmp_path: pathlib.Path, allowed: tuple[str, ...], proved: tuple[str, ...], said: str) -> None:
    with pytest.raises(GuardError, match=said):
        make(tmp_path, allowed=allowed, proved=proved)
    assert tree(tmp_path) == {}


def test_a_failure_takes_back_what_was_written(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, allowed=(OLD,))
    (tmp_path / script.PATH[1:]).write_text("old")
    before, real = tree(tmp_path), atomic.write

    def write(path: str, data: str, mode: int, dir_mode: int = 0o755) -> None:
        if path.endswith("kernel-guard") and data != "old":
            raise OSError(28, "No space left on device")
        real(path, data, mode, dir_mode)

    monkeypatch.setattr(atomic, "write", write)
    with pytest.raises(GuardError, match=r"No space left on device.*The guard is as it was"):
        make(tmp_path)
    assert tree(tmp_path) == before
