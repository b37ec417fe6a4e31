"""Duration of ``neardup --help``, and time to a new worker's first verdict.

The worker's time is from its exec until the verdict on an existing document is readable; the
topics exist, and its state is empty. Most of it is the broker's: it delays the first rebalance
of an empty group by `group.initial.rebalance.delay.ms`, 3 s by default. The benchmark also
measures without that delay.
"""

from __future__ import annotations

import time

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPartition

from bench.cluster import (
    PARTITIONS,
    REBALANCE_DELAY_MS,
    application,
    broker,
    feed,
)
from bench.cluster import worker as run_worker
from bench.processes import Program
from bench.report import Figures, Target, show
from localkafka.broker import KafkaCluster

HELP_TARGET_SECONDS = 0.4
WORKER_TARGET_SECONDS = 5.0


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print the figures, and return the targets."""
    runs = 2 if quick else 5
    helps = Figures("neardup --help", [_help() for _ in range(4 * runs)][1:], ".2f")
    waits = {}
    for delay in (REBALANCE_DELAY_MS, 0):
        with broker(delay) as kafka:
            feed(kafka, ["a document that was there before the worker"])
            waits[delay] = [_first_verdict(kafka, f"start-{turn}") for turn in range(runs)]
    figures = [
        Figures(f"first verdict, group.initial.rebalance.delay.ms={delay}", values, ".2f")
        for delay, values in waits.items()
    ]
    show("Seconds", [helps, *figures], "The delay is a broker setting; its default is 3000.")
    return [
        Target("neardup --help, s", helps.median, HELP_TARGET_SECONDS, at_least=False, form=".2f"),
        Target(
            "a worker's first verdict, s",
            figures[0].median,
            WORKER_TARGET_SECONDS,
            at_least=False,
            form=".2f",
        ),
    ]


def _help() -> float:
    began = time.monotonic()
    with Program(["worker.cli", "--help"]) as program:
        program.wait()
        return time.monotonic() - began


def _first_verdict(kafka: KafkaCluster, name: str) -> float:
    with application(kafka, name, PARTITIONS) as (settings, environment):
        unique = settings.topology(PARTITIONS).unique
        reader = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap,
                "group.id": f"{name}.reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        reader.assign([KafkaPartition(unique, number, 0) for number in range(PARTITIONS)])
        reader.poll(0.5)  # Connects before the clock starts.
        began = time.monotonic()
        try:
            with run_worker(environment, "w0") as program:
                while True:
                    message = reader.poll(0.5)
                    if message is not None and message.error() is None:
                        return time.monotonic() - began
                    program.check()
        finally:
            reader.close()
