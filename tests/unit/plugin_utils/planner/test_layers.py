# SPDX-License-Identifier: GPL-3.0-or-later
"""No file reaches upward: each layer knows only those below it (docs/design.md, section 2)."""
from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator

import pytest

PLUGINS = pathlib.Path(__file__).resolve().parents[4] / "plugins"
# What the packages of plugin_utils may import of each other; module_utils is below them all.
ALLOWED = {
    "model": set(),
    "matrix": {"model"},
    "rules": {"model", "matrix"},
    "containerd": {"model"},
    "monitoring": {"model"},
    "planner": {"model", "matrix", "rules", "containerd", "monitoring"},
    "report": {"model"},
    "controller": {"model", "matrix", "rules", "planner", "report", "containerd", "monitoring"},
}
PREFIX = "ansible_collections.baremetal.nvidia.plugins."


def imports(path: pathlib.Path, root: pathlib.Path = PLUGINS) -> Iterator[str]:
    """Yield the dotted names below plugins/ that a file imports."""
    here = path.relative_to(root).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith(PREFIX):
                    yield alias.name[len(PREFIX):]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                package = here[:-1]
                base = package[: len(package) - node.level + 1]
                for alias in node.names:
                    yield ".".join((*base, *((node.module or "").split(".") if node.module else ()), alias.name))
            elif (node.module or "").startswith(PREFIX):
                for alias in node.names:
                    yield f"{(node.module or '')[len(PREFIX):]}.{alias.name}"


def wrong(path: pathlib.Path, root: pathlib.Path = PLUGINS) -> list[str]:
    """Return the imports of a file that reach upward or aside."""
    parts = path.relative_to(root).parts
    bad = []
    for name in imports(path, root):
        target = name.split(".")
        if parts[0] == "module_utils" and target[0] != "module_utils":
            bad.append(name)
        if parts[0] == "plugin_utils" and target[0] not in ("plugin_utils", "module_utils"):
            bad.append(name)
        if parts[0] == "plugin_utils" and target[0] == "plugin_utils" and len(parts) > 2 and len(target) > 1:
            own = parts[1]
            if target[1] != own and target[1] not in ALLOWED.get(own, set()):
                bad.append(name)
    return bad


@pytest.mark.parametrize(
    "path", sorted([*PLUGINS.glob("plugin_utils/**/*.py"), *PLUGINS.glob("module_utils/**/*.py")]),
    ids=lambda path: str(path.relative_to(PLUGINS)),
)
def test_no_file_reaches_upward(path: pathlib.Path) -> None:
    assert wrong(path) == []


def test_rules_and_matrix_know_no_ansible() -> None:
    for path in PLUGINS.glob("plugin_utils/[mrp]*/**/*.py"):
        text = path.read_text(encoding="utf-8")
        assert "import ansible." not in text and "from ansible." not in text, path


def test_the_planner_does_no_io() -> None:
    for package in ("planner", "rules"):
        for path in (PLUGINS / "plugin_utils" / package).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            assert not names & {"open", "print", "input"}, path
            assert not {one.split(".")[0] for one in _absolute(path)} & {"os", "subprocess", "socket", "pathlib"}, path


def _absolute(path: pathlib.Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""


def test_the_guard_fires(tmp_path: pathlib.Path) -> None:
    rules = tmp_path / "plugin_utils" / "rules"
    rules.mkdir(parents=True)
    bad = rules / "bad.py"
    bad.write_text("from ..planner import plan\nfrom ..matrix import load\n", encoding="utf-8")
    assert wrong(bad, tmp_path) == ["plugin_utils.planner.plan"]
    low = tmp_path / "module_utils"
    low.mkdir()
    (low / "bad.py").write_text("from ..plugin_utils.model import facts\n", encoding="utf-8")
    assert wrong(low / "bad.py", tmp_path) == ["plugin_utils.model.facts"]
