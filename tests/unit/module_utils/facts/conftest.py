# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import apt_host
import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.context import Context
from facts_helpers import AsHost, Builder, Programs


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Logs have local times: here that is UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def host(tmp_path: pathlib.Path) -> Builder:
    root = tmp_path / "root"
    root.mkdir()
    return Builder(root)


@pytest.fixture
def debian(host: Builder) -> Builder:
    """A Debian host as dpkg and apt have it."""
    return apt_host.lay(host)


@pytest.fixture
def as_host(host: Builder) -> Callable[..., Context]:
    """``as_host(reader, programs, known)``: the subject believes that the tree is the running system."""

    def read(reader: Callable[[Context], None], programs: Programs | None = None, **options: Any) -> Context:
        context = Context(AsHost(str(host.root)), runner=programs or Programs(), **options)
        reader(context)
        return context

    return read
