"""A moderator corrects on the page: two clicks, and each is undone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.breadth import slow
from tests.worker.page.conftest import Shown, grave, sequence_of, served, watched

pytestmark = pytest.mark.needs("chromium")

SONG = "I love this song!!! It is the best thing that I have heard in all these years."


@pytest.fixture(scope="module")
def corrected() -> Iterator[Shown]:
    """A server of its own: what is corrected holds for all that comes later."""
    documents = {"s0": SONG, "s1": SONG, "s2": SONG + " Yes.", "t0": SONG * 2, "t1": SONG * 2}
    with served(documents) as one:
        yield one


@pytest.fixture
def moderator(browser: Browser, corrected: Shown) -> Iterator[Page]:
    with watched(browser, corrected) as page:
        yield page


def until_shown(page: Page, path: str, wanted: Locator) -> None:
    """Load a view until it shows something: the index reads a correction after it was sent."""
    for _ in range(100):
        page.goto(path, wait_until="networkidle")
        if wanted.count():
            break
        page.wait_for_timeout(100)
    expect(wanted).to_be_visible()


def open_pair(page: Page, left: str, right: str) -> None:
    page.goto(f"/pair?left={sequence_of(page, left)}&right={sequence_of(page, right)}")
    expect(page.get_by_role("heading", name=re.compile("ear duplicates at"))).to_be_visible()


def test_a_text_is_allowed_in_two_clicks_and_that_is_undone(moderator: Page) -> None:
    page = moderator
    open_pair(page, "s1", "s0")
    page.get_by_role("button", name="Not a duplicate").click()
    page.get_by_role("button", name="Allow this text").click()
    expect(page.get_by_text("It is allowed.")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    allowed = page.get_by_role("heading", name=re.compile("Unique: its text is allowed"))
    until_shown(page, f"/ask?text={SONG}", allowed)
    page.get_by_role("link", name="Corrections").click()
    row = page.get_by_role("row").filter(has_text="Allowed: I love this song!!!")
    expect(row).to_contain_text("Maria")
    row.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_text("It is no longer allowed.")).to_be_visible()
    until_shown(page, "/corrections", page.get_by_text("Nothing is corrected."))


def test_a_member_is_forgotten_by_keyboard_and_sent_again(moderator: Page) -> None:
    page = moderator
    group = page.request.get("/v1/documents/t0/group").json()["id"]
    page.goto(f"/campaigns?group={group}")
    row = page.get_by_role("row").filter(has_text="t0")
    row.get_by_role("button", name="Forget").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Forget a document")
    expect(dialog.get_by_role("button", name="Forget a document")).to_be_focused()
    dialog.get_by_label("Reason").fill("<b>mine</b>")
    page.keyboard.press("Enter")
    expect(dialog.get_by_text("It is forgotten.")).to_be_visible()
    expect(dialog.get_by_role("button", name="Undo")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog.get_by_text("It was sent again")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.goto("/corrections")
    expect(page.get_by_role("row").filter(has_text="Forgotten: what was at")).to_contain_text(
        "<b>mine</b>"
    )


def test_what_is_refused_is_said_and_can_be_sent_again(moderator: Page) -> None:
    page = moderator
    open_pair(page, "s1", "s0")
    refused = {"status": 503, "json": {"error": "the brokers are away"}}
    page.route("**/v1/corrections", lambda route: route.fulfill(**refused), times=1)
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Forget a document").click()
    expect(page.get_by_role("alert")).to_have_text("the brokers are away")
    expect(page.get_by_role("button", name="Forget a document")).to_be_enabled()


def test_who_may_only_read_is_offered_nothing(browser: Browser, tmp_path: Path) -> None:
    reading, correcting = tmp_path / "reading", tmp_path / "correcting"
    reading.write_text("r" * 40)
    correcting.write_text("c" * 40)
    tokens = {"token_file": reading, "correcting_token_file": correcting}
    headers = {"Authorization": f"Bearer {'r' * 40}"}
    with (
        served({"s0": SONG, "s1": SONG}, **tokens) as shown,
        browser.new_context(base_url=shown.address, extra_http_headers=headers) as context,
    ):
        page = context.new_page()
        open_pair(page, "s1", "s0")
        expect(page.get_by_role("link", name="Flow")).to_be_visible()
        expect(page.get_by_role("link", name="Corrections")).to_be_hidden()
        expect(page.get_by_role("button", name="Not a duplicate")).to_have_count(0)


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (360, "dark"),
        slow(1_280, "light"),
        slow(360, "light", ci=False),
        slow(1_280, "dark", ci=False),
    ],
)
def test_dialogs_and_the_list_fit_and_are_accessible(
    moderator: Page,
    width: int,
    scheme: Any,  # noqa: ANN401 -- a literal
) -> None:
    page = moderator
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    open_pair(page, "s1", "s0")
    for name in ("Not a duplicate", "Forget"):
        page.get_by_role("button", name=name, exact=True).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert grave(page) == []
        page.keyboard.press("Escape")
    page.request.post("/v1/corrections", data={"withdraw": {"id": "nothing"}})
    page.request.post("/v1/corrections", data={"forget": {"id": "f" * 300, "why": "w" * 200}})
    page.goto("/corrections")
    expect(page.get_by_role("heading", name="Corrections")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert grave(page) == []
