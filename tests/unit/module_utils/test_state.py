# SPDX-License-Identifier: GPL-3.0-or-later
"""The state file and the lease."""
from __future__ import annotations

import json
import pathlib
import signal
import subprocess
import sys
import threading

import _bootstrap  # pylint: disable=unused-import
import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import lease, state
from ansible_collections.baremetal.nvidia.plugins.module_utils.lease import LeaseHeld
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import StateError, Store


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: pathlib.Path, clock: Clock) -> Store:
    return Store(str(tmp_path), clock=clock)


def path_of(store: Store) -> pathlib.Path:
    return pathlib.Path(store.path)


def test_a_host_never_touched_has_no_state(store: Store) -> None:
    assert state.read(store.path) is None and state.facts_view(None) is None
    assert store.read() == state.empty()
    assert not path_of(store).parent.exists(), "reading makes nothing"


def test_root_only_versioned_and_readable_again(store: Store) -> None:
    store.prove("6.1.0-50-amd64", {"driver": "535.261.03", "flavour": "open"})
    path = path_of(store)
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert json.loads(path.read_text())["version"] == 1
    assert Store(store.path[: -len(state.PATH)]).read()["proved_kernels"]["6.1.0-50-amd64"]["driver"] == "535.261.03"


def test_no_change_is_no_write(store: Store) -> None:
    assert store.prove("k", {"driver": "1"}) is True
    before = path_of(store).stat().st_ino
    assert store.prove("k", {"driver": "1"}) is False
    assert path_of(store).stat().st_ino == before


def test_facts_view_names_only(store: Store) -> None:
    store.prove("k2", {})
    store.prove("k1", {})
    store.update(lambda data: data["holds"].update(kernel={"b": {"why": ""}}, driver={"a": {"why": ""}}))
    view = state.facts_view(store.read())
    assert view == {"proved_kernels": ["k1", "k2"], "holds": ["a", "b"], "held_since": None, "open": None,
                    "trial": None, "configured": {}, "seen": {}}
    store.update(lambda data: data["holds"].update(kernel={"b": {"at": "2026-11-02"}, "c": {"at": "2026-11-01"}}))
    later = state.facts_view(store.read())
    assert later is not None and later["held_since"] == "2026-11-01"


@pytest.mark.parametrize("text, words", [
    ("{", "is not JSON"),
    ("[]", "has no version"),
    ('{"version": "1"}', "has no version"),
    ('{"version": 2}', "has version 2, this release of baremetal.nvidia knows 1"),
])
def test_what_cannot_be_read_is_refused_with_the_way_out(store: Store, text: str, words: str) -> None:
    path_of(store).parent.mkdir(parents=True)
    path_of(store).write_text(text)
    path_of(store).chmod(0o600)
    with pytest.raises(StateError, match=words) as caught:
        store.read()
    assert store.path in str(caught.value)
    with pytest.raises(StateError):
        store.prove("k", {})
    assert path_of(store).read_text() == text, "what is not understood is not overwritten"


