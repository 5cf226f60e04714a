# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An answer to a question in words: short lines, the driver first, then why, then everything else."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import describe

_LABEL = 12
_SOURCES = {"distro": "from the distribution", "nvidia": "from NVIDIA's repository", "custom": "as it is configured"}
_WORDS = {"yes": "yes", "no": "no", "untried": "not tried by anybody"}


def render(answer: Mapping[str, Any], width: int = 120) -> str:
    """Return the answer as lines of at most ``width`` columns."""
    lines: list[str] = []
    for label, text in _lines(answer):
        body = textwrap.wrap(text, max(40, width - _LABEL), break_long_words=False, break_on_hyphens=False) or [""]
        lines.append(f"{label:<{_LABEL}}{body[0]}".rstrip())
        lines += [" " * _LABEL + line for line in body[1:]]
    return "\n".join(lines)


def _lines(answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "QUESTION", _question(answer["question"])
    yield "DRIVER", driver_line(answer)
    yield from _labelled("BECAUSE", dict.fromkeys(answer["driver"].get("because") or ()))
    packages = answer["driver"].get("packages")
    if packages:
        yield "PACKAGES", ", ".join(f"{name} {version or 'as offered'}" for name, version in packages.items())
    if answer["possible"]:
        yield from _cuda(answer["cuda"])
    if answer.get("toolkit"):
        yield "TOOLKIT", f"nvidia-container-toolkit {answer['toolkit']}"
    yield from _labelled("KERNELS", (_kernel(kernel, answer["driver"]) for kernel in answer["kernels"]))
    changes = [*describe.change_lines(answer["changes"]), *describe.change_lines(answer["pending"])]
    yield from _labelled("TO CHANGE", changes)
    findings = [f"{item['severity']}: {describe.finding_line(item)}" for item in answer["findings"]]
    yield from _labelled("FINDINGS", findings)
    policy = answer["question"]["policy"]
    yield from _labelled("INVENTORY", (f"{name}: {_yaml(value)}" for name, value in policy.items()))


def _labelled(label: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(texts):
        yield ("" if number else label), text


def _question(question: Mapping[str, Any]) -> str:
    gpus = question["gpus"]
    shown = " or ".join(gpus[:4]) + (f" or {len(gpus) - 4} more, all with the same answer" if len(gpus) > 4 else "")
    parts = [shown, question["os"] + ("" if question["arch"] == "x86_64" else f" {question['arch']}")]
    if question["kernel"]:
        parts.append(f"kernel {question['kernel']}")
    if question["driver"]:
        parts.append(f"driver {question['driver']} installed")
    return "; ".join(parts)


def driver_line(answer: Mapping[str, Any]) -> str:
    """Return which driver it is, or that what is asked for cannot be, and what can."""
    if answer["possible"]:
        return driver_words(answer["driver"])
    if not answer["driver"].get("version"):
        return "none fits: see the findings"
    return f"as it is asked it cannot be done (see the findings); what fits is {driver_words(answer['driver'])}"


def driver_words(driver: Mapping[str, Any]) -> str:
    """Return a driver decision in words."""
    if not driver.get("version") and not driver.get("branch"):
        return "none fits"
    words = [str(driver.get("version") or f"R{driver['branch']}")]
    words.append(f"{driver['flavour']} modules" if driver.get("flavour") else "")
    words += [_SOURCES.get(str(driver.get("source")), ""), str(driver.get("method") or "")]
    text = ", ".join(word for word in words if word)
    return text + (" (the version that the matrix expects there)" if driver.get("predicted") else "")


def _cuda(cuda: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if cuda.get("native_max"):
        compat = f", {cuda['compat']} with its compatibility package" if cuda.get("compat") else ""
        yield "CUDA", f"up to {cuda['native_max']}{compat}"
    for name, found in (cuda.get("frameworks") or {}).items():
        ok = {True: "runs", False: "does not run", None: "is not known"}[found.get("ok")]
        wheel = f": wheels {found['wheel_index']}" if found.get("wheel_index") else ""
        floor = f", needs driver {found['min_driver']} or newer" if found.get("min_driver") else ""
        yield str(name).upper()[: _LABEL - 2], f"{found.get('version')} {ok}{wheel}{floor}"


def _kernel(kernel: Mapping[str, Any], chosen: Mapping[str, Any]) -> str:
    text = f"{kernel['release']}: {_WORDS[kernel['answer']]}"
    driver = kernel["driver"]
    other = any(driver.get(key) != chosen.get(key) for key in ("version", "flavour", "source"))
    if kernel["answer"] != "no" and other:
        text += f", with {driver_words(driver)}"
    why = "; ".join(kernel["why"])
    return f"{text} ({why})" if why and (kernel["answer"] != "yes" or other) else text


def _yaml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()
