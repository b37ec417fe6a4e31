"""A wave of near copies through all stages: the bytes of input and outputs per document."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path

from rich.table import Table

from bench.report import Target, console
from worker.bus import Outgoing
from worker.bus.memory.bus import MemoryBus
from worker.offline.embedded import Embedded, create_topics
from worker.settings.model import Settings

NOW = 1_700_000_000_000
TEXT = (
    "limited offer today only buy now and save big on watches pills and loans click here to claim"
    " your free prize before midnight dear friend you have been chosen as the lucky winner of our"
    " summer draw please reply with your name and address so that we can send it limited offer"
    " today only buy now and save big on watches pills and loans click here to claim your free"
    " prize before"
)
CHANGED_WORDS = 3
BYTES_A_MATCH = 8


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print the figures, and return the target."""
    count = 500 if quick else 2_000
    table = Table(title=f"{count:,} variants of one text, bytes per document")
    for column in ("max_matches", "in", "matches", "duplicate"):
        table.add_column(column, justify="right")
    most = 0.0
    for matches in (64, 8, 1):
        figures = _wave(count, matches)
        table.add_row(str(matches), *(f"{figure:,.0f}" for figure in figures))
        if matches == Settings.model_fields["index"].default.max_matches:
            most = figures[1] / matches
    console.print(table)
    shards: int = Settings.model_fields["index"].default.shards
    limit = BYTES_A_MATCH * shards
    return [Target("bytes per match in the matches topics", most, limit, at_least=False)]


def _wave(count: int, matches: int) -> tuple[float, float, float]:
    """Return the bytes per document of the input, all matches topics, and *duplicate*."""
    settings = Settings.model_validate(
        {"index": {"max_matches": matches}, "worker": {"batch_records": 500}}
    )
    topology = settings.topology(1)
    bus = MemoryBus(clock=lambda: NOW)
    create_topics(bus, topology)
    values = variants(count)
    for value in values:
        bus.append(Outgoing(topology.documents, 0, None, value))
    with tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder:
        embedded = Embedded(settings, topology, bus, Path(folder))
        embedded.run_until_idle()
        embedded.close()
    records, duplicate = _size(bus, topology.duplicate)
    answers = sum(_size(bus, topology.matches(shard))[1] for shard in range(topology.layout.shards))
    return sum(map(len, values)) / count, answers / count, duplicate / records


def variants(count: int) -> list[bytes]:
    """Return variants of one text, each with a few random words."""
    seed = random.Random(1)
    values = []
    for number in range(count):
        words = TEXT.split()
        for place in seed.sample(range(len(words)), CHANGED_WORDS):
            words[place] = f"x{seed.randrange(1_000)}"
        ident = f"https://example.org/comments/{number:08d}"
        values.append(json.dumps({"id": ident, "text": " ".join(words)}).encode())
    return values


def _size(bus: MemoryBus, topic: str) -> tuple[int, int]:
    """Return the number of records in a topic of one partition, and their bytes with headers."""
    records = bus.read(topic, 0, 0, 1 << 30)
    return len(records), sum(
        len(record.value or b"")
        + len(record.key or b"")
        + sum(len(name) + len(value or b"") for name, value in record.headers)
        for record in records
    )
