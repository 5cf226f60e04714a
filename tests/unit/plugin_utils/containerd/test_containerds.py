# SPDX-License-Identifier: GPL-3.0-or-later
"""The real programs that the computations are held against: without them a run of CI must not be green."""
from __future__ import annotations

import pathlib
from collections.abc import Iterator

import containerds
import pytest


@pytest.fixture(name="unreachable", autouse=True)
def fixture_unreachable(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No containerd, nothing fetched before, and an apt-get that reaches no archive."""
    programs = tmp_path / "bin"
    programs.mkdir()
    apt = programs / "apt-get"
    apt.write_text("#!/bin/sh\necho 'E: Could not resolve deb.example' >&2\nexit 100\n")
    (programs / "dpkg-deb").write_text("#!/bin/sh\n")
    for one in programs.iterdir():
        one.chmod(0o755)
    (tmp_path / "keyring").touch()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(containerds, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(containerds, "KEYRING", str(tmp_path / "keyring"))
    containerds.found.cache_clear()
    yield
    containerds.found.cache_clear()


def test_in_ci_an_archive_that_does_not_answer_fails_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"containerd 1\.7 is not here: apt-get: .*Could not resolve"):
        containerds.program("1.7")


def test_elsewhere_it_is_skipped_with_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"containerd 1\.7 is not here: apt-get: .*Could not resolve"):
        containerds.program("1.7")


def test_one_that_is_there_is_taken_in_ci_too(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    own = tmp_path / "bin/containerd"
    own.write_text("#!/bin/sh\necho 'containerd github.com/containerd/containerd v1.7.24 x'\n")
    own.chmod(0o755)
    assert containerds.program("1.7") == str(own)
