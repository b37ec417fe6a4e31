"""A page about documents of all kinds, and a browser that looks at it."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import repeat
from queue import Empty, SimpleQueue

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from worker.cli.demo_page import page_of
from worker.settings.model import Settings
from worker.settings.sections import ServeSection

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
LONG = "x" * 1_999_000
HOSTILE = {
    "markup": '<img src="x" onerror="window.hit = 1"><svg onload="window.hit = 1"></svg> and so on',
    "script": "<script>window.hit = 1</script><iframe srcdoc='<script>hit=1</script>'></iframe>",
    "template": "${window.hit = 1} {{constructor.constructor('window.hit=1')()}} javascript:hit=1",
    "right to left": "\u202epay to \u2066attacker\u2069 and not to the owner\u202c of the account",
    "terminal": "\x1b[2J\x1b]0;hit\x07\x9b31m red and then \x1b]8;;http://evil.example\x1b\\link",
    "lines": "one\u2028two\u2029three\x85four\r\nfive, so that there is enough to compare here",
    "</title>": "</title></textarea></style>--><!-- enough of a text to be compared with others",
    "one line": LONG,
}
MEMBERS = 130
"""More than the page asks for at once."""
REPEATED = "Limited offer: our patented lamp lights itself, so order now and never change a bulb."
PLAIN = "The quick brown fox jumps over the lazy dog, and then it jumps back again."


def document(ident: str, text: str) -> bytes:
    return json.dumps({"id": ident, "text": text}).encode()


@dataclass
class Shown:
    """A server with a page, and what is fed to it while it runs."""

    address: str
    fed: SimpleQueue[bytes] = field(default_factory=SimpleQueue)

    def feed(self, ident: str, text: str) -> None:
        self.fed.put(document(ident, text))


@pytest.fixture(scope="session")
def shown() -> Iterator[Shown]:
    settings = Settings.model_validate(
        {
            "app": "pages",
            "serve": ServeSection(port=0),
            "limits": {"record_bytes": 5_000_000},
            "index": {"cache_bytes": 1 << 20, "shards": 2},
        }
    )
    # They take turns on two partitions, of which the first one is read first.
    values = [document(f"m/{number}", f"{REPEATED} {number}") for number in range(MEMBERS)]
    values += [document("a", PLAIN), document("b", PLAIN.upper() + " Indeed!")]
    for name, text in HOSTILE.items():
        values += [document(name, text), document(f"{name} again", text + " ")]
    values.append(b"no JSON")
    one = Shown("")

    def later() -> Iterator[bytes | None]:
        while True:
            try:
                yield one.fed.get_nowait()
            except Empty:
                yield None

    with page_of(settings, values, later(), threading.Event()) as one.address:
        yield one


@contextmanager
def served(documents: Mapping[str, str], **serve: object) -> Iterator[Shown]:
    """Yield a server about some documents, where Maria corrects."""
    settings = Settings.model_validate(
        {
            "app": "corrected",
            "serve": {"port": 0, **serve},
            "corrections": {"by": "Maria"},
            "index": {"cache_bytes": 1 << 20, "shards": 2},
        }
    )
    values = [document(ident, text) for ident, text in documents.items()]
    with page_of(settings, values, repeat(None), threading.Event()) as address:
        yield Shown(address)


@pytest.fixture(scope="module")  # While it runs, so does an event loop, which other tests make.
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=arguments) as found,
    ):
        yield found


@pytest.fixture
def page(browser: Browser, shown: Shown) -> Iterator[Page]:
    with watched(browser, shown) as opened:
        yield opened


@contextmanager
def watched(browser: Browser, shown: Shown) -> Iterator[Page]:
    """A page that fails the test if a script of it fails, or the policy refuses something."""
    with browser.new_context(base_url=shown.address) as context:
        opened = context.new_page()
        opened.set_default_timeout(30_000)
        errors: list[str] = []
        opened.on("pageerror", lambda error: errors.append(str(error)))
        opened.on(
            "console",
            lambda said: errors.append(said.text) if "Content Security" in said.text else None,
        )
        yield opened
        assert errors == []


def sequence_of(page: Page, ident: str) -> int:
    found = page.request.get("/v1/documents", params={"id": ident}).json()
    return int(found["documents"][0]["sequence"])


def grave(page: Page) -> list[tuple[str, list[str]]]:
    """Return what axe finds to be serious or critical."""
    page.evaluate(AXE)
    found = page.evaluate("axe.run().then(all => all.violations)")
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in found
        if one["impact"] in {"serious", "critical"}
    ]
