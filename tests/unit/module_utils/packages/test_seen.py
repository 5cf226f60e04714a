# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Since when a newer version of a held kernel package is on offer: written down when it is first seen."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages import seen
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.base import Package
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store, facts_view

DAY = 86400.0


class Manager:
    """What apt has of two packages."""

    name = "apt"

    def __init__(self, there: str, offered: str | None) -> None:
        self.there, self.offered = there, offered

    def installed(self) -> dict[str, list[Package]]:
        return {"linux-image-amd64": [Package("linux-image-amd64", "linux-image-amd64", self.there, True)]}

    def candidates(self, names: Any) -> dict[str, str | None]:
        return dict.fromkeys(names, self.offered)


@pytest.fixture(name="store")
def _store(tmp_path: pathlib.Path) -> Store:
    store = Store(str(tmp_path), clock=lambda: store_time[0])
    store.update(lambda state: state["holds"].update(kernel={"linux-image-amd64": {"why": "x"}, "gone": {"why": "x"}}))
    return store


store_time = [0.0]


def days(store: Store, *looks: tuple[str, str | None]) -> list[dict[str, str]]:
    """Look once a day."""
    found = []
    for day, (there, offered) in enumerate(looks):
        store_time[0] = day * DAY
        seen.note(store, Manager(there, offered))  # type: ignore[arg-type]
        found.append((facts_view(store.read()) or {})["seen"])
    return found


def test_the_first_day_stays_while_the_package_does_not_move(store: Store) -> None:
    first = {"linux-image-amd64": "1970-01-02T00:00:00Z"}
    assert days(store, ("1", "1"), ("1", "2"), ("1", "2"), ("1", "3")) == [{}, first, first, first]


def test_it_is_forgotten_once_the_package_moved(store: Store) -> None:
    assert days(store, ("1", "2"), ("2", "2"), ("2", "3")) == [
        {"linux-image-amd64": "1970-01-01T00:00:00Z"}, {}, {"linux-image-amd64": "1970-01-03T00:00:00Z"}]


def test_a_package_that_moved_to_an_older_offer_counts_anew(store: Store) -> None:
    assert days(store, ("1", "3"), ("2", "3"))[-1] == {"linux-image-amd64": "1970-01-02T00:00:00Z"}


def test_a_name_without_a_candidate_is_no_offer(store: Store) -> None:
    assert days(store, ("1", None)) == [{}]


def test_nothing_is_written_where_nothing_is_held(tmp_path: pathlib.Path) -> None:
    seen.note(Store(str(tmp_path)), Manager("1", "2"))  # type: ignore[arg-type]
    assert not list(tmp_path.rglob("state.json"))
