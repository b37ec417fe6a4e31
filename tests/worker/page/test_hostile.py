"""Hostile texts stay inert, wherever they are shown."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.worker.page.conftest import HOSTILE, Shown

pytestmark = pytest.mark.needs("chromium")

SHORT = [name for name in HOSTILE if name != "one line"]


def open_pair(page: Page, name: str) -> None:
    """Open the pair of a text and its copy, whichever of them came first."""
    for left in (name, f"{name} again"):
        found = page.request.get("/v1/documents", params={"id": left}).json()["documents"][0]
        if found["verdict"] == "duplicate":
            given = {"left": found["sequence"], "match": found["matches"][0]["id"]}
            page.goto(f"/pair?{urlencode(given)}")
            expect(page.locator("h2")).to_contain_text("Near duplicates")
            return
    raise AssertionError(name)


def inert(page: Page) -> None:
    """Nothing that a text wanted has happened."""
    assert page.evaluate("window.hit") is None
    assert page.locator("main img, main svg, main iframe, main script").count() == 0
    assert page.title().endswith("\u2013 neardup")


@pytest.mark.parametrize("name", SHORT)
def test_a_pair_shows_it_as_text(page: Page, name: str) -> None:
    open_pair(page, name)
    inert(page)
    drawn = page.locator(".body").first
    assert drawn.locator("bdi").count() > 0
    said = drawn.text_content() or ""
    for character in set(HOSTILE[name]) - {"\n", "\t", " "}:
        if not character.isprintable():
            assert character not in said
            assert f"U+{ord(character):04X}" in said


@pytest.mark.parametrize(
    "view", ["/", "/flow", "/search?by=header&q=neardup-verdict", "/campaigns?min=2"]
)
def test_lists_show_it_as_text(page: Page, view: str) -> None:
    page.goto(view)
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator("main bdi").first).to_be_visible()
    inert(page)


def test_addresses_are_texts_as_well(page: Page) -> None:
    script = "%3Cimg src=x onerror=window.hit=1%3E"
    for path in (f"/ask?text={script}", f"/search?by=id&q={script}", f"/ask?id={script}"):
        page.goto(path)
        expect(page.locator("main h2, main .notice").first).to_be_visible()
        inert(page)


def test_two_megabytes_on_one_line_are_shown_in_part(page: Page) -> None:
    open_pair(page, "one line")
    expect(page.get_by_text("1,999,000 characters").first).to_be_visible()
    assert page.evaluate("document.body.textContent.length") < 100_000
    assert page.evaluate("document.documentElement.scrollWidth") <= 1_280


def test_the_policy_lets_nothing_else_run(page: Page, shown: Shown) -> None:
    answer = page.goto("/")
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    for part in ("default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'"):
        assert part in policy
    assert "unsafe" not in policy
    refused = page.evaluate(
        """() => {
          try { document.createElement("div").innerHTML = "<b>x</b>"; return false; }
          catch (error) { return error instanceof TypeError; }
        }"""
    )
    assert refused
    assert page.request.get(f"{shown.address}/static/page.css").headers[
        "x-content-type-options"
    ] == "nosniff"  # fmt: skip
