# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A question as a person writes it (``gpu_ask``), as the facts and the policy that the planner takes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import gpu_names, policy_vars

#: What a question may hold beside policy, with what it means.
KEYS: Mapping[str, str] = {
    "gpu": "a name, a PCI id, or a list of them; '8 x H100' counts",
    "os": "the system, such as ubuntu 24.04",
    "arch": "the machine's architecture, x86_64 if it is not given",
    "kernel": "the kernel that runs, as uname -r prints it",
    "kernels": "kernels to be judged; without it those that the matrix knows of the system",
    "driver": "the driver version that is installed",
    "flavour": "open or proprietary: the modules of the installed driver",
    "secure_boot": "whether secure boot is on",
}
NEEDED = ("gpu", "os")
NAME = "gpu_ask"
MOST_GPUS = 16
MOST_MEANINGS = 64
_SYSTEM = re.compile(r"([a-z][a-z_-]*[a-z])[ -]?([0-9][0-9.]*)\Z")
_RELEASE = re.compile(r"[0-9]+\.[0-9]+[0-9A-Za-z.+_~-]*\Z")
_DRIVER = re.compile(r"[0-9]{3}\.[0-9]{2,3}(\.[0-9]{2})?\Z")
_COUNTED = re.compile(r"([0-9]{1,2})\s*[xX*]\s+(.+)\Z")


class AskError(ValueError):
    """A question that cannot be meant: names what was given and what is allowed."""


@dataclass(frozen=True)
class Question:
    """A question: the GPUs it may mean (each meaning a list of products), and what else it says."""

    meanings: tuple[tuple[Any, ...], ...]
    os_id: str
    os_version: str
    arch: str = "x86_64"
    kernel: str | None = None
    kernels: tuple[str, ...] = ()
    driver: str | None = None
    flavour: str | None = None
    secure_boot: bool | None = None
    policy: Mapping[str, Any] = field(default_factory=dict)

    def facts(self, gpus: tuple[Any, ...], kernel: str | None = None) -> dict[str, Any]:
        """Return the facts of a host of which only this is known; ``kernel`` instead of the one that was given."""
        facts: dict[str, Any] = {
            "os": {"id": self.os_id, "version": self.os_version, "arch": self.arch},
            "gpus": [{"address": f"0000:{number:02x}:00.0", "id": one.id} for number, one in enumerate(gpus, 1)],
        }
        if self.secure_boot is not None:
            facts["secure_boot"] = {"enabled": self.secure_boot}
        module = {"version": self.driver, **({"flavour": self.flavour} if self.flavour else {})}
        if self.driver:
            facts["driver"] = {"library": self.driver, **({} if kernel else {"loaded": module})}
        release = kernel or self.kernel
        if release:
            facts["kernel"] = {"running": release, "default_boot": release}
            if self.driver and not kernel:
                facts["kernel"]["installed"] = [{"release": release, "image": True, "nvidia": module}]
        return facts


def policy_of(given: Any, names: Collection[str]) -> dict[str, Any]:
    """Return the policy in a question; a name may be written with or without gpu_. Raises AskError for unknown keys."""
    if not isinstance(given, Mapping):
        raise AskError(f"{NAME} is {given!r}; a mapping with {', '.join(KEYS)} and policy is needed")
    missing = [key for key in NEEDED if given.get(key) is None]
    if missing:
        example = '{gpu: H100, os: ubuntu 24.04, frameworks: {pytorch: "2.7"}}'
        raise AskError(f"{NAME} lacks {' and '.join(missing)}; a question is such as {example}")
    policy = {}
    for key, value in given.items():
        if key in KEYS:
            continue
        name = policy_vars.PREFIX + str(key).removeprefix(policy_vars.PREFIX)
        if name not in names:
            near = policy_vars.nearest(name, [*names, *(policy_vars.PREFIX + one for one in KEYS)])
            hint = f"allowed are {', '.join(KEYS)} and policy variables such as cuda and frameworks"
            if near:
                hint = f"did you mean {near.removeprefix(policy_vars.PREFIX)}?"
            raise AskError(f"{NAME} has the unknown key {key} (value {value!r}): {hint}")
        policy[name] = value
    return policy


