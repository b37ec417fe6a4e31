"""What the composition root makes of the settings' memory, and whom stages tell what they do."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.support.filling import fill
from worker.app import Application
from worker.bus import Outgoing
from worker.bus.memory import MemoryBus
from worker.index.memory import StoreMemory
from worker.metrics import table
from worker.offline.embedded import create_topics
from worker.settings import load


def test_applications_of_one_process_share_the_memory_of_their_shards(tmp_path: Path) -> None:
    settings = load(overrides={"worker.memory": "512MiB"})
    topology, bus = settings.topology(1), MemoryBus()
    create_topics(bus, topology)
    shares = settings.memory()
    memory = StoreMemory(shares.index, write_buffers=shares.write_buffers)
    stores = []
    for name in ("old", "new"):
        application = Application(settings, topology, bus, tmp_path / name, stores=memory)
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
    anew = Application(settings, later, bus, tmp_path, source=topology, building=True)
    loop = anew.loop("refingerprint", "one")
    for _ in range(4):
        loop.step(0.0)

    count = partial(anew.metrics.value, table.REWRITING_DOCUMENTS)
    assert (count("signed"), count("gone")) == (2, 1)


def test_an_index_that_is_built_counts_once_it_is_in_use(tmp_path: Path) -> None:
    settings = load()
    topology, bus = settings.topology(1), MemoryBus()
    create_topics(bus, topology)
    signing = Application(settings, topology, bus, tmp_path).loop("fingerprint", "one")
    building = Application(settings, topology, bus, tmp_path, building=True)
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
    building.promote(loop)
    assert metrics.value(table.ASSIGNED_PARTITIONS, "index") == len(loop.owned)
    judge("second")
    assert metrics.value(table.INDEX_DOCUMENTS, "live") == len(loop.owned)
    assert (metrics.value(table.RECORDS, "index") or 0) > 0
    loop.close()
    signing.close()
