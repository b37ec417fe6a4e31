"""What the composition root builds for each generation."""

from __future__ import annotations

import json
from pathlib import Path

from worker.app import Application
from worker.bus import Outgoing
from worker.bus.memory.bus import MemoryBus
from worker.generations.modes import Mode
from worker.metrics import table
from worker.offline.embedded import create_topics
from worker.settings.loading import load


def test_an_index_that_is_built_counts_once_it_is_in_use(tmp_path: Path) -> None:
    settings = load()
    topology, bus = settings.topology(1), MemoryBus()
    create_topics(bus, topology)
    signing = Application(settings, topology, bus, tmp_path).loop("fingerprint", "one")
    building = Application(settings, topology, bus, tmp_path, mode=Mode("build"))
    loop, metrics = building.loop("index", "one"), building.metrics

    def judge(ident: str) -> None:
        value = json.dumps({"id": ident, "text": f"text {ident}"}).encode()
        bus.append(Outgoing(topology.documents, 0, None, value))
        for _ in range(4):
            signing.step(0.0)
            loop.step(0.0)

    judge("first")
    assert loop.owned
    assert metrics.value(table.INDEX_DOCUMENTS, "live") == 0
    assert metrics.value(table.RECORDS, "index") == 0
    in_use = Application(settings, topology, bus, tmp_path, environment=building.environment)
    assert in_use.succeed(loop) is loop
    assert metrics.value(table.ASSIGNED_PARTITIONS, "index") == len(loop.owned)
    judge("second")
    assert metrics.value(table.INDEX_DOCUMENTS, "live") == len(loop.owned)
    assert (metrics.value(table.RECORDS, "index") or 0) > 0
    loop.close()
    signing.close()
