# SPDX-License-Identifier: GPL-3.0-or-later
"""Pins: whole or not at all, and never at a person's cost."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.apt import Apt
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.base import LockHeld, NotSupported
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.detect import backend
from ansible_collections.baremetal.nvidia.plugins.module_utils.pin import Outcome, Pin, PinError, Request
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store
from fake_apt import FakeApt

KERNEL = ("linux-image-amd64", "linux-headers-amd64", "linux-image-6.1.0-50-amd64", "linux-headers-6.1.0-50-amd64")
OTHERS = ("linux-image-rt-amd64", "linux-image-cloud-amd64")
PREFERENCES = "etc/apt/preferences.d/baremetal-nvidia"
EXCLUSIONS = "etc/apt/apt.conf.d/52baremetal-nvidia"


@pytest.fixture
def host(tmp_path: pathlib.Path) -> FakeApt:
    fake = FakeApt(tmp_path)
    (tmp_path / "var/lib/dpkg").mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").touch()
    fake.install(*KERNEL, "linux-libc-dev", "linux-headers-6.1.0-50-common", "bash")
    fake.archive = dict.fromkeys([*KERNEL, *OTHERS], "6.1.176-1")
    return fake


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def pin(host: FakeApt, check: bool = False, **asked: object) -> Outcome:
    clock = Clock()
    manager = Apt(host, str(host.root), sleep=clock.sleep, clock=lambda: clock.now)
    store = Store(str(host.root), clock=lambda: 1000.0)
    defaults: dict = {"packages": KERNEL, "deny": OTHERS, "why": "test"}
    return Pin(manager, store, str(host.root)).run(Request(**{**defaults, **asked}), check)


def tree(root: pathlib.Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def state(host: FakeApt) -> dict:
    return json.loads((host.root / "var/lib/baremetal-nvidia/state.json").read_text())


def test_installed_is_held_and_the_rest_blocked(host: FakeApt) -> None:
    outcome = pin(host)
    assert outcome.changed
    assert host.held == set(KERNEL)
    text = (host.root / PREFERENCES).read_text()
    for name in OTHERS:
        assert f"Package: {name}\nPin: version *\nPin-Priority: -1\n" in text
    assert KERNEL[0] not in text
    exclusions = (host.root / EXCLUSIONS).read_text()
    assert 'Unattended-Upgrade::Package-Blacklist {\n  "linux-headers-";\n  "linux-image-";\n};' in exclusions
    how = {row["package"]: (row["how"], row["owner"], row["why"]) for row in outcome.held}
    assert how == {**dict.fromkeys(KERNEL, ("hold", "ours", "test")),
                   **dict.fromkeys(OTHERS, ("preference", "ours", "test"))}


def test_a_denied_name_that_is_installed_is_held(host: FakeApt) -> None:
    """One hold, two preferences (behaviour g06)."""
    host.packages = {"linux-image-generic": ["install", "1"]}
    names = ("linux-image-generic", "linux-generic-hwe-22.04", "linux-image-generic-hwe-22.04")
    outcome = pin(host, packages=(), deny=names)
    assert sorted(row["how"] for row in outcome.held) == ["hold", "preference", "preference"]
    assert host.held == {"linux-image-generic"}


def test_second_run_changes_nothing(host: FakeApt) -> None:
    pin(host, manual=KERNEL[2:3])
    before = tree(host.root)
    host.calls.clear()
    outcome = pin(host, manual=KERNEL[2:3])
    assert not outcome.changed and not outcome.actions and not outcome.diff
    assert tree(host.root) == before
    assert all(call[0] != "dpkg" for call in host.calls), "nothing to select, so dpkg is not called"


def test_check_mode_tells_all_and_does_nothing(host: FakeApt) -> None:
    before, held = tree(host.root), host.held
    foretold = pin(host, check=True, manual=KERNEL[2:3])
    assert (tree(host.root), host.held, host.manual) == (before, held, set())
    done = pin(host, manual=KERNEL[2:3])
    assert foretold.actions == done.actions and foretold.diff == done.diff and foretold.held == done.held
    assert done.diff[0] == {"before_header": "package holds", "after_header": "package holds",
                            "before": "", "after": "".join(f"{n}\n" for n in sorted(KERNEL))}


@pytest.mark.parametrize("left_out", KERNEL)
def test_half_a_pin_is_refused(host: FakeApt, left_out: str) -> None:
    before = tree(host.root)
    with pytest.raises(PinError, match=rf"half a pin.*{left_out}"):
        pin(host, packages=[n for n in KERNEL if n != left_out])
    assert (tree(host.root), host.held) == (before, set())


def test_a_glob_that_would_strand_an_installed_package_is_refused(host: FakeApt) -> None:
    host.install("kmod-x")
    with pytest.raises(PinError, match=r"half a pin: deny \(kmod-\*\) matches kmod-x"):
        pin(host, deny=("kmod-*",))


def test_userspace_headers_and_strangers_are_not_of_the_family(host: FakeApt) -> None:
    pin(host)
    assert not host.held & {"linux-libc-dev", "linux-headers-6.1.0-50-common", "bash"}


def test_a_persons_hold_stays_theirs(host: FakeApt) -> None:
    host.hold("linux-image-amd64", "bash")
    outcome = pin(host)
    owners = {row["package"]: row["owner"] for row in outcome.held}
    assert owners["linux-image-amd64"] == owners["bash"] == "person"
    assert owners["linux-headers-amd64"] == "ours"
    assert "linux-image-amd64" not in state(host)["holds"]["kernel"]
    released = pin(host, present=False, packages=(), deny=())
    assert host.held == {"linux-image-amd64", "bash"}, "released are ours alone"
    assert {row["package"] for row in released.held} == {"linux-image-amd64", "bash"}


def test_release_takes_everything_back(host: FakeApt) -> None:
    before = tree(host.root)
    pin(host, manual=KERNEL[2:3])
    assert host.manual == set(KERNEL[2:3])
    outcome = pin(host, present=False, packages=(), deny=())
    assert outcome.changed and host.held == set() and host.manual == set()
    assert {k: v for k, v in tree(host.root).items() if "var/lib/baremetal-nvidia" not in k} == before
    assert (state(host)["holds"], state(host)["denied"], state(host)["manual"]) == ({}, {}, {})
    assert not pin(host, present=False, packages=(), deny=()).changed


def test_releasing_half_is_refused(host: FakeApt) -> None:
    pin(host)
    with pytest.raises(PinError, match=r"half a pin.*linux-image-amd64"):
        pin(host, present=False, packages=("linux-image-amd64",), deny=())
    assert host.held == set(KERNEL)


def test_a_file_that_was_there_comes_back(host: FakeApt) -> None:
    path = host.root / PREFERENCES
    path.parent.mkdir(parents=True)
    path.write_text("Package: vim\nPin: version *\nPin-Priority: 900\n")
    pin(host)
    assert "vim" not in path.read_text()
    pin(host, present=False, packages=(), deny=())
    assert path.read_text().startswith("Package: vim")
    assert not pin(host, present=False, packages=(), deny=()).changed
    assert path.read_text().startswith("Package: vim"), "what is not ours is not removed"


def test_lifted_names_are_free_until_the_next_call(host: FakeApt) -> None:
    pin(host)
    lifted = pin(host, lifted=("linux-headers-6.1.0-50-amd64", OTHERS[0]))
    assert lifted.actions[0] == "release linux-headers-6.1.0-50-amd64"
    assert host.held == set(KERNEL) - {"linux-headers-6.1.0-50-amd64"}
    assert OTHERS[0] not in (host.root / PREFERENCES).read_text()
    assert pin(host).changed and host.held == set(KERNEL)


def test_lifting_a_stranger_is_refused(host: FakeApt) -> None:
    with pytest.raises(PinError, match="lifted names bash"):
        pin(host, lifted=("bash",))


def test_sets_do_not_touch_each_other(host: FakeApt) -> None:
    host.install("nvidia-kernel-dkms", "libnvidia-ml1")
    pin(host)
    outcome = pin(host, pin_set="driver", packages=(), deny=(), patterns=(r"(lib)?nvidia-.*",))
    assert host.held == {*KERNEL, "nvidia-kernel-dkms", "libnvidia-ml1"}
    assert {a for a in outcome.actions if a.startswith("write")} == {f"write /{EXCLUSIONS}-driver"}
    pin(host, present=False, packages=(), deny=())
    assert host.held == {"nvidia-kernel-dkms", "libnvidia-ml1"}


def test_names_no_longer_listed_are_released(host: FakeApt) -> None:
    host.install("extra")
    pin(host, packages=(*KERNEL, "extra"))
    assert "extra" in host.held
    assert pin(host).actions[0] == "release extra"
    assert host.held == set(KERNEL)


def test_a_hold_taken_away_behind_our_back_is_set_again(host: FakeApt) -> None:
    pin(host)
    host.packages["linux-image-amd64"][0] = "install"
    assert pin(host).actions == ["hold linux-image-amd64"]


def test_a_new_pin_that_another_file_outweighs_is_taken_back_whole(host: FakeApt) -> None:
    host.outweighed = {OTHERS[0]}
    before = tree(host.root)
    with pytest.raises(PinError, match=rf"no effect for {OTHERS[0]} \(6.1.176-1\).*Nothing is half pinned"):
        pin(host, manual=KERNEL[2:3])
    assert host.held == set() and host.manual == set() and state(host)["holds"] == state(host)["denied"] == {}
    assert {k: v for k, v in tree(host.root).items() if "var/lib/baremetal-nvidia" not in k} == before


def test_a_pin_that_was_there_stays_as_far_as_it_goes(host: FakeApt) -> None:
    """To open all of it, as a person let one name in, would be worse."""
    pin(host, lifted=KERNEL)
    host.outweighed = {OTHERS[0]}
    with pytest.raises(PinError, match=rf"no effect for {OTHERS[0]}.*The rest of the set is pinned"):
        pin(host)
    assert host.held == set(KERNEL)


def test_a_failure_undoes_files_and_record(host: FakeApt) -> None:
    host.fail["dpkg"] = "dpkg: error: disk full"
    with pytest.raises(PinError, match=r"disk full\. Nothing is half pinned"):
        pin(host)
    assert not (host.root / PREFERENCES).exists() and not (host.root / EXCLUSIONS).exists()
    assert state(host)["holds"] == {} and host.held == set()


def test_holds_are_taken_back_when_a_later_step_fails(host: FakeApt) -> None:
    class MarkFails(Apt):
        def mark(self, manual: object, auto: object) -> None:
            raise HostError("apt-mark broke")

    manager = MarkFails(host, str(host.root))
    with pytest.raises(PinError, match="apt-mark broke"):
        Pin(manager, Store(str(host.root)), str(host.root)).run(Request(packages=KERNEL, manual=KERNEL), False)
    assert host.held == set() and state(host)["holds"] == {}


def test_a_hold_cut_off_before_it_was_set_is_finished(host: FakeApt) -> None:
    """Killed between the record and dpkg: what is recorded is ours, and the next run sets it."""
    class Killed(Apt):
        def set_holds(self, hold: object, release: object, timeout: float) -> float:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Pin(Killed(host, str(host.root)), Store(str(host.root)), str(host.root)).run(Request(packages=KERNEL), False)
    assert host.held == set() and set(state(host)["holds"]["kernel"]) == set(KERNEL)
    outcome = pin(host)
    assert host.held == set(KERNEL) and {row["owner"] for row in outcome.held} == {"ours"}


def test_locked_twice_then_free(host: FakeApt) -> None:
    host.locked = 2
    outcome = pin(host)
    assert outcome.changed and outcome.waited == 4.0
    assert sum(call[0] == "dpkg" for call in host.calls) == 3


def test_lock_never_freed_names_the_holder(host: FakeApt) -> None:
    host.locked, host.locked_pid = 10_000, os.getpid()
    with pytest.raises(PinError) as caught:
        pin(host, lock_timeout=30.0)
    assert f"pid {os.getpid()}" in str(caught.value) and "python" in str(caught.value) and "30 s" in str(caught.value)
    assert host.held == set() and not (host.root / PREFERENCES).exists()


HOLD_THE_LOCK = """
import fcntl, sys, time
handle = open(sys.argv[1], "w")
fcntl.lockf(handle, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("name", ["lock-frontend", "lock"])
def test_a_real_lock_of_another_process_is_seen(host: FakeApt, name: str) -> None:
    lock = host.root / "var/lib/dpkg" / name
    child = subprocess.Popen([sys.executable, "-c", HOLD_THE_LOCK, str(lock), "60"], stdout=subprocess.PIPE)
    try:
        assert child.stdout and child.stdout.readline() == b"locked\n"
        with pytest.raises(LockHeld) as caught:
            pin(host, lock_timeout=4.0)
        assert caught.value.holder.pid == child.pid and "fcntl.lockf(handle" in str(caught.value.holder.command)
        assert f"pid {child.pid}" in str(caught.value)
    finally:
        child.kill()
        child.wait()


def test_a_real_lock_that_is_freed_is_waited_for(host: FakeApt) -> None:
    lock = host.root / "var/lib/dpkg/lock-frontend"
    child = subprocess.Popen([sys.executable, "-c", HOLD_THE_LOCK, str(lock), "1"], stdout=subprocess.PIPE)
    assert child.stdout and child.stdout.readline() == b"locked\n"
    manager = Apt(host, str(host.root))
    manager.poll = 0.1
    start = time.monotonic()
    waited = manager.wait_for_lock(30)
    child.wait()
    assert 0.3 < waited <= time.monotonic() - start


def test_other_managers_are_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/pacman").touch()
    with pytest.raises(NotSupported, match="pacman is not supported"):
        backend(FakeApt(tmp_path), str(tmp_path))
    (tmp_path / "usr/bin/pacman").unlink()
    with pytest.raises(NotSupported, match="no package manager"):
        backend(FakeApt(tmp_path), str(tmp_path))
