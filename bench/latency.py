"""Latency from a document's record timestamp to its readable verdict, at steady loads.

A feeder process sends a steady stream, and stamps each record when it sends it. One worker
judges. A `read_committed` consumer in this process notes when each output arrives. Latencies
are in milliseconds, the resolution of Kafka's timestamps. Feeder, worker, broker and consumer share
the machine.

    python -m bench.latency BOOTSTRAP RATE SECONDS    (the feeder alone)
"""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import NamedTuple

from confluent_kafka import Consumer

from bench.cluster import PARTITIONS, application, broker, feed_steadily, numbered
from bench.cluster import worker as run_worker
from bench.corpus import source, texts
from bench.processes import Program
from bench.report import Figures, Target, console, show
from bench.verdicts import verdicts_reader
from localkafka.broker import KafkaCluster

SHARDS = 2
WINDOWS = 5
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
_AT_ONCE = 1_000


class Load(NamedTuple):
    """A steady load: documents per second, what comes before it is measured, and its limits.

    The warm-up of the first one is long: for two minutes, a new broker's just-in-time compiler uses
    half a core.
    """

    rate: int
    warm_up_seconds: float
    limits_ms: dict[str, float]


LOADS = (
    Load(1_000, 120.0, {"p50": 30, "p99": 100}),
    Load(10_000, 20.0, {"p99": 250}),
    Load(16_000, 20.0, {"p99": 1_000}),
)
"""The last is about nine tenths of what the machine takes with the feeder and the reader on it."""


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print the figures, and return the targets."""
    seconds = 10 if quick else 45
    targets = []
    with broker(lasting=True) as kafka:
        for load in LOADS[:1] if quick else LOADS:
            windows = _measured(kafka, load, seconds)
            targets += _shown(load, seconds, windows)
    return targets


def _measured(kafka: KafkaCluster, load: Load, seconds: float) -> list[list[float]]:
    """Return the latencies at a load, in windows of equal length."""
    length = load.warm_up_seconds + seconds + 30
    feeding = ["bench.latency", kafka.bootstrap, str(load.rate), str(length)]
    name = f"latency-{load.rate}"
    with (
        application(kafka, name, SHARDS, start="latest") as (settings, environment),
        run_worker(environment, "w0") as program,
        closing(verdicts_reader(kafka.bootstrap, settings)) as consumer,
        Program(feeding) as feeder,
    ):
        return _listen(consumer, load, seconds, program, feeder)


def _listen(
    consumer: Consumer, load: Load, seconds: float, *programs: Program
) -> list[list[float]]:
    windows: list[list[float]] = [[] for _ in range(WINDOWS)]
    first: float | None = None
    while True:
        messages = consumer.consume(_AT_ONCE, 0.002)
        now = time.time()
        if not messages:
            for program in programs:
                program.check()
            continue
        first = first or now
        window = int((now - first - load.warm_up_seconds) // (seconds / WINDOWS))
        if window >= WINDOWS:
            return windows
        if window >= 0:
            windows[window] += [
                now * 1000 - message.timestamp()[1] for message in messages if not message.error()
            ]


def _shown(load: Load, seconds: float, windows: list[list[float]]) -> list[Target]:
    """Print the figures of a load; return its targets."""
    merged = sorted(latency for window in windows for latency in window)
    console.print(
        f"{len(merged):,} documents ({source()}) at {load.rate:,}/s over {seconds} s,"
        f" N = {PARTITIONS}, P = {SHARDS}, one worker; {WINDOWS} windows"
    )
    show(
        "Latency in ms, in windows of a fifth of the time",
        [
            Figures(name, [_quantile(sorted(window), share) for window in windows])
            for name, share in SHARES.items()
        ],
    )
    whole = {name: _quantile(merged, share) for name, share in SHARES.items()}
    console.print(
        "Overall: " + ", ".join(f"{name} {value:.0f} ms" for name, value in whole.items())
    )
    return [
        Target(
            f"latency at {load.rate:,}/s, {name}, ms", whole[name], limit, at_least=False,
            form=".0f",
        )
        for name, limit in load.limits_ms.items()
    ]  # fmt: skip


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


if __name__ == "__main__":
    rate, wanted = float(sys.argv[2]), float(sys.argv[3])
    feed_steadily(sys.argv[1], list(numbered(texts(int(rate * wanted)))), rate)
