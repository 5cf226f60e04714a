# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E501 - lines of real files are kept whole
"""What moved a kernel or the driver, from the records of real package managers."""

from __future__ import annotations

import gzip
import sqlite3
import time

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import history
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree

APT = """
Start-Date: 2026-11-27  06:12:33
Commandline: /usr/bin/unattended-upgrade
Install: linux-image-6.8.0-150-generic:amd64 (6.8.0-150.160, automatic), linux-modules-6.8.0-150-generic:amd64 (6.8.0-150.160, automatic)
Upgrade: linux-generic:amd64 (6.8.0-149.159, 6.8.0-150.160), libssl3t64:amd64 (3.0.13-0ubuntu3.4, 3.0.13-0ubuntu3.5)
End-Date: 2026-11-27  06:13:41

Start-Date: 2026-11-28  09:00:00
Commandline: apt install vim -o Acquire::http::Proxy=http://kim:hunter2@proxy:3128
Requested-By: kim (1000)
Install: vim:amd64 (2:9.1.0016-1ubuntu7)
End-Date: 2026-11-28  09:00:03

Start-Date: 2026-11-29  03:10:00
Commandline: apt-get remove nvidia-driver-580 -o Acquire::http::Proxy=http://kim:hunter2@proxy:3128
Requested-By: kim (1000)
Remove: nvidia-driver-580:amd64 (580.95.05-0ubuntu1), libnvidia-compute-580:amd64 (580.95.05-0ubuntu1)
Error: Sub-process /usr/bin/dpkg returned an error code (1)
End-Date: 2026-11-29  03:11:00
"""


pytestmark = pytest.mark.usefixtures("utc")


def read(as_host, manager):
    context = as_host(lambda ctx: history.read(ctx, manager))
    return context.facts.get("packages", {}).get("history"), context.unknown


def test_apt(host, as_host):
    host.put("/var/log/apt/history.log", APT)
    rows, unknown = read(as_host, "apt")
    assert unknown == {}
    assert rows == [
        {"when": "2026-11-29T03:10:00Z", "command": "apt-get remove nvidia-driver-580 -o Acquire::http::Proxy=http://********@proxy:3128", "user": "kim",
         "names": ["libnvidia-compute-580", "nvidia-driver-580"]},
        {"when": "2026-11-27T06:12:33Z", "command": "/usr/bin/unattended-upgrade", "user": None,
         "names": ["linux-image-6.8.0-150-generic", "linux-modules-6.8.0-150-generic", "linux-generic"]},
    ]  # fmt: skip


