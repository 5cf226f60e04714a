# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker and CRI-O, the toolkit's own settings, and what a reload of systemd's units would do to running containers."""

from __future__ import annotations

import json
import re
from typing import Any

from ..containers import toolkit_toml
from . import processes
from .context import Context
from .tree import Tree

DOCKER_FILE = "/etc/docker/daemon.json"
CRIO_FILE = "/etc/crio/crio.conf"
CRIO_FOLDER = "/etc/crio/crio.conf.d"
_DOCKER = ("/usr/bin/dockerd", "/usr/sbin/dockerd", "/usr/local/bin/dockerd")
_CRIO = ("/usr/bin/crio", "/usr/local/bin/crio", "/usr/libexec/crio/crio")
_NUMBER = re.compile(r"\b(\d+\.\d+\.\d+)")
_TEXT_LIMIT = 256 * 1024


def read(ctx: Context) -> None:
    """Each subject by itself: what cannot be read of one leaves the others alone."""
    with ctx.attempt("containers.docker"):
        _docker(ctx)
    with ctx.attempt("containers.crio"):
        _crio(ctx)
    with ctx.attempt("containers.toolkit.config"):
        _toolkit(ctx)
    with ctx.attempt("containers.gpu"):
        _gpu(ctx)
    with ctx.attempt("containers.dev_char"):
        ctx.set("containers.dev_char", dev_char(ctx.tree))


def _docker(ctx: Context) -> None:
    tree = ctx.tree
    program = next((one for one in _DOCKER if tree.isfile(one)), None)
    if program is None:
        ctx.set("containers.docker", None)
        return
    base = "containers.docker"
    _version(ctx, f"{base}.version", program, "dockerd", ("docker.io", "docker-ce", "moby-engine"))
    _active(ctx, f"{base}.active", "docker.service")
    with ctx.attempt(f"{base}.config"):
        ctx.set(f"{base}.config", docker_config(tree))


def docker_config(tree: Tree) -> dict[str, Any]:
    """What of daemon.json decides: ``{path, runtimes: {name: path}, default_runtime, cdi}``; null without the file.

    Raises ValueError for a file that is no JSON object. The rest of it may hold credentials and stays on the host.
    """
    text = tree.text_exact(DOCKER_FILE, _TEXT_LIMIT)
    data = json.loads(text) if text and text.strip() else {}
    if not isinstance(data, dict):
        raise ValueError(f"{DOCKER_FILE} is no JSON object")
    runtimes = data.get("runtimes")
    features = data.get("features")
    return {
        "path": DOCKER_FILE,
        "runtimes": {str(name): str(one.get("path", "")) for name, one in runtimes.items() if isinstance(one, dict)}
        if isinstance(runtimes, dict) else {},
        "default_runtime": data.get("default-runtime") if isinstance(data.get("default-runtime"), str) else None,
        "cdi": features.get("cdi") if isinstance(features, dict) and isinstance(features.get("cdi"), bool) else None,
    }  # fmt: skip


def _crio(ctx: Context) -> None:
    tree = ctx.tree
    program = next((one for one in _CRIO if tree.isfile(one)), None)
    if program is None:
        ctx.set("containers.crio", None)
        return
    base = "containers.crio"
    _version(ctx, f"{base}.version", program, "crio", ("cri-o",))
    _active(ctx, f"{base}.active", "crio.service")
    with ctx.attempt(f"{base}.config"):
        ctx.set(f"{base}.config", crio_config(tree))


def crio_config(tree: Tree) -> dict[str, Any]:
    """``{runtimes: {name: path}, default_runtime}`` of crio.conf and its drop-ins, the later file deciding."""
    runtimes: dict[str, str] = {}
    default: str | None = None
    for path in [CRIO_FILE, *tree.glob(CRIO_FOLDER)]:
        text = tree.text_exact(path, _TEXT_LIMIT)
        if text is None:
            continue
        for name, value in toolkit_toml.read(text).items():
            handler = re.fullmatch(r"crio\.runtime\.runtimes\.([\w-]+)\.runtime_path", name)
            if handler:
                runtimes[handler[1]] = str(value)
            elif name == "crio.runtime.default_runtime" and isinstance(value, str):
                default = value or None
    return {"runtimes": runtimes, "default_runtime": default}


