"""Latency from a document's record timestamp to its readable verdict, at a steady load.

A feeder process sends a steady stream, and stamps each record when it sends it. One worker
judges. A `read_committed` consumer in this process notes when each output arrives. Latencies
are in milliseconds, the resolution of Kafka's timestamps.

    python -m bench.latency BOOTSTRAP RATE SECONDS    (the feeder alone)
"""

from __future__ import annotations

import sys
import time

from bench.cluster import PARTITIONS, application, broker, feed_steadily, numbered
from bench.cluster import worker as run_worker
from bench.corpus import source, texts
from bench.processes import Program
from bench.report import Figures, Target, console, show
from bench.verdicts import verdicts_reader
from worker.settings import Settings

__all__ = ["run"]

RATE = 1_000
WARM_UP_SECONDS = 60.0
"""How long a new broker's just-in-time compiler uses a good part of a core."""
TARGET_MS = 400.0
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print the figures, and return the target."""
    seconds = 10 if quick else 45
    with (
        broker(lasting=True) as kafka,
        application(kafka, "latency", PARTITIONS) as (settings, environment),
        run_worker(environment, "w0") as program,
    ):
        feeding = [
            "bench.latency",
            kafka.bootstrap,
            str(RATE),
            str(WARM_UP_SECONDS + seconds + 30),
        ]
        with Program(feeding) as feeder:
            windows = _listen(settings, kafka.bootstrap, seconds, program, feeder)
    merged = sorted(latency for window in windows for latency in window)
    console.print(
        f"{len(merged):,} documents ({source()}) at {RATE:,}/s over {seconds} s, N = {PARTITIONS},"
        f" P = {PARTITIONS}, one worker; {len(windows)} windows"
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
    return [Target("latency, overall p99, ms", whole["p99"], TARGET_MS, at_least=False, form=".0f")]


def _listen(
    settings: Settings, bootstrap: str, seconds: float, *programs: Program
) -> list[list[float]]:
    consumer = verdicts_reader(bootstrap, settings)
    windows: list[list[float]] = [[] for _ in range(5)]
    first: float | None = None
    try:
        while True:
            message = consumer.poll(1.0)
            for program in programs:
                if message is None:
                    program.check()
            if message is None or message.error() is not None:
                continue
            now = time.time()
            first = first or now
            window = int((now - first - WARM_UP_SECONDS) // (seconds / len(windows)))
            if window >= len(windows):
                return windows
            if window >= 0:
                windows[window].append(now * 1000 - message.timestamp()[1])
    finally:
        consumer.close()


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


if __name__ == "__main__":
    rate, seconds = float(sys.argv[2]), float(sys.argv[3])
    feed_steadily(sys.argv[1], list(numbered(texts(int(rate * seconds)))), rate)
