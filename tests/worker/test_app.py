"""What the composition root makes of the settings' memory, and whom stages tell what they do."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tests.support.filling import fill
from worker.app import Application, Environment
from worker.bus import Outgoing
from worker.bus.memory import MemoryBus
from worker.generations.modes import Rewriting
from worker.index.memory import StoreMemory
from worker.offline.embedded import create_topics
from worker.settings import load


def test_applications_of_one_process_share_the_memory_of_their_shards(tmp_path: Path) -> None:
    settings = load(overrides={"worker.memory": "512MiB"})
    topology, bus = settings.topology(1), MemoryBus()
    create_topics(bus, topology)
    shares = settings.memory()
    memory = StoreMemory(shares.index, write_buffers=shares.write_buffers)
    environment = Environment(stores=memory)
    stores = []
    for name in ("old", "new"):
        application = Application(settings, topology, bus, tmp_path / name, environment=environment)
        stores.append(application.directories.open(0))
        fill(stores[-1], 1, 100)
    taken = application.memory()
    assert taken["cells"][0] == sum(store.held_bytes() for store in stores) > 0
    assert taken["cache"][1] == memory.capacity
    for store in stores:
        store.close()
    assert application.memory()["cells"][0] == 0


def test_documents_that_are_fingerprinted_anew_are_counted(tmp_path: Path) -> None:
    settings = load()
    topology, bus = settings.topology(1), MemoryBus()
    create_topics(bus, topology)
    later = replace(
        topology, app="app.g1", generation=1, log=1, layout=replace(topology.layout, id="again")
    )
    bus.create_topic(later.fingerprints, 1, log_append_time=True)
    bus.commit_offsets(later.group("refingerprint"), {topology.order: 0})
    for number in range(3):
        value = json.dumps({"id": f"d{number}", "text": f"text {number}"}).encode()
        bus.append(Outgoing(topology.documents, 0, None, value))
    loop = Application(settings, topology, bus, tmp_path).loop("fingerprint", "one")
    for _ in range(4):
        loop.step(0.0)
    bus.trim(topology.documents, 0, 1)
    anew = Application(settings, later, bus, tmp_path, mode=Rewriting(topology))
    loop = anew.loop("refingerprint", "one")
    for _ in range(4):
        loop.step(0.0)

    def count(outcome: str) -> float | None:
        name = "neardup_rewriting_documents_total"
        return anew.metrics.registry.get_sample_value(name, {"outcome": outcome})

    assert (count("signed"), count("gone")) == (2, 1)
