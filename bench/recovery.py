"""A worker is killed while its write buffers are as full as they get: how soon is it back?

The index holds NEARDUP_BENCH_INDEX documents (300,000 by default). Then many more come as
fast as they are taken, more than fit between two flushes, and once the last verdict of these
is readable the worker is killed, with its disk intact. Timed from the exec of its restart
until the next verdict is readable, of documents that came meanwhile. The same broker
throughout, with its default settings; the classic protocol.
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
BURST = 60_000
"""Documents; the last flushes of these are still under way when the worker is killed."""
MEANWHILE = 1_000
_DEADLINE_SECONDS = 3_600.0


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print, and give the target."""
    indexed = 20_000 if quick else int(os.environ.get("NEARDUP_BENCH_INDEX", "300000"))
    turns, burst = (1, 5_000) if quick else (5, BURST)
    texts = short_texts(indexed + turns * (burst + MEANWHILE))
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
                total += feed(kafka, islice(texts, burst), total)[0]
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
    _tell(indexed, burst, seconds)
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


def _tell(indexed: int, burst: int, seconds: list[float]) -> None:
    console.print(
        f"{indexed:,} documents in the index, and {burst:,} that came just before;"
        f" P = {PARTITIONS}, one worker"
    )
    show("Seconds from the restart to the next verdict", [Figures("killed", seconds, ".2f")])
