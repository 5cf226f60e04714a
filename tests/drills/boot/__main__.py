# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run drills and print each result."""
from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from .cuts import PLACES
from .drills import ALL, Wishes
from .rig import LOGS, DrillError, Rig


def _say(text: str) -> None:
    print(f"drill: {time.strftime('%H:%M:%S')} {text}", flush=True)


def main() -> int:
    """0: all drills went as they should."""
    parser = argparse.ArgumentParser(prog="boot", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the random power cuts")
    parser.add_argument("--cuts", type=int, default=20, help="how many random power cuts")
    parser.add_argument("--finish", type=int, default=-1, metavar="N",
                        help="after how many of them the next run is made, to its end; default: all")
    parser.add_argument("--within", type=float, nargs=2, metavar=("FIRST", "LAST"),
                        help="of a run, in seconds, are the random moments; default: as a run without a cut shows")
    parser.add_argument("--places", nargs="+", choices=list(PLACES), default=list(PLACES), help="of the drill cuts")
    parser.add_argument("--firmware", choices=["bios", "uefi"], default="bios")
    parser.add_argument("--machine", default="drill", help="its name: two can run beside each other")
    parser.add_argument("--keep", action="store_true", help="leave the machine of the last drill")
    parser.add_argument("drills", nargs="+", choices=[*ALL, "all"], metavar="DRILL", help=", ".join(ALL))
    asked = parser.parse_args()
    names = [name for name in ALL if name in asked.drills or "all" in asked.drills]
    within = (asked.within[0], asked.within[1]) if asked.within else None
    wishes = Wishes(asked.seed, asked.cuts, asked.finish, asked.firmware, asked.places, within, _say)
    results: list[dict[str, Any]] = []
    for name in names:
        rig = Rig(asked.machine)
        begun = time.monotonic()
        _say(f"{name} …")
        try:
            passed, text = True, ALL[name](rig, wishes)
        except (DrillError, rig.error) as error:
            passed, text = False, str(error)
            kept = LOGS / f"{name}-console.log"
            if rig.there():
                kept.write_text(rig.console())
            text += f"\n(console: {kept}, playbooks: {rig.log})"
        finally:
            if not asked.keep:
                rig.down()
        results.append({"drill": name, "passed": passed, "seconds": round(time.monotonic() - begun), "said": text})
        _say(f"{name}: {'passed' if passed else 'FAILED'} in {results[-1]['seconds']} s: {text}")
    if not asked.keep:
        Rig.forget()
    (LOGS / f"{asked.machine}.json").write_text(json.dumps(results, indent=1))
    failed = [result["drill"] for result in results if not result["passed"]]
    for result in results:
        print(f"  {result['drill']:<10} {'passed' if result['passed'] else 'FAILED':<7} {result['seconds']:>6} s")
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed" + (f" ({', '.join(failed)})" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
