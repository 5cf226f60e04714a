# SPDX-License-Identifier: GPL-3.0-or-later
"""Serve an emulated cluster: ``python -m emulator --kubeconfig FILE [--state FILE] [--token TOKEN]``.

Writes the kubeconfig once it listens, and serves until it is stopped. The state file holds ``version`` and ``objects``.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import threading
from typing import Any

import yaml

from .controllers import Controllers
from .server import Server
from .store import Store


def fill(store: Store, state: dict[str, Any]) -> None:
    """Create the objects of a state file, namespaces first."""
    for name in ("default", "kube-system"):
        store.create(store.kind("", "v1", "namespaces"), "", {"metadata": {"name": name}})
    for given in state.get("objects") or []:
        group, _slash, version = given["apiVersion"].rpartition("/")
        wanted = (group, version, given["kind"])
        kind = next(one for one in store.kinds() if (one.group, one.version, one.kind) == wanted)
        store.create(kind, given["metadata"].get("namespace", "") if kind.namespaced else "", dict(given))


def kubeconfig(url: str, token: str | None) -> dict[str, Any]:
    """A kubeconfig with one context, ``emulator``."""
    user = {"token": token} if token else {}
    return {"apiVersion": "v1", "kind": "Config", "current-context": "emulator",
            "clusters": [{"name": "emulator", "cluster": {"server": url}}],
            "users": [{"name": "emulator", "user": user}],
            "contexts": [{"name": "emulator", "context": {"cluster": "emulator", "user": "emulator"}}]}


def main() -> None:
    """Parse arguments and serve."""
    parser = argparse.ArgumentParser(prog="emulator")
    parser.add_argument("--kubeconfig", required=True, type=pathlib.Path)
    parser.add_argument("--state", type=pathlib.Path)
    parser.add_argument("--token")
    parser.add_argument("--pid-file", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, help="end by itself after so long")
    args = parser.parse_args()
    state = yaml.safe_load(args.state.read_text()) if args.state else {}
    store = Store()
    Controllers(store)
    fill(store, state)
    server = Server(store, state.get("version", "v1.34.1"), args.token)
    if args.pid_file:
        args.pid_file.write_text(f"{os.getpid()}\n")
    beside = args.kubeconfig.with_suffix(".new")
    beside.write_text(yaml.safe_dump(kubeconfig(server.url, args.token)))
    beside.rename(args.kubeconfig)
    if args.seconds:
        threading.Timer(args.seconds, server.shutdown).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
