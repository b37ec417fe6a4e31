"""The views in a real browser, under the policy that they are served with."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.breadth import slow
from tests.worker.page.conftest import (
    MEMBERS,
    PLAIN,
    REPEATED,
    Shown,
    grave,
    sequence_of,
    served,
    watched,
)
from tests.worker.serve.correction_server import LINKS, between
from worker.cli.demo_page import page_of
from worker.settings.model import Settings

pytestmark = pytest.mark.needs("chromium")

VIEWS = (
    "/",
    "/ask?text=The+quick+brown+fox+jumps+over+the+lazy+dog",
    "/ask?id=b",
    "/search?by=id&q=b",
    "/flow",
    "/campaigns",
)


SCREENS = [
    *[(360, "dark"), slow(1_280, "light"), slow(2_560, "dark")],
    *(
        slow(width, scheme, ci=False)
        for width, scheme in [(360, "light"), (1_280, "dark"), (2_560, "light")]
    ),
]
"""Widths and colour schemes: CI sees each of both, and `make test-slow` all pairs."""


def ready(page: Page, path: str) -> None:
    """Open a view, and wait until it has asked for all that it shows at first."""
    with page.expect_response(re.compile("/v1/")):  # `wait_for_function` would need `unsafe-eval`.
        page.goto(path)
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator("main")).not_to_contain_text(re.compile("Asking…|Searching"))


def group_of(page: Page, ident: str) -> str:
    found = page.request.get(f"/v1/documents/{quote(ident, safe='')}/group").json()
    return str(found["id"])


def test_a_duplicate_is_shown_as_it_is_committed(page: Page, shown: Shown) -> None:
    page.goto("/")
    expect(page.get_by_text("Following", exact=True)).to_be_visible()
    shown.feed("newest", PLAIN + " So it does.")
    expect(page.locator(".feed li").first).to_contain_text("newest")


def test_a_pair_says_what_differs_and_what_does_not_count(page: Page) -> None:
    left, right = sequence_of(page, "b"), sequence_of(page, "a")
    page.goto(f"/pair?left={left}&right={right}")
    expect(page.locator("h2")).to_have_text("Near duplicates at threshold 0.8")
    sides = page.locator(".body")
    expect(sides.nth(0)).to_have_text(PLAIN.upper() + " Indeed!")
    expect(sides.nth(1)).to_have_text(PLAIN)
    expect(page.locator(".body mark")).to_have_text([re.compile("Indeed")])
    expect(page.locator(".body .aside").first).to_be_visible()
    expect(page.get_by_text(re.compile(r"of 18, of 7 slots each"))).to_be_visible()


def test_a_pair_of_which_one_is_gone_shows_the_other(page: Page) -> None:
    page.goto(f"/pair?left={sequence_of(page, 'a')}&match=nobody")
    expect(page.locator("h2")).to_have_text("No comparison")
    expect(page.locator(".body").nth(0)).to_have_text(PLAIN)
    expect(page.locator(".body").nth(1)).to_have_text("Gone: the index no longer has it.")
    page.goto(f"/pair?left={sequence_of(page, 'a')}")
    expect(page.get_by_text("This address names no pair of documents.")).to_be_visible()


def test_a_text_is_asked_about(page: Page) -> None:
    page.goto("/ask")
    page.get_by_label("A text").fill(PLAIN)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_role("heading", name=re.compile("A duplicate: "))).to_be_visible()
    assert "text=The+quick" in page.url
    page.reload()
    expect(page.get_by_role("heading", name=re.compile("A duplicate: "))).to_be_visible()


def test_an_id_is_asked_about_without_itself(page: Page) -> None:
    page.goto("/ask?id=b")
    expect(page.locator("table .id").first).to_be_visible()
    assert "b" not in page.locator("table .id").all_text_contents()


@pytest.mark.parametrize(("by", "q"), [("id", "b"), ("header", "neardup-verdict=duplicate")])
def test_documents_are_found(page: Page, by: str, q: str) -> None:
    page.goto("/")
    page.get_by_label("Search by").select_option(by)
    page.get_by_label("Search for").fill(q)
    page.keyboard.press("Enter")
    expect(page.locator("td .id", has_text=re.compile("^b$"))).to_be_visible()
    page.get_by_role("link", name=re.compile(r"^duplicate, 0\.")).last.click()
    expect(page.locator("h2")).to_contain_text("Near duplicates")


def test_nothing_is_found(page: Page) -> None:
    page.goto("/search?by=id&q=nobody")
    expect(page.get_by_text("There is none: all")).to_be_visible()


def test_the_flow_shows_stages_shards_and_rejections_with_the_command(page: Page) -> None:
    page.goto("/flow")
    for text in ("fingerprint", "pages.duplicate", "this process"):
        expect(page.get_by_text(text, exact=True).first).to_be_visible()
    expect(page.get_by_text("neardup redrive --app pages --reason not-json")).to_be_visible()


def test_a_campaign_has_members_and_a_plot(page: Page) -> None:
    page.goto("/campaigns?min=100")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody")).to_contain_text(REPEATED[:40])
    page.get_by_role("link", name=str(MEMBERS), exact=True).click()
    expect(page.locator("h1")).to_have_text(f"A campaign of {MEMBERS} documents")
    expect(page.locator("tbody tr")).to_have_count(MEMBERS)
    expect(page.locator(".plot canvas")).to_be_visible()
    expect(page.get_by_role("link", name="Compare").first).to_have_attribute(
        "href", re.compile(r"pair\?left=\d+&right=\d+")
    )
    page.goto(f"/campaigns?min={MEMBERS + 1}")
    expect(page.get_by_text("There is no such group.")).to_be_visible()


def test_it_works_by_keyboard_alone(page: Page) -> None:
    page.goto("/")
    current = page.locator(".feed [aria-current]")
    expect(current).to_have_count(1)
    first = current.text_content()
    page.keyboard.press("j")
    expect(current).not_to_have_text(first or "")
    expect(page.get_by_text("Paused", exact=True)).to_be_visible()
    page.keyboard.press("k")
    expect(current).to_have_text(first or "")
    page.keyboard.press("p")
    expect(page.get_by_text("Following", exact=True)).to_be_visible()
    page.reload()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    seen = []
    for _ in range(8):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.textContent.trim().slice(0, 9)"))
    assert seen[:5] == ["neardup", "Live", "Campaigns", "Ask", "Flow"]
    page.goto("/")
    page.get_by_role("link", name="Ask", exact=True).focus()
    page.keyboard.press("Enter")
    page.get_by_label("A text").focus()
    page.keyboard.type("Something jumps")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=re.compile("Unique"))).to_be_visible()


def test_campaigns_are_looked_at_by_keyboard_alone(page: Page) -> None:
    page.goto("/campaigns?min=100")
    expect(page.locator("tbody tr")).to_have_count(1)
    for names in ((str(MEMBERS),), ("Compare",)):
        press_until(page, names)
        page.keyboard.press("Enter")
        expect(page.locator("h1")).not_to_have_text("Campaigns")
    expect(page.locator("h2")).to_contain_text("ear duplicates")


def press_until(page: Page, names: Collection[str]) -> None:
    """Press Tab until what has the focus has one of these names."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") in names:
            return
    raise AssertionError(names)


