# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd with its configuration, the NVIDIA container toolkit, runc and CDI specifications."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from . import dpkg, engines, masking, processes
from .context import Context
from .tree import Tree

_VERSION = re.compile(r"\bv?(\d+\.\d+\.\d+(?:-(?:k3s|rke2|rc|beta|alpha)[\w.]*)?)")
_IMPORTS = re.compile(r"^\s*imports\s*=\s*\[(?P<list>[^\]]*)\]", re.M | re.S)
_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_DRIVER_IN_CDI = re.compile(r"lib(?:nvidia-ml|cuda|nvidia-ptxjitcompiler)\.so\.(\d{3}\.\d[\d.]*\d)")
_OPERATOR_MARKS = ("/usr/local/nvidia/toolkit", "/run/nvidia/toolkit")
_TEXT_LIMIT = 256 * 1024
_MOST_DROP_INS = 20


@dataclass(frozen=True)
class Home:
    """Where one distribution of containerd keeps its things."""

    owner: str
    marker: str
    socket: str
    config: str
    units: tuple[str, ...]
    programs: tuple[str, ...]
    templates: tuple[str, ...] = ()


_RANCHER = "/var/lib/rancher"
_RKE2 = f"{_RANCHER}/rke2/agent/etc/containerd"
_K3S = f"{_RANCHER}/k3s/agent/etc/containerd"
HOMES = (
    Home(
        "rke2", f"{_RANCHER}/rke2", "/run/k3s/containerd/containerd.sock",
        f"{_RKE2}/config.toml", ("rke2-server.service", "rke2-agent.service"),
        (f"{_RANCHER}/rke2/bin/containerd", f"{_RANCHER}/rke2/data/current/bin/containerd"),
        (f"{_RKE2}/config.toml.tmpl", f"{_RKE2}/config-v3.toml.tmpl"),
    ),
    Home(
        "k3s", f"{_RANCHER}/k3s", "/run/k3s/containerd/containerd.sock",
        f"{_K3S}/config.toml", ("k3s.service", "k3s-agent.service"),
        (f"{_RANCHER}/k3s/data/current/bin/containerd",),
        (f"{_K3S}/config.toml.tmpl", f"{_K3S}/config-v3.toml.tmpl"),
    ),
    Home(
        "k0s", "/var/lib/k0s", "/run/k0s/containerd.sock", "/etc/k0s/containerd.toml",
        ("k0scontroller.service", "k0sworker.service"), ("/var/lib/k0s/bin/containerd",),
    ),
    Home(
        "microk8s", "/var/snap/microk8s", "/var/snap/microk8s/common/run/containerd.sock",
        "/var/snap/microk8s/current/args/containerd.toml", ("snap.microk8s.daemon-containerd.service",),
        ("/snap/microk8s/current/bin/containerd",), ("/var/snap/microk8s/current/args/containerd-template.toml",),
    ),
)  # fmt: skip
HOST = Home(
    "host", "", "/run/containerd/containerd.sock", "/etc/containerd/config.toml", ("containerd.service",),
    ("/usr/bin/containerd", "/usr/local/bin/containerd", "/usr/sbin/containerd"),
)  # fmt: skip


def read(ctx: Context) -> None:
    tree = ctx.tree
    home = find_home(tree)
    if home is None:
        ctx.set("containers.containerd", None)
    else:
        _containerd(ctx, home)
    with ctx.attempt("containers.toolkit"):
        _toolkit(ctx)
    with ctx.attempt("containers.runc"):
        _runc(ctx)
    with ctx.attempt("containers.cdi"):
        ctx.set("containers.cdi", cdi(tree))
    engines.read(ctx)


def find_home(tree: Tree) -> Home | None:
    """The containerd of this system: a Kubernetes distribution's own one before the host's; None without any."""
    for home in HOMES:
        if tree.lexists(home.config) or any(tree.lexists(program) for program in home.programs):
            return home
    if any(tree.isfile(program) for program in HOST.programs) or tree.lexists(HOST.config):
        return HOST
    return None


