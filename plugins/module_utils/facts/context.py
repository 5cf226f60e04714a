# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the subjects share while they read: the tree, the children, the clock, and where results go."""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import run as children
from . import masking
from .tree import Tree

Facts = dict[str, Any]


def reason(error: BaseException) -> str:
    """Why something could not be read, in words for people."""
    if isinstance(error, OSError):
        if error.errno in (errno.EACCES, errno.EPERM):
            where = f" to read {error.filename}" if error.filename else ""
            return f"permission denied: needs root{where}"
        if error.filename and error.strerror:
            return f"{error.filename}: {error.strerror}"
    text = str(error) or type(error).__name__
    # ValueError itself is what readers raise with a sentence; its subclasses (JSON, Unicode) speak in their own way
    ours = isinstance(error, OSError) or error.__class__ is ValueError
    return text[:300] if ours else f"{type(error).__name__}: {text}"[:300]


class Context:
    """One subject's view. ``facts`` and ``unknown`` are what it hands back.

    ``known`` holds what subjects of the same group have read before; it is not handed back again.
    """

    def __init__(
        self,
        tree: Tree,
        *,
        deadline: float | None = None,
        command_timeout: float = 10.0,
        smi_timeout: float = 60.0,
        known: Facts | None = None,
        now: float | None = None,
        runner: Callable[..., children.Result] = children.run,
    ) -> None:
        self.tree = tree
        self.deadline = time.monotonic() + 90 if deadline is None else deadline
        self.command_timeout = command_timeout
        self.smi_timeout = smi_timeout
        self.known: Facts = {} if known is None else known
        self.now = time.time() if now is None else now
        self._runner = runner
        self.facts: Facts = {}
        self.unknown: dict[str, str] = {}

    # ---- results

    def set(self, path: str, value: Any) -> None:
        """Put a value at a dotted path."""
        node = self.facts
        *parents, last = path.split(".")
        for key in parents:
            node = node.setdefault(key, {})
        node[last] = value

    def cannot(self, path: str, why: BaseException | str) -> None:
        """Note that a path could not be read. What a program printed may hold credentials: they are masked."""
        self.unknown[path] = masking.text(why if isinstance(why, str) else reason(why))

    @contextlib.contextmanager
    def attempt(self, path: str) -> Iterator[None]:
        """What fails inside makes ``path`` unknown and nothing else."""
        try:
            yield
        except (OSError, ValueError, KeyError, IndexError, EOFError) as error:
            self.cannot(path, error)

    def read(self, path: str, reader: Callable[[], Any]) -> None:
        """Set ``path`` to what ``reader`` returns, or note why it cannot be read."""
        with self.attempt(path):
            self.set(path, reader())

    # ---- children

    @property
    def left(self) -> float:
        """Seconds until this run's deadline."""
        return max(0.0, self.deadline - time.monotonic())

    def run(self, argv: Sequence[str], timeout: float | None = None, **more: Any) -> children.Result:
        """A child within its own deadline and the module's; see :mod:`..run`."""
        limit = self.command_timeout if timeout is None else timeout
        return self._runner(list(argv), timeout=max(0.1, min(limit, self.left - 2.0)), **more)

    def which(self, *names: str) -> str | None:
        """The path inside the tree of the first of these programs that is there."""
        for name in names:
            for directory in children.PATH.split(":"):
                path = f"{directory}/{name}"
                if self.tree.isfile(path):
                    return path
        return None
