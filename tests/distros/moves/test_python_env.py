# SPDX-License-Identifier: GPL-3.0-or-later
"""A Python environment by real venv and real pip, from a wheel index on loopback."""

from __future__ import annotations

import functools
import http.server
import pathlib
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils import python_env
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import Result
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "molecule" / "gpu_cuda"))

import wheels


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("whl")
    for version in ("2.6.0+cu128", "2.7.1+cu128"):
        wheels.write(root / "cu128" / "torch", version)
    wheels.write(root / "cu126" / "torch", "2.7.1+cu126")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_args: Any) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def wish(path: pathlib.Path, **changes: Any) -> python_env.Wish:
    given: dict[str, Any] = {"path": str(path), "dist": "torch", "requirements": ["torch==2.7.*"],
                             "python": sys.executable}
    return python_env.Wish(**{**given, **changes})


def test_real_pip_makes_moves_and_finishes_an_environment(tmp_path: pathlib.Path, index: str) -> None:
    store, path = Store(str(tmp_path / "root")), tmp_path / "torch"
    asked = wish(path, index_url=f"{index}/cu128")
    assert python_env.ensure(asked, store, check=True).changed and not path.exists()
    made = python_env.ensure(asked, store)
    assert (made.changed, made.version) == (True, "2.7.1+cu128")
    assert not python_env.ensure(asked, store).changed, "a second call changes nothing"

    other = python_env.ensure(replace(asked, requirements=["torch==2.6.*"]), store)
    assert (other.version, [action.split()[0] for action in other.actions]) == ("2.6.0+cu128", ["install"])

    def killed(argv: Any, **options: Any) -> Result:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        python_env.ensure(replace(asked, index_url=f"{index}/cu126"), store, runner=killed)
    assert store.read()["environments"][str(path)]["building"]
    assert not (path / "left-over").exists()
    (path / "left-over").write_text("")
    done = python_env.ensure(replace(asked, index_url=f"{index}/cu126"), store)
    assert done.version == "2.7.1+cu126" and not (path / "left-over").exists(), "made anew, not patched"


def test_pip_that_fails_is_told_with_its_own_words(tmp_path: pathlib.Path, index: str) -> None:
    store = Store(str(tmp_path / "root"))
    with pytest.raises(python_env.PythonEnvError, match=r"torch==9.* from http.*ERROR: "):
        python_env.ensure(wish(tmp_path / "torch", requirements=["torch==9.*"], index_url=f"{index}/cu128"), store)