def _containerd(ctx: Context, home: Home) -> None:
    tree, base = ctx.tree, "containers.containerd"
    program = next((one for one in home.programs if tree.isfile(one)), None)
    with ctx.attempt(f"{base}.version"):
        _version(ctx, f"{base}.version", program, ("containerd.io", "containerd", "containerd2"), "containerd")
    ctx.set(f"{base}.socket", home.socket)
    config: dict[str, Any] = {"path": home.config}
    ctx.set(f"{base}.config", config)
    text = None
    texts: dict[str, str] = {}
    with ctx.attempt(f"{base}.config.text"):
        text = tree.text_exact(home.config, _TEXT_LIMIT)
        _put_text(config, text)
    with ctx.attempt(f"{base}.config.drop_ins"):
        texts = drop_ins(ctx, home, text)
        shown = {path: masking.text(printable(content)) for path, content in sorted(texts.items())[:_MOST_DROP_INS]}
        if any(shown[path] != texts[path] for path in shown):
            config["masked"] = True
        config["drop_ins"] = shown
        if len(texts) > _MOST_DROP_INS:
            ctx.cannot(f"{base}.config.drop_ins[]", f"{len(texts)} files, only the first {_MOST_DROP_INS} are given")
    ctx.set(f"{base}.owner", owner(home, text, texts, program))
    _active(ctx, f"{base}.active", home)
    with ctx.attempt(f"{base}.gpu_containers"):
        if tree.is_host or tree.isdir("/proc/1"):
            ctx.set(f"{base}.gpu_containers", processes.gpu_containers(tree))
        else:
            ctx.cannot(f"{base}.gpu_containers", "another tree is read: nothing runs in it")


def _put_text(config: dict[str, Any], text: str | None) -> None:
    """Text without secrets and the checksum of the file as it is; ``masked`` says that the two differ."""
    config["text"] = None if text is None else masking.text(printable(text))
    config["sha256"] = None if text is None else hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    if text is not None and config["text"] != text:
        config["masked"] = True


def printable(text: str) -> str:
    """Text that JSON can carry: bytes that are no UTF-8 become replacement characters."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def drop_ins(ctx: Context, home: Home, text: str | None) -> dict[str, str]:
    """Path → text of all files that belong to the configuration.

    Imported ones (and theirs), those that lie beside the main file in conf.d or config.d and may be imported by nobody,
    and the distribution's templates.
    """
    tree = ctx.tree
    directory = home.config.rsplit("/", 1)[0]
    found: dict[str, str] = {}
    todo = _imported(tree, home.config, text or "")
    for name in ("conf.d", "config.d", "config.toml.d", "config-v3.toml.d", "containerd.d"):
        todo += tree.glob(f"{directory}/{name}", "*.toml")
    todo += [path for path in home.templates if tree.isfile(path)]
    while todo and len(found) <= _MOST_DROP_INS:
        path = todo.pop(0)
        if path in found or path == home.config:
            continue
        try:
            content = tree.text_exact(path, _TEXT_LIMIT)
        except OSError as error:
            ctx.cannot(f"containers.containerd.config.drop_ins[{path}]", error)
            continue
        if content is None:
            continue
        found[path] = content
        todo += _imported(tree, path, content)
    return found


def _imported(tree: Tree, path: str, text: str) -> list[str]:
    match = _IMPORTS.search(text)
    if not match:
        return []
    hits: list[str] = []
    for quoted in _QUOTED.finditer(re.sub(r"(?m)#.*$", "", match.group("list"))):
        pattern = quoted.group(1) or quoted.group(2) or ""
        if not pattern.startswith("/"):
            pattern = f"{path.rsplit('/', 1)[0]}/{pattern}"
        hits += tree.expand(pattern) if any(char in pattern for char in "*?[") else [pattern]
    return hits


def owner(home: Home, text: str | None, texts: dict[str, str], program: str | None) -> str:
    """Who writes the configuration: the distribution's name, kubespray, operator, or host (nobody but us)."""
    if home is not HOST:
        return home.owner
    together = "\n".join([text or "", *texts.values()])
    if any(mark in together for mark in _OPERATOR_MARKS):
        return "operator"
    if "/etc/containerd/cri-base.json" in together or (
        (text or "").startswith("# Ansible managed") and (program == "/usr/local/bin/containerd")
    ):
        return "kubespray"
    return "host"


