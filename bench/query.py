"""The time of a query while the index goes on growing, at a given rate of queries.

Without Kafka: the documents are synthetic keys and sketches, as in *index*, and frames of more of
them come in all the time. Queries come over HTTP, each on a connection of its own, at times that
don't depend on the answers. A query's time counts from when it was due.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from statistics import quantiles

from bench.corpus import short_texts
from bench.query_clients import Asking
from bench.query_server import TEXTS
from bench.report import Figures, Target, show

DOCUMENTS = 500_000
RATE = 200
_FEED = 2_000
_SECONDS = 30
_SPARE_SECONDS = 10
"""Documents come in until the last query is answered, even if that takes longer."""
_SEED = 7
_P99_TARGET_MS = 10.0
_FEED_TARGET = 0.95 * _FEED
"""A server that has no time left for documents answers from an index that is ever more behind."""


def run(*, quick: bool = False, documents: int = DOCUMENTS, rate: int = RATE) -> list[Target]:
    """Measure, print the figures, and return the targets.

    documents: how many the index has when the queries begin. rate: queries a second.
    """
    total, seconds = (20_000, 3) if quick else (documents, _SECONDS)
    with tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder:
        sizes = map(str, (total, _FEED, seconds + _SPARE_SECONDS))
        command = [sys.executable, "-m", "bench.query_server", *sizes, folder]
        with subprocess.Popen(  # noqa: S603 -- our own
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None  # noqa: S101 -- a pipe
            port = json.loads(server.stdout.readline())["port"]
            asking = Asking(port, rate, texts(rate * seconds))
            asking.run()
            said, _ = server.communicate()
    costs = json.loads(said)
    times = sorted(1_000 * one for one in asking.times)
    p50, p99 = percentiles(times)
    own = [1_000 * one for one, _ in costs["queries"]]
    both = [1_000 * (one + meanwhile) for one, meanwhile in costs["queries"]]
    fed = costs["fed"] / costs["fed_seconds"]
    show(
        f"{rate} queries/s on {total:,} documents, while {fed:,.0f} documents/s come in",
        [
            Figures("query, p50, ms", [p50], ",.1f"),
            Figures("query, p99, ms", [p99], ",.1f"),
            Figures("query, longest, ms", [times[-1]], ",.1f"),
            Figures("CPU of a query in its thread, p50, ms", [percentiles(own)[0]], ",.2f"),
            Figures("CPU of a query in its thread, p99, ms", [percentiles(own)[1]], ",.2f"),
            Figures("with that of frames meanwhile, p99, ms", [percentiles(both)[1]], ",.2f"),
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
            Figures("CPU of all clients, % of a core", [100 * asking.cpu / seconds]),
            Figures("peak memory of the server, MB", [costs["peak_bytes"] / 1e6]),
            Figures("queries", [len(times)]),
            Figures("of these, with matches", [asking.matched]),
        ],
        "Half of the queries ask about a text of the index, or nearly one.",
    )
    return [
        Target(f"query: p99 at {total:,}, ms", p99, _P99_TARGET_MS, at_least=False),
        Target("query: documents/s that come in", fed, _FEED_TARGET, at_least=True, form=",.0f"),
    ]


def percentiles(values: list[float]) -> tuple[float, float]:
    """Return the median, and the 99th percentile."""
    cuts = quantiles(values, n=100)
    return cuts[49], cuts[98]


def texts(wanted: int) -> list[str]:
    """Return the texts to ask about."""
    chance = random.Random(_SEED)
    known = list(short_texts(TEXTS))
    return [
        chance.choice(known) if number % 2 else _shuffled(chance.choice(known), chance)
        for number in range(wanted)
    ]


def _shuffled(text: str, chance: random.Random) -> str:
    """Return a text of the same words that is unlike it."""
    words = text.split(" ")
    chance.shuffle(words)
    return " ".join(words)
