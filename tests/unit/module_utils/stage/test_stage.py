# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel comes in and is taken back: every step may be the last one."""
from __future__ import annotations

import json
import os
import pathlib
import platform
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages import transaction
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.base import Package
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof.publish import MARK
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result
from ansible_collections.baremetal.nvidia.plugins.module_utils.stage import complete, snapshot
from ansible_collections.baremetal.nvidia.plugins.module_utils.stage.debs import Debs
from ansible_collections.baremetal.nvidia.plugins.module_utils.stage.errors import StageError
from ansible_collections.baremetal.nvidia.plugins.module_utils.stage.stage import SHIMS, Stage, Wish
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store

OLD, NEW = "6.1.0-47-amd64", "6.1.0-57-amd64"
WISH = Wish(release=NEW, beside=OLD, packages={f"linux-image-{NEW}": "6.1.192-3", "linux-image-amd64": "6.1.192-3"},
            driver="535.309.01", flavour="proprietary", others=("zfs",))


class FakeManager:
    """A package database; ``install`` does what dpkg would do to the tree, up to ``steps``."""

    manager = "apt"

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.table = {"linux-image-amd64": "6.1.170-3 i", f"linux-image-{OLD}": "6.1.170-3 i"}
        self.broken: list[str] = []
        self.marks = {"linux-image-amd64"}

    def packages(self) -> dict[str, str]:
        return dict(self.table)

    def moves(self, wanted: Mapping[str, str | None]) -> dict[str, tuple[str | None, str]]:
        was = {name: self.table.get(name, "").split(" ")[0] or None for name in wanted}
        return {name: (was[name], str(version)) for name, version in wanted.items()}

    def keep(self, moved: Mapping[str, tuple[str | None, str]], into: str) -> dict[str, str]:
        return {name: old for name, (old, _new) in moved.items() if old}

    def own(self, data: Mapping[str, Any]) -> set[str]:
        return set(data["moved"])

    def back(self, before: Mapping[str, str], former: Mapping[str, str], own: Collection[str]) -> list[str]:
        for name in own:
            self.table.pop(name, None)
        self.table.update({name: state for name, state in before.items() if name in own})
        return ["linux-image-amd64 is back at its former version"]

    lost = staticmethod(Debs.lost)

    def wrong(self) -> list[str]:
        return self.broken

    def installed(self, wanted: Mapping[str, str | None]) -> list[str]:
        return [name for name, version in wanted.items() if self.table.get(name) != f"{version} i"]

    def manual(self, names: Iterable[str]) -> list[str]:
        return sorted(set(names) & self.marks)

    def mark(self, before: Mapping[str, Any]) -> list[str]:
        return []

    def install(self, steps: int = 99) -> None:
        """Let dpkg run for so many steps."""
        boot, modules = self.root / "boot", self.root / "lib/modules" / NEW
        things = [
            lambda: (boot / f"vmlinuz-{NEW}.dpkg-new").write_text("half"),
            lambda: os.replace(boot / f"vmlinuz-{NEW}.dpkg-new", boot / f"vmlinuz-{NEW}"),
            lambda: modules.mkdir(parents=True),
            lambda: (modules / "modules.dep").write_text(""),
            lambda: self.table.update({f"linux-image-{NEW}": "6.1.192-3 U"}),
            lambda: (boot / f"initrd.img-{NEW}.new").write_text("half"),
            lambda: os.replace(boot / f"initrd.img-{NEW}.new", boot / f"initrd.img-{NEW}"),
            self._relink,
            lambda: (boot / "grub/grub.cfg").write_text("truncat"),
            lambda: (boot / "grub/grubenv").write_text("# torn"),
            self._dkms,
            lambda: self.table.update({f"linux-image-{NEW}": "6.1.192-3 i", "linux-image-amd64": "6.1.192-3 i"}),
        ]
        for thing in things[:steps]:
            thing()
        self.steps = len(things)

    def _relink(self) -> None:
        (self.root / "vmlinuz").unlink()
        (self.root / "vmlinuz").symlink_to(f"boot/vmlinuz-{NEW}")

    def _dkms(self) -> None:
        built = self.root / f"var/lib/dkms/nvidia-current/535.309.01/{NEW}/x86_64/module"
        built.mkdir(parents=True)
        (built / "nvidia.ko").write_text("")
        (self.root / f"var/lib/dkms/nvidia-current/kernel-{NEW}-x86_64").symlink_to("535.309.01")
        (self.root / "etc/dkms").mkdir(parents=True, exist_ok=True)
        (self.root / f"etc/dkms/nvidia-current-535.309.01-{NEW}.conf").write_text("MAKE")


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    for path, text in {
        f"boot/vmlinuz-{OLD}": "old kernel", f"boot/initrd.img-{OLD}": "old initrd", "boot/grub/grub.cfg": "menu",
        "boot/grub/grubenv": "saved", f"boot/config-{OLD}": "CONFIG", f"lib/modules/{OLD}/modules.dep": "",
        f"var/lib/dkms/nvidia-current/535.309.01/{OLD}/x86_64/module/nvidia.ko": "", "var/lib/dpkg/status": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "vmlinuz").symlink_to(f"boot/vmlinuz-{OLD}")
    return tmp_path