def read(given: Mapping[str, Any], matrix: Any, policy: Mapping[str, Any]) -> Question:
    """Return the question; raise AskError naming the key, the value and what is allowed. ``policy``: policy_of it."""
    os_id, os_version = system("os", given.get("os"))
    if matrix.system(os_id, os_version) is None:
        known = ", ".join(sorted({str(row.os) for row in matrix.tables["systems"]}))
        raise AskError(f"{NAME}.os is {given['os']!r}; known are {known}")
    return Question(
        meanings=_meanings(given.get("gpu"), matrix),
        os_id=os_id,
        os_version=os_version,
        arch=_one_of(given, "arch", ("x86_64", "aarch64")) or "x86_64",
        kernel=None if given.get("kernel") is None else _release("kernel", given["kernel"]),
        kernels=_releases(given.get("kernels")),
        driver=_driver(given.get("driver")),
        flavour=_one_of(given, "flavour", ("open", "proprietary")),
        secure_boot=_flag(given.get("secure_boot")),
        policy=policy,
    )


def agree(name: str, meanings: Iterable[tuple[Any, ...]], plans: Iterable[Mapping[str, Any]]) -> None:
    """Raise AskError where a name means cards that get different drivers; it lists which get which."""
    answers: dict[str, list[str]] = {}
    for gpus, plan in zip(meanings, plans):
        driver = plan["decisions"].get("driver") or {}
        words = [str(driver[key]) for key in ("version", "flavour", "source") if driver.get(key)]
        text = " ".join((["blocked"] if plan["verdict"] == "blocked" else []) + words) or "no driver"
        answers.setdefault(text, []).append(" + ".join(dict.fromkeys(f"{one.name} ({one.id})" for one in gpus)))
    if len(answers) > 1:
        said = "; ".join(f"{text}: {', '.join(cards)}" for text, cards in answers.items())
        raise AskError(f"{name} may mean cards with different answers; name one of them. {said}")


def _meanings(given: Any, matrix: Any) -> tuple[tuple[Any, ...], ...]:
    wanted = [given] if isinstance(given, str) else given
    if not isinstance(wanted, list) or not wanted:
        raise AskError(f"{NAME}.gpu is {given!r}; {KEYS['gpu']} is needed")
    found: list[list[tuple[Any, ...]]] = []
    for one in wanted:
        if not isinstance(one, str) or not one.strip():
            raise AskError(f"{NAME}.gpu is {one!r}; {KEYS['gpu']} is needed")
        counted = _COUNTED.match(one.strip())
        number, name = (int(counted[1]), counted[2]) if counted else (1, one)
        if not 1 <= number <= MOST_GPUS:
            raise AskError(f"{NAME}.gpu is {one!r}; a number from 1 to {MOST_GPUS} is needed")
        try:
            found.append([(product,) * number for product in gpu_names.find(matrix, name)])
        except gpu_names.UnknownGpu as error:
            raise AskError(f"{NAME}.gpu: {error}") from error
    combined = itertools.islice(itertools.product(*found), MOST_MEANINGS + 1)
    meanings = tuple(tuple(itertools.chain.from_iterable(groups)) for groups in combined)
    if len(meanings) > MOST_MEANINGS:
        raise AskError(f"{NAME}.gpu is {given!r}, which may mean too many different cards; name them more exactly")
    return meanings


def system(key: str, given: Any) -> tuple[str, str]:
    """Return id and version of a system such as ``ubuntu 24.04``; raise AskError for what is none."""
    match = _SYSTEM.match(given.strip().lower()) if isinstance(given, str) else None
    if match is None:
        raise AskError(f"{NAME}.{key} is {given!r}; a text such as 'ubuntu 24.04' or 'debian 13' is needed")
    return match[1], match[2]


def _release(key: str, given: Any) -> str:
    if not isinstance(given, str) or not _RELEASE.match(given) or len(given) > 128:
        raise AskError(f"{NAME}.{key} is {given!r}; a kernel release as uname -r prints it is needed (quote it)")
    return given


def _releases(given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, list) or not given or len(given) > MOST_MEANINGS:
        raise AskError(f"{NAME}.kernels is {given!r}; a list of kernel releases is needed")
    return tuple(_release("kernels", one) for one in given)


def _driver(given: Any) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str) or not _DRIVER.match(given):
        what = "the version that is installed, such as '580.178.04', is needed (quote it)"
        raise AskError(f"{NAME}.driver is {given!r}; {what}")
    return given


def _flag(given: Any) -> bool | None:
    if given is None or isinstance(given, bool):
        return given
    raise AskError(f"{NAME}.secure_boot is {given!r}; true or false is needed")


def _one_of(given: Mapping[str, Any], key: str, allowed: tuple[str, ...]) -> str | None:
    value = given.get(key)
    if value is None or value in allowed:
        return value
    raise AskError(f"{NAME}.{key} is {value!r}; allowed are {', '.join(allowed)}")
