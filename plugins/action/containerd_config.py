# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of baremetal.nvidia.containerd_config. Documentation: modules/containerd_config.py."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd import (
    RUNTIME_PATH,
    Decision,
    Settings,
    editor,
    generation,
    settings,
    trial,
    work_out,
)
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.diff import report
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.generation import MAIN_PATH
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.merge import load, resolve_import, table_at
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.owners import owner
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd.want import Refusal
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import edge

HOST_MODULE = "baremetal.nvidia.containerd_files"
ANSWERS = ("files", "looked", "version", "dumps", "backups", "record", "skipped_reason")
ARGUMENTS = {
    "path": {"type": "path", "default": MAIN_PATH},
    "owner": {"type": "str", "default": "host"},
    "default_runtime": {"type": "str"},
    "runtime_path": {"type": "path", "default": RUNTIME_PATH},
    "program": {"type": "str", "default": "containerd"},
    "version": {"type": "str"},
    "backup_keep": {"type": "int", "default": 5},
    "lease": {"type": "str"},
    "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
    "sandbox_image": {"type": "str"},
    "registry_config_path": {"type": "str"},
    "systemd_cgroup": {"type": "bool"},
    "nri": {"type": "bool"},
    "cri": {"type": "bool"},
    "allowed": {"type": "bool", "default": False},
}
SETTINGS = ("sandbox_image", "registry_config_path", "systemd_cgroup", "nri", "cri")


class _Stop(Exception):
    """The host cannot be read or written; the message says it all."""