def held(_argv: object, **_more: object) -> Result:
    return Result(0, "linux-image-amd64\tlinux-image-amd64\t1\thold\tinstalled\n")


@pytest.fixture
def stage(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(complete, "problems", lambda *_args, **_more: [])
    return Stage(held, Store(str(root)), str(root), "run-1", 0.0, FakeManager(root))  # type: ignore[arg-type]


def tree(root: pathlib.Path) -> dict[str, str]:
    """Everything in the tree but what we remember, and what may stay."""
    found = {}
    for where, dirs, names in os.walk(root):
        for name in (*names, *(one for one in dirs if os.path.islink(os.path.join(where, one)))):
            path = os.path.join(where, name)
            key = os.path.relpath(path, root)
            if not key.startswith(("var/lib/baremetal-nvidia/", "run/")):
                found[key] = os.readlink(path) if os.path.islink(path) else pathlib.Path(path).read_text()
    return found


def test_open_writes_down_everything_before_a_package_moves(stage: Stage, root: pathlib.Path) -> None:
    outcome = stage.open(WISH, check=False)
    assert outcome.moves["linux-image-amd64"] == "6.1.170-3 -> 6.1.192-3"
    data = json.loads((root / "var/lib/baremetal-nvidia/stage.json").read_text())
    assert data["packages"]["linux-image-amd64"] == "6.1.170-3 i" and data["held"] == ["linux-image-amd64"]
    opened = stage.store.read()["open"]
    assert opened["role"] == "gpu_kernel" and [one["name"] for one in opened["steps"]] == ["packages"]
    kept = root / "boot/.baremetal-nvidia-stage"
    assert (kept / "grub/grubenv").read_text() == "saved"
    assert os.path.samefile(kept / f"vmlinuz-{OLD}", root / f"boot/vmlinuz-{OLD}")
    assert os.access(f"{root}{SHIMS}/update-grub", os.X_OK)


def test_where_no_program_can_stand_in_for_update_grub_nothing_begins(
        stage: Stage, root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.X_OK and access(path, mode))
    with pytest.raises(StageError, match="update-grub cannot be executed: its file system is mounted noexec"):
        stage.open(WISH, check=False)
    assert snapshot.left(str(root)) == [] and stage.store.read()["open"] is None
    assert not SHIMS.startswith("/run/"), "which Debian's and Ubuntu's ramdisks mount noexec"


class PowerCut(BaseException):
    """Nothing after it runs."""


@pytest.mark.parametrize("step", ["keep", "sync", "save"])
def test_a_cut_while_it_is_written_down_is_seen_and_cleared(
        stage: Stage, root: pathlib.Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """The power goes before the journal is there: nothing moved, and what was kept must not stay in /boot."""
    before = tree(root)
    with monkeypatch.context() as cut:
        cut.setattr({"keep": snapshot, "save": snapshot, "sync": os}[step], step, _power_goes)
        # a power cut leaves no time for tidying up
        cut.setattr(stage, "_end", lambda: _raise(AssertionError("it tidied up")))
        with pytest.raises(PowerCut):
            stage.open(WISH, check=False)
    opened = stage.store.read()["open"]
    assert opened is not None and opened["role"] == "gpu_kernel", "the plan sees it by this"
    looked = stage.recover(check=True)
    assert looked.changed and snapshot.left(str(root)) != []
    assert stage.recover(check=False).lines[0] == "nothing had moved"
    assert tree(root) == before and snapshot.left(str(root)) == [] and stage.store.read()["open"] is None
    assert stage.recover(check=False).how == "nothing"


def _raise(error: BaseException) -> None:
    raise error


def _power_goes(*_args: object) -> None:
    raise PowerCut


def test_what_an_older_release_left_without_a_transaction_is_cleared(stage: Stage, root: pathlib.Path) -> None:
    stage.menu(kept=True)
    (root / "boot/.baremetal-nvidia-stage/grub").mkdir(parents=True)
    (root / "boot/.baremetal-nvidia-stage/grub/grubenv").write_text("saved")
    looked = stage.recover(check=True)
    assert looked.changed and looked.how == "finished" and (root / "boot/.baremetal-nvidia-stage").exists()
    outcome = stage.recover(check=False)
    assert outcome.lines == ["nothing had moved", "/boot/.baremetal-nvidia-stage is gone", f"{SHIMS} is gone"]
    assert not (root / "boot/.baremetal-nvidia-stage").exists() and not os.path.exists(f"{root}{SHIMS}")


def test_a_journal_without_a_transaction_is_taken_back(stage: Stage, root: pathlib.Path) -> None:
    """Releases before wrote the journal, and then that a transaction is open."""
    before = tree(root)
    stage.open(WISH, check=False)
    stage.store.finish()
    stage.manager.install(5)  # type: ignore[union-attr]
    assert stage.recover(check=True).how == "taken back" and stage.store.read()["open"] is None
    assert stage.recover(check=False).how == "taken back"
    assert tree(root) == before and stage.store.read()["open"] is None


def test_another_roles_transaction_stays_open(stage: Stage) -> None:
    stage.store.begin("run-0", "gpu_driver", "install the driver")
    stage.menu(kept=True)
    assert stage.recover(check=False).how == "finished"
    assert stage.store.read()["open"]["role"] == "gpu_driver"
    assert stage.recover(check=False).how == "nothing"


def test_check_mode_writes_nothing(stage: Stage, root: pathlib.Path) -> None:
    before = tree(root)
    assert stage.open(WISH, check=True).changed
    assert tree(root) == before and not (root / "var/lib/baremetal-nvidia/stage.json").exists()


def test_the_build_that_the_proof_offered_goes_too(stage: Stage, root: pathlib.Path) -> None:
    offers = root / "etc/dkms"
    offers.mkdir(parents=True)
    for name, text in (("nvidia-current-535.309.01", MARK), ("zfs-2.1", "# by hand")):
        (offers / f"{name}-{NEW}.conf").write_text(text)
    stage.open(WISH, check=False)
    stage.undo()
    assert os.listdir(offers) == [f"zfs-2.1-{NEW}.conf"], "what a person wrote stays"


def test_whose_a_hold_is_comes_back_with_it(stage: Stage) -> None:
    ours = {"kernel": {"linux-image-amd64": {"why": "x", "at": "2026-11-01"}}}
    stage.store.update(lambda state: state["holds"].update(ours))
    stage.open(WISH, check=False)
    stage.store.update(lambda state: state["holds"].clear())  # as kernel_pin does for what is lifted
    stage.store.prove(NEW, {})
    stage.undo()
    assert stage.store.read()["holds"] == ours and stage.store.read()["proved_kernels"] == {}


@pytest.mark.parametrize("steps", range(13))
def test_taken_back_from_every_step(stage: Stage, root: pathlib.Path, steps: int) -> None:
    before = tree(root)
    stage.open(WISH, check=False)
    stage.manager.install(steps)  # type: ignore[union-attr]
    outcome = stage.undo()
    assert outcome.how == "taken back"
    assert tree(root) == before
    assert stage.store.read()["open"] is None and snapshot.load(str(root)) is None
    assert not os.path.exists(f"{root}{SHIMS}")


def test_a_cut_off_run_is_taken_back_where_the_kernel_is_not_whole(stage: Stage, root: pathlib.Path) -> None:
    before = tree(root)
    stage.open(WISH, check=False)
    stage.manager.install(5)  # type: ignore[union-attr]
    looked = stage.recover(check=True)
    assert looked.how == "taken back" and looked.problems
    outcome = stage.recover(check=False)
    assert outcome.how == "taken back" and "did not come in" in outcome.problems[0]
    assert tree(root) == before
    assert stage.recover(check=False).how == "nothing"


def test_a_cut_off_run_is_finished_where_it_is(stage: Stage, root: pathlib.Path) -> None:
    stage.open(WISH, check=False)
    stage.manager.install()  # type: ignore[union-attr]
    assert stage.recover(check=False).how == "finished"
    assert (root / f"boot/vmlinuz-{NEW}").exists() and stage.store.read()["open"] is None


def test_what_others_did_since_a_run_was_cut_off_stays(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run may come days later: automatic upgrades and people have been at work."""
    ours = {"linux-image-amd64": {"why": "x", "at": "2026-11-01"}}
    stage.store.update(lambda state: state["holds"].update(kernel=ours))
    stage.manager.table["openssl"] = "3.0.14 i"  # type: ignore[union-attr]
    stage.open(WISH, check=False)
    stage.manager.install(5)  # type: ignore[union-attr]
    stage.manager.table.update(openssl="3.0.15 i", postgresql="15 i")  # type: ignore[union-attr]
    held: dict[str, bool] = {"linux-image-amd64": False, "docker-ce": True}
    rows = {name: [Package(name, name, "1", state)] for name, state in held.items()}
    asked: list[tuple[list[str], list[str]]] = []

    def set_holds(hold: Iterable[str], release: Iterable[str], _timeout: float) -> float:
        asked.append((list(hold), list(release)))
        rows["linux-image-amd64"] = [Package("linux-image-amd64", "linux-image-amd64", "1", True)]
        return 0.0

    monkeypatch.setattr(stage.backend, "installed", lambda: rows)
    monkeypatch.setattr(stage.backend, "set_holds", set_holds)
    assert stage.recover(check=False).how == "taken back"
    table = stage.manager.packages()
    assert table["openssl"] == "3.0.15 i" and table["postgresql"] == "15 i"
    assert f"linux-image-{NEW}" not in table and table["linux-image-amd64"] == "6.1.170-3 i"
    assert asked == [(["linux-image-amd64"], [])], "ours is held again, a person's newer hold is left"


def test_a_way_back_that_was_cut_off_knows_what_it_began_with(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.open(WISH, check=False)
    stage.manager.install()  # type: ignore[union-attr]
    with monkeypatch.context() as cut:
        cut.setattr(snapshot, "restore", lambda *_args: _raise(OSError("the power went")))
        with pytest.raises(OSError, match="the power went"):
            stage.undo()
    monkeypatch.setattr(stage.manager, "own", lambda _data: set())
    stage.manager.table[f"linux-image-{NEW}"] = "6.1.192-3 H"  # type: ignore[union-attr]
    stage.undo()
    assert f"linux-image-{NEW}" not in stage.manager.packages()


def test_a_kernel_that_was_removed_since_does_not_come_back(stage: Stage, root: pathlib.Path) -> None:
    """By autoremove, say: an image without modules would stand in the next boot menu."""
    older = "6.1.0-44-amd64"
    files = [root / f"boot/vmlinuz-{older}", root / f"lib/modules/{older}/modules.dep",
             root / f"var/lib/dkms/nvidia-current/535.309.01/{older}/x86_64/module/nvidia.ko"]
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("older")
    stage.open(WISH, check=False)
    stage.manager.install(7)  # type: ignore[union-attr]
    for path in files:
        path.unlink()
    files[1].parent.rmdir()
    assert stage.recover(check=False).how == "taken back"
    assert not files[0].exists() and (root / f"boot/vmlinuz-{OLD}").read_text() == "old kernel"


def test_an_image_that_went_while_its_modules_stayed_comes_back(stage: Stage, root: pathlib.Path) -> None:
    stage.open(WISH, check=False)
    (root / f"boot/vmlinuz-{OLD}").unlink()
    stage.undo()
    assert (root / f"boot/vmlinuz-{OLD}").read_text() == "old kernel"


def test_the_running_kernel_is_not_taken_away(
        stage: Stage, root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut off, and then somebody chose the new kernel at the console."""
    stage.open(WISH, check=False)
    stage.manager.install(7)  # type: ignore[union-attr]
    before = tree(root)
    monkeypatch.setattr(platform, "release", lambda: NEW)
    with pytest.raises(StageError, match=f"the host runs kernel {NEW}, .*restart it into {OLD}"):
        stage.recover(check=False)
    assert tree(root) == before and snapshot.load(str(root)) is not None
    monkeypatch.setattr(platform, "release", lambda: OLD)
    assert stage.recover(check=False).how == "taken back"


def test_cut_off_before_the_first_package(stage: Stage) -> None:
    stage.store.begin("run-0", "gpu_kernel", "bring in kernel x")
    outcome = stage.recover(check=False)
    assert outcome.how == "finished" and stage.store.read()["open"] is None


@pytest.mark.parametrize("opened", [False, True])
def test_services_may_start_again_after_a_cut_off_transaction(stage: Stage, root: pathlib.Path, opened: bool) -> None:
    denial = root / transaction.POLICY
    denial.parent.mkdir(parents=True, exist_ok=True)
    if opened:
        stage.open(WISH, check=False)
        stage.manager.install(5)  # type: ignore[union-attr]
    denial.write_text(transaction.DENY)
    looked = stage.recover(check=True)
    assert looked.changed and looked.how == ("taken back" if opened else "finished") and denial.exists()
    outcome = stage.recover(check=False)
    assert outcome.changed and outcome.how == looked.how and not denial.exists()
    assert "services" in outcome.lines[-1]
    assert stage.recover(check=False).how == "nothing"
    denial.write_text("#!/bin/sh\nexit 101\n")    # somebody's own
    assert not stage.recover(check=False).changed and denial.exists()


def test_another_roles_transaction_is_left_alone(stage: Stage) -> None:
    stage.store.begin("run-0", "gpu_containerd", "config")
    assert stage.recover(check=False).how == "nothing"
    assert stage.store.read()["open"]["role"] == "gpu_containerd"


def test_what_cannot_be_put_back_is_named(stage: Stage, root: pathlib.Path) -> None:
    stage.open(WISH, check=False)
    (root / f"boot/initrd.img-{OLD}").write_text("torn")  # in place: the second name follows
    with pytest.raises(StageError, match=f"initrd.img-{OLD} changed and no copy was kept"):
        stage.undo()
    assert snapshot.load(str(root)) is not None


def test_packages_that_do_not_come_back_are_named(stage: Stage) -> None:
    stage.open(WISH, check=False)
    stage.manager.install()  # type: ignore[union-attr]
    stage.manager.back = lambda before, former, own: []  # type: ignore[method-assign,union-attr]
    with pytest.raises(StageError, match=f"package linux-image-{NEW} is 6.1.192-3 i, was not there"):
        stage.undo()


def test_only_one_at_a_time(stage: Stage) -> None:
    stage.open(WISH, check=False)
    with pytest.raises(StageError, match="a run was cut off"):
        stage.open(WISH, check=False)


def test_packages_must_be_whole_first(stage: Stage) -> None:
    stage.manager.broken = ["foo (1 U)"]  # type: ignore[union-attr]
    with pytest.raises(StageError, match=r"not whole: foo \(1 U\)"):
        stage.open(WISH, check=False)


class Room:
    """What statvfs answers."""

    def __init__(self, free: int, read_only: bool = False) -> None:
        self.f_bavail, self.f_frsize, self.f_flag = free, 1, os.ST_RDONLY if read_only else 0


@pytest.mark.parametrize(("room", "words"), [(Room(1024), "/boot has 0 MiB free"),
                                             (Room(1 << 40, read_only=True), "/boot is read-only")])
def test_boot_without_room_is_refused(stage: Stage, monkeypatch: pytest.MonkeyPatch, room: Room, words: str) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _path: room)
    with pytest.raises(StageError, match=words):
        stage.open(Wish(release=NEW, beside="none", packages={"x": "1"}), check=False)
    assert stage.store.read()["open"] is None


def test_checked_names_what_is_not_whole(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.open(WISH, check=False)
    stage.manager.install()  # type: ignore[union-attr]
    monkeypatch.setattr(complete, "problems", lambda *_args, **more: [f"no {more['others'][0]}"])
    assert stage.check().problems == ["no zfs"]


def test_what_went_out_with_it_is_no_kernel_worth(stage: Stage) -> None:
    stage.manager.table["zfs-dkms"] = "2 i"  # type: ignore[union-attr]
    stage.open(WISH, check=False)
    stage.manager.install()  # type: ignore[union-attr]
    del stage.manager.table["zfs-dkms"]  # type: ignore[union-attr]
    assert stage.check().problems == ["zfs-dkms was taken out"]


def test_closed_forgets(stage: Stage, root: pathlib.Path) -> None:
    stage.open(WISH, check=False)
    stage.manager.install()  # type: ignore[union-attr]
    assert stage.close().changed and not stage.close().changed
    assert not (root / "boot/.baremetal-nvidia-stage").exists()


def test_a_damaged_journal_is_not_guessed_at(stage: Stage, root: pathlib.Path) -> None:
    stage.open(WISH, check=False)
    (root / "var/lib/baremetal-nvidia/stage.json").write_text("{")
    with pytest.raises(StageError, match="cannot be read"):
        stage.recover(check=False)


def test_steps_come_in_order(stage: Stage) -> None:
    for step in (stage.check, stage.undo):
        with pytest.raises(StageError, match="no kernel is being brought in"):
            step()
