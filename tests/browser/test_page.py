# SPDX-License-Identifier: GPL-3.0-or-later
"""The report in a real browser: filters, a phone, paper, and nothing that goes out."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from typing import Any

import fleet
import pytest
from ansible_collections.baremetal.nvidia.plugins.plugin_utils.report import html
from chromium import Chromium

AGE = {"days": 180, "unchecked": {"branches": 2}, "oldest": "2026-01-02"}
SHOWN = "[...document.querySelectorAll('{}')].filter(one => one.offsetParent !== null).length"
CHANGE = "(form.elements['{}'].value = '{}', form.dispatchEvent(new Event('input', {{bubbles: true}})))"
#: The smallest contrast of any text with what is behind it (WCAG 2).
CONTRAST = """(() => {
  const channel = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const numbers = (colour) => colour.match(/[0-9.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.closest("script") || element.offsetParent === null) continue;
    const [a, b] = [light(numbers(getComputedStyle(element).color)), light(behind(element))];
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), element.outerHTML.slice(0, 80)]);
  }
  return found.sort((left, right) => left[0] - right[0])[0];
})()"""


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the page, as a person would open it."""
    path = tmp_path_factory.mktemp("page") / "fleet.html"
    about = {"title": "Plan", "written": "2026-11-30T05:00:00Z", "run_id": "r1"}
    path.write_text(html.render(fleet.plans(), fleet.UNREAD, about, AGE), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser: Chromium, address: str) -> Chromium:
    """The page in a window of an ordinary width, freshly opened."""
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    browser.size(1200, 900)
    browser.open(address)
    browser.run("window.form = document.getElementById('filters')")
    return browser


def shown(page: Chromium, selector: str) -> int:
    """Return how many elements can be seen."""
    return int(page.run(SHOWN.format(selector)))


def said(page: Chromium) -> Any:
    """Return what the page says about its filter."""
    return page.run("document.getElementById('status').textContent")


def choose(page: Chromium, name: str, value: str) -> None:
    """Fill in a field of the filter as a person does."""
    page.run(CHANGE.format(name, value))


def test_nothing_goes_out_and_nothing_is_wrong(page: Chromium, address: str) -> None:
    page.run("document.querySelectorAll('button:enabled').forEach(one => one.click())")
    assert page.requests == [address]
    assert page.console == []
    assert page.run("document.title").startswith("Plan: 2 blocked")
    assert page.run("document.querySelector('img')") is None


def test_the_browser_would_tell(page: Chromium) -> None:
    """The check above can fail: a page with a script of its own and a picture is refused, and said so."""
    page.run("document.body.append(Object.assign(document.createElement('img'), {src: 'http://192.0.2.1/x'}))")
    page.run("document.body.append(Object.assign(document.createElement('script'), {textContent: 'var taken = 1'}))")
    page.run("console.log('heard')")
    assert page.run("typeof taken") == "undefined"
    assert "heard" in page.console and sum("Content Security Policy" in line for line in page.console) == 2


@pytest.mark.parametrize(
    ("name", "value", "hosts", "findings"),
    [
        ("rule", "GPU002", 1, 1),
        ("rule", "DRV004", 3, 2),
        ("gpu", "Tesla T4", 14, 2),
        ("gpu", "L4", 1, 1),
        ("driver", "none", 7, 2),
        ("kernel", "6.1.0-57-amd64", 14, 2),
        ("state", "unread", 1, 0),
        ("state", "pending", 1, 1),
        ("host", "GPU-B", 6, 0),
        ("host", "gpu-a03", 1, 0),
        ("host", "nobody", 0, 0),
    ],
)
def test_each_filter(page: Chromium, name: str, value: str, hosts: int, findings: int) -> None:
    choose(page, name, value)
    assert said(page).startswith(f"Showing {hosts} of 24 hosts: "), said(page)
    assert shown(page, "#findings article") == findings


