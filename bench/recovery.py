"""A worker is killed with much that it has not flushed: how soon is it at work again?

The index holds NEARDUP_BENCH_INDEX documents (300,000 by default), flushed. Then so many
more come that the write buffers are nearly full, and once the last verdict of these is
readable the worker is killed, with its disk intact. Timed from the exec of its restart until
the next verdict is readable, of documents that came meanwhile. The same broker throughout,
with its default settings; the classic protocol.
"""

from __future__ import annotations

import os
import tempfile
import time
from itertools import islice
from pathlib import Path

from bench.cluster import PARTITIONS, application, broker, committed_counts, feed, worker_on
from bench.corpus import short_texts
from bench.processes import Program
from bench.report import Figures, Target, console, show
from tests.kafka.broker import KafkaCluster

__all__ = ["run"]

TARGET_SECONDS = 5.0
UNFLUSHED = 60_000
"""Documents; a write buffer of a shard takes about 70,000."""
MEANWHILE = 1_000
_FLUSHED_SECONDS = 65.0
"""A little more than `index.flush_seconds`."""
_DEADLINE_SECONDS = 3_600.0


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print, and give the target."""
    indexed = 20_000 if quick else int(os.environ.get("NEARDUP_BENCH_INDEX", "300000"))
    turns, unflushed = (1, 5_000) if quick else (3, UNFLUSHED)
    texts = short_texts(indexed + turns * (unflushed + MEANWHILE))
    seconds = []
    with (
        broker() as kafka,
        application(kafka, "recovery", PARTITIONS) as (_, environment),
        tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder,
    ):
        state = Path(folder) / "state"
        total, _ = feed(kafka, islice(texts, indexed))
        program = worker_on(state, environment, "w0")
        try:
            for _ in range(turns):
                _await(kafka, program, total)
                time.sleep(0 if quick else _FLUSHED_SECONDS)
                total += feed(kafka, islice(texts, unflushed), total)[0]
                _await(kafka, program, total)
                program.kill()
                program.close()
                feed(kafka, islice(texts, MEANWHILE), total)
                began = time.monotonic()
                program = worker_on(state, environment, "w0")
                seconds.append(_await(kafka, program, total + 1) - began)
                total += MEANWHILE
        finally:
            program.close()
    _tell(indexed, unflushed, seconds)
    return [
        Target(
            "a killed worker's next verdict, s",
            max(seconds),
            TARGET_SECONDS,
            at_least=False,
            form=".2f",
        )
    ]


def _await(kafka: KafkaCluster, program: Program, documents: int) -> float:
    """Wait until so many are published; give the time."""
    for at, count in committed_counts(kafka, "recovery.route", program.check, _DEADLINE_SECONDS):
        if count >= documents:
            return at
    raise SystemExit(f"{documents:,} documents took too long")


def _tell(indexed: int, unflushed: int, seconds: list[float]) -> None:
    console.print(
        f"{indexed:,} documents in the index, and {unflushed:,} that were not flushed;"
        f" P = {PARTITIONS}, one worker"
    )
    show("Seconds from the restart to the next verdict", [Figures("killed", seconds, ".2f")])