def test_apts_times_are_the_hosts_own(host, as_host, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Taipei")
    time.tzset()
    host.put("/var/log/apt/history.log", APT)
    assert read(as_host, "apt")[0][0]["when"] == "2026-11-28T19:10:00Z"


def test_apts_rotated_logs(host, as_host):
    host.put("/var/log/apt/history.log", "")
    for number in range(1, 12):
        text = f"Start-Date: 2026-{12 - number:02}-01  00:00:00\nCommandline: run {number}\nUpgrade: linux-image-amd64:amd64 (1, 2)\n"
        host.put(f"/var/log/apt/history.log.{number}.gz", gzip.compress(text.encode()))
    rows, _unknown = read(as_host, "apt")
    assert [row["command"] for row in rows] == [f"run {n}" for n in range(1, 6)]


def test_what_is_many_is_cut(host, as_host):
    names = ", ".join(f"linux-headers-6.{n}.0-1-amd64:amd64 (1, 2)" for n in range(40))
    host.put("/var/log/apt/history.log", f"Start-Date: 2026-01-01  00:00:00\nCommandline: {'x' * 1000}\nUpgrade: {names}\n" * 1 + "\n")
    rows, _unknown = read(as_host, "apt")
    assert len(rows[0]["names"]) == 8 and len(rows[0]["command"]) == 160


@pytest.mark.parametrize("text", ["", "garbage\n\nStart-Date: never\nUpgrade: linux-image-amd64:amd64 (1, 2)\n", "\0" * 100])
def test_apt_without_anything_to_say(host, as_host, text):
    host.put("/var/log/apt/history.log", text)
    assert read(as_host, "apt") == ([], {})


def test_no_log_at_all(as_host):
    for manager in ("apt", "dnf", "zypper"):
        assert read(as_host, manager) == ([], {})


def test_a_damaged_log_is_named(host, as_host):
    host.put("/var/log/apt/history.log.1.gz", b"\x1f\x8bnot gzip")
    rows, unknown = read(as_host, "apt")
    assert rows is None and "history.log.1.gz cannot be unpacked" in unknown["packages.history"]


DNF4 = """
CREATE TABLE trans (id INTEGER PRIMARY KEY, dt_begin INTEGER, user_id INTEGER, cmdline TEXT);
CREATE TABLE trans_item (id INTEGER PRIMARY KEY, trans_id INTEGER, item_id INTEGER, action INTEGER);
CREATE TABLE rpm (item_id INTEGER, name TEXT, epoch INTEGER, version TEXT, release TEXT, arch TEXT);
INSERT INTO rpm VALUES (1, 'kernel-core', 0, '5.14.0', '687.5.3.el9_8', 'x86_64'), (2, 'kernel', 0, '5.14.0', '687.5.3.el9_8', 'x86_64'),
                       (3, 'bash', 0, '5.1.8', '9.el9', 'x86_64'), (4, 'nvidia-driver', 3, '580.159.03', '1.el9', 'x86_64');
INSERT INTO trans VALUES (1, 1795921800, 1000, '-y upgrade'), (2, 1795925400, 4294967295, ''), (3, 1795929000, 0, 'install bash'),
                         (4, 1795932600, 0, 'reinstall kernel-core');
INSERT INTO trans_item (trans_id, item_id, action) VALUES (1, 1, 1), (1, 2, 1), (1, 3, 6), (2, 4, 6), (3, 3, 1), (4, 1, 9), (4, 1, 10);
"""
DNF5 = """
CREATE TABLE trans (id INTEGER PRIMARY KEY, dt_begin INTEGER, user_id INTEGER, description TEXT);
CREATE TABLE trans_item_action (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE trans_item (id INTEGER PRIMARY KEY, trans_id INTEGER, item_id INTEGER, action_id INTEGER);
CREATE TABLE rpm (item_id INTEGER, name_id INTEGER, epoch INTEGER, version TEXT, release TEXT, arch_id INTEGER);
CREATE TABLE arch (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO arch VALUES (3, 'x86_64');
CREATE TABLE pkg_name (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO pkg_name VALUES (7, 'kernel-core'), (8, 'bash');
INSERT INTO rpm VALUES (1, 7, 0, '6.12.0', '55.el10', 3), (2, 8, 0, '5.2.26', '6.el10', 3);
INSERT INTO trans_item_action VALUES (1, 'Install'), (4, 'Reinstall');
INSERT INTO trans VALUES (1, 1795936200, 1000, 'dnf5 upgrade'), (2, 1795939800, 0, 'dnf5 reinstall kernel-core');
INSERT INTO trans_item (trans_id, item_id, action_id) VALUES (1, 1, 1), (1, 2, 1), (2, 1, 4);
"""


def database(host, path, script):
    target = host.put(path, "")
    target = host.root / path.lstrip("/") if target is None else target
    connection = sqlite3.connect(target)
    connection.executescript(script)
    connection.commit()
    connection.close()


def test_dnf(host, as_host):
    host.put("/etc/passwd", "root:x:0:0::/root:/bin/sh\nops:x:1000:1000::/home/ops:/bin/sh\n")
    database(host, "/var/lib/dnf/history.sqlite", DNF4)
    database(host, "/usr/lib/sysimage/libdnf5/transaction_history.sqlite", DNF5)
    before = sorted(p.name for p in host.root.rglob("*"))
    rows, unknown = read(as_host, "dnf")
    assert unknown == {}
    assert rows == [
        {"when": "2026-11-29T07:10:00Z", "command": "dnf5 upgrade", "user": "ops", "names": ["kernel-core-6.12.0-55.el10.x86_64"]},
        {"when": "2026-11-29T04:10:00Z", "command": "dnf", "user": None, "names": ["nvidia-driver"]},
        {"when": "2026-11-29T03:10:00Z", "command": "dnf -y upgrade", "user": "ops",
         "names": ["kernel-5.14.0-687.5.3.el9_8.x86_64", "kernel-core-5.14.0-687.5.3.el9_8.x86_64"]},
    ]
    assert sorted(p.name for p in host.root.rglob("*")) == before, "nothing is written beside the databases"


def test_a_damaged_database_is_named(host, as_host):
    host.put("/var/lib/dnf/history.sqlite", "no database")
    rows, unknown = read(as_host, "dnf")
    assert rows is None and "history.sqlite cannot be read" in unknown["packages.history"]


ZYPP = """# 2026-11-27 10:00:00 kernel-default-6.4.0-150600.23.60.1.x86_64.rpm installed ok
# Additional rpm output:
2026-11-27 10:00:00|command|root@gpu-s01|'zypper' '--non-interactive' 'dup'|
2026-11-27 10:00:05|install|kernel-default|6.4.0-150600.23.60.1|x86_64||SLE-Updates|e1b2|
2026-11-27 10:00:07|install|vim|9.1|x86_64||SLE-Updates|e1b2|
2026-11-28 10:00:00|command|kim@gpu-s01|'zypper' 'in' 'vim'|
2026-11-28 10:00:02|install|vim|9.2|x86_64|kim@gpu-s01|SLE-Updates|e1b2|
2026-11-29 10:00:00|command|kim@gpu-s01|'zypper' 'rm' 'nvidia-open-driver-G06-signed-kmp-default'|
2026-11-29 10:00:02|remove |nvidia-open-driver-G06-signed-kmp-default|580|x86_64|kim@gpu-s01||
2026-11-29 10:00:03|radd   |repo|https://kim:hunter2@example.net|
"""


def test_zypper(host, as_host):
    host.put("/var/log/zypp/history", ZYPP)
    rows, unknown = read(as_host, "zypper")
    assert unknown == {}
    assert rows == [
        {"when": "2026-11-29T10:00:00Z", "command": "zypper rm nvidia-open-driver-G06-signed-kmp-default", "user": "kim",
         "names": ["nvidia-open-driver-G06-signed-kmp-default"]},
        {"when": "2026-11-27T10:00:00Z", "command": "zypper --non-interactive dup", "user": "root", "names": ["kernel-default-6.4.0-150600.23.60.1.x86_64"]},
    ]  # fmt: skip


def test_a_long_log_of_zypper_is_read_from_its_end(host, as_host, monkeypatch):
    monkeypatch.setattr(history, "_MOST_BYTES", 300)
    host.put("/var/log/zypp/history", ZYPP)
    assert [row["user"] for row in read(as_host, "zypper")[0]] == ["kim"]


def test_the_records_of_this_machine():
    rows = list(history.apt(Tree("/")))
    assert all(row["when"].endswith("Z") and row["names"] for row in rows)