def test_filters_add_up_and_are_taken_back(page: Chromium) -> None:
    everything = shown(page, "article"), shown(page, "#pending li")
    choose(page, "kernel", "6.1.0-57-amd64")
    choose(page, "state", "ok")
    choose(page, "host", "gpu-a1")
    assert said(page).startswith("Showing 3 of 24 hosts") and shown(page, "#pending .leave") == 0
    fitting = page.run("document.querySelector('.card:not([hidden]) .count').textContent")
    assert "these fit: gpu-a10, gpu-a11, gpu-a12" in fitting
    page.run("document.querySelector('button[type=reset]').click()")
    page.run("new Promise(done => setTimeout(done, 50))")
    assert said(page) == "All 24 hosts."
    assert (shown(page, "article"), shown(page, "#pending li")) == everything


def test_tiles_and_the_heat_map_filter_too(page: Chromium) -> None:
    page.run("document.querySelector('.tiles .blocked button').click()")
    assert said(page) == "Showing 2 of 24 hosts: state blocked."
    page.run("document.querySelector('.tiles .blocked button').click()")
    assert said(page) == "All 24 hosts."
    page.run("document.querySelector('.heat button[data-driver=\"none\"]').click()")
    assert said(page) == "Showing 7 of 24 hosts: driver none, kernel 6.12.118+deb13-amd64."
    assert page.run("document.querySelector('.heat button[aria-pressed=true] b').textContent") == "7"


def test_a_filter_is_part_of_the_address(page: Chromium, address: str) -> None:
    choose(page, "rule", "GPU002")
    kept = page.run("location.href")
    assert kept == f"{address}#rule=GPU002"
    page.open(kept)
    assert said(page).startswith("Showing 1 of 24 hosts")


@pytest.mark.parametrize("width", [320, 390, 768, 1200])
def test_no_width_scrolls_sideways(page: Chromium, width: int) -> None:
    page.size(width, 844, phone=width < 768)
    assert page.run("document.documentElement.scrollWidth") <= width
    wide = """[...document.querySelectorAll("body *")].filter(one => one.getBoundingClientRect().right > innerWidth + 1
      && !one.closest(".wide")).map(one => one.outerHTML.slice(0, 80))"""
    assert page.run(wide) == []


def test_without_a_script_everything_is_shown(page: Chromium, address: str) -> None:
    with_script = shown(page, "article")
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.call("Page.reload")
    page.open(address)
    assert shown(page, "article") == with_script == len(set(map(str, fleet.plans().values()))) + 1 + 5
    assert shown(page, "form") == 0


def test_paper_has_everything(page: Chromium) -> None:
    on_screen = shown(page, "article")
    page.call("Emulation.setEmulatedMedia", media="print")
    page.size(718, 1000)
    assert shown(page, "article") == on_screen and shown(page, "form") == 0
    assert page.run("document.documentElement.scrollWidth") <= 718


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext (poppler-utils) is not here: scripts/setup.sh")
def test_the_printed_page_can_be_read(page: Chromium, tmp_path: pathlib.Path) -> None:
    page.pdf(tmp_path / "fleet.pdf")
    text = subprocess.run(["pdftotext", tmp_path / "fleet.pdf", "-"], capture_output=True, text=True, check=True).stdout
    for word in ("gpu-a[01-12]", "gpu-lost", "R595 does not support Volta", "set gpu_driver_branch for 580.126.09",
                 "https://docs.nvidia.com/datacenter/tesla/drivers/", "gpu_reboot_allowed: true", "until 2027-01-31"):
        assert word in text, word


@pytest.mark.parametrize("media", ["screen", "print"])
def test_text_stands_out(page: Chromium, media: str) -> None:
    page.call("Emulation.setEmulatedMedia", media=media)
    ratio, where = page.run(CONTRAST)
    assert ratio >= 4.5, where


def test_everything_can_be_reached_and_named_without_a_mouse(page: Chromium) -> None:
    tree = page.call("Accessibility.getFullAXTree")["nodes"]
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in tree
        if not node.get("ignored") and node["role"]["value"] in ("button", "combobox", "searchbox", "link", "table")
    ]
    assert {role for role, _name in named} == {"button", "combobox", "searchbox", "link", "table"}
    assert [one for one in named if not one[1].strip()] == []
