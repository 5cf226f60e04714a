#!/usr/bin/env python
# SPDX-License-Identifier: GPL-3.0-or-later
"""10,000 hosts of 40 shapes: seconds on one and on two cores, and memory. Prints; never fails by the clock.

    tests/bench/plan_fleet.py [--hosts 10000]     (part "shapes" of tests/bench/bench.py, which make bench runs)

The shapes are ten systems with four kinds of machines: freshly installed, as planned, with a driver that is too old,
and with nouveau loaded. Each host's facts are read from JSON text of its own, as stored facts are.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import json
import os
import pathlib
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
TODAY = datetime.date(2026, 11, 30)
SHAPES = 40
BARS = {"seconds": 60, "MiB": 1024}


def shapes() -> list[str]:
    """Return the facts of 40 different hosts as JSON texts."""
    import as_planned
    import hosts
    from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix import load
    from ansible_collections.baremetal.nvidia.plugins.plugin_utils.planner import plan

    matrix = load()
    cards = (("t4",), ("h100",) * 8, ("a100",) * 4, ("l40s",) * 2, ("v100",) * 4)
    texts = []
    for number, system in enumerate(list(hosts.SYSTEMS)[: SHAPES // 4]):
        fresh = hosts.containers(hosts.fresh(system, cards[number % len(cards)]))
        done = as_planned.carry_out(fresh, plan("made", fresh, None, matrix, TODAY))
        old, nouveau = copy.deepcopy(done), copy.deepcopy(fresh)
        old["driver"].update(loaded={"version": "535.54.03", "flavour": "proprietary"}, library="535.54.03")
        nouveau["driver"]["nouveau"] = {"loaded": True, "blocked": False, "in_initramfs": True}
        texts += [json.dumps(facts) for facts in (fresh, done, old, nouveau)]
    if len(set(texts)) != SHAPES:
        raise SystemExit(f"bench: {len(set(texts))} different shapes instead of {SHAPES}")
    return texts


def plans(first: int, count: int) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield name, facts and plan of each host."""
    from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix import load
    from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import policy
    from ansible_collections.baremetal.nvidia.plugins.plugin_utils.planner import plan

    texts, matrix, defaults = shapes(), load(), policy.load_defaults()
    for number in range(first, first + count):
        name = f"gpu-{number:05}"
        facts = {**json.loads(texts[number % SHAPES]), "host": name}
        yield name, facts, plan(name, facts, defaults, matrix, TODAY)


def work(first: int, count: int) -> None:
    """Plan hosts one after the other; print verdicts and how memory grew, as JSON."""
    verdicts: Counter[str] = Counter()
    memory = {}
    for done, (_name, _facts, plan) in enumerate(plans(first, count), 1):
        verdicts[plan["verdict"]] += 1
        if done in (count // 10, count):
            memory["tenth" if done < count else "end"] = _memory()
    print(json.dumps({"verdicts": verdicts, "memory": memory}))


def report(count: int) -> None:
    """Plan hosts, keep all plans, and write them as HTML and JSON; print sizes and memory, as JSON."""
    from ansible_collections.baremetal.nvidia.plugins.plugin_utils.matrix import load
    from ansible_collections.baremetal.nvidia.plugins.plugin_utils.report import describe, fleet, html

    matrix = load()
    kept = {name: {**plan, "subject": describe.subject(facts, matrix)} for name, facts, plan in plans(0, count)}
    started = time.process_time()
    page = html.render(kept)
    written = time.process_time()
    text = fleet.as_json(kept)
    print(json.dumps({
        "html": {"seconds": written - started, "KiB": len(page.encode()) / 1024},
        "json": {"seconds": time.process_time() - written, "KiB": len(text.encode()) / 1024},
    }))


def bench(count: int = 10_000) -> None:
    """Run the workers and print what they took."""
    for cores in (1, 2):
        share = count // cores
        answers, wall, cpu, memory = _run([["--work", str(core * share), str(share)] for core in range(cores)])
        verdicts = sum((Counter(answer["verdicts"]) for answer in answers), Counter())
        grown = max(answer["memory"]["end"] - answer["memory"]["tenth"] for answer in answers)
        print(
            f"shapes: {count} hosts of {SHAPES} shapes on {cores} core(s): {wall:.1f} s, CPU {cpu:.1f} s "
            f"(bar on 2 cores: {BARS['seconds']} s); memory {memory:.0f} MiB (bar: {BARS['MiB']}), "
            f"{grown:+.1f} MiB over the last nine tenths; {dict(sorted(verdicts.items()))}",
            flush=True,
        )
    answers, wall, cpu, memory = _run([["--report", str(count)]])
    sizes = ", ".join(
        f"{kind} in {one['seconds']:.1f} s ({one['KiB']:.0f} KiB)" for kind, one in answers[0].items()
    )
    print(f"shapes: {count} plans kept and reported: {sizes}; {wall:.1f} s in all, memory {memory:.0f} MiB")


def _run(workers: list[list[str]]) -> tuple[list[dict[str, Any]], float, float, float]:
    """Return (answers, wall time, CPU time, memory of all together in MiB)."""
    started = time.monotonic()
    children = [
        subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True)
        for arguments in workers
    ]
    answers, cpu, memory = [], 0.0, 0.0
    for child in children:
        output = child.stdout.read() if child.stdout else ""
        _pid, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"bench: a worker ended with {child.returncode}: {output}")
        answers.append(json.loads(output))
        cpu += usage.ru_utime + usage.ru_stime
        memory += usage.ru_maxrss / 1024
    return answers, time.monotonic() - started, cpu, memory


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--work", nargs=2, type=int, metavar=("FIRST", "COUNT"), help=argparse.SUPPRESS)
    parser.add_argument("--report", type=int, metavar="COUNT", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    sys.path[:0] = [str(HERE.parent), str(HERE.parent / "cases")]
    import _bootstrap  # noqa: F401  # pylint: disable=unused-import

    if chosen.work:
        work(*chosen.work)
    elif chosen.report:
        report(chosen.report)
    else:
        bench(chosen.hosts)


if __name__ == "__main__":
    main()
