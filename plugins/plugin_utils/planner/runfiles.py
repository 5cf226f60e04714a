# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Moving away from a driver that a runfile installed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ..model import version as versions
from ..model.facts import Reader, or_none
from ..model.plan import Change
from ..rules.context import Candidate, Context

ROLE = "gpu_driver"
VARIABLE = "gpu_driver_runfile"
_OPENED = re.compile(r"move away from the runfile (\S+)")


def cut_off(context: Context) -> bool:
    """Say whether a run began to take a runfile out, and was cut off."""
    return _opened(context) is not None


def _opened(context: Context) -> str | None:
    opened = Reader(context.host.open_transaction)
    found = _OPENED.match(or_none(opened.text("what")) or "") if or_none(opened.text("role")) == ROLE else None
    return found.group(1) if found else None


def version_of(context: Context) -> str | None:
    """Return the version of the runfile, None where nothing tells it."""
    told = or_none(Reader(context.host.driver.runfile).text("version")) or _opened(context)
    return told if told and versions.try_parse(told) is not None else None


def flavour_of(context: Context) -> str | None:
    """Return the flavour of a runfile that a cut-off run took out, as it wrote it down."""
    opened = Reader(context.host.open_transaction)
    told = or_none(opened.text("was.flavour")) if cut_off(context) else None
    return told if told in ("open", "proprietary") else None


def decide(context: Context, chosen: Candidate) -> dict[str, Any] | None:
    """Return what goes, where packages are to take the place of a runfile."""
    there = context.host.driver.origin == "runfile"
    if chosen.method == "runfile" or not (there or cut_off(context)):
        return None
    program = Reader(context.host.driver.runfile).text("uninstaller") if there else None
    return {"version": version_of(context), "uninstaller": or_none(program), "cut_off": cut_off(context)}


def before_packages(context: Context) -> Iterator[Change]:
    """Yield the removal of the runfile, which packages follow at once."""
    runfile = context.driver.runfile
    if runfile is None:
        return
    name = f"runfile {runfile['version'] or 'of unknown version'}"
    if runfile["cut_off"]:
        yield Change(ROLE, "runfile", name, "cut off", "finished", _disruption(context),
                     why="a run that was cut off had begun to take it out")
    else:
        yield Change(ROLE, "runfile", name, "installed, of no package", None, _disruption(context),
                     why=f"{runfile['uninstaller'] or 'its uninstaller'} takes it out once packages are proved and "
                         "fetched; until they are in, no GPU program starts")


def _disruption(context: Context) -> Any:
    return "reboot" if isinstance(context.host.driver.loaded, str) else "daemon_reload"


def tied(context: Context, steps: Iterable[Change]) -> Iterator[Change]:
    """Yield package steps with the disruption of the removal before them: they go together or not at all."""
    for step in steps:
        if context.driver.runfile is not None and step.disruption in ("none", "daemon_reload"):
            yield replace(step, disruption=_disruption(context))
        else:
            yield step


def held_back(context: Context, steps: Iterable[Change]) -> Iterator[Change]:
    """Yield all steps; without leave to take the runfile out they wait, sources and proofs too."""
    runfile = context.driver.runfile
    waits = runfile is not None and not runfile["cut_off"] and context.wishes.driver_runfile != "replace"
    for step in steps:
        yield replace(step, needs=step.needs or VARIABLE) if waits else step
