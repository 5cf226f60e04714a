# SPDX-License-Identifier: GPL-3.0-or-later
"""What the pages for people name is there: files, make targets, variables, playbooks and modules."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.controller import names

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("roles/*/README.md")])
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
#: Names that begin as variables do: statistics, groups of hosts, metrics, and what examples make up.
OTHERS = {"gpu_answer", "gpu_batch", "gpu_blocked", "gpu_change", "gpu_containers", "gpu_engine_active", "gpu_new",
          "gpu_ok", "gpu_old", "gpu_utilization"}


def stems(*folders: str) -> set[str]:
    return {path.stem for folder in folders for path in (ROOT / folder).iterdir()}


def tags() -> set[str]:
    return {name for path in ROOT.glob("roles/*/tasks/*.yml") for line in path.read_text(encoding="utf-8").splitlines()
            if "tags:" in line for name in re.findall(r"gpu_\w+", line)}


KNOWN = names.known() | stems("plugins/modules", "plugins/filter", "plugins/test", "plugins/lookup", "roles") | tags()


def wrong(text: str, folder: pathlib.Path) -> Iterator[str]:
    """What a page names and what is not there."""
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if not target.startswith(("http:", "https:")) and not (folder / target).exists():
            yield f"link {target}"
    for target in re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE):
        if not re.search(rf"^{target}:", MAKEFILE, re.MULTILINE):
            yield f"make {target}"
    for name in set(re.findall(r"(?<![\w.])gpu_[a-z0-9_]+\b", text)) - KNOWN - OTHERS:
        yield f"variable {name}"
    for name in set(re.findall(r"playbooks/(\w+)\.yml", text)) - stems("playbooks"):
        yield f"playbook {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: pathlib.Path) -> None:
    assert list(wrong(page.read_text(encoding="utf-8"), page.parent)) == []


def test_what_is_not_there_is_found() -> None:
    text = ("[a](docs/none.md) `make nothing` `gpu_driver_brunch: x` playbooks/never.yml "
            "[b](README.md) `make test` `gpu_cuda`")
    assert list(wrong(text, ROOT)) == [
        "link docs/none.md", "make nothing", "variable gpu_driver_brunch", "playbook never"]


def test_every_module_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in sorted(stems("plugins/modules")) if f"`{name}`" not in text] == []


def test_both_readmes_have_the_same_commands_and_links() -> None:
    english, chinese = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh-TW.md"))
    for what in (r"^(?:pip|ansible-\w+|cp|git|make) [^#\n]*", r"\]\(([^)\s]+)\)"):
        found = [{one.strip() for one in re.findall(what, text, re.MULTILINE)} for text in (english, chinese)]
        assert found[0] - {"README.zh-TW.md"} == found[1] - {"README.md"}
