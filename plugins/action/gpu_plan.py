# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of baremetal.nvidia.gpu_plan: facts, policy and matrix in, one plan out. Documentation: modules/."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible.module_utils.common import json
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.release import __version__ as core_version
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import (
    edge,
    engine,
    freshness,
    names,
    policy_vars,
    requirements,
    stored,
)
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.report import describe

# The strategy imports this class in the parent process: a thousand workers inherit one loaded matrix, and the
# serialisation that each module call would import for itself.
json.get_module_encoder("legacy", json.Direction.CONTROLLER_TO_MODULE)
json.get_module_decoder("legacy", json.Direction.MODULE_TO_CONTROLLER)
engine.warm()

FACTS_MODULE = "baremetal.nvidia.gpu_facts"
GATHER = ("never", "missing", "always")
GROUP = ("none", "verdict", "refresh")
MAX_AGE = 3600


class _Refused(Exception):
    """What the person has to put right; the message says it all."""


class ActionModule(ActionBase):
    """Make the plan of one host, or use the one that this run made already."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_diff = True
    _VALID_ARGS = frozenset(
        (
            "cluster",
            "facts",
            "facts_file",
            "gather",
            "group",
            "keep_facts",
            "max_age",
            "policy",
            "refresh_error",
            "stop_on_blocked",
            "stop_on_pending",
            "stored",
        )
    )

    #: What Ansible found out while it asked the host, and would ask again if it were not told.
    _passed_on: Mapping[str, Any] = {}

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return ansible_facts.gpu_plan, and gpu_facts where they were read here."""
        result = super().run(tmp, task_vars)
        try:
            result.update(self._plan(task_vars or {}))
        except _Refused as refused:
            result.update(failed=True, msg=str(refused))
        return result

    def _plan(self, variables: dict[str, Any]) -> dict[str, Any]:
        problem = requirements.core_problem(core_version)
        if problem:
            raise _Refused(problem)
        host = edge.plain(variables.get("inventory_hostname", "localhost"))
        planner = self._engine()
        policy, matrix = self._policy(planner, variables)
        digests = {"policy": edge.digest(policy), "matrix": matrix.digest}
        cluster = self._task.args.get("cluster") or None
        if cluster is not None:
            cluster, digests["cluster"], _age = self._take(cluster, time.time())
        at_hand = variables.get("ansible_facts", {})
        old_plan, now = at_hand.get("gpu_plan"), time.time()

        gather = self._gather()
        stored_at = variables.get("gpu_facts_file") if self._flag("stored") else None
        path = self._task.args.get("facts_file") or (
            self._templated("gpu_facts_file", stored_at) if stored_at else None
        )
        source, facts = self._facts_at_hand(host, at_hand, gather, path)
        age: int | None = None
        if facts is not None:
            facts, digests["facts"], age = self._take(facts, now)
        may_reuse = gather != "always" and source in ("kept", "none", "host")
        if may_reuse and freshness.stale_reason(old_plan, digests) is None:
            return self._outcome(edge.plain(old_plan), policy, reused=True)
        if source == "kept" and gather == "missing":
            source = "host"  # without a plan of this run they may be what a fact cache kept
        if source == "none":
            raise _Refused(
                f"there are no GPU facts of {host}: run baremetal.nvidia.gpu_facts before this task, or set gather: "
                f"missing so that it is run here."
            )
        if source == "host":
            facts, digests["facts"], age = self._take(self._read_host(variables, policy), now, decoded=True)
        self._refuse_old(host, source, age)

        try:
            more = () if cluster is None else (cluster,)
            whole = self._with_controller(facts, variables.get("group_names") if policy.get("gpu_sharing") else None)
            plan = planner.plan(host, whole, policy, matrix, _today(now), *more)
        except planner.refusals as error:  # pylint: disable=catching-non-exception
            raise _Refused(str(error)) from error
        plan.update(run_id=freshness.RUN_ID, digests=digests, facts_age=age, facts_from=source)
        plan["subject"] = describe.subject(facts, matrix)
        plan["package_manager"] = (facts.get("packages") or {}).get("manager")
        plan["previous"] = freshness.previous(old_plan)
        plan["group"] = describe.group(plan, check_mode=bool(self._task.check_mode), forced=self._forced(variables))
        online = source == "host" and not policy.get("gpu_driver_offline")
        plan["lists_old"] = online and freshness.lists_old(facts, policy.get("gpu_cache_max_age"))
        steps = (*plan["changes"], *plan["pending"])
        restart = any(step.get("disruption") == "reboot" for step in steps)
        found: dict[str, Any] = {"gpu_plan": plan, "gpu_reboot_required": restart}
        if source in ("host", "stored"):
            # None takes the place of what a fact cache may still hold from an earlier run
            found["gpu_facts"] = facts if self._flag("keep_facts", default=True) else None
        return self._outcome(plan, policy, found)

    # -- what goes in ------------------------------------------------------------------------------------------------

    def _engine(self) -> engine.Engine:
        try:
            return engine.load()
        except Exception as error:
            raise _Refused(f"the planner cannot be loaded: {error}") from error

    def _policy(self, planner: engine.Engine, variables: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """Return (validated policy, matrix with the overlays that the policy names)."""
        known = names.policy()
        try:
            policy_vars.refuse_misspelt(variables, names.known())
            values = policy_vars.collect(variables, known, self._templated)
            given = self._task.args.get("policy") or {}
            policy_vars.refuse_unknown(given, known)
            policy = planner.validate({**values, **{key: edge.plain(value, key) for key, value in given.items()}})
            overlays = [self._overlay(row, variables) for row in policy.get("gpu_matrix_overlay") or ()]
            return policy, planner.matrix(overlays)
        except planner.refusals as error:  # pylint: disable=catching-non-exception
            raise _Refused(str(error)) from error

    def _templated(self, name: str, value: Any) -> Any:
        try:
            return edge.plain(self._templar.template(value), name)
        except AnsibleError as error:
            raise _Refused(f"{name} cannot be evaluated: {error}") from error

    @staticmethod
    def _overlay(row: Any, variables: dict[str, Any]) -> Any:
        """Return a file's path as seen from the inventory, else from the working directory; other rows as they are."""
        if not isinstance(row, str) or os.path.isabs(row):
            return row
        beside_inventory = os.path.join(str(variables.get("inventory_dir") or os.curdir), row)
        return beside_inventory if os.path.exists(beside_inventory) else os.path.abspath(row)

    def _gather(self) -> str:
        gather = self._task.args.get("gather", "never")
        if gather not in GATHER:
            raise _Refused(f"gather is {gather!r}; allowed are {', '.join(GATHER)}.")
        return str(gather)

    def _facts_at_hand(self, host: str, at_hand: Any, gather: str, path: Any) -> tuple[str, Any]:
        """Return (where the facts come from, facts): given, stored, kept, host (still to be read) or none."""
        given = self._task.args.get("facts")
        if given:
            if not isinstance(given, dict):
                raise _Refused(
                    f"facts is a {type(given).__name__}; what baremetal.nvidia.gpu_facts returned is needed."
                )
            return "given", given
        if path:
            try:
                return "stored", stored.read(edge.plain(path), host)
            except stored.StoredFactsError as error:
                raise _Refused(str(error)) from error
        kept = at_hand.get("gpu_facts")
        if kept is not None and gather != "always":
            return "kept", kept
        return ("none" if gather == "never" else "host"), None

    def _read_host(self, variables: dict[str, Any], policy: Mapping[str, Any]) -> Any:
        # the resolver costs a host up to two seconds: it is asked where a kernel may move
        arguments = {"candidates": True} if policy.get("gpu_kernel_policy") == "gated" else {}
        result = self._execute_module(module_name=FACTS_MODULE, module_args=arguments, task_vars=variables)
        if result.get("failed") or "gpu_facts" not in result.get("ansible_facts", {}):
            meaning = requirements.module_problem(result, core_version)
            raise _Refused(meaning or f"the host's facts could not be read: {result.get('msg') or result}")
        self._passed_on = {
            key: value for key, value in result["ansible_facts"].items() if key.startswith("discovered_interpreter")
        }
        return result["ansible_facts"]["gpu_facts"]

    @staticmethod
    def _take(facts: Any, now: float, *, decoded: bool = False) -> tuple[dict[str, Any], str, int | None]:
        try:
            return freshness.take(facts, now, decoded=decoded)
        except (edge.EdgeError, TypeError) as error:
            raise _Refused(f"the facts are no data: {error}") from error

    def _refuse_old(self, host: str, source: str, age: int | None) -> None:
        """Refuse facts that a fact cache kept for longer than max_age; stored ones are old by intent."""
        limit = int(self._task.args.get("max_age", MAX_AGE))
        if source == "kept" and age is not None and age > limit > 0:
            raise _Refused(
                f"the GPU facts of {host} are {describe.duration(age)} old (allowed: {describe.duration(limit)}): run "
                f"baremetal.nvidia.gpu_facts again, or set gather: always so that it is run here."
            )

    def _with_controller(self, facts: dict[str, Any], groups: Any = None) -> dict[str, Any]:
        """Return the facts with what only the controller knows: ansible-core, groups, why lists stayed old."""
        whole: dict[str, Any] = {**facts, "controller": {"ansible_core": core_version}}
        if groups:
            whole["controller"]["groups"] = edge.plain(groups, "group_names")
        refresh_error = self._task.args.get("refresh_error")
        if refresh_error:
            packages = facts.get("packages")
            whole["packages"] = {
                **(packages if isinstance(packages, dict) else {}),
                "refresh_error": edge.plain(refresh_error),
            }
        return whole

    # -- what comes out ----------------------------------------------------------------------------------------------

    def _outcome(
        self, plan: dict[str, Any], policy: dict[str, Any], found: dict[str, Any] | None = None, reused: bool = False
    ) -> dict[str, Any]:
        result: dict[str, Any] = {
            "changed": bool(self._task.check_mode and plan["changes"]),
            "verdict": plan["verdict"],
            "reused": reused,
            "msg": describe.headline(plan),
        }
        if found is not None:
            result["ansible_facts"] = {**self._passed_on, **found}
        group = self._group(plan)
        if (
            group
        ):  # Ansible takes "changed" for "the group is new": what would change is said by a task that does not group
            result.update(changed=False, add_group=group, parent_groups=["all"])
        elif self._task.check_mode:
            result["diff"] = describe.diff(plan)
        if plan["verdict"] == "blocked" and self._flag("stop_on_blocked"):
            result.update(failed=True, msg=describe.blocked(plan))
        elif plan["pending"] and policy.get("gpu_pending_fails") and self._flag("stop_on_pending"):
            result.update(failed=True, msg=describe.waiting(plan))
        return result

    def _group(self, plan: dict[str, Any]) -> str | None:
        wanted = self._task.args.get("group", "none")
        if wanted not in GROUP:
            raise _Refused(f"group is {wanted!r}; allowed are {', '.join(GROUP)}.")
        if wanted == "refresh" and plan["lists_old"] and not self._task.check_mode:
            return "gpu_refresh"
        return None if wanted == "none" else str(plan["group"])

    def _forced(self, variables: dict[str, Any]) -> bool:
        """Say whether roles run all their tasks on a host that is as planned too."""
        value = self._templated("gpu_force_apply", variables.get("gpu_force_apply", False))
        try:
            return bool(boolean(value))
        except TypeError as error:
            raise _Refused(f"gpu_force_apply is {value!r}; allowed are true and false.") from error

    def _flag(self, name: str, *, default: bool = False) -> bool:
        try:
            return bool(boolean(self._task.args.get(name, default)))
        except TypeError as error:
            raise _Refused(f"{name} is {self._task.args[name]!r}; allowed are true and false.") from error


def _today(now: float) -> datetime.date:
    return datetime.datetime.fromtimestamp(now, datetime.timezone.utc).date()
