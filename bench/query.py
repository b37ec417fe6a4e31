"""The time of a query while the index goes on growing, at a given rate of queries.

Without Kafka: the documents are synthetic keys and sketches, as in *index*, and frames of more of
them come in all the time. Queries come over HTTP, each on a connection of its own, at times that
don't depend on the answers. A query's time counts from when it was due.
"""

from __future__ import annotations

import http.client
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from itertools import count
from statistics import quantiles

from bench.corpus import short_texts
from bench.query_server import TEXTS
from bench.report import Figures, Target, console, show

__all__ = ["run"]

DOCUMENTS = 500_000
RATE = 200
_FEED = 2_000
_SECONDS = 30
_CLIENTS = 16
_SEED = 7
_P99_TARGET_MS = 10.0
_TIMEOUT = 30.0


def run(*, quick: bool = False, documents: int = DOCUMENTS, rate: int = RATE) -> list[Target]:
    """Measure, print the figures, and return the targets.

    documents: how many the index has when the queries begin. rate: queries a second.
    """
    total, seconds = (20_000, 3) if quick else (documents, _SECONDS)
    with tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder:
        command = [sys.executable, "-m", "bench.query_server", str(total), str(_FEED), folder]
        with subprocess.Popen(  # noqa: S603 -- our own
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None  # noqa: S101 -- a pipe
            port = json.loads(server.stdout.readline())["port"]
            asking = _Asking(port, rate, rate * seconds)
            asking.run()
            said, _ = server.communicate()
    costs = json.loads(said)
    times = sorted(1_000 * one for one in asking.times)
    p50, p99 = _percentiles(times)
    own = [1_000 * one for one, _ in costs["queries"]]
    both = [1_000 * (one + meanwhile) for one, meanwhile in costs["queries"]]
    fed = costs["fed"] / costs["seconds"]
    show(
        f"{rate} queries/s on {total:,} documents, while {fed:,.0f} documents/s come in",
        [
            Figures("query, p50, ms", [p50], ",.1f"),
            Figures("query, p99, ms", [p99], ",.1f"),
            Figures("query, longest, ms", [times[-1]], ",.1f"),
            Figures("CPU of a query in its thread, p50, ms", [_percentiles(own)[0]], ",.2f"),
            Figures("CPU of a query in its thread, p99, ms", [_percentiles(own)[1]], ",.2f"),
            Figures("with that of frames meanwhile, p99, ms", [_percentiles(both)[1]], ",.2f"),
            Figures("the same, at most, ms", [max(both)], ",.2f"),
            Figures(
                "CPU of the longest application of frames, ms",
                [1_000 * costs["worst_step"]],
                ",.0f",
            ),
            Figures(
                "of an application, the longest that queries wait for, ms",
                [1_000 * costs["worst_hold"]],
                ",.1f",
            ),
            Figures("CPU of the server, % of a core", [100 * costs["cpu"] / costs["seconds"]]),
            Figures("peak memory of the server, MB", [costs["peak_bytes"] / 1e6]),
            Figures("queries", [len(times)]),
            Figures("of these, with matches", [asking.matched]),
        ],
        "Half of the queries ask about a text of the index, or nearly one.",
    )
    return [Target(f"query: p99 at {total:,}, ms", p99, _P99_TARGET_MS, at_least=False)]


def _percentiles(values: list[float]) -> tuple[float, float]:
    """Return the median, and the 99th percentile."""
    cuts = quantiles(values, n=100)
    return cuts[49], cuts[98]


class _Asking:
    """Asks queries at a rate, from several threads."""

    def __init__(self, port: int, rate: int, wanted: int) -> None:
        self._port = port
        self._rate = rate
        self._wanted = wanted
        self._next = count()
        chance = random.Random(_SEED)
        known = list(short_texts(TEXTS))
        self._texts = [
            chance.choice(known) if number % 2 else _shuffled(chance.choice(known), chance)
            for number in range(wanted)
        ]
        self.times: list[float] = []
        self.matched = 0

    def run(self) -> None:
        """Ask, and wait for all answers."""
        began = time.perf_counter()
        threads = [threading.Thread(target=self._ask, args=(began,)) for _ in range(_CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(self.times) != self._wanted:
            raise SystemExit(f"{len(self.times)} of {self._wanted} queries were answered")
        console.print(f"asked for {time.perf_counter() - began:.0f} s", style="dim")

    def _ask(self, began: float) -> None:
        while (number := next(self._next)) < self._wanted:
            due = began + number / self._rate
            time.sleep(max(0.0, due - time.perf_counter()))
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_TIMEOUT)
            body = json.dumps({"text": self._texts[number]}).encode()
            connection.request("POST", "/v1/query", body)
            answer = json.loads(connection.getresponse().read())
            connection.close()
            self.times.append(time.perf_counter() - due)
            self.matched += bool(answer["answers"][0]["matches"])


def _shuffled(text: str, chance: random.Random) -> str:
    """Return a text of the same words that is unlike it."""
    words = text.split(" ")
    chance.shuffle(words)
    return " ".join(words)
