# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What moved kernel or driver packages lately, as the package manager wrote it down: for drift, "moved by what".

Source: apt's history.log, libdnf's Swdb and libdnf5's transaction history (sqlite), libzypp's HistoryLog.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from . import masking, names
from .context import Context
from .tree import Tree

MOST = 5
_MOST_NAMES = 8
_MOST_FILES = 12  # a year of monthly logs
_MOST_BYTES = 4 * 1024 * 1024
_MOST_COMMAND = 160
_APT_LOGS = "/var/log/apt"
_DNF4 = "/var/lib/dnf/history.sqlite"
_DNF5 = ("/usr/lib/sysimage/libdnf5/transaction_history.sqlite", "/var/lib/dnf/transaction_history.sqlite")
_ZYPP = "/var/log/zypp/history"
_APT_MOVES = ("Install", "Reinstall", "Upgrade", "Downgrade", "Remove", "Purge")
_NOT_MOVED4 = (9, 10, 11)  # reinstall, reinstalled, reason change
_LATEST_TRANSACTIONS = 300
Row = dict[str, Any]


def read(ctx: Context, manager: str) -> None:
    """``packages.history``: ``[{when, command, user, names}]``, newest first."""
    readers = {"apt": apt, "dnf": dnf, "zypper": zypper}
    with ctx.attempt("packages.history"):
        ctx.set("packages.history", _newest(readers[manager](ctx.tree)))


def _newest(rows: Iterable[Row]) -> list[Row]:
    found = sorted(rows, key=lambda row: str(row["when"]), reverse=True)
    return found[:MOST]


def _row(when: float, command: str, user: str | None, moved: Iterable[tuple[str, str]]) -> Row | None:
    """``moved``: names, and how each is shown."""
    wanted = sorted({shown for name, shown in moved if names.KERNEL_OR_DRIVER.match(name)})
    if not wanted:
        return None
    # what says most about a kernel comes first: the names with a version in them
    wanted.sort(key=lambda name: not any(char.isdigit() for char in name))
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))
    text = " ".join(masking.text(command).split())[:_MOST_COMMAND]
    return {"when": stamp, "command": text, "user": user, "names": wanted[:_MOST_NAMES]}


def _shown(name: str, version: str, arch: str) -> str:
    """An rpm package; a kernel's with its version, since its name is that of every kernel."""
    return f"{name}-{version}.{arch}" if names.KERNEL.match(name) else name


def local(text: str) -> float:
    """Seconds since the epoch of a time in the host's own zone. Raises ValueError."""
    match = re.match(r"(\d{4})-(\d\d)-(\d\d)\s+(\d\d):(\d\d):(\d\d)\s*$", text)
    if not match:
        raise ValueError(f"no time: {text[:40]!r}")
    year, month, day, hour, minute, second = map(int, match.groups())
    return time.mktime((year, month, day, hour, minute, second, 0, 0, -1))


def _user(tree: Tree, uid: int) -> str | None:
    if uid < 0 or uid >= 0xFFFFFFFE:  # nobody had logged in: a timer, a container
        return None
    for line in (tree.text("/etc/passwd") or "").splitlines():
        fields = line.split(":")
        if len(fields) > 2 and fields[2] == str(uid):
            return fields[0]
    return str(uid)


# ---- apt


def apt(tree: Tree) -> Iterator[Row]:
    """From the present log and the rotated ones, newest file first, until there is enough."""
    count = 0
    for text in logs(tree, _APT_LOGS, "history.log"):
        for row in _apt_stanzas(text):
            count += 1
            yield row
        if count >= MOST:
            return


def logs(tree: Tree, directory: str, name: str) -> Iterator[str]:
    """The texts of a log and its rotated ones, the newest first. Raises OSError, ValueError for a damaged one."""
    def number(path: str) -> int:
        match = re.search(r"\.log\.(\d+)", path)
        return int(match.group(1)) if match else 0

    for path in sorted(tree.glob(directory, f"{name}*"), key=number)[:_MOST_FILES]:
        raw = tree.read_bytes(path, _MOST_BYTES)
        if path.endswith(".gz"):
            try:
                raw = zlib.decompressobj(31).decompress(raw, _MOST_BYTES)
            except zlib.error as error:
                raise ValueError(f"{path} cannot be unpacked: {error}") from error
        elif not re.search(r"\.log(\.\d+)?$", path):
            continue
        yield raw.decode("utf-8", "replace")