def _version(ctx: Context, path: str, program: str, what: str, packages: tuple[str, ...]) -> None:
    from .containers import package_version

    if ctx.tree.is_host:
        result = ctx.run([program, "--version"])
        found = _NUMBER.search(result.out)
        if result.ok and found:
            ctx.set(path, found.group(1))
            return
    packaged = package_version(ctx.tree, packages)
    if packaged:
        ctx.set(path, packaged)
    else:
        ctx.cannot(path, f"{what} did not tell its version, and no package of it is installed")


def _active(ctx: Context, path: str, unit: str) -> None:
    from .containers import running

    services = ctx.known.get("services")
    if isinstance(services, dict):
        ctx.set(path, bool((services.get(unit) or {}).get("active")))
    elif not ctx.tree.is_host:
        ctx.cannot(path, "another tree is read: nothing runs in it")
    else:
        with ctx.attempt(path):
            ctx.set(path, running(ctx.tree, "dockerd" if unit == "docker.service" else "crio"))


def _toolkit(ctx: Context) -> None:
    """The settings of config.toml; null without the file. Not where there is no toolkit: then nobody would look."""
    if ctx.facts.get("containers", {}).get("toolkit") is None:
        return
    text = ctx.tree.text_exact(toolkit_toml.PATH, _TEXT_LIMIT)
    ctx.set("containers.toolkit.config", None if text is None else toolkit_toml.read(text))


def _gpu(ctx: Context) -> None:
    tree = ctx.tree
    if not tree.is_host and not tree.isdir("/proc/1"):
        ctx.cannot("containers.gpu", "another tree is read: nothing runs in it")
        return
    ctx.set("containers.gpu", gpu(tree))


def gpu(tree: Tree) -> dict[str, int]:
    """``{running, detachable}``: containers with GPUs, and those that a reload of systemd's units takes them from.

    systemd then sets the device control group anew by what it was told: by the container's specification. A container
    whose specification names no NVIDIA device (the legacy hook brought them in behind it) loses them. One whose
    specification cannot be found counts as such.
    """
    ids = processes.gpu_container_ids(tree)
    return {"running": len(ids), "detachable": sum(not _told(tree, one) for one in ids)}


_BUNDLES = (
    "/run/containerd/io.containerd.runtime.v2.task/*/{id}/config.json",
    "/run/k3s/containerd/io.containerd.runtime.v2.task/*/{id}/config.json",
    "/run/k0s/containerd/io.containerd.runtime.v2.task/*/{id}/config.json",
    "/var/snap/microk8s/common/run/containerd/io.containerd.runtime.v2.task/*/{id}/config.json",
    "/run/containers/storage/*-containers/{id}/userdata/config.json",
    "/var/run/containers/storage/*-containers/{id}/userdata/config.json",
)


def _told(tree: Tree, container: str) -> bool:
    """Whether systemd knows the NVIDIA devices of a container, or that it may use all there are."""
    for pattern in _BUNDLES:
        for path in tree.expand(pattern.format(id=container)):
            try:
                spec = json.loads(tree.text(path, 4 * 1024 * 1024) or "")
                linux = spec.get("linux") or {}
                devices = [str(one.get("path", "")) for one in linux.get("devices") or []]
                rules = (linux.get("resources") or {}).get("devices") or []
            except (OSError, ValueError, AttributeError):
                continue
            every = any(one.get("allow") and one.get("type", "a") in ("a", "") and one.get("major", -1) in (None, -1)
                        for one in rules if isinstance(one, dict))
            return every or any(path.startswith("/dev/nvidia") for path in devices)
    return False


def dev_char(tree: Tree) -> dict[str, int] | None:
    """``{devices, missing}``: the driver's device nodes, and those without a link in /dev/char; null without any.

    Current releases of runc find a device for systemd by that link.
    """
    devices = [name for name in tree.names("/dev") if re.match(r"nvidia(?:\d|ctl$|-uvm|-modeset$)", name)]
    if not devices:
        return None
    linked = {(tree.readlink(f"/dev/char/{name}") or "").rsplit("/", 1)[-1] for name in tree.names("/dev/char")}
    return {"devices": len(devices), "missing": sum(name not in linked for name in devices)}