class ActionModule(ActionBase):
    """Read the files, work out the change, let containerd try it, put it in place."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what changed, never what the files say: they can hold passwords."""
        result = super().run(tmp, task_vars)
        _validated, arguments = self.validate_argument_spec(argument_spec=ARGUMENTS)
        try:
            result.update(self._work(edge.plain(arguments), task_vars or {}))
        except (_Stop, Refusal) as stop:
            result.update(failed=True, changed=False, msg=str(stop))
        return result

    def _work(self, wish: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        files, version, record = self._read(wish, variables)
        if version is None:
            if not self._task.check_mode or not wish["version"]:
                raise _Stop(f"{wish['program']} does not tell its version on this host, so how it reads its files is "
                            "not known: install containerd first")
            version = wish["version"]
        decision = work_out(files, wish["path"], version, owner=wish["owner"], runtime_path=wish["runtime_path"],
                            default_runtime=wish["default_runtime"] or None, state=wish["state"], record=record,
                            settings=Settings(**{name: _given(wish[name]) for name in SETTINGS}))
        if decision.refused:
            raise _Stop(decision.refused)
        texts = {path: text for path, text in editor.render(decision, files).items() if files.get(path) != text}
        result = _told(decision, texts)
        if texts and not self._task.check_mode:
            self._try(wish, variables, files, texts, decision)
            answer = self._place(wish, variables, files, texts, decision)
            result["backups"], result["skipped_reason"] = answer["backups"], answer.get("skipped_reason")
            result["changed"] = not result["skipped_reason"]
        return result

    def _read(self, wish: dict[str, Any],
              variables: dict[str, Any]) -> tuple[dict[str, str], str | None, dict[str, Any]]:
        """All files that count, containerd's version, and what was set before.

        A second call is needed only where imports are written in an unusual way.
        """
        extra: list[str] = []
        while True:
            answer = self._host({"mode": "read", "extra": extra}, wish, variables)
            files = {str(path): _decoded(path, content) for path, content in answer["files"].items()}
            gen = generation(answer["version"] or wish["version"])
            if gen is None:
                return files, answer["version"], answer.get("record") or {}
            loaded = load(files, wish["path"], gen)
            named = {pattern for path in loaded.order for pattern in _imports(path, loaded.documents[path])}
            more = named - set(answer["looked"])
            if more <= set(extra):
                return files, answer["version"], answer.get("record") or {}
            extra = sorted({*extra, *more})

    def _try(self, wish: dict[str, Any], variables: dict[str, Any], files: dict[str, str],
             texts: dict[str, str | None], decision: Decision) -> None:
        """Let containerd read the outcome. What its owner makes its own file from is tried without a comparison."""
        gen, main = generation(decision.version), decision.trial
        if gen is None or main is None:
            return
        after = {path: text for path, text in {**files, **texts}.items() if text is not None}
        trees = {"after": trial.tree(after, main, gen)}
        if main in files and not load(files, main, gen).fatal:
            trees["before"] = trial.tree(files, main, gen)
        encoded = {name: {file: _encoded(text) for file, text in laid.items()} for name, laid in trees.items()}
        dumps = self._host({"mode": "trial", "trees": encoded}, wish, variables)["dumps"]
        dumps = {name: {**dump, "out": base64.b64decode(dump["out"]).decode()} for name, dump in dumps.items()}
        gone = wish["state"] == "absent"
        loaded = load(after, main, gen)
        trial.judge(dumps.get("before"), dumps["after"], None if gone else wish["runtime_path"],
                    set(settings.paths(settings.EVERY if gone else decision.settings, runtimes(loaded))))

    def _place(self, wish: dict[str, Any], variables: dict[str, Any], files: dict[str, str],
               texts: dict[str, str | None], decision: Decision) -> dict[str, Any]:
        items = [{"path": path, "content": None if text is None else _encoded(text),
                  "sha256": _checksum(files.get(path))} for path, text in texts.items()]
        arguments = {"mode": "place", "files": items, "backup_keep": wish["backup_keep"], "lease": wish["lease"],
                     "records": decision.records(files),
                     "disturbs": decision.disturbs, "allowed": wish["allowed"], "dump": decision.trial == wish["path"]}
        return self._host(arguments, wish, variables)

    def _host(self, arguments: dict[str, Any], wish: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        answer = self._execute_module(
            module_name=HOST_MODULE, task_vars=variables,
            module_args={"path": wish["path"], "program": self._program(wish), **arguments})
        if answer.get("failed") or answer.get("unreachable"):
            raise _Stop(str(answer.get("msg") or answer.get("module_stderr") or "the host gave no answer"))
        plain: dict[str, Any] = edge.plain({key: value for key, value in answer.items()
                                            if key in ANSWERS})
        return plain

    def _program(self, wish: dict[str, Any]) -> str:
        """The containerd of the owner, unless another one is named."""
        return owner(wish["owner"]).program if wish["program"] == "containerd" else str(wish["program"])


def _given(value: Any) -> Any:
    """An empty text means: keep what is there."""
    return None if value == "" else value


def runtimes(loaded: Any) -> dict[str, Any]:
    """The runtimes in force."""
    found: dict[str, Any] = {}
    for plugin in table_at(loaded.effective, ("plugins",)).values():
        found |= table_at(plugin, ("containerd", "runtimes"))
    return found


def _told(decision: Decision, texts: dict[str, str | None]) -> dict[str, Any]:
    changed = report(list(decision.differences))
    return {
        "changed": bool(texts), "strategy": decision.strategy, "config_version": decision.config_version,
        "plugin": decision.plugin, "files": list(texts), "differences": changed, "backups": [],
        "notes": [f"{note.summary}: {note.remedy}" for note in decision.notes],
        "low_level_runtime": decision.low_level_runtime, "restart": decision.restart, "skipped_reason": None,
        "diff": {"before_header": "in force", "after_header": "in force, by " + (", ".join(texts) or "nothing"),
                 "before": _lines(changed, "before"), "after": _lines(changed, "after")},
    }


def _lines(changed: list[dict[str, Any]], side: str) -> str:
    return "".join(f"{item['path']} = {item[side]!r}\n" for item in changed if item[side] is not None)


def _imports(path: str, document: dict[str, Any]) -> list[str]:
    names = document.get("imports")
    return [resolve_import(path, name) for name in (names if isinstance(names, list) else []) if isinstance(name, str)]


def _decoded(path: str, content: str) -> str:
    try:
        return base64.b64decode(content).decode("utf-8")
    except UnicodeDecodeError as error:
        raise _Stop(f"{path} is not UTF-8, so it is no TOML: {error}; correct it by hand") from error


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _checksum(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()