def _apt_stanzas(text: str) -> Iterator[Row]:
    for stanza in re.split(r"\n\s*\n", text):
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line)
        if "Start-Date" not in fields:
            continue
        moved = {
            (match, match)
            for verb in _APT_MOVES
            for match in re.findall(r"(?:^|, )([a-z0-9][a-z0-9.+-]*)(?::[a-z0-9]+)? \(", fields.get(verb, ""))
        }
        user = fields.get("Requested-By", "").split(" (", 1)[0] or None
        try:
            when = local(fields["Start-Date"])
        except ValueError:
            continue
        row = _row(when, fields.get("Commandline", ""), user, moved)
        if row:
            yield row


# ---- dnf


def dnf(tree: Tree) -> Iterator[Row]:
    """From the databases of both generations, whichever are there."""
    if tree.isfile(_DNF4):
        # the words without the program's name
        skipped = ", ".join(map(str, _NOT_MOVED4))
        yield from _transactions(
            tree,
            _DNF4,
            "SELECT t.id, t.dt_begin, t.user_id, 'dnf ' || coalesce(t.cmdline, ''), "
            "r.name, r.version || '-' || r.release, r.arch FROM trans t "
            "JOIN trans_item i ON i.trans_id = t.id JOIN rpm r ON r.item_id = i.item_id "
            f"WHERE i.action NOT IN ({skipped}) AND t.id > (SELECT max(id) FROM trans) - {_LATEST_TRANSACTIONS}",
        )
    for path in _DNF5:
        if tree.isfile(path):
            yield from _transactions(
                tree,
                path,
                "SELECT t.id, t.dt_begin, t.user_id, coalesce(t.description, ''), "
                "n.name, r.version || '-' || r.release, m.name FROM trans t "
                "JOIN trans_item i ON i.trans_id = t.id JOIN rpm r ON r.item_id = i.item_id "
                "JOIN pkg_name n ON n.id = r.name_id JOIN arch m ON m.id = r.arch_id "
                "JOIN trans_item_action a ON a.id = i.action_id "
                "WHERE a.name NOT IN ('Reinstall', 'Reason Change') "
                f"AND t.id > (SELECT max(id) FROM trans) - {_LATEST_TRANSACTIONS}",
            )


def _transactions(tree: Tree, path: str, query: str) -> Iterator[Row]:
    found: dict[int, tuple[int, int, str, set[tuple[str, str]]]] = {}
    for ident, begin, uid, command, name, version, arch in _rows(tree.real(path), query):
        found.setdefault(ident, (begin, uid, command, set()))[3].add((name, _shown(name, version, arch)))
    for begin, uid, command, moved in found.values():
        row = _row(begin, command, _user(tree, uid), moved)
        if row:
            yield row


def _rows(path: str, query: str) -> list[tuple[Any, ...]]:
    """Read without a lock. What is still in the write-ahead log is read too where that can be done without writing."""
    log = f"{path}-wal"
    modes = ["immutable=1"]
    if os.path.exists(log) and os.path.getsize(log) and os.path.exists(f"{path}-shm"):
        modes.insert(0, "mode=ro")
    for mode in modes:
        try:
            connection = sqlite3.connect(f"file:{path}?{mode}", uri=True, timeout=2.0)
            try:
                return connection.execute(query).fetchall()
            finally:
                connection.close()
        except sqlite3.Error as error:
            if mode == modes[-1]:
                raise ValueError(f"{path} cannot be read: {error}") from error
    return []


# ---- zypper


def zypper(tree: Tree) -> Iterator[Row]:
    """From libzypp's log: a line for the command, then one for each package, until the next command."""
    try:
        size = tree.stat(_ZYPP).st_size
    except (FileNotFoundError, NotADirectoryError):
        return
    raw = _tail(tree.real(_ZYPP), size)
    command: tuple[float, str, str | None] = (0.0, "", None)
    moved: set[tuple[str, str]] = set()
    for line in raw.splitlines():
        fields = line.split("|")
        if len(fields) < 4 or line.startswith("#"):
            continue
        try:
            when = local(fields[0])
        except ValueError:
            continue
        verb = fields[1].strip()
        if verb == "command":
            yield from _one(command, moved)
            user = fields[2].split("@", 1)[0].strip() or None
            command, moved = (when, fields[3].replace("'", ""), user), set()
        elif verb in ("install", "remove"):
            if not moved and not command[1]:
                command = (when, "", None)
            name, version, arch = (field.strip() for field in [*fields[2:5], ""][:3])
            moved.add((name, _shown(name, version, arch)))
    yield from _one(command, moved)


def _one(command: tuple[float, str, str | None], moved: set[tuple[str, str]]) -> Iterator[Row]:
    row = _row(command[0], command[1], command[2], moved)
    if row:
        yield row


def _tail(path: str, size: int) -> str:
    """The end of a log: it is never rotated on some hosts."""
    with open(path, "rb") as handle:
        handle.seek(max(0, size - _MOST_BYTES))
        return handle.read(_MOST_BYTES).decode("utf-8", "replace")