def _active(ctx: Context, path: str, home: Home) -> None:
    services = ctx.known.get("services")
    if isinstance(services, dict):
        ctx.set(path, any((services.get(unit) or {}).get("active", False) for unit in home.units))
        return
    if not ctx.tree.is_host:
        ctx.cannot(path, "another tree is read: nothing runs in it")
        return
    with ctx.attempt(path):
        ctx.set(path, running(ctx.tree, "containerd"))


def running(tree: Tree, command: str) -> bool:
    """Whether a process of that name is there. Raises ValueError without /proc."""
    pids = [name for name in tree.names("/proc") if name.isdigit()]
    if not pids:
        raise ValueError("/proc shows no processes")
    for pid in pids:
        try:
            if (tree.text(f"/proc/{pid}/comm", 64) or "") == command[:15]:
                return True
        except OSError:
            continue
    return False


def _version(ctx: Context, path: str, program: str | None, packages: tuple[str, ...], what: str) -> None:
    """The version a program prints; of its package when programs are not started; null when it is not there."""
    tree = ctx.tree
    if program is not None and tree.is_host:
        result = ctx.run([program, "--version"])
        found = _VERSION.search(result.out)
        if result.ok and found:
            ctx.set(path, found.group(1))
            return
        packaged = package_version(tree, packages)
        if packaged:
            ctx.set(path, packaged)
        else:
            ctx.cannot(path, result.why(what))
        return
    packaged = package_version(tree, packages)
    if program is None or packaged:
        ctx.set(path, packaged)
    else:
        ctx.cannot(path, f"another tree is read: {program} is not started, and no package of it is installed")


def package_version(tree: Tree, names: tuple[str, ...]) -> str | None:
    """The upstream version of the first of these packages that is installed; None without."""
    try:
        there = {one.name: one.version for one in dpkg.packages(tree) if one.there}
    except OSError:
        return None
    for name in names:
        if name in there:
            found = re.search(r"(?:\d+:)?(\d+(?:\.\d+)+)", there[name])
            return found.group(1) if found else there[name]
    return None


def _toolkit(ctx: Context) -> None:
    tree = ctx.tree
    program = ctx.which("nvidia-ctk", "nvidia-container-runtime")
    packages = ("nvidia-container-toolkit-base", "nvidia-container-toolkit")
    packaged = package_version(tree, packages)
    if program is None and packaged is None:
        ctx.set("containers.toolkit", None)
        return
    if packaged is not None:
        ctx.set("containers.toolkit.version", packaged)
    else:
        _version(ctx, "containers.toolkit.version", program, packages, "nvidia-ctk")
    with ctx.attempt("containers.toolkit.mode"):
        ctx.set("containers.toolkit.mode", mode(tree.text("/etc/nvidia-container-runtime/config.toml") or ""))


def mode(text: str) -> str:
    """The runtime's mode in its configuration; ``auto`` where it is not set, which is its default."""
    section = ""
    for line in text.splitlines():
        header = re.match(r"\s*\[([^\]]+)\]", line)
        if header:
            section = header.group(1).strip()
        found = re.match(r"\s*mode\s*=\s*[\"']([^\"']+)[\"']", line)
        if found and section == "nvidia-container-runtime":
            return found.group(1)
    return "auto"


def _runc(ctx: Context) -> None:
    tree = ctx.tree
    places = ("/usr/sbin/runc", "/usr/bin/runc", "/usr/local/sbin/runc", "/usr/local/bin/runc",
              f"{_RANCHER}/k3s/data/current/bin/runc", f"{_RANCHER}/rke2/bin/runc", "/var/lib/k0s/bin/runc",
              )  # fmt: skip
    program = next((one for one in places if tree.isfile(one)), None)
    _version(ctx, "containers.runc", program, ("runc",) if program else (), "runc")


def cdi(tree: Tree) -> list[dict[str, str | None]]:
    """``[{path, driver}]`` of NVIDIA's CDI specifications; driver is null where the file names no library version."""
    rows: list[dict[str, str | None]] = []
    for directory in ("/etc/cdi", "/var/run/cdi"):
        for path in tree.glob(directory):
            if not path.endswith((".yaml", ".yml", ".json")):
                continue
            text = tree.text(path, 4 * 1024 * 1024) or ""
            if "nvidia.com/" not in text:
                continue
            found = _DRIVER_IN_CDI.search(text)
            rows.append({"path": path, "driver": found.group(1) if found else None})
    return rows
