"""Takes the pictures of the page that the docs show: ``python -m tools.pictures``."""

import os
import shutil
import sys
import threading
from pathlib import Path

from playwright.sync_api import Page, ViewportSize, sync_playwright

from worker.cli.demo_page import page_of, samples
from worker.offline.filter import offline_settings
from worker.settings.sections import CorrectionsSection, ServeSection

FOLDER = Path(__file__).parent.parent / "docs" / "how-to" / "pictures"
SIZE: ViewportSize = {"width": 1_280, "height": 760}


def _live(page: Page) -> None:
    page.goto("/")
    # One that differs from its match: pairs of equal texts show little.
    rows = page.locator(".feed button")
    rows.first.wait_for()
    for at in range(rows.count()):
        rows.nth(at).click()
        page.locator(".side").first.wait_for()
        page.wait_for_timeout(300)
        if page.locator(".body mark").count():
            break


def _ask(page: Page) -> None:
    page.goto("/ask?text=I+love+this+song")
    page.locator(".side").first.wait_for()


def _correction(page: Page) -> None:
    page.get_by_role("button", name="Not a duplicate").first.click()
    page.get_by_label("Only the same text").check()
    page.get_by_label("Reason").fill("people do love it")


def _corrections(page: Page) -> None:
    page.get_by_role("button", name="Allow this text").click()
    page.get_by_role("button", name="Undo").wait_for()
    for _ in range(50):  # The list has what the index has read.
        page.goto("/corrections", wait_until="networkidle")
        if page.get_by_role("button", name="Withdraw").count():
            return
        page.wait_for_timeout(200)


def _campaigns(page: Page) -> None:
    page.goto("/campaigns", wait_until="networkidle")


def _campaign(page: Page) -> None:
    page.locator("td a").first.click()
    page.locator(".plot canvas").wait_for()


def _flow(page: Page) -> None:
    page.goto("/flow")
    page.wait_for_timeout(5_000)  # A rate takes two looks.


VIEWS = {
    "live": _live,
    "campaigns": _campaigns,
    "campaign": _campaign,
    "ask": _ask,
    "correction": _correction,
    "corrections": _corrections,
    "flow": _flow,
}


def main() -> int:
    """Take all pictures; return 0."""
    sections = {"serve": ServeSection(port=0), "corrections": CorrectionsSection(by="ada")}
    settings = offline_settings().model_copy(update={"app": "demo", **sections})
    # The news, which are first, come last: they are longer than comments, and differ more.
    known = samples(settings)
    news = next(at for at, value in enumerate(known) if b"PYSEC" in value)
    values = known[news:] + known[:news]
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    program = shutil.which("chromium")
    FOLDER.mkdir(exist_ok=True)
    with (
        page_of(settings, values[:-60], values[-60:], threading.Event()) as address,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=arguments) as browser,
        browser.new_context(base_url=address, viewport=SIZE) as context,
    ):
        page = context.new_page()
        for name, show in VIEWS.items():
            show(page)
            page.screenshot(path=FOLDER / f"{name}.png")
            print(FOLDER / f"{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
