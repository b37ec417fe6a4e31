"""Time to the next verdict after a worker is killed with full write buffers.

The index has NEARDUP_BENCH_INDEX documents (300,000 by default). Then many more arrive at full
speed, more than fit between two flushes. When the last of their verdicts is readable, the
worker is killed; its disk stays intact. The time is from the exec of its restart until the next
verdict is readable, on documents that arrived in between. The broker stays the same. Under the
classic protocol, the broker recognises the worker by its instance at once; under KIP-848, it
keeps the dead member's seats until its session ends.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from bench.cluster import PARTITIONS, application, broker, committed_counts, feed, worker_on
from bench.corpus import short_texts
from bench.processes import Program
from bench.report import Figures, Target, console, show
from localkafka.broker import FAST_FAULTS, KafkaCluster

TARGET_SECONDS = 5.0
SESSION_SECONDS = int(FAST_FAULTS["group.consumer.session.timeout.ms"]) / 1000
"""Of this broker; Kafka's default is 45."""
TARGETS = {"classic": TARGET_SECONDS, "consumer": SESSION_SECONDS + TARGET_SECONDS}
"""Seconds, by group protocol."""
BURST = 60_000
"""Documents; their last flushes are still running when the worker is killed."""
MEANWHILE = 1_000
_DEADLINE_SECONDS = 3_600.0


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print the figures, and return the targets."""
    indexed = 20_000 if quick else int(os.environ.get("NEARDUP_BENCH_INDEX", "300000"))
    turns, burst = (1, 5_000) if quick else (5, BURST)
    texts = short_texts(indexed + len(TARGETS) * turns * (burst + MEANWHILE))
    seconds = {}
    with (
        broker() as kafka,
        application(kafka, "recovery", PARTITIONS) as (_, environment),
        tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder,
    ):
        total, _ = feed(kafka, islice(texts, indexed))
        for protocol in TARGETS:
            chosen = {**environment, "NEARDUP_KAFKA__GROUP_PROTOCOL": protocol}
            start = partial(worker_on, Path(folder) / "state", chosen, "w0")
            seconds[protocol] = _killed(kafka, start, texts, total, [burst] * turns)
            total += turns * (burst + MEANWHILE)
    _report(indexed, burst, seconds)
    return [
        Target(
            f"a killed worker's next verdict, {protocol} protocol, s",
            max(seconds[protocol]),
            limit,
            at_least=False,
            form=".2f",
        )
        for protocol, limit in TARGETS.items()
    ]


def _killed(
    kafka: KafkaCluster,
    start: Callable[[], Program],
    texts: Iterator[str],
    total: int,
    bursts: Sequence[int],
) -> list[float]:
    """Kill a worker after each burst of documents; return the seconds to its next verdict."""
    seconds = []
    program = start()
    try:
        for burst in bursts:
            _await(kafka, program, total)
            total += feed(kafka, islice(texts, burst), total)[0]
            _await(kafka, program, total)
            program.kill()
            program.close()
            feed(kafka, islice(texts, MEANWHILE), total)
            began = time.monotonic()
            program = start()
            seconds.append(_await(kafka, program, total + 1) - began)
            total += MEANWHILE
        _await(kafka, program, total)
    finally:
        program.close()
    return seconds


def _await(kafka: KafkaCluster, program: Program, documents: int) -> float:
    """Wait until this many documents are published; return the time."""
    for at, count in committed_counts(kafka, "recovery.route", program.check, _DEADLINE_SECONDS):
        if count >= documents:
            return at
    raise SystemExit(f"not all of {documents:,} documents within {_DEADLINE_SECONDS:.0f} s")


def _report(indexed: int, burst: int, seconds: Mapping[str, list[float]]) -> None:
    console.print(
        f"{indexed:,} documents in the index, and {burst:,} just before the kill;"
        f" P = {PARTITIONS}, one worker; session of {SESSION_SECONDS:.0f} s"
    )
    show(
        "Seconds from the restart to the next verdict",
        [Figures(f"{protocol} protocol", taken, ".2f") for protocol, taken in seconds.items()],
    )
