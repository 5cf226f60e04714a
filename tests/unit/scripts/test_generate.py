# SPDX-License-Identifier: GPL-3.0-or-later
"""Generated files are up to date, and the generator says so when they are not."""
from __future__ import annotations

import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SPEC = importlib.util.spec_from_file_location("generate", ROOT / "scripts/generate.py")
assert SPEC is not None and SPEC.loader is not None
generate = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(generate)


@pytest.mark.parametrize("what", sorted(generate.WHAT))
def test_up_to_date(what: str) -> None:
    for path, text in generate.WHAT[what]():
        assert path.read_text(encoding="utf-8") == text, f"{path} is out of date: run scripts/generate.py {what}"


def test_stale_files_are_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    target = generate.ROOT / "made-up.txt"
    monkeypatch.setitem(generate.WHAT, "rules", lambda: iter([(target, "new")]))
    assert generate.main(["--check", "rules"]) == 1
    assert "out of date: made-up.txt" in capsys.readouterr().out
    assert not target.exists()


def test_every_role_documents_the_policy_it_uses() -> None:
    specs = {path.parent.parent.name: text for path, text in generate.argument_specs()}
    assert "gpu_reboot_allowed" in specs.get("gpu_driver", "gpu_reboot_allowed")
    assert "gpu_kernel_policy" in specs.get("gpu_kernel", "gpu_kernel_policy")