def test_a_token_is_asked_for_once(browser: Browser, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t" * 32)
    settings = Settings.model_validate(
        {"app": "pages", "serve": {"port": 0, "token_file": token}, "index": {"shards": 1}}
    )
    with (
        page_of(settings, [], iter(()), threading.Event()) as address,
        browser.new_context(base_url=address) as context,
    ):
        page = context.new_page()
        page.goto("/flow")
        expect(page.get_by_label("The token of this server")).to_be_focused()
        assert grave(page) == []
        page.keyboard.type("another one")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("not the token of this server")
        page.get_by_label("The token of this server").fill("t" * 32)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Shards")).to_be_visible()
        page.goto("/")
        expect(page.get_by_text("No duplicate has been published yet.")).to_be_visible()


def test_without_javascript_it_says_so(browser: Browser, shown: Shown) -> None:
    with browser.new_context(base_url=shown.address, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto("/")
        expect(page.get_by_text("This page needs JavaScript")).to_be_visible()


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_every_view_fits_and_is_accessible(page: Page, width: int, scheme: Any) -> None:  # noqa: ANN401 -- a literal
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    pair = f"/pair?left={sequence_of(page, 'b')}&right={sequence_of(page, 'a')}"
    for path in (*VIEWS, pair, f"/campaigns?group={group_of(page, 'm/0')}"):
        ready(page, path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert grave(page) == [], path


def test_a_proxy_may_have_the_page_under_a_path(browser: Browser, shown: Shown) -> None:
    def stripped(route: Route) -> None:
        rest = route.request.url.removeprefix(f"{shown.address}/ops/pages")
        route.fulfill(response=route.fetch(url=shown.address + rest))

    asked: list[str] = []
    with browser.new_context(base_url=shown.address) as context:
        context.route(f"{shown.address}/ops/pages/**", stripped)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto("/ops/pages/campaigns?min=100")
        page.get_by_role("link", name=str(MEMBERS), exact=True).click()
        expect(page.locator("h1")).to_have_text(f"A campaign of {MEMBERS} documents")
        page.get_by_role("link", name="Ask").click()
        page.get_by_label("A text").fill(PLAIN)
        page.get_by_role("button", name="Ask").click()
        expect(page.get_by_role("heading", name="A duplicate")).to_be_visible()
        page.get_by_label("Search for").fill("a")
        page.get_by_role("button", name="Search").click()
        expect(page.locator("tbody")).to_contain_text(PLAIN[:20])
    assert [one for one in asked if not one.startswith(f"{shown.address}/ops/pages/")] == []


def test_a_chain_shows_its_clusters(browser: Browser) -> None:
    documents = {f"link{number}": between(number) for number in range(LINKS + 1)}
    with served(documents) as shown, watched(browser, shown) as page:
        page.goto(f"/campaigns?group={group_of(page, 'link0')}")
        expect(page.get_by_role("heading", name="A chain")).to_be_visible()
        expect(page.get_by_text("The least similar one to the representative")).to_be_visible()
        expect(page.get_by_role("link", name="Compare").first).to_be_visible()
        assert grave(page) == []
