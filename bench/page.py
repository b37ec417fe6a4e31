"""The page: when it is painted, how soon a duplicate is on it, and what viewers cost.

Without Kafka: all stages, the server and its log are one process, where viewers cost the stages
more than they do a worker. The browser is the system's chromium. Viewers don't paint: they are
connections that load the page and follow its stream.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from urllib.parse import urlencode

from bench.query import percentiles, texts
from bench.query_clients import Asking
from bench.report import Figures, Target, show
from worker.closing import Closing

_VIEWERS = 20
_RATE = 200
"""Documents a second while queries are asked."""
_QUERIES = 25
"""Queries a second."""
# When the largest text so far was painted, and when the first one was.
_PAINTED = """() => new Promise((resolve) => new PerformanceObserver((list) => {
  const [first] = performance.getEntriesByName("first-contentful-paint");
  resolve([first.startTime, list.getEntries().at(-1).startTime]);
}).observe({ type: "largest-contentful-paint", buffered: true }))"""
# When an element with a text was added, in ms since 1970.
_ADDED = """(text) => { window.added = new Promise((resolve) => new MutationObserver(() => {
  if (document.querySelector(".feed li")?.textContent.includes(text)) resolve(Date.now());
}).observe(document.querySelector(".feed"), { childList: true })); }"""


class _Server(Closing):
    """The measured process."""

    def __init__(self, documents: int, folder: str) -> None:
        command = [sys.executable, "-m", "bench.page_server", str(documents), folder]
        self._process = subprocess.Popen(  # noqa: S603 -- our own
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.port = int(self._line()["port"])

    def _line(self) -> dict[str, float]:
        assert self._process.stdout is not None  # noqa: S101 -- a pipe
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the server of the page has failed")
        found: dict[str, float] = json.loads(line)
        return found

    def begin(self, **asked: object) -> None:
        """Ask for something."""
        assert self._process.stdin is not None  # noqa: S101 -- a pipe
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()

    def do(self, **asked: object) -> dict[str, float]:
        """Ask for something, and wait until it is done."""
        self.begin(**asked)
        return self._line()

    def fed(self) -> float:
        """Wait for what was begun; return the documents a second."""
        found = self._line()
        return found["documents"] / found["seconds"]

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@contextmanager
def _viewers(port: int, count: int) -> Iterator[None]:
    """Have viewers follow."""
    command = [sys.executable, "-m", "bench.page_viewers", str(port), str(count)]
    with subprocess.Popen(  # noqa: S603 -- our own
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None  # noqa: S101 -- a pipe
        if process.stdout.readline() != "following\n":
            raise SystemExit("the viewers have failed")
        yield
        said, _ = process.communicate()
        if not json.loads(said)["events"]:
            raise SystemExit("the viewers saw nothing")


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print the figures, and return the targets."""
    documents, rounds, turns, seconds = (20_000, 3, 1, 2) if quick else (1_000_000, 10, 3, 15)
    with (
        tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder,
        _Server(documents, folder) as server,
    ):
        painted, long, seen = _browsed(server, rounds)
        fed: dict[int, list[float]] = {0: [], _VIEWERS: []}
        waits: dict[int, list[float]] = {0: [], _VIEWERS: []}
        for _ in range(turns):  # In turns: the machine may be busy with something else.
            for viewers in (0, _VIEWERS):
                with _viewers(server.port, viewers) if viewers else nullcontext():
                    server.begin(rate=None, seconds=seconds)
                    fed[viewers].append(server.fed())
                    server.begin(rate=_RATE, seconds=seconds)
                    asking = Asking(server.port, _QUERIES, texts(_QUERIES * seconds))
                    asking.run()
                    server.fed()
                    waits[viewers] += [1_000 * one for one in asking.times]
    p99 = {viewers: percentiles(sorted(times))[1] for viewers, times in waits.items()}
    show(
        f"the page on {documents:,} documents",
        [
            Figures("first paint, ms", [one for one, _ in painted]),
            Figures("a pair is painted, ms", [one for _, one in painted]),
            Figures("first paint of a pair of 2 MB, ms", [one for one, _ in long]),
            Figures("a pair of 2 MB is painted, ms", [one for _, one in long]),
            Figures("from commit to the page, ms", seen),
            Figures("documents/s without viewers", fed[0]),
            Figures(f"documents/s with {_VIEWERS} viewers", fed[_VIEWERS]),
            Figures("query without viewers, p99, ms", [p99[0]], ",.1f"),
            Figures(f"query with {_VIEWERS} viewers, p99, ms", [p99[_VIEWERS]], ",.1f"),
        ],
    )
    first = Figures("", [one for one, _ in painted]).median
    of_long = Figures("", [one for one, _ in long]).median
    rate = Figures("", fed[_VIEWERS]).median / Figures("", fed[0]).median
    return [
        Target("page: first paint, ms", first, 300, at_least=False, form=".0f"),
        Target("page: first paint of a pair of 2 MB, ms", of_long, 500, at_least=False, form=".0f"),
        Target("page: from commit to the page, ms", max(seen), 1_000, at_least=False, form=".0f"),
        Target("page: rate with 20 viewers, of the other", rate, 0.95, at_least=True, form=".2f"),
        Target(
            "page: p99 of queries with 20 viewers, of the other",
            p99[_VIEWERS] / p99[0], 1.2, at_least=False, form=".2f",
        ),
    ]  # fmt: skip


def _browsed(
    server: _Server, rounds: int
) -> tuple[list[tuple[float, float]], list[tuple[float, float]], list[float]]:
    """Return when the page was painted, when one with long texts was, and news were on it."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 -- other benchmarks need none

    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("the benchmark of the page needs chromium")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    address = f"http://127.0.0.1:{server.port}"
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=arguments) as browser,
    ):

        def painted(path: str) -> tuple[float, float]:
            with browser.new_context(base_url=address) as context:  # With an empty cache.
                page = context.new_page()
                page.goto(path)
                page.locator(".side").first.wait_for()
                first, largest = page.evaluate(_PAINTED)
                return first, largest

        with browser.new_context(base_url=address) as context:
            page = context.new_page()
            page.goto("/")
            page.get_by_text("Following", exact=True).wait_for()
            seen = []
            for number in range(rounds):
                page.evaluate(_ADDED, f"new {number}")
                committed = server.do(id=f"new {number}")["committed"]
                seen.append(page.evaluate("() => window.added") - 1_000 * committed)
            long = _pair(page.request.get("/v1/documents", params={"id": "long again"}).json())
        painted("/")  # The first one starts processes of the browser.
        return (
            [painted("/") for _ in range(rounds)],
            [painted(long) for _ in range(rounds)],
            seen,
        )


def _pair(found: Any) -> str:  # noqa: ANN401 -- JSON
    """Return the address of the pair of a duplicate and its match."""
    document = found["documents"][0]
    given = {"left": document["sequence"], "right": document["matches"][0]["sequence"]}
    return f"/pair?{urlencode(given)}"
