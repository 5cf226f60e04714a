# SPDX-License-Identifier: GPL-3.0-or-later
"""Units of ours: written, enabled, started; systemd reloads its units only when one that it has loaded changed."""
from __future__ import annotations

import pathlib

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result
from ansible_collections.baremetal.nvidia.plugins.module_utils.units import UnitError, Units, Wish


class Systemd:
    """Answers as systemctl does."""

    def __init__(self) -> None:
        self.active: set[str] = set()
        self.enabled: set[str] = set()
        self.stale: set[str] = set()
        self.calls: list[str] = []
        self.refuses = ""

    def __call__(self, argv: list[str], timeout: float = 0) -> Result:
        words = [word for word in argv[1:] if not word.startswith("--")]
        verb, units = words[0], words[1:]
        if verb == "show":
            return _answer(0, "yes\n" if units[0] in self.stale else "no\n")
        if verb in ("is-active", "is-enabled"):
            return _answer(0 if units[0] in (self.active if verb == "is-active" else self.enabled) else 3)
        assert "--no-reload" in argv
        self.calls.append(" ".join(words))
        if verb == self.refuses:
            return _answer(1, err="Unit is masked.")
        if verb in ("start", "restart"):
            self.active |= set(units)
        elif verb == "stop":
            self.active -= set(units)
        elif verb == "enable":
            self.enabled |= set(units)
        elif verb == "disable":
            self.enabled -= set(units)
        elif verb == "daemon-reload":
            self.stale.clear()
        return _answer(0)


def _answer(rc: int, out: str = "", err: str = "") -> Result:
    return Result(rc=rc, out=out, err=err)


def _refuse() -> None:
    raise HostError("2 running containers would lose their GPUs")


def _units(systemd: Systemd, look=lambda: None) -> Units:
    return Units(systemd, look=look, running=lambda: True)


def _wish(place: pathlib.Path, text: str = "[Timer]\n", **more) -> Wish:
    return Wish(files={str(place / "a.timer"): text}, enabled=("a.timer",), started=("a.timer",),
                restarted=("a.timer",), **more)


def test_a_new_unit_is_written_enabled_and_started_without_a_reload(tmp_path: pathlib.Path) -> None:
    systemd = Systemd()
    first = _units(systemd, _refuse)(_wish(tmp_path))
    assert first.changed and first.waiting is None
    assert systemd.calls == ["enable a.timer", "start a.timer"]
    systemd.calls.clear()
    second = _units(systemd, _refuse)(_wish(tmp_path))
    assert not second.changed and systemd.calls == []


def test_check_mode_says_it_and_does_nothing(tmp_path: pathlib.Path) -> None:
    systemd = Systemd()
    outcome = _units(systemd)(_wish(tmp_path), check=True)
    assert [one.split()[0] for one in outcome.actions] == ["write", "enable", "start"]
    assert systemd.calls == [] and list(tmp_path.iterdir()) == []


def test_a_changed_unit_is_reloaded_and_restarted(tmp_path: pathlib.Path) -> None:
    systemd = Systemd()
    _units(systemd)(_wish(tmp_path))
    systemd.calls.clear()
    systemd.stale.add("a.timer")    # as systemd tells once the file differs from what it has loaded
    outcome = _units(systemd)(_wish(tmp_path, "[Timer]\nOnUnitActiveSec=30\n"))
    assert systemd.calls == ["daemon-reload", "restart a.timer"] and outcome.waiting is None


def test_under_containers_that_would_lose_their_gpus_the_reload_waits(tmp_path: pathlib.Path) -> None:
    systemd = Systemd()
    _units(systemd)(_wish(tmp_path))
    systemd.calls.clear()
    systemd.stale.add("a.timer")
    outcome = _units(systemd, _refuse)(_wish(tmp_path, "[Timer]\nOnUnitActiveSec=30\n"))
    assert "daemon-reload" not in systemd.calls
    assert outcome.waiting and "2 running containers" in outcome.waiting
    again = _units(systemd, _refuse)(_wish(tmp_path, "[Timer]\nOnUnitActiveSec=30\n"))
    assert not again.changed and again.waiting    # nothing to do, and still said
    allowed = _units(systemd, _refuse)(_wish(tmp_path, "[Timer]\nOnUnitActiveSec=30\n", reload_allowed=True))
    assert allowed.changed and "daemon-reload" in systemd.calls


def test_what_the_unit_reads_restarts_it(tmp_path: pathlib.Path) -> None:
    systemd = Systemd()
    _units(systemd)(_wish(tmp_path))
    systemd.calls.clear()
    assert _units(systemd)(_wish(tmp_path, changed=True)).changed
    assert systemd.calls == ["restart a.timer"]


def test_absent_stops_first_and_leaves_other_drop_ins(tmp_path: pathlib.Path) -> None:
    systemd = Systemd()
    systemd.active.add("x.service")
    systemd.enabled.add("x.service")
    drop_in = tmp_path / "x.service.d" / "ours.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\n")
    (drop_in.parent / "theirs.conf").write_text("[Service]\n")
    wish = Wish(files={str(drop_in): None}, absent=("x.service",))
    assert _units(systemd)(wish).changed
    assert systemd.calls == ["stop x.service", "disable x.service"]
    assert not drop_in.exists() and (drop_in.parent / "theirs.conf").exists()
    assert not _units(systemd)(wish).changed


def test_a_unit_that_does_not_start_is_an_error(tmp_path: pathlib.Path) -> None:
    systemd = Systemd()
    systemd.refuses = "start"
    with pytest.raises(UnitError, match="masked"):
        _units(systemd)(_wish(tmp_path))
