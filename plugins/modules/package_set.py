#!/usr/bin/python
# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: package_set
short_description: Bring a set of packages to exact versions and take others out, in one transaction
version_added: 0.1.0
description:
  - One transaction of apt, dnf 4, dnf 5 or zypper that installs, replaces and removes at once, by the managers' own
    programs. No bindings of the host's Python are needed.
  - What the manager would do is asked first. A transaction that takes out a package that nobody named is refused, and
    afterwards the host is read again.
  - What an interrupted transaction left is finished first, half-configured packages of dpkg as well as two versions of
    one package in rpm's database.
  - Scripts of the packages ask nothing and start or restart no service.
  - With O(set) the module's own hold is lifted for the transaction and set again whatever happens. Where nothing
    differs, no hold is touched but the set's own.
requirements:
  - apt, dnf or zypper on the host
extends_documentation_fragment:
  - baremetal.nvidia.host
author:
  - baremetal.nvidia maintainers (@baremetal-nvidia)
options:
  packages:
    description:
      - Packages, each with its exact version as the manager writes it (V(3:580.178.04-1.el9) with dnf), or null for
        what is offered. One of several kernels' packages may be named with its version and architecture.
    type: dict
    default: {}
  refresh:
    description:
      - Whether the package lists are fetched first. Not in check mode; this is no change. Where nothing else is asked
        for, nothing else is done.
      - With apt the day on which a newer version of a held kernel package is first seen is written into the state file.
    type: bool
    default: false
  remove:
    description: Packages that are taken out in the same transaction.
    type: list
    elements: str
    default: []
  purge:
    description: Whether the settings of what is removed go too, also those of a package that is half installed (apt).
    type: bool
    default: false
  search:
    description: Directories in which package scripts find programs before those of the system.
    type: list
    elements: str
    default: []
  reinstall:
    description: Packages that are installed once more, as their files are not what the package brings.
    type: list
    elements: str
    default: []
  streams:
    description:
      - >-
        Module streams of dnf, such as V({nvidia-driver: 580-open}). An empty one switches the module off. Another
        stream is switched to before the transaction.
    type: dict
    default: {}
  files:
    description:
      - Package files on the host that are taken instead of a repository's, each with its SHA-256, or null where it is
        not to be looked at. Only those that O(packages) names are installed.
    type: dict
    default: {}
  only_files:
    description:
      - Whether nothing comes from a repository. Of O(files) those come too that O(packages) need and that the host
        lacks; one that is needed and not there ends the task before anything is touched.
    type: bool
    default: false
  may_go:
    description:
      - A regular expression over whole names of packages that may be taken out although O(remove) does not name them,
        as those of the same driver that need what is exchanged.
    type: str
  set:
    description: Name of the set of holds that is lifted for the transaction, as in M(baremetal.nvidia.kernel_pin).
    type: str
  hold:
    description: Regular expressions over whole names of installed packages that the set holds afterwards.
    type: list
    elements: str
    default: []
  why:
    description: The reason of the hold.
    type: str
    default: these packages move together, by the plan
  former:
    description:
      - Where packages that are replaced or taken out are kept as files, with their checksums, so that there is a way
        back. They are fetched at their installed versions; where no source has one any more, it is packed again from
        its files (apt), or a warning names it. The folder has those of one move.
    type: path
  fetch:
    description:
      - Whether the packages are only fetched, into the manager's own cache, so that a later call needs no network for
        them. Nothing is installed, no hold is touched, and it is no change.
    type: bool
    default: false
  untried:
    description: Whether check mode leaves out asking the manager, since what offers the packages is not in place yet.
    type: bool
    default: false
  recommends:
    description: Whether recommended packages (weak dependencies) come too.
    type: bool
    default: false
  reload_allowed:
    description: Whether systemd may reload its units while GPU containers run that would lose their GPUs by it.
    type: bool
    default: false
  timeout:
    description: Seconds that the transaction may take.
    type: int
    default: 3600
  lock_timeout:
    description: Seconds to wait for the lock of the package manager.
    type: int
    default: 300
seealso:
  - module: baremetal.nvidia.kernel_pin
  - module: baremetal.nvidia.package_source
"""

EXAMPLES = r"""
- name: Open modules for proprietary ones, and the branch with them
  baremetal.nvidia.package_set:
    packages:
      nvidia-driver-cuda: 3:580.178.04-1.el9
      kmod-nvidia-latest-dkms: 3:580.178.04-1.el9
    remove: [kmod-nvidia-open-dkms]
    streams: {nvidia-driver: 580-dkms}
    set: driver
    hold: ['(kmod-|lib)?nvidia-.*']
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be, one line each.
  returned: success
  type: list
  elements: str
  sample: [replace nvidia-driver-cuda 3:570.211.01-1.el9 by 3:580.178.04-1.el9, remove kmod-nvidia-open-dkms]
before:
  description: The version of each package before, null for none.
  returned: success
  type: dict
after:
  description: The version of each package now, or in check mode as it would be.
  returned: success
  type: dict
former:
  description: Where replaced packages are, which they are (C(files)), and those that could not be kept (C(lost)).
  returned: success
  type: dict
waited:
  description: Seconds that were spent waiting for the lock of the package manager.
  returned: success
  type: float
