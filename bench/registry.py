"""Documents per second on Kafka in Avro and in Protobuf, compared with JSON in the same run.

The documents are the same, each with ten fields that nobody needs; the schemas are in a real
registry. Two workers, and the default number of shards.
"""

from __future__ import annotations

import json
from base64 import b64encode

from bench.cluster import PARTITIONS, broker, feed_values, numbered
from bench.corpus import source, texts
from bench.kafka import Run, Runs, ratio
from bench.payloads import AVRO, in_formats, protobuf_file
from bench.report import Figures, Target, console, show
from localkafka.registry import SchemaRegistry

TURNS = 5
WORKERS = SHARDS = 2
LEAST = 0.8


def run(*, quick: bool = False) -> list[Target]:
    """Measure in turns, print the figures, and return the targets."""
    count, turns = (20_000, 1) if quick else (120_000, TURNS)
    with SchemaRegistry() as registry, broker() as kafka:
        serialized = b64encode(protobuf_file().SerializeToString()).decode()
        documents = in_formats(
            list(numbered(texts(count))),
            registry.register("avro", "AVRO", json.dumps(AVRO)),
            registry.register("protobuf", "PROTOBUF", serialized),
        )
        settings: dict[str, dict[str, str]] = {}
        for name, values in documents.items():
            topic = kafka.create_topic(f"{name.lower()}.documents", PARTITIONS)
            _, size = feed_values(kafka, topic, values)
            console.print(
                f"{name}: {count:,} documents of {size / count:,.0f} bytes ({source()})",
                style="dim",
            )
            settings[name] = {"topics.documents": topic}
            if name != "JSON":
                settings[name] |= {"documents.format": "registry", "registry.url": registry.url}
        documents.clear()
        runs = Runs(kafka, count)
        measured: dict[str, list[Run]] = {name: [] for name in settings}
        for turn in range(turns + (not quick)):
            for name, others in settings.items():
                one = runs.neardup(WORKERS, SHARDS, others)
                if turn or quick:  # The first turn is a warm-up.
                    measured[name].append(one)
    return _report(measured)


def _report(measured: dict[str, list[Run]]) -> list[Target]:
    show(
        "Documents/s, from the first batch read to the last readable output",
        [Figures(name, [one.strict_rate for one in runs]) for name, runs in measured.items()],
    )
    show(
        "CPU microseconds per document, of the workers, once they run",
        [Figures(name, [one.cpu_us for one in runs]) for name, runs in measured.items()],
    )
    ratios = [ratio(measured, name, "JSON") for name in measured if name != "JSON"]
    show("Ratios, turn by turn", ratios)
    return [Target(one.name, one.median, LEAST, at_least=True, form=".2f") for one in ratios]
