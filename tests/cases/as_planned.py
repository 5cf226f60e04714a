# SPDX-License-Identifier: GPL-3.0-or-later
"""What the facts of a host are after a plan was carried out to the last step: the yardstick of "as planned"."""
from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from typing import Any

from ansible_collections.baremetal.nvidia.plugins.plugin_utils import containerd as configuration
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.containerd import editor
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.model import version as versions


def carry_out(facts: Mapping[str, Any], plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that a host would have after all changes of its plan, the pending ones included."""
    after = copy.deepcopy(dict(facts))
    decisions = plan["decisions"]
    driver, kernel = decisions["driver"], decisions["kernel"]
    packages = after.setdefault("packages", {})
    packages.setdefault("manager", "apt")
    for key in ("installed", "available"):
        packages.setdefault(key, {})
    for key in ("held", "pins", "repositories"):
        packages.setdefault(key, [])
    packages.update(broken=[], locked_by=None)
    installed = packages["installed"]
    for name in (*driver["remove"], *kernel["remove"]):
        installed.pop(name, None)
    wanted = {**driver["packages"], **driver["fabric"], **decisions["toolkit"]["packages"],
              **decisions["containerd"]["packages"]}
    for name, version in wanted.items():
        installed[name] = version or f"{driver['version']}-1"
    for name in kernel["headers"]:
        installed[name] = "1-1"
    if driver["streams"]:
        packages["modules"] = {**(packages.get("modules") or {}), **{
            name: {"stream": stream, "state": "enabled"} for name, stream in driver["streams"].items()}}
    _hold(packages, decisions)
    _sources(after, decisions)
    _kernels(after, driver, kernel)
    _driver(after, driver)
    _files(after, driver, kernel)
    _containers(after, decisions)
    return after


def _hold(packages: dict[str, Any], decisions: Mapping[str, Any]) -> None:
    held = set(packages.get("held") or [])
    for name in ("driver", "kernel", "toolkit", "containerd"):
        held |= {package for package in decisions[name]["hold"]
                 if package in packages["installed"] or packages["manager"] != "apt"}
    packages["held"] = sorted(held)
    packages["manual"] = sorted({*(packages.get("manual") or []), *decisions["kernel"]["manual"]})


def _sources(after: dict[str, Any], decisions: Mapping[str, Any]) -> None:
    files = after.setdefault("files", {})
    for repository in (*decisions["driver"]["repositories"], *decisions["toolkit"]["repositories"]):
        files[repository["path"]] = _file(repository["content"])
        if all(one.get("file") != repository["path"] for one in after["packages"]["repositories"]):
            words = repository["content"].replace("=", " ").split()
            url = next((word for word in words if word.startswith("http")), "")
            after["packages"]["repositories"].append(
                {"id": repository["name"], "url": url, "suites": [], "file": repository["path"], "enabled": True,
                 "signed_by": (repository["key"] or {}).get("path")})


def _file(content: str) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(content.encode()).hexdigest(), "mode": "0644", "owner": "root"}


def _kernels(after: dict[str, Any], driver: Mapping[str, Any], kernel: Mapping[str, Any]) -> None:
    here = after.setdefault("kernel", {})
    kept = []
    for one in here.get("installed") or []:
        if f"linux-image-{one['release']}" in kernel["remove"]:
            continue
        if driver["version"] and one["release"] in driver["kernels"]:
            if driver["method"] == "dkms":
                one["headers"] = True
            one["nvidia"] = {"version": driver["version"], "flavour": driver["flavour"], "origin": driver["method"],
                             "signed": driver["method"] == "precompiled", "vermagic_ok": True}
            one["nouveau_in_initrd"] = False
            one["nvidia_in_initrd"] = None
        kept.append(one)
    here["installed"] = kept
    if kernel["boot"] is not None and kernel["policy"] != "off":
        here["default_boot"] = kernel["boot"]
        if any(one["release"] == kernel["boot"] for one in kept):
            here["running"] = kernel["boot"]
    after.setdefault("boot", {})["default_mode"] = "saved"


def _driver(after: dict[str, Any], driver: Mapping[str, Any]) -> None:
    version, gpus = driver["version"], after.get("gpus") or []
    if version is None or driver["owner"] != "host":
        return
    for gpu in gpus:
        gpu["driver"] = "nvidia"
    fabric = driver["fabricmanager"]
    after["driver"] = {
        "loaded": {"version": version, "flavour": driver["flavour"]},
        "library": version,
        "smi": {"status": "ok", "rc": 0, "driver": version, "cuda": None, "gpus": len(gpus)},
        "origin": "packages",
        "nouveau": {"loaded": False, "blocked": True, "in_initramfs": False},
        "dkms": [{"name": driver["dkms"]["name"], "version": version, "kernel": release, "state": "installed"}
                 for release in driver["kernels"]] if driver["dkms"] else [],
        "hung_tasks": [],
        "fabricmanager": {"version": versions.upstream(fabric["version"]) if fabric else None, "active": bool(fabric)},
        "persistenced": {"active": True},
        "processes": 0,
    }
    after["services"] = {name: {"enabled": True, "active": True, "failed": False} for name in driver["services"]}


def _files(after: dict[str, Any], driver: Mapping[str, Any], kernel: Mapping[str, Any]) -> None:
    files = after.setdefault("files", {})
    for wanted in (kernel["preferences"], kernel["auto_upgrades"], driver["modprobe"]):
        if wanted is not None:
            files[wanted["path"]] = _file(wanted["content"]) if wanted["content"] else None


def _toolkit(after: dict[str, Any], here: dict[str, Any], toolkit: Mapping[str, Any]) -> None:
    before = here.get("toolkit") or {}
    config = {**(before.get("config") or {}), **toolkit["config"]}
    here["toolkit"] = {"version": toolkit["version"], "config": config,
                       "mode": config.get("nvidia-container-runtime.mode", before.get("mode", "auto"))}
    for wanted in ((toolkit["cdi"] or {}).get("unit"), toolkit["dev_char"]):
        if wanted is not None:
            after["files"][wanted["path"]] = _file(wanted["content"]) if wanted["content"] else None
    if toolkit["dev_char"] and here.get("dev_char"):
        here["dev_char"]["missing"] = 0
    for name, engine in toolkit["engines"].items():
        config = here[name]["config"]
        config["runtimes"]["nvidia"] = engine["runtime_path"]
        config["default_runtime"] = engine["default_runtime"] or config["default_runtime"]
        config["cdi"] = engine["cdi"] or config.get("cdi")
    loaded = after.get("driver", {}).get("loaded") or {}
    if toolkit["cdi"] and (after["driver"].get("smi") or {}).get("status") == "ok":
        here["cdi"] = [{"path": toolkit["cdi"]["path"], "driver": loaded.get("version")}]
        refresh = (after.get("services") or {}).get("nvidia-cdi-refresh.service")
        if refresh:
            refresh["failed"] = False


def _containers(after: dict[str, Any], decisions: Mapping[str, Any]) -> None:
    toolkit, containerd = decisions["toolkit"], decisions["containerd"]
    if toolkit["version"] is None:
        return
    here = after.setdefault("containers", {})
    _toolkit(after, here, toolkit)
    daemon = here.setdefault("containerd", None) or {"owner": "host", "gpu_containers": 0, "active": True}
    here["containerd"] = daemon
    daemon.setdefault("version", containerd["version"])
    daemon["version"] = daemon["version"] or containerd["version"]
    config = daemon.setdefault("config", {"path": "/etc/containerd/config.toml", "text": "", "drop_ins": {}})
    decision = configuration.decide(here, default_runtime=containerd["default_runtime"],
                                    runtime_path=containerd["runtime_path"] or "/usr/bin/nvidia-container-runtime")
    texts = {**(config.get("drop_ins") or {}), config["path"]: config.get("text") or ""}
    for path, text in editor.render(decision, texts).items():
        if path == config["path"]:
            config["text"] = text
        else:
            config.setdefault("drop_ins", {})[path] = text
