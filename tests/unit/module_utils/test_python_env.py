# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python environments: what is made, kept, refused and made anew after a cut (real pip: tests/distros/moves)."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import python_env
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import cuda
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store


def wish(path: pathlib.Path, **changes: Any) -> python_env.Wish:
    given: dict[str, Any] = {"path": str(path), "dist": "torch", "requirements": ["torch==2.7.*"]}
    return python_env.Wish(**{**given, **changes})


def play(version: str = "2.7.1+cu128", calls: list[list[str]] | None = None, fails: str = "") -> Any:
    """A runner that does what venv and pip do."""
    def runner(argv: Sequence[str], **_options: Any) -> Result:
        if calls is not None:
            calls.append(list(argv))
        if "venv" in argv:
            python = pathlib.Path(argv[-1]) / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.write_text("")
        elif fails:
            return Result(rc=1, err=f"WARNING: x\nERROR: {fails}\n")
        else:
            info = pathlib.Path(argv[0]).parents[1] / f"lib/python3.12/site-packages/torch-{version}.dist-info"
            info.mkdir(parents=True)
            (info / "RECORD").write_text("")
        return Result(rc=0)
    return runner


def test_an_environment_is_made_and_kept(tmp_path: pathlib.Path) -> None:
    store, path, calls = Store(str(tmp_path / "root")), tmp_path / "torch", []
    asked = wish(path, index_url="https://mirror.local/whl/cu128")
    assert python_env.ensure(asked, store, check=True, runner=play(calls=calls)).changed and not calls
    made = python_env.ensure(asked, store, runner=play(calls=calls))
    assert (made.changed, made.version) == (True, "2.7.1+cu128")
    assert calls[0] == ["python3", "-m", "venv", str(path)]
    assert calls[1][-3:] == ["--index-url", "https://mirror.local/whl/cu128", "torch==2.7.*"]
    assert not python_env.ensure(asked, store, runner=play(calls=calls)).changed and len(calls) == 2


def test_another_wish_installs_into_what_is_there(tmp_path: pathlib.Path) -> None:
    store, path, calls = Store(str(tmp_path / "root")), tmp_path / "torch", []
    python_env.ensure(wish(path), store, runner=play())
    python_env.ensure(replace(wish(path), requirements=["torch==2.8.*"]), store, runner=play("2.8.0", calls))
    assert [call[2] for call in calls] == ["pip"]


def test_what_a_run_was_cut_off_in_is_made_anew(tmp_path: pathlib.Path) -> None:
    store, path = Store(str(tmp_path / "root")), tmp_path / "torch"

    def killed(argv: Sequence[str], **options: Any) -> Result:
        if "venv" in argv:
            return play()(argv, **options)  # type: ignore[no-any-return]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        python_env.ensure(wish(path), store, runner=killed)
    assert store.read()["environments"][str(path)]["building"]
    (path / "left-over").write_text("")
    assert python_env.ensure(wish(path), store, runner=play()).version and not (path / "left-over").exists()


def test_pip_that_fails_is_told_with_its_own_words(tmp_path: pathlib.Path) -> None:
    store = Store(str(tmp_path / "root"))
    with pytest.raises(python_env.PythonEnvError, match=r"torch==2\.7.*index of pip: ERROR: No space left.*anew"):
        python_env.ensure(wish(tmp_path / "torch"), store, runner=play(fails="No space left on device"))


def test_what_was_not_made_here_is_left_alone(tmp_path: pathlib.Path) -> None:
    store, path = Store(str(tmp_path / "root")), tmp_path / "torch"
    path.mkdir()
    (path / "notes").write_text("mine")
    with pytest.raises(python_env.PythonEnvError, match="not made here, and is left alone"):
        python_env.ensure(wish(path), store)
    assert (path / "notes").read_text() == "mine" and not store.read()["environments"]


def test_too_little_room_is_told_before_anything_is_begun(tmp_path: pathlib.Path) -> None:
    store, path = Store(str(tmp_path / "root")), tmp_path / "a" / "torch"
    with pytest.raises(python_env.PythonEnvError, match=r"MB free and .* needs 999999999 MB"):
        python_env.ensure(wish(path, min_free_mb=999999999), store)
    assert not path.parent.exists() and not store.read()["environments"]


def test_an_interpreter_without_venv_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(python_env.PythonEnvError, match=r"no-such-python.*not installed.*its venv"):
        python_env.ensure(wish(tmp_path / "torch", python="no-such-python"), Store(str(tmp_path / "root")))


def test_facts_tell_an_environment_that_is_gone_or_half_made(tmp_path: pathlib.Path) -> None:
    store = Store(str(tmp_path))
    packages = tmp_path / "opt/torch/lib/python3.11/site-packages/torch-2.7.1+cu128.dist-info"
    packages.mkdir(parents=True)
    (packages / "RECORD").write_text("")
    (tmp_path / "opt/torch/bin").mkdir()
    (tmp_path / "opt/torch/bin/python").write_text("")
    for path, building in (("/opt/torch", False), ("/opt/gone", False), ("/opt/half", True)):
        row = python_env.record(wish(pathlib.Path(path)), building)
        store.update(lambda data, path=path, row=row: data["environments"].update({path: row}))  # type: ignore[misc]
    found = cuda.environments(Tree(str(tmp_path)))
    assert {path: row["version"] for path, row in found.items()} == {
        "/opt/torch": "2.7.1+cu128", "/opt/gone": None, "/opt/half": None}
