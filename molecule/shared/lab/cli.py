# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""scripts/lab: the command line."""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from . import hosts, inventory, podman, ports, repository, shell
from .settings import SHARED, LabError, Settings, from_environment


def _start(settings: Settings, chosen: list[hosts.Host], label: str | None) -> None:
    with hosts.locked(settings, "build"):
        if not settings.upstream:
            repository.ensure(settings)  # a host has it mounted: it stands before the first one starts
        with ThreadPoolExecutor(max_workers=2) as pool:
            built = list(pool.map(lambda host: hosts.image_for(host, settings, label), _one_a_suite(chosen, label)))
        by_suite = dict(zip([_kind(host) for host in _one_a_suite(chosen, label)], built, strict=True))
    for host in chosen:
        hosts.create(host, settings, by_suite[_kind(host)] if label is None else hosts.image_for(host, settings, label))
    for host in chosen:
        hosts.wait(host, settings)


def _kind(host: hosts.Host) -> str:
    """What hosts share an image by."""
    return host.system or host.suite


def _one_a_suite(chosen: list[hosts.Host], label: str | None) -> list[hosts.Host]:
    return list({_kind(host) if label is None else host.name: host for host in chosen}.values())


def _running(settings: Settings) -> list[hosts.Host]:
    states = podman.containers(settings.prefix)
    return [host for host in hosts.known(settings).values() if states.get(host.container) == "running"]


def _write(settings: Settings) -> None:
    with hosts.locked(settings, "build"):
        repositories = {} if settings.upstream else repository.ensure(settings)
    path = inventory.write(settings, _running(settings), repositories)
    hosts.hand_over(settings)
    shell.say(f"inventory: {path}")


def up(settings: Settings, arguments: argparse.Namespace) -> int:
    """Start what is not running."""
    print((SHARED / "simulated.txt").read_text(), end="", flush=True)
    there = _running(settings)
    missing = [host for host in hosts.pick(settings, arguments.hosts or hosts.usual(settings)) if host not in there]
    if missing:
        _start(settings, missing, arguments.snapshot)
    _write(settings)
    return 0


def down(settings: Settings, arguments: argparse.Namespace) -> int:
    """Throw hosts away; the images and what was downloaded stay."""
    for host in hosts.pick(settings, arguments.hosts):
        hosts.remove(host, settings)
    if not arguments.hosts:
        ports.forget(settings)
        (settings.inventory / "hosts.yml").unlink(missing_ok=True)
    shell.say("down")
    return 0


def reset(settings: Settings, arguments: argparse.Namespace) -> int:
    """Throw hosts away and start them fresh, or from a snapshot."""
    _start(settings, hosts.pick(settings, arguments.hosts), arguments.snapshot)
    _write(settings)
    return 0


def snapshot(settings: Settings, arguments: argparse.Namespace) -> int:
    """Keep a host's state under a label."""
    for host in hosts.pick(settings, [arguments.host]):
        with shell.Beat(f"{host.name}: snapshot {arguments.label}"):
            hosts.snapshot(host, settings, arguments.label)
    return 0


def status(settings: Settings, _arguments: argparse.Namespace) -> int:
    """What is up, as JSON."""
    states = podman.containers(settings.prefix)
    listed = {host.name: {"state": states.get(host.container, "absent"), "container": host.container, "user": host.user,
                          "port": hosts.port(settings, host) if host.container in states else None}
              for host in hosts.known(settings).values()}
    print(json.dumps({"lab": settings.name, "inventory": str(settings.inventory), "hosts": listed}, indent=2))
    return 0


def execute(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run a command on a host, past ssh."""
    host = hosts.pick(settings, [arguments.host])[0]
    flags = ["--interactive"] + (["--tty"] if sys.stdin.isatty() and sys.stdout.isatty() else [])
    return subprocess.run(
        [*podman.command(), "exec", *flags, host.container, *(arguments.command or ["bash"])], check=False).returncode


def attempt(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run a command in a copy of a snapshot that is thrown away; its exit status is the last line, rc=N."""
    host = hosts.pick(settings, [arguments.host])[0]
    print(hosts.attempt(host, settings, arguments.label, arguments.command), end="")
    return 0


def simulated(_settings: Settings, _arguments: argparse.Namespace) -> int:
    """Say what is simulated."""
    print((SHARED / "simulated.txt").read_text(), end="")
    return 0


def parser() -> argparse.ArgumentParser:
    """The arguments."""
    top = argparse.ArgumentParser(prog="scripts/lab", description=__doc__, epilog=(
        "Environment: LAB_NAME (a second lab beside the first), LAB_PORT (first ssh port), LAB_UPSTREAM=1 "
        "(NVIDIA's real repositories), LAB_MIRROR (Debian's mirror), LAB_CACHE (default .cache), LAB_TWINS (several "
        "of a host: gpu-deb12=8)."))
    verbs = top.add_subparsers(dest="verb", required=True)
    for action, name, text in ((up, "up", "start the hosts and write the inventory"),
                               (down, "down", "throw the hosts away"),
                               (reset, "reset", "throw hosts away and start them fresh")):
        verb = verbs.add_parser(name, help=text)
        verb.set_defaults(action=action)
        if name == "reset":
            verb.add_argument("hosts", nargs="+", metavar="HOST")
        else:
            verb.add_argument("--hosts", nargs="*", metavar="HOST")
        if name != "down":
            verb.add_argument("--snapshot", metavar="LABEL", help="start from a snapshot")
    verb = verbs.add_parser("snapshot", help="keep a host's state")
    verb.set_defaults(action=snapshot)
    verb.add_argument("host")
    verb.add_argument("label")
    verbs.add_parser("status", help="what is up, as JSON").set_defaults(action=status)
    verbs.add_parser("simulated", help="what is simulated and what is real").set_defaults(action=simulated)
    verb = verbs.add_parser("try", help="run a command in a copy of a snapshot that is thrown away")
    verb.set_defaults(action=attempt)
    verb.add_argument("host")
    verb.add_argument("label")
    verb.add_argument("command", nargs=argparse.REMAINDER)
    verb = verbs.add_parser("exec", help="run a command on a host (default: a shell)")
    verb.set_defaults(action=execute)
    verb.add_argument("host")
    verb.add_argument("command", nargs=argparse.REMAINDER)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0 is good, 1 is an error that was said."""
    parsed = parser().parse_args(arguments)
    try:
        settings = from_environment()
        return int(parsed.action(settings, parsed))
    except LabError as error:
        print(f"lab: error: {error}", file=sys.stderr)
        return 1