"""

from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.baremetal.nvidia.plugins.module_utils.errors import HostError
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages import guard, seen
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.detect import backend
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.former import Keeper
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.managers import transactions
from ansible_collections.baremetal.nvidia.plugins.module_utils.packages.transaction import Outcome, Transaction, Wish
from ansible_collections.baremetal.nvidia.plugins.module_utils.pin import Pin, Request
from ansible_collections.baremetal.nvidia.plugins.module_utils.run import run
from ansible_collections.baremetal.nvidia.plugins.module_utils.state import Store

NAMES: dict[str, Any] = {"type": "list", "elements": "str", "default": []}
SPEC: dict[str, Any] = {
    "packages": {"type": "dict", "default": {}},
    "refresh": {"type": "bool", "default": False},
    "remove": NAMES,
    "purge": {"type": "bool", "default": False},
    "search": NAMES,
    "reinstall": NAMES,
    "streams": {"type": "dict", "default": {}},
    "files": {"type": "dict", "default": {}},
    "only_files": {"type": "bool", "default": False},
    "may_go": {"type": "str"},
    "set": {"type": "str"},
    "hold": NAMES,
    "why": {"type": "str", "default": "these packages move together, by the plan"},
    "former": {"type": "path"},
    "fetch": {"type": "bool", "default": False},
    "untried": {"type": "bool", "default": False},
    "recommends": {"type": "bool", "default": False},
    "reload_allowed": {"type": "bool", "default": False},
    "timeout": {"type": "int", "default": 3600},
    "lock_timeout": {"type": "int", "default": 300},
    "lease": {"type": "str"},
}


def wish_of(asked: dict[str, Any]) -> Wish:
    """The options as a wish. An empty version is none."""
    return Wish(
        packages={name: str(version) if version else None for name, version in asked["packages"].items()},
        remove=tuple(asked["remove"]),
        reinstall=tuple(asked["reinstall"]),
        streams={name: str(stream or "") for name, stream in asked["streams"].items()},
        files={path: str(digest) if digest else None for path, digest in asked["files"].items()},
        only_files=asked["only_files"],
        may_go=asked["may_go"],
        recommends=asked["recommends"],
        purge=asked["purge"],
        search=tuple(asked["search"]),
        fetch=asked["fetch"],
        untried=asked["untried"],
        timeout=asked["timeout"],
        lock_timeout=asked["lock_timeout"],
    )


def lists_alone(asked: dict[str, Any]) -> bool:
    """Whether nothing is asked for but fresh package lists."""
    return asked["refresh"] and not any(asked[one] for one in ("packages", "remove", "reinstall", "streams", "set"))


class Holds:
    """The set of holds that goes with the packages."""

    def __init__(self, asked: dict[str, Any], store: Store) -> None:
        self.asked, self.store = asked, store

    def _run(self, request: Request, check: bool) -> bool:
        return Pin(backend(run), self.store).run(request, check=check).changed

    def lift(self) -> None:
        """Free the packages for the transaction."""
        if self.asked["set"]:
            self._run(Request(pin_set=self.asked["set"], present=False, lock_timeout=self.asked["lock_timeout"]), False)

    def close(self, check: bool) -> bool:
        """Hold what is installed of the set; say whether that changed anything."""
        if not self.asked["set"] or not self.asked["hold"]:
            return False
        return self._run(Request(pin_set=self.asked["set"], patterns=tuple(self.asked["hold"]), why=self.asked["why"],
                                 lock_timeout=self.asked["lock_timeout"]), check)


def carry_out(asked: dict[str, Any], store: Store, check: bool) -> Outcome:
    """The transaction with its hold around it. Raises HostError."""
    manager = transactions(run)
    transaction = Transaction(manager, backend(run).wait_for_lock)
    wish, holds = wish_of(asked), Holds(asked, store)
    if asked["refresh"] and not check:
        manager.refresh(wish)
        seen.note(store, backend(run))
    if lists_alone(asked):
        return Outcome()  # before a plan is made, nothing that was cut off is finished either
    wish = transaction.from_files(wish)
    if asked["fetch"]:
        return Outcome() if check else transaction.run(wish, check=False)
    todo = transaction.todo(wish)
    look = _nothing if asked["reload_allowed"] else guard.refuse_under_gpu_containers
    if todo:
        look()
    if check or not todo:
        outcome = transaction.run(wish, check=True)
        if holds.close(check):
            outcome.changed = True
            outcome.actions.append(f"hold the packages of set {asked['set']}")
        return outcome
    kept = Keeper(run, manager.name, asked["former"]).keep(todo, wish, manager.versions()) if asked["former"] else None
    holds.lift()
    try:
        outcome = transaction.run(wish, check=False, guard=look)
    finally:
        holds.close(check=False)
    outcome.former = asdict(kept) if kept is not None else None
    return outcome


def _nothing() -> None:
    """GPU containers need no look: the reload is allowed."""


def main() -> None:
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    asked = module.params
    try:
        store = Store()
        if not module.check_mode and (asked["lease"] or not lists_alone(asked)):
            store.renew(asked["lease"], doing=f"package_set ({', '.join(sorted(asked['packages'])[:3])})")
        outcome = carry_out(asked, store, module.check_mode)
    except (HostError, OSError) as exc:
        module.fail_json(msg=str(exc))
    if outcome.former and outcome.former["lost"]:
        module.warn(f"no source has {', '.join(outcome.former['lost'])} any more: the way back needs it from elsewhere")
    shown = {"before": _text(outcome.before), "after": _text(outcome.after)} if outcome.changed else {}
    module.exit_json(changed=outcome.changed, actions=outcome.actions, before=outcome.before, after=outcome.after,
                     former=outcome.former, waited=round(outcome.waited, 1), diff=shown)


def _text(versions: dict[str, str | None]) -> str:
    return "".join(f"{name} {version}\n" for name, version in sorted(versions.items()) if version)


if __name__ == "__main__":
    main()
