# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os

import pytest


def test_absolute_links_stay_inside_the_tree(host):
    host.put("/usr/lib/os-release", "ID=inside\n")
    host.link("/etc/os-release", "/usr/lib/os-release")
    assert host.tree.read("/etc/os-release") == "ID=inside\n"
    assert host.tree.resolve("/etc/os-release") == "/usr/lib/os-release"


def test_dotdot_does_not_leave_the_tree(host):
    host.link("/etc/up", "../../../../../../../../../../etc/passwd")
    assert host.tree.resolve("/etc/up") == "/etc/passwd"
    assert host.tree.text("/etc/up") is None


def test_links_to_directories_and_relative_links(host):
    host.put("/usr/lib/modules/6.1/modules.dep", "x")
    host.link("/lib", "usr/lib")
    assert host.tree.names("/lib/modules") == ["6.1"]
    assert host.tree.isfile("/lib/modules/6.1/modules.dep")


def test_loop_is_an_error_and_not_a_hang(host):
    host.link("/a", "/b")
    host.link("/b", "/a")
    with pytest.raises(OSError):
        host.tree.read("/a")
    assert not host.tree.exists("/a")


def test_absent_is_none_and_unreadable_raises(host):
    host.directory("/etc/dir")
    assert host.tree.text("/etc/nothing") is None
    assert host.tree.text("/etc/nothing/below") is None
    with pytest.raises(OSError):
        host.tree.read("/etc/dir")


def test_a_pipe_does_not_block_the_reader(host):
    host.directory("/etc")
    os.mkfifo(host.path("/etc/pipe"))
    with pytest.raises(OSError):
        host.tree.read("/etc/pipe")


def test_limit(host):
    host.put("/x", "a" * 100)
    assert host.tree.read("/x", 10) == "a" * 10
    with pytest.raises(ValueError, match="longer than 10"):
        host.tree.text_exact("/x", 10)


def test_expand(host):
    host.many({"/d/a1/x.conf": "", "/d/a2/x.conf": "", "/d/b/x.conf": "", "/d/a1/.hidden.conf": ""})
    assert host.tree.expand("/d/a*/*.conf") == ["/d/a1/x.conf", "/d/a2/x.conf"]
    assert host.tree.expand("/nothing/*") == []


def test_link_text(host):
    host.link("/sys/x/driver", "../../drivers/nvidia")
    assert host.tree.readlink("/sys/x/driver") == "../../drivers/nvidia"
    host.put("/plain")
    assert host.tree.readlink("/plain") is None
    assert host.tree.readlink("/gone") is None
