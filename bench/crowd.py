"""Queries answered a second, by the number of clients that each ask again once they were answered.

Without Kafka, on an index of synthetic documents that doesn't grow. Numbers of clients take turns:
whatever else the machine does falls upon all of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

from bench.corpus import short_texts
from bench.query_clients import Crowd
from bench.query_server import TEXTS
from bench.report import Figures, Target, show

CLIENTS = (1, 8, 48, 80, 200)
_DOCUMENTS = 100_000
_TURNS = 5
_SECONDS = 3.0
_TARGET = 0.8


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print the figures, and return the targets."""
    documents, turns, seconds = (20_000, 1, 2.0) if quick else (_DOCUMENTS, _TURNS, _SECONDS)
    texts = list(short_texts(TEXTS))
    targets = []
    with tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder:
        command = [sys.executable, "-m", "bench.query_server", str(documents), "20", "0", folder]
        with subprocess.Popen(  # noqa: S603 -- our own
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None  # noqa: S101 -- a pipe
            port = json.loads(server.stdout.readline())["port"]
            for how, kept in (("a new connection for each query", False), ("kept ones", True)):
                crowd = Crowd(port, texts, kept=kept)
                rates: dict[int, list[float]] = {clients: [] for clients in CLIENTS}
                refused = 0
                for _ in range(turns):
                    for clients, of_turns in rates.items():
                        of_turns.append(crowd.run(clients, seconds))
                        refused += crowd.refused
                figures = [Figures(f"{clients} clients", rates[clients]) for clients in CLIENTS]
                show(f"queries/s, {how}", figures, f"{refused} were refused.")
                best = max(one.median for one in figures)
                share = figures[-1].median / best
                title = f"crowd: {CLIENTS[-1]} clients to the best, {how}"
                targets.append(Target(title, share, _TARGET, at_least=True, form=".2f"))
            server.communicate()
    return targets
