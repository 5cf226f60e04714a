# SPDX-License-Identifier: GPL-3.0-or-later
"""Subjects that hang, crash, or come late do not take the others with them."""

from __future__ import annotations

import os
import signal
import time

from ansible_collections.baremetal.nvidia.plugins.module_utils.facts import workers
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.context import Context
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.tree import Tree
from ansible_collections.baremetal.nvidia.plugins.module_utils.facts.workers import Subject


def gather(groups, seconds=10.0):
    before = time.monotonic()

    def make(known, until):
        return Context(Tree(), known=known, deadline=until)

    outcome = workers.gather(groups, make, before + seconds)
    return outcome, time.monotonic() - before


def fine(name):
    return Subject(name, lambda ctx: ctx.set(f"{name}.value", 1), (name,))


def test_facts_and_unknown_come_back():
    def read(ctx):
        ctx.set("a.b", [1, {"x": None}])
        ctx.cannot("a.c", "why")

    outcome, _rest = gather([[Subject("a", read, ("a",))], [fine("z")]])
    assert outcome.facts == {"a": {"b": [1, {"x": None}]}, "z": {"value": 1}}
    assert outcome.unknown == {"a.c": "why"}


def test_later_subjects_of_a_group_know_the_earlier_ones():
    later = Subject("later", lambda ctx: ctx.set("seen", ctx.known["first"]["value"]), ("seen",))
    assert gather([[fine("first"), later]])[0].facts["seen"] == 1


def test_groups_run_side_by_side():
    def slow(ctx):
        time.sleep(0.6)
        ctx.set("x", 1)

    outcome, took = gather([[Subject(str(n), slow, ("x",))] for n in range(4)])
    assert took < 1.8 and not outcome.unknown


def test_a_subject_that_hangs_is_given_up_and_the_next_one_is_read():
    def hang(_ctx):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        time.sleep(600)

    groups = [[fine("before"), Subject("hung", hang, ("hung.a", "hung.b"), limit=0.5), fine("after")]]
    outcome, took = gather(groups)
    assert outcome.facts == {"before": {"value": 1}, "after": {"value": 1}}
    assert set(outcome.unknown) == {"hung.a", "hung.b"} and "did not end within" in outcome.unknown["hung.a"]
    assert took < 4 and outcome.abandoned == []


def test_a_worker_that_cannot_be_killed_is_left_behind(monkeypatch):
    """No signal reaches a process that hangs in the kernel; here none is sent, which looks the same."""
    monkeypatch.setattr(workers.os, "killpg", lambda *_args: None)
    real = os.kill
    monkeypatch.setattr(workers.os, "kill", lambda *_args: None)
    outcome, took = gather([[Subject("hung", lambda _ctx: time.sleep(600), ("hung",), limit=0.4), fine("after")]])
    monkeypatch.undo()
    assert took < 4 and len(outcome.abandoned) == 1 and outcome.facts == {"after": {"value": 1}}
    real(outcome.abandoned[0], signal.SIGKILL)
    os.waitpid(outcome.abandoned[0], 0)


def test_the_deadline_of_the_whole():
    hang = Subject("hung", lambda _ctx: time.sleep(600), ("hung",), limit=60)
    outcome, took = gather([[hang, fine("never")], [fine("other")]], seconds=1.0)
    assert took < 3
    assert outcome.facts == {"other": {"value": 1}}
    assert outcome.unknown == {
        "hung": "the deadline of the module ran out",
        "never": "the deadline of the module ran out",
    }


def test_a_worker_that_dies_costs_one_subject():
    dies = Subject("dies", lambda _ctx: os._exit(9), ("dies",))
    outcome, _rest = gather([[fine("before"), dies, fine("after")]])
    assert set(outcome.facts) == {"before", "after"} and "ended unexpectedly" in outcome.unknown["dies"]


def test_an_error_nobody_expected():
    def broken(ctx):
        ctx.set("x.done", 1)
        raise AttributeError("oops")

    outcome, _rest = gather([[Subject("x", broken, ("x.done", "x.more")), fine("after")]])
    assert outcome.facts == {"x": {"done": 1}, "after": {"value": 1}}
    assert outcome.unknown == {"x.more": "AttributeError: oops"}


def test_a_large_result():
    outcome, _rest = gather([[Subject("big", lambda ctx: ctx.set("big", "x" * 3_000_000), ("big",))]])
    assert len(outcome.facts["big"]) == 3_000_000


def test_a_worker_holds_none_of_our_pipes():
    """Otherwise a stuck one would keep the ssh session open."""
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)

    def look(ctx):
        links = []
        for name in os.listdir("/proc/self/fd"):
            try:
                links.append(os.readlink(f"/proc/self/fd/{name}"))
            except OSError:
                continue
        ctx.set("links", links)
        ctx.set("session", os.getsid(0) == os.getpid())

    ours = os.readlink(f"/proc/self/fd/{write_end}")
    outcome, _rest = gather([[Subject("look", look, ("links",))]])
    os.close(read_end)
    os.close(write_end)
    assert ours not in outcome.facts["links"] and outcome.facts["session"] is True
    assert outcome.facts["links"].count("/dev/null") >= 3
    assert sum(link.startswith("pipe:") for link in outcome.facts["links"]) == 1


def test_no_process_is_left_over():
    gather([[fine("a")], [fine("b")]])
    try:
        left = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        left = (0, 0)
    assert left == (0, 0)


def test_merge():
    into = {"a": {"x": 1}, "b": 1}
    workers.merge(into, {"a": {"y": 2}, "b": {"z": 3}})
    assert into == {"a": {"x": 1, "y": 2}, "b": {"z": 3}}
