# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The identity of one ansible run, the age of facts, and whether a plan may be used again.

The module is imported in the parent process (the strategy loads the action class there before it forks), so every
worker of one run sees the same id. A plan that a fact cache kept from an earlier run carries another one.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping
from typing import Any

from . import edge

RUN_ID = f"{datetime.datetime.now(datetime.timezone.utc):%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}"


def stale_reason(plan: Any, digests: Mapping[str, str], run_id: str = RUN_ID) -> str | None:
    """Say why ``plan`` may not be used again, or None when it may.

    ``digests``: of facts, policy and matrix as they are now; the facts' may be missing when they were not kept.
    """
    if not isinstance(plan, Mapping) or "verdict" not in plan:
        return "there is no plan yet"
    if plan.get("run_id") != run_id:
        return f"the plan is of another run ({plan.get('run_id') or 'no run id'})"
    before = plan.get("digests")
    if not isinstance(before, Mapping):
        return "the plan has no digests"
    for part in sorted(digests):
        if before.get(part) != digests[part]:
            return f"{part} changed since the plan was made"
    return None


def take(facts: Any, now: float, *, decoded: bool = False) -> tuple[dict[str, Any], str, int | None]:
    """Return (facts as plain data, their digest, their age in seconds or None when they do not say).

    ``decoded``: they come straight from a JSON decoder, so they are plain already and need no copy.

    The moment of reading is no part of what the host is: it is left out of the digest. A host's clock may be ahead of
    the controller's; such facts are 0 seconds old.
    """
    read_at = facts.get("read_at") if isinstance(facts, Mapping) else None
    timeless = {key: value for key, value in facts.items() if key != "read_at"} if read_at is not None else facts
    clean, digest = (dict(timeless), edge.digest(timeless)) if decoded else edge.plain_json(timeless)
    if not isinstance(read_at, (int, float)) or isinstance(read_at, bool):
        return clean, digest, None
    clean["read_at"] = int(read_at)
    return clean, digest, max(0, int(now - read_at))


def lists_old(facts: Mapping[str, Any], max_age: Any) -> bool:
    """Say whether the package lists of the host are older than ``max_age`` seconds, or were never fetched.

    An age that could not be read is no reason to fetch: the plan says that it is unknown.
    """
    packages = facts.get("packages")
    if not isinstance(packages, Mapping) or "cache_age" not in packages or not isinstance(max_age, int):
        return False
    age = packages["cache_age"]
    return age is None or (isinstance(age, (int, float)) and age > max_age)


def previous(plan: Any, run_id: str = RUN_ID) -> dict[str, Any] | None:
    """Return what an earlier plan of the same run decided and roles may have applied since; None without one."""
    if not isinstance(plan, Mapping) or plan.get("run_id") != run_id:
        return None
    driver = (plan.get("decisions") or {}).get("driver") or {}
    return {"driver": {key: edge.plain(driver.get(key)) for key in ("version", "predicted")}}
