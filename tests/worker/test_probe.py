"""Who watches a run is told what happens in it, by the names that are published."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from worker.app import Application, Environment
from worker.bus.memory.bus import MemoryBus
from worker.index.errors import HeaderMismatch
from worker.index.store import BandStore
from worker.offline.embedded import create_topics
from worker.probe import Files, Point, Probe, probing
from worker.settings.model import Settings
from worker.stages.index import Index
from worker.topology import STAGES

DAY_SECONDS = 86_400.0


class Stopped(BaseException):
    """Is caught by nobody."""


class Notes(Probe):
    """Notes what it is told, and may stop the run at one point."""

    def __init__(self, stop: str = "") -> None:
        self.told: list[str] = []
        self.open: list[Files] = []
        self._stop = stop

    def _tell(self, what: str) -> None:
        self.told.append(what)
        if what == self._stop:
            raise Stopped

    def before(self, point: Point) -> None:
        self._tell(point)

    def after(self, point: Point) -> None:
        self._tell(f"{point} done")

    def opened(self, files: Files) -> None:
        self._tell("opened")
        self.open.append(files)

    def closed(self, files: Files) -> None:
        self._tell("closed")
        self.open.remove(files)


class Watched:
    """An application with notes on each of its stages, and a clock that is set by hand."""

    def __init__(self, directory: Path, stop: str = "", **index: object) -> None:
        sizes = {"shards": 1, "cache_bytes": 1 << 20, "flush_documents": 10}
        settings = Settings.model_validate({"index": {**sizes, **index}})
        topology = settings.topology(1)
        self.bus = MemoryBus()
        create_topics(self.bus, topology)
        self.now = 0.0
        self.notes = {stage: Notes(stop) for stage in STAGES}
        self.application = Application(
            settings,
            topology,
            self.bus,
            directory,
            environment=Environment(probe=self.notes.__getitem__, clock=lambda: self.now),
        )

    @property
    def told(self) -> list[str]:
        """Give what was told of *index* since the last time."""
        notes = self.notes["index"]
        told, notes.told = notes.told, []
        return told


def write(store: BandStore, documents: int) -> None:
    offset = store.offset + 1
    store.apply(None, offset=offset, documents=documents)


def test_what_fails_has_not_been_done() -> None:
    notes = Notes()
    with pytest.raises(ValueError, match="it failed"), probing(notes, "write"):
        raise ValueError("it failed")
    assert notes.told == ["write"]


def test_what_is_stopped_before_it_begins_does_not_happen() -> None:
    notes = Notes(stop="write")
    happened = False
    with pytest.raises(Stopped), probing(notes, "write"):
        happened = True
    assert not happened
    assert notes.told == ["write"]


def test_each_stage_has_a_probe_of_its_own(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    loops = {stage: watched.application.loop(stage, "one") for stage in STAGES}
    for stage, loop in loops.items():
        before = {name: list(notes.told) for name, notes in watched.notes.items()}
        loop.step(0.0)
        told = {name for name, notes in watched.notes.items() if notes.told != before[name]}
        assert told == {stage}
        assert watched.notes[stage].told[:4] == ["poll", "poll done", "look up", "look up done"]
    for loop in loops.values():
        loop.close()


def test_files_are_told_of_from_their_opening_to_their_closing(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    store = watched.application.directories.open(0)
    assert watched.told == ["open", "opened", "open done"]
    assert watched.notes["index"].open == [store]
    write(store, 3)
    assert watched.told == ["write", "write done"]
    write(store, 7)
    assert watched.told == ["write", "flush", "flush done", "write done"]
    store.checkpoint(tmp_path / "copy")
    assert watched.told == ["checkpoint", "flush", "flush done", "checkpoint done"]
    store.close()
    assert watched.told == ["close", "closed", "close done"]
    assert watched.notes["index"].open == []


def begun(state: Path) -> None:
    """Leave a store behind that has read something."""
    store = Watched(state).application.directories.open(0)
    write(store, 1)
    store.close()


def test_files_that_cannot_be_opened_are_not_told_of_as_open(tmp_path: Path) -> None:
    begun(tmp_path)
    watched = Watched(tmp_path, bucket_capacity=3)
    with pytest.raises(HeaderMismatch):
        watched.application.directories.open(0)
    assert watched.told == ["open"]


def test_files_are_known_to_be_open_before_a_run_is_stopped_there(tmp_path: Path) -> None:
    watched = Watched(tmp_path, stop="open done")
    with pytest.raises(Stopped):
        watched.application.directories.open(0)
    assert len(watched.notes["index"].open) == 1


def test_a_store_is_flushed_by_the_clock_that_the_application_was_given(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    store = watched.application.directories.open(0)
    write(store, 1)
    store.flush_if_due()
    assert "flush" not in watched.told
    watched.now += DAY_SECONDS
    store.flush_if_due()
    assert watched.told == ["flush", "flush done"]
    store.close()


def test_snapshots_are_taken_by_the_clock_that_the_application_was_given(tmp_path: Path) -> None:
    every = {"url": str(tmp_path / "kept"), "every_seconds": 5}
    watched = Watched(tmp_path / "state", snapshots=every)
    loop = watched.application.loop("index", "one")
    loop.step(0.0)
    assert isinstance(loop.stage, Index)
    (store,) = loop.stage.stores().values()
    write(store, 1)
    watched.now += 1.0
    loop.step(0.0)
    assert "ship" not in watched.told
    watched.now += 5.0
    loop.step(0.0)
    told = watched.told
    shipping = ["checkpoint", "flush", "flush done", "checkpoint done", "ship", "ship done"]
    assert told[told.index("checkpoint") : told.index("ship done") + 1] == shipping
    loop.close()


def test_a_standby_tries_again_by_the_clock_that_the_application_was_given(tmp_path: Path) -> None:
    begun(tmp_path)
    watched = Watched(tmp_path, bucket_capacity=3, standby="all")
    application = watched.application
    topology = application.topology
    owner = watched.bus.join(topology.group("index"), [topology.seats], "a")
    with closing(owner):  # It has the shard.
        loop = application.loop("index", "b")
        loop.step(0.0)
        opened = []
        for seconds in (1.0, 20.0, 20.0):
            watched.now += seconds
            loop.step(0.0)
            opened.append(watched.told.count("open"))
        assert opened == [1, 0, 1]
        loop.close()
