"""What the composition root makes of the settings' memory."""

from __future__ import annotations

from pathlib import Path

from tests.support.filling import fill
from worker.app import Application
from worker.bus.memory import MemoryBus
from worker.index.memory import StoreMemory
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
