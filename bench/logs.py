"""What Kafka keeps for each document: the bytes on the topics between the stages."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from rich.table import Table

from bench.report import Target, console
from worker.bus import Outgoing
from worker.bus.memory.bus import MemoryBus
from worker.offline.embedded import Embedded, create_topics
from worker.settings.model import Settings

NOW = 1_700_000_000_000
BATCH_BYTES = 61 + 12
"""The header of a Kafka record batch, and what a single record in it takes beside its value."""
MARKER_BYTES = 78
"""A transaction's marker, a batch of its own, on each partition that it wrote to."""
LIMIT_BYTES = 250
"""The most that fingerprints may take for a document, in bursts of 500."""


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print the figures, and return the target."""
    count = 500 if quick else 5_000
    table = Table(title=f"{count:,} documents with ids of 37 bytes, bytes per document")
    for column in ("documents in a burst", "fingerprints", "matches of all shards"):
        table.add_column(column, justify="right")
    least = 0.0
    for burst in (1, 10, 500):
        least, answers = _kept(min(count, 200 * burst), burst)
        table.add_row(str(burst), f"{least:,.0f}", f"{answers:,.0f}")
    console.print(table)
    return [Target("bytes on fingerprints per document", least, LIMIT_BYTES, at_least=False)]


def _kept(count: int, burst: int) -> tuple[float, float]:
    """Return the bytes per document on fingerprints, and on all matches topics."""
    settings = Settings.model_validate({"worker": {"batch_records": burst}})
    topology = settings.topology(1)
    bus = MemoryBus(clock=lambda: NOW)
    create_topics(bus, topology)
    for number in range(count):
        ident = f"https://example.org/comments/{number:08d}"
        text = " ".join(f"{number * 31 + word:x}" for word in range(60))
        value = json.dumps({"id": ident, "text": text}).encode()
        bus.append(Outgoing(topology.documents, 0, None, value))
    with tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder:
        embedded = Embedded(settings, topology, bus, Path(folder))
        embedded.run_until_idle()
        embedded.close()
    answers = [topology.matches(shard) for shard in range(topology.layout.shards)]
    return (
        _size(bus, topology.fingerprints) / count,
        sum(_size(bus, topic) for topic in answers) / count,
    )


def _size(bus: MemoryBus, topic: str) -> int:
    """Return what a broker would keep of a topic of one partition; each record is a burst."""
    records = bus.read(topic, 0, 0, 1 << 30)
    return sum(len(record.value or b"") + BATCH_BYTES + MARKER_BYTES for record in records)
