# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller has to have before a cluster is asked anything: helm, kubernetes.core, a client, a kubeconfig."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import re
import subprocess
from collections.abc import Mapping

import yaml

HELM_SINCE = (3, 13)
#: kubernetes.core by the major version of helm: older ones fail on helm 4 with an unpacking error.
CORE_SINCE = {3: (6, 2), 4: (6, 4)}


def problems(helm: str, kubeconfig: str | None, uid: str | None, environment: Mapping[str, str]) -> list[str]:
    """Return in words, each with its way out, what is missing or does not fit; empty where all is there."""
    return [words for words in (_helm(helm), _client(), _in_a_pod(kubeconfig, uid, environment)) if words]


def _helm(program: str) -> str:
    """Judge helm and kubernetes.core, which have to fit each other."""
    core, where = collection()
    if core is None:
        return "kubernetes.core is not there: ansible-galaxy collection install 'kubernetes.core:>=6.2.0'"
    try:
        told = subprocess.run([program, "version", "--template", "{{.Version}}"], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as exc:
        return f"helm cannot be run as {program} ({exc}): install it on the controller, or name it in gpu_operator_helm"
    helm = _numbers(told)
    if helm is None or helm < HELM_SINCE:
        return f"{program} is {told.strip() or 'no helm'}, and helm {_dotted(HELM_SINCE)} or newer is needed"
    needed = CORE_SINCE.get(helm[0], CORE_SINCE[4])
    if core < needed:
        return (f"helm {_dotted(helm)} ({program}) needs kubernetes.core {_dotted(needed)} or newer, and the one that "
                f"is loaded is {_dotted(core)} ({where}): install a newer one there, or name a helm 3 in "
                f"gpu_operator_helm")
    return ""


def _client() -> str:
    if importlib.util.find_spec("kubernetes") is None:
        return "the Python package kubernetes is not there for Ansible's own Python: pip install kubernetes"
    return ""


def _in_a_pod(kubeconfig: str | None, uid: str | None, environment: Mapping[str, str]) -> str:
    """A pod's clients take its service account where nothing else is named: then the cluster is the one around it."""
    named = kubeconfig or environment.get("K8S_AUTH_KUBECONFIG") or environment.get("KUBECONFIG")
    own = pathlib.Path(environment.get("HOME") or "/nonexistent", ".kube", "config")
    if not environment.get("KUBERNETES_SERVICE_HOST") or named or uid or own.exists():
        return ""
    return ("this controller is a pod and no kubeconfig is named, so the cluster would be the one that it runs in: set "
            "gpu_operator_kubeconfig (or gpu_operator_cluster_uid, where that cluster is the one that is meant)")


def collection(name: str = "kubernetes.core") -> tuple[tuple[int, ...] | None, str]:
    """Return version and folder of the collection that is loaded, (None, "") without one."""
    try:
        spec = importlib.util.find_spec(f"ansible_collections.{name}")
    except (ImportError, ValueError):
        spec = None
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        manifest, galaxy = pathlib.Path(folder, "MANIFEST.json"), pathlib.Path(folder, "galaxy.yml")
        if manifest.exists():
            about = json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]
        else:
            about = yaml.safe_load(galaxy.read_text(encoding="utf-8")) if galaxy.exists() else {}
        return _numbers(str(about.get("version"))) or (0,), str(folder)
    return None, ""


def _numbers(text: str) -> tuple[int, ...] | None:
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