def test_a_file_that_others_can_write_is_not_trusted(store: Store) -> None:
    store.prove("k", {})
    path_of(store).chmod(0o666)
    with pytest.raises(StateError, match="written by others than root"):
        store.read()


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import _bootstrap  # noqa: F401  # pylint: disable=unused-import
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store
os.rename = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
Store(sys.argv[2]).prove("new", {})
"""


def test_killed_in_the_middle_leaves_the_old_state_and_no_lock(store: Store, tmp_path: pathlib.Path) -> None:
    store.prove("old", {})
    tests = str(pathlib.Path(_bootstrap.__file__).parent)
    child = subprocess.run([sys.executable, "-c", KILLED, tests, str(tmp_path)], check=False)
    assert child.returncode == -signal.SIGKILL
    assert list(store.read()["proved_kernels"]) == ["old"]
    store.prove("next", {})
    assert sorted(store.read()["proved_kernels"]) == ["next", "old"]


def test_two_writers_lose_nothing(tmp_path: pathlib.Path) -> None:
    def write(prefix: str) -> None:
        mine = Store(str(tmp_path))
        for number in range(25):
            mine.prove(f"{prefix}{number}", {})

    threads = [threading.Thread(target=write, args=(prefix,)) for prefix in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Store(str(tmp_path)).read()["proved_kernels"]) == 50


def test_transaction_is_seen_until_it_is_finished(store: Store) -> None:
    assert store.begin("run-1", "gpu_driver", "535 → 580") is None
    store.step("download")
    store.step("install")
    view = state.facts_view(store.read())
    assert view and view["open"]["run_id"] == "run-1"
    assert view["open"]["steps"] == ["download", "install"] and view["open"]["role"] == "gpu_driver"
    assert view["open"]["started"] == state.stamp(store.clock())
    left = store.begin("run-2", "gpu_driver", "535 → 580")
    assert left and left["run_id"] == "run-1" and left["steps"][-1]["name"] == "install"
    store.finish()
    assert store.read()["open"] is None


def test_a_step_without_a_transaction_is_refused(store: Store) -> None:
    with pytest.raises(StateError, match="step 'x': no transaction is open"):
        store.step("x")


def test_lease_of_another_run_is_refused_by_name(store: Store, clock: Clock) -> None:
    assert store.renew("run-1", ttl=600).here is True
    clock.now += 30
    with pytest.raises(LeaseHeld, match=r"run run-1 is changing this host: .*renewed it 30 s ago.*force=true"):
        store.renew("run-2")
    assert store.read()["lease"]["run_id"] == "run-1"


def test_a_call_without_run_id_respects_the_lease_of_others(store: Store) -> None:
    assert store.renew(None).here is False
    assert not path_of(store).exists(), "nothing is taken without an id"
    store.renew("run-1")
    with pytest.raises(LeaseHeld, match="run-1"):
        store.renew(None)


def test_renewal_prolongs_and_is_cheap(store: Store, clock: Clock) -> None:
    store.renew("run-1", ttl=1000)
    inode = path_of(store).stat().st_ino
    clock.now += 100
    assert store.renew("run-1", ttl=1000).here is False
    assert path_of(store).stat().st_ino == inode, "young leases cost no write"
    clock.now += 200
    store.renew("run-1", ttl=1000)
    assert store.read()["lease"]["expires"] == clock.now + 1000
    assert store.read()["lease"]["acquired"] == clock.now - 300


def test_an_expired_lease_is_taken_over_and_said(store: Store, clock: Clock) -> None:
    store.renew("run-1", ttl=600)
    clock.now += 600
    outcome = store.renew("run-2")
    assert outcome.here and outcome.took_over == "run-1"
    assert outcome.note and "took over the lease of run run-1: it expired at" in outcome.note


def test_a_clock_that_went_back_does_not_lock_the_host_for_ever(store: Store, clock: Clock) -> None:
    store.renew("run-1")
    clock.now -= 10 * 365 * 86400
    assert "the clock went back" in str(store.renew("run-2").note)


def test_force_takes_it(store: Store) -> None:
    store.renew("run-1")
    outcome = store.renew("run-2", force=True)
    assert outcome.took_over == "run-1" and "force was given" in str(outcome.note)


def test_only_the_own_lease_is_released(store: Store) -> None:
    store.renew("run-1")
    assert store.release("run-2") is False and store.read()["lease"]["run_id"] == "run-1"
    assert store.release("run-1") is True and store.read()["lease"] is None
    assert store.renew("run-2").here is True


def test_two_runs_at_the_same_moment_one_gets_it(tmp_path: pathlib.Path) -> None:
    outcomes: list[str] = []

    def take(run_id: str) -> None:
        try:
            Store(str(tmp_path)).renew(run_id)
            outcomes.append("got")
        except LeaseHeld:
            outcomes.append("refused")

    threads = [threading.Thread(target=take, args=(f"run-{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["got"] + ["refused"] * 7


def test_own_lease_that_expired_is_taken_again_and_said() -> None:
    current, _first = lease.take(None, "r", 0.0, 10)
    _again, outcome = lease.take(current, "r", 11.0, 10)
    assert outcome.here and "had expired" in str(outcome.note)


def test_a_run_known_to_be_dead_loses_its_lease_and_only_that_run(store: Store) -> None:
    store.renew("run-1", holder="here|1|2")
    with pytest.raises(LeaseHeld) as caught:
        store.renew("run-2", dead="run-0")
    assert caught.value.lease["run_id"] == "run-1" and caught.value.lease["holder"] == "here|1|2"
    outcome = store.renew("run-2", dead="run-1")
    assert outcome.took_over == "run-1" and "cut off, its process is gone" in str(outcome.note)


def test_renewal_keeps_where_the_run_is_at_home(store: Store, clock: Clock) -> None:
    store.renew("run-1", holder="here|1|2")
    clock.now += 1800
    store.renew("run-1")
    assert store.read()["lease"]["holder"] == "here|1|2"


def test_where_a_run_was_cut_off_is_said(store: Store, clock: Clock) -> None:
    store.renew("run-1")
    store.renew("run-1", doing="initramfs (6.1.0-50-amd64)")
    clock.now += 3600
    assert "It was at: initramfs (6.1.0-50-amd64)" in str(store.renew("run-2").note)
