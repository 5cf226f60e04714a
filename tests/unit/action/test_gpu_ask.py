# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/ask.yml: an answer for people and one for programs, and errors that name what was asked."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[3]


def ask(question: Any, callback: str = "default", **more: Any) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_STDOUT_CALLBACK": callback,
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_SHOW_CUSTOM_STATS": "true",
    }
    command = [str(pathlib.Path(sys.executable).with_name("ansible-playbook")), str(ROOT / "playbooks" / "ask.yml")]
    extra = json.dumps({**({} if question is None else {"gpu_ask": question}), **more})
    command += ["-i", "localhost,", "-e", extra]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)


def test_people_read_it() -> None:
    done = ask({"gpu": "T4", "os": "debian 12"}, gpu_cuda="12.2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nQUESTION    Tesla T4 (10de:1eb8); debian 12\nDRIVER      535." in done.stdout
    assert "\nKERNELS     " in done.stdout


def test_programs_read_it() -> None:
    done = ask({"gpu": "T4", "os": "debian 12"}, "ansible.posix.json")
    if "ansible.posix" in done.stderr:
        done = ask({"gpu": "T4", "os": "debian 12"}, "json")
    content = json.loads(done.stdout)
    found = content["plays"][0]["tasks"][0]["hosts"]["localhost"]
    assert found["answer"]["driver"]["branch"] == "535" and found["lines"][0].startswith("QUESTION")
    assert content["global_custom_stats"]["gpu_answer"]["possible"] is True


def test_what_is_wrong_is_named() -> None:
    for question, more, says in (
        (None, {}, "gpu_ask lacks gpu and os"),
        ({"gpu": "H1000", "os": "debian 12"}, {}, "the nearest are H100"),
        ({"gpu": "T4", "os": "debian 12"}, {"gpu_driver_branhc": "580"}, "did you mean gpu_driver_branch"),
    ):
        done = ask(question, **more)
        assert done.returncode != 0 and says in " ".join(done.stdout.split()) + done.stderr, done.stdout
