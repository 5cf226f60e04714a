# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTML page: complete without a script, nothing from outside, and text that stays text."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.report import cards, heatmap, html, markup

HOSTILE = "</script><script>alert(1)</script>\"'&<img src=x onerror=alert(2)>"
EMPTY = ("meta", "link", "input")


class Page(HTMLParser):
    """Tags with their attributes, and the text outside of style and script."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.text = ""
        self.raw: dict[str, str] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            self.raw[self.open[-1]] = self.raw.get(self.open[-1], "") + data
        else:
            self.text += data

    def all(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        return [found for name, found in self.tags if name == tag and attributes.items() <= found.items()]


def plan(verdict: str = "ok", **more: Any) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "decisions": {"driver": {"version": "535.309.01", "flavour": "proprietary", "owner": "host"}},
        "changes": [],
        "pending": [],
        "findings": [],
        "subject": {
            "gpus": "4 x Tesla T4",
            "os": "debian 12",
            "kernel": "6.1.0-57-amd64",
            "driver": "535.309.01 proprietary",
            "containerd": "1.6.20",
            **more.pop("subject", {}),
        },
        **more,
    }


def finding(**more: Any) -> dict[str, Any]:
    return {
        "rule": "DRV003",
        "severity": "error",
        "subject": "10de:1db5 (Tesla V100)",
        "summary": "R595 does not support Volta",
        "remedy": 'set gpu_driver_branch: "580"',
        "sources": ["docs of the vendor (https://docs.nvidia.com/x/), read in 2026", "our own tests"],
        **more,
    }


def change(**more: Any) -> dict[str, Any]:
    return {
        "role": "gpu_driver",
        "action": "reboot",
        "target": "nouveau",
        "before": "nouveau drives the GPUs",
        "after": "nvidia",
        "disruption": "reboot",
        **more,
    }


REBOOT = change(needs="gpu_reboot_allowed", why="nouveau is loaded")


def test_everything_is_there_without_a_script() -> None:
    plans = {f"gpu-{number:02}": plan() for number in range(1, 9)}
    plans["bad-1"] = plan("blocked", findings=[finding()], subject={"kernel": "6.12.1", "driver": None})
    plans["wait-1"] = plan(pending=[REBOOT])
    plans["waived-1"] = plan(findings=[finding(waived="until 2027-01-31: known")])
    text = html.render(plans, ["lost-1"], {"title": "Plan", "written": "2026-11-30T05:00:00Z", "run_id": "r7"},
                       {"days": 180, "unchecked": {"branches": 3}, "oldest": "2026-01-02"})
    page = Page(text)
    assert not page.wrong and not page.open
    for word in ("gpu-[01-08]", "8 hosts", "bad-1", "R595 does not support Volta", 'set gpu_driver_branch: "580"',
                 "gpu_reboot_allowed: true", "nouveau is loaded", "lost-1", "not read", "until 2027-01-31: known",
                 "our own tests", "read in 2026", "2026-01-02", "180 days", "r7", "2026-11-30T05:00:00Z",
                 "none → 535.309.01 proprietary"):
        assert word in page.text, word
    assert page.all("a", href="https://docs.nvidia.com/x/")
    hidden = [name for name, found in page.tags if "hidden" in found]
    assert hidden == ["form"], "only the filters wait for the script"


def test_the_page_can_be_read_by_programs_that_read_aloud() -> None:
    page = Page(html.render({"g1": plan(findings=[finding()])}, matrix_age={"days": 1, "unchecked": {"cuda": 2}}))
    assert page.all("html", lang="en") and page.all("meta", name="viewport") and page.all("main") and page.all("h1")
    assert "Plan: 1 ok" in page.text, "the title says it in one line"
    heads = page.all("th")
    assert heads and all(head.get("scope") in ("col", "row") for head in heads)
    assert len(page.all("caption")) == len(page.all("table")) == 2
    levels = [int(name[1]) for name, _found in page.tags if re.fullmatch("h[1-6]", name)]
    assert levels[0] == 1 and all(after - before <= 1 for before, after in zip(levels, levels[1:])), "no level left out"
    assert page.all("p", role="status"), "what the filter does is said"
    inside = [one for one in page.all("select") + page.all("input") if one.get("name")]
    assert len(inside) == 6 == len(page.all("label"))


def hostile_plans() -> dict[str, dict[str, Any]]:
    said = dict.fromkeys(("rule", "subject", "summary", "remedy"), HOSTILE)
    moved = dict.fromkeys(("role", "action", "target", "before", "after", "needs", "why"), HOSTILE)
    evil = plan(
        "blocked",
        findings=[finding(**said, sources=[HOSTILE, "javascript:alert(3)", 'https://x.example/"onload="y'])],
        changes=[change(**moved)],
        pending=[change(**moved)],
        subject=dict.fromkeys(("gpus", "os", "kernel", "driver", "containerd"), HOSTILE),
    )
    waived = plan(findings=[finding(waived=HOSTILE), finding(severity=HOSTILE)])
    return {HOSTILE: evil, "line\nbreak": waived, "a\x00\x1b[31m\u202eb": plan(HOSTILE)}


def test_text_of_hosts_stays_text() -> None:
    about = dict.fromkeys(("title", "written", "run_id"), HOSTILE)
    age = {"days": 1, "unchecked": {HOSTILE: 1}, "oldest": HOSTILE}
    text = html.render(hostile_plans(), [HOSTILE + "lost"], about, age)
    page = Page(text)
    assert not page.wrong and not page.open
    assert len(page.all("script")) == 1 and not page.all("img")
    for name, found in page.tags:
        assert not [key for key in found if key.startswith("on") or key in ("src", "style", "srcdoc", "action")], name
    links = {str(found["href"]) for found in page.all("a")}
    assert links and all(link.startswith("https://") and '"' not in link for link in links)
    assert HOSTILE in page.text
    assert not re.search(r"[\x00-\x08\x1b\u202e]", text)


def test_nothing_comes_from_outside_and_only_our_own_script_may_run() -> None:
    page = Page(html.render(hostile_plans()))
    for name in ("style", "script"):
        assert not re.search(r"url\(|@import|fetch\(|XMLHttp|import\(|eval\(|innerHTML|https?:", page.raw[name])
    assert [found["href"] for found in page.all("link")] == ["data:,"]
    policy = next(str(found["content"]) for found in page.all("meta") if found.get("http-equiv"))
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for name in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(page.raw[name].encode()).digest()).decode()
        assert rules[f"{name}-src"] == f"'sha256-{digest}'"


def test_a_thousand_hosts_are_a_small_page() -> None:
    plans = {f"gpu-{number:04}": plan("change", changes=[change()]) for number in range(1000)}
    assert len(html.render(plans)) < 60_000
    kinds = {
        name: plan("blocked", findings=[finding(subject=f"GPU {number % 40}")], changes=[change(target=number % 40)])
        for number, name in enumerate(plans)
    }
    assert len(cards.cards(kinds)) == 40
    assert len(html.render(kinds)) < 250_000


def test_the_heat_map_counts_and_shows_the_worst() -> None:
    plans = {"a1": plan(), "a2": plan("change", changes=[change()]), "a3": plan("blocked", findings=[finding()])}
    plans["b1"] = plan(subject={"kernel": "5.4", "driver": None})
    page = Page(heatmap.render(cards.cards(plans)))
    cells = [str(found["class"]) for found in page.all("td") if found.get("class")]
    assert cells == ["state ok", "state blocked"], "kernel 5.4 with no driver, then kernel 6.1"
    assert "3 1 blocked, 1 change, 1 ok" in page.text and "1 ok" in page.text
    assert "No host could be read" in heatmap.render(cards.cards({}, ["lost"]))


def test_what_waits_is_said_once_for_hosts_that_wait_for_the_same() -> None:
    both = [REBOOT, change(target="nvidia module", needs="gpu_reboot_allowed")]
    plans = {name: plan(pending=both) for name in ("a1", "a2")}
    plans["b1"] = plan(pending=[REBOOT])
    text = html.render(plans)
    section = text[text.index('id="pending"') : text.index('id="hosts"')]
    assert section.count("gpu_reboot_allowed: true") == 1
    assert "3 hosts: a[1-2], b1" in section and "2 hosts: a[1-2]" in section


@pytest.mark.parametrize(
    ("verdict", "pending", "word"),
    [("ok", [], "ok"), ("ok", [REBOOT], "pending"), ("change", [REBOOT], "change"), ("blocked", [], "blocked"),
     ("what", [], "blocked")],
)
def test_states(verdict: str, pending: list[Any], word: str) -> None:
    assert cards.state({"verdict": verdict, "pending": pending}) == word


def test_an_empty_fleet_is_a_page_too() -> None:
    page = Page(html.render({}))
    assert "no host" in page.text and "No finding." in page.text and "No change waits" in page.text


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("see https://a.example/b_(c).", 'see <a href="https://a.example/b_" rel="noreferrer">https://a.example/b_</a>(c).'),
        ("http://a.example/?x=1&y=2", '<a href="http://a.example/?x=1&amp;y=2" rel="noreferrer">http://a.example/?x=1&amp;y=2</a>'),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("<b>", "&lt;b&gt;"),
        (None, "None"),
    ],
)
def test_links(given: Any, made: str) -> None:
    assert markup.linked(given) == made
