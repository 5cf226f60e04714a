#!/usr/bin/env python
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan cases from the field and compare with what they expect: tests/cases/run.py FILE-OR-DIRECTORY...

A case file is a YAML list of cases (docs/design.md, section 9); a case of a rule has ``rule`` and ``fires`` beside or
instead of ``expect``. A directory with ``before/config.toml`` is a containerd
case. Prints a line a case and ends with ``N passed, N failed``; exit status 1 if one failed.
"""
from __future__ import annotations

import datetime
import pathlib
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import _bootstrap  # noqa: F401  # pylint: disable=unused-import
import yaml
from ansible_collections.baremetal.nvidia.plugins.plugin_utils import matrix as matrices
from ansible_collections.baremetal.nvidia.plugins.plugin_utils import planner
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import policy as policies

NOW = datetime.date(2026, 11, 30)
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MISSING = object()


def load(path: pathlib.Path) -> list[dict[str, Any]]:
    """Return the cases of a file."""
    cases = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)
    if not isinstance(cases, list):
        raise ValueError(f"{path}: a list of cases is wanted")
    return cases


def make_plan(case: Mapping[str, Any], matrix: Any = None) -> dict[str, Any]:
    """Return the plan of a case, made exactly as a host is planned."""
    facts, policy = case.get("facts") or {}, case.get("policy") or {}
    now = case.get("now") or NOW
    overlays = policies.validate(policy)["gpu_matrix_overlay"]
    rows = matrix if matrix is not None and not overlays else matrices.load(overlays)
    host = facts.get("host") if isinstance(facts, Mapping) and isinstance(facts.get("host"), str) else str(case["id"])
    return planner.plan(host, facts, policy, rows, now, case.get("cluster"))


def differences(case: Mapping[str, Any], plan: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the plan has otherwise than the case expects; nothing means that the case passes."""
    expect = case.get("expect") or {}
    if "fires" in case and case["fires"] != any(one["rule"] == case["rule"] for one in plan["findings"]):
        what = "did not fire" if case["fires"] else "fired"
        yield f"{case['rule']} {what}: {[brief(one) for one in plan['findings']]}"
    if "verdict" in expect and plan["verdict"] != expect["verdict"]:
        errors = "; ".join(one["summary"] for one in plan["findings"] if one["severity"] == "error")
        yield f"verdict is {plan['verdict']}, not {expect['verdict']}" + (f" ({errors})" if errors else "")
    for path, wanted in (expect.get("decisions") or {}).items():
        found = value_at(plan["decisions"], path)
        if not matches(found, wanted):
            yield f"{path} is {'absent' if found is MISSING else repr(found)}, not {wanted!r}"
    for wanted in expect.get("findings") or ():
        if not any(is_that_finding(finding, wanted) for finding in plan["findings"]):
            yield f"no finding {wanted}; there are {[brief(one) for one in plan['findings']]}"
    for severity in expect.get("no_findings") or ():
        for finding in plan["findings"]:
            if finding["severity"] == severity:
                yield f"unwanted {severity}: {brief(finding)}"
    everything = [*plan["changes"], *plan["pending"]]
    for wanted in expect.get("changes") or ():
        if not any(is_that_change(change, wanted) for change in everything):
            yield f"no change {wanted}; there are {[(one['role'], one['action'], one['target']) for one in everything]}"


def brief(finding: Mapping[str, Any]) -> str:
    """Return a finding in a line."""
    return f"{finding['rule']} {finding['severity']}: {finding['summary']}"


def value_at(decisions: Mapping[str, Any], path: str) -> Any:
    """Return what stands at a dotted path; keys may hold dots themselves."""
    here: Any = decisions
    rest = path
    while rest:
        if not isinstance(here, Mapping):
            return None if here is None else MISSING
        key = next((key for key in sorted(here, key=len, reverse=True)
                    if rest == key or rest.startswith(f"{key}.")), None)
        if key is None:
            return MISSING
        here, rest = here[key], rest[len(key) + 1 :]
    return here


def matches(found: Any, wanted: Any) -> bool:
    """Compare a decision with a value, null, {regex: ...} or {contains: ...}."""
    if isinstance(wanted, Mapping) and set(wanted) == {"regex"}:
        return found is not MISSING and re.search(wanted["regex"], as_text(found)) is not None
    if isinstance(wanted, Mapping) and set(wanted) == {"contains"}:
        if isinstance(found, str):
            return str(wanted["contains"]) in found
        return found is not MISSING and found is not None and wanted["contains"] in found
    if wanted is None:
        return found is None or found is MISSING
    return bool(found == wanted)


def as_text(found: Any) -> str:
    """Return a decision as text for a regular expression; of a mapping, its values."""
    if isinstance(found, Mapping):
        return " ".join(as_text(value) for value in found.values())
    return "" if found is None else str(found)


def is_that_finding(finding: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Say whether a finding has the wanted severity (warning or error by default) and all the words."""
    severities = (wanted["severity"],) if "severity" in wanted else ("warning", "error")
    text = f"{finding['subject']} {finding['summary']} {finding['remedy']}".lower()
    return (finding["severity"] in severities and wanted.get("rule") in (None, finding["rule"])
            and all(str(word).lower() in text for word in wanted.get("mentions") or ()))


def is_that_change(change: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Say whether a change is of the wanted role and has all the words in what it names."""
    text = " ".join(str(change.get(key)) for key in ("action", "target", "before", "after", "why", "needs")).lower()
    return (wanted.get("role") in (None, change["role"]) and wanted.get("action") in (None, change["action"])
            and all(str(word).lower() in text for word in wanted.get("mentions") or ()))


def run_file(path: pathlib.Path, matrix: Any) -> Iterator[tuple[str, list[str]]]:
    """Yield id and differences of every case in a file."""
    for case in load(path):
        try:
            yield str(case["id"]), list(differences(case, make_plan(case, matrix)))
        except Exception as error:  # noqa: BLE001  (a case that breaks the planner is a failed case)
            yield str(case.get("id")), [f"{type(error).__name__}: {error}", *traceback.format_exc().splitlines()[-3:-1]]


def run_directory(path: pathlib.Path, matrix: Any) -> Iterator[tuple[str, list[str]]]:
    """Yield id and differences of a containerd case, or of everything in a directory."""
    if (path / "before").is_dir() and (path / "want.yml").exists():
        from containerd_case import run as run_containerd

        yield path.name, list(run_containerd(path))
        return
    for inner in sorted(path.iterdir()):
        if inner.is_dir() and not inner.name.startswith((".", "_")):
            yield from run_directory(inner, matrix)
        elif inner.suffix in (".yml", ".yaml"):
            yield from run_file(inner, matrix)


def main(arguments: list[str]) -> int:
    """Run the cases of all arguments; return the exit status."""
    if not arguments:
        print(__doc__)
        return 2
    matrix = matrices.load()
    passed = failed = 0
    for argument in arguments:
        path = pathlib.Path(argument)
        if not path.exists():
            print(f"FAIL {argument}: no such file or directory")
            failed += 1
            continue
        for ident, wrong in run_directory(path, matrix) if path.is_dir() else run_file(path, matrix):
            if wrong:
                failed += 1
                print(f"FAIL {ident}: {'; '.join(wrong)}")
            else:
                passed += 1
                print(f"PASS {ident}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
