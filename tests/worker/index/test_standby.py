"""A shard kept warm on a second worker is taken over without replay, with the same verdicts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.brokers import Brokers
from tests.support.checker.history import verdict_of
from tests.support.embedded import NOW, Verdicts
from tests.support.texts import near_copies
from tests.worker.index.standby_bench import HEADER, OWNED, PLACE, Bench
from worker.app import Application
from worker.bus import Outgoing, Record
from worker.bus.shared import SharedReader
from worker.index.standby import Standby
from worker.index.store import BandStore
from worker.loop.loop import Loop
from worker.metrics import table
from worker.offline.embedded import create_topics
from worker.settings.model import Settings
from worker.stages.index import Index
from worker.topology import STAGES

SHARDS = 2
TEXTS = near_copies(120, 7)


class Worker:
    """One of several workers on a bus; all stages, in the test's thread."""

    def __init__(self, bus: Brokers, directory: Path, name: str, **index: object) -> None:
        settings = Settings.model_validate(
            {"index": {"shards": SHARDS, "cache_bytes": 1 << 20, **index}}
        )
        self.name = name
        self.bus = bus
        self.topology = settings.topology(2)
        self.application = Application(settings, self.topology, bus, directory / name)
        self.loops: list[Loop] = [self.application.loop(stage, name) for stage in STAGES]

    @property
    def index(self) -> Index[BandStore]:
        (stage,) = (loop.stage for loop in self.loops if isinstance(loop.stage, Index))
        return stage

    def step(self) -> bool:
        busy = False
        for loop in self.loops:
            loop.step(0.0)
            busy |= loop.busy
        return busy

    def warm(self) -> dict[int, int]:
        """Let the standby come on; give how far behind each of its shards is."""
        for _ in range(60):
            self.index.idle()
        return dict(self.index.status().standby_lag)

    def replayed(self) -> float:
        return self.application.metrics.value(table.INDEX_DOCUMENTS, "replayed") or 0.0

    def leave(self) -> None:
        """Be away for longer than a session lasts."""
        for stage in STAGES:
            self.bus.evict(self.topology.group(stage), self.name)
        for loop in self.loops:
            loop.close(leave=True)


class Site:
    """A bus, and workers that come and go."""

    def __init__(self, directory: Path, **index: object) -> None:
        self.directory = directory
        self.options = index
        self.bus = Brokers(clock=lambda: NOW)
        settings = Settings.model_validate({"index": {"shards": SHARDS}})
        self.topology = settings.topology(2)
        create_topics(self.bus, self.topology)
        self.workers: list[Worker] = []
        self.fed = 0

    def start(self, name: str, **more: object) -> Worker:
        worker = Worker(self.bus, self.directory, name, **{**self.options, **more})
        self.workers.append(worker)
        return worker

    def stop(self, worker: Worker) -> None:
        self.workers.remove(worker)
        worker.leave()

    def run(self) -> None:
        busy = True
        while busy:
            busy = sum(worker.step() for worker in self.workers) > 0

    def feed(self, last: int) -> None:
        """Feed up to this document, one at a time, so that there is one order."""
        for ident, text in TEXTS[self.fed : last]:
            value = json.dumps({"id": ident, "text": text}).encode()
            self.bus.append(Outgoing(self.topology.documents, self.fed % 2, None, value))
            self.fed += 1
            self.run()

    def verdicts(self) -> Verdicts:
        found: Verdicts = {}
        for topic in (self.topology.unique, self.topology.duplicate):
            for partition in range(2):
                for record in self.bus.read(topic, partition, 0, 1 << 20):
                    found[json.loads(record.value or b"")["id"]] = verdict_of(record).matches
        return found

    def close(self) -> None:
        for worker in self.workers:
            for loop in worker.loops:
                loop.close()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    site = Site(tmp_path_factory.mktemp("expected"))
    site.start("a")
    site.feed(120)
    site.close()
    found = site.verdicts()
    assert len(found) == 120
    assert sum(map(bool, found.values())) > 20
    return found


def test_a_warm_shard_is_taken_over_without_replay(tmp_path: Path, expected: Verdicts) -> None:
    site = Site(tmp_path, standby="all")
    first, second = site.start("a"), site.start("b")
    site.feed(50)
    assert [set(worker.index.stores()) for worker in (first, second)] == [{0}, {1}]
    assert first.warm() == {1: 0}
    site.stop(second)
    site.run()
    assert set(first.index.stores()) == {0, 1}
    site.feed(80)
    assert first.replayed() == 0
    second = site.start("b")
    site.feed(100)
    assert first.warm() == {1: 0}
    assert set(first.index.stores()) == {0}
    site.stop(second)
    site.feed(120)
    assert first.replayed() == 0
    assert site.verdicts() == expected
    site.close()


@pytest.mark.slow
def test_without_a_standby_it_is_replayed(tmp_path: Path, expected: Verdicts) -> None:
    site = Site(tmp_path)
    first, second = site.start("a"), site.start("b")
    site.feed(50)
    site.stop(second)
    site.feed(120)
    assert first.replayed() == 50
    assert site.verdicts() == expected
    site.close()


@pytest.mark.slow
def test_a_standby_that_the_log_has_passed_is_restored_from_a_snapshot(
    tmp_path: Path, expected: Verdicts
) -> None:
    snapshots = {"url": str(tmp_path / "kept"), "every_seconds": 1e-6, "trim_log": True, "keep": 1}
    site = Site(tmp_path, snapshots=snapshots)
    first, second = site.start("a"), site.start("b")
    third = site.start("c", standby="1")  # Has no shard of its own, or it would trim the log.
    site.feed(20)
    assert third.warm() == {1: 0}
    site.feed(90)
    for worker in (second, second, first, first):
        worker.index.idle()
    assert site.bus.start_offset(*site.topology.order) > 40
    assert third.warm() == {1: 0}
    assert (tmp_path / "c" / "shard-001.aside").exists()
    site.stop(second)
    site.feed(120)
    assert set(third.index.stores()) == {1}
    assert third.replayed() == 0
    assert site.verdicts() == expected
    site.close()


@pytest.mark.slow
@pytest.mark.parametrize("restarted", [False, True])
def test_a_warm_shard_outlasts_a_log_that_was_emptied(
    tmp_path: Path, expected: Verdicts, *, restarted: bool
) -> None:
    site = Site(tmp_path, standby="all", window="30d")
    first, second = site.start("a"), site.start("b")
    site.feed(50)
    assert [first.warm(), second.warm()] == [{1: 0}, {0: 0}]
    order = site.topology.order
    site.bus.trim(*order, site.bus.end_offset(*order))
    if restarted:
        site.stop(first)
        site.run()
        first = site.start("a")
        site.run()
    first.warm()
    site.feed(80)
    shard = 1 - next(iter(first.index.stores()))
    assert set(first.warm()) == {shard}
    site.stop(second)
    site.feed(120)
    assert set(first.index.stores()) == {0, 1}
    assert not list(tmp_path.glob("*/*.aside"))
    assert site.verdicts() == expected
    site.close()


class Lossy(SharedReader):
    """A reader that loses some records on their way.

    Attributes:
        lost: by shard and offset.
    """

    lost: set[tuple[int, int]]

    def read(self, limit: int, max_bytes: int, timeout: float) -> list[Record]:
        records = super().read(limit, max_bytes, timeout)
        return [record for record in records if (record.partition, record.offset) not in self.lost]


@pytest.mark.slow
def test_what_a_standby_did_not_get_is_missing_nowhere(
    tmp_path: Path, expected: Verdicts, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, standby="all")
    lost: set[tuple[int, int]] = set()

    def lossy(application: Application) -> Lossy:
        group, order = application.topology.group("index"), application.topology.order
        reader = Lossy(order, lambda: site.bus.log_reader(group, [order.topic]))
        reader.lost = lost
        return reader

    with monkeypatch.context() as patch:
        patch.setattr(Application, "reader", lossy)
        first = site.start("a")
    second = site.start("b")
    site.feed(20)
    assert first.warm() == {1: 0}
    log = site.bus.read(*site.topology.order, 0, 1 << 20)
    lost.update((1, log[-1].offset + more) for more in range(1, 40))
    site.feed(50)
    first.warm()
    lost.clear()
    site.stop(second)
    site.feed(120)
    assert site.verdicts() == expected
    assert first.replayed() == 50
    assert (tmp_path / "a" / "shard-001.aside").exists()
    site.close()


@pytest.mark.parametrize(("size", "ahead"), [(1, 64), (1 << 20, 16)])
def test_it_holds_a_bounded_number_of_frames_and_of_bytes(
    tmp_path: Path, size: int, ahead: int
) -> None:
    """Above the limit it reads no more; the last read may have been of eight frames."""
    bench = Bench(tmp_path)
    bench.tape.value = bytes(size)
    bench.tape.group = 30
    assert bench.standby.hand_over({}) == {}
    bench.until(lambda: len(bench.applied) == 30 and bench.tape.at is None)
    bench.standby.close()
    assert 30 + ahead < bench.tape.furthest <= 30 + ahead + 8


def test_it_follows_the_group_and_never_passes_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.tape.group = 30
    assert bench.standby.hand_over({}) == {}
    bench.until(lambda: len(bench.applied) == 30)
    bench.tape.group = 500
    bench.until(lambda: len(bench.applied) == 500)
    warm = bench.taken_over()
    assert warm.offset == 500
    assert bench.standby.hand_over(OWNED) == {}
    # The stage goes on with it, and gives it back.
    warm.apply(None, offset=510, documents=10)
    bench.tape.group = 600
    assert bench.standby.take(PLACE, warm)
    bench.until(lambda: bench.applied[-1] == 599)
    assert bench.applied == [*range(500), *range(510, 600)]
    bench.standby.close()
    assert bench.tape.closed.is_set()
    after = BandStore(bench.path, HEADER)
    assert after.offset == 600
    after.close()


def test_what_cannot_be_kept_warm_is_a_warning_and_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(tmp_path)
    bench.tape.group = 10
    bench.standby.hand_over({})
    bench.until(lambda: len(bench.applied) == 10)
    bench.tape.low, bench.tape.group = 500, 600  # trimmed, and there is no snapshot

    def warned() -> bool:
        return any("there is no good snapshot" in r.getMessage() for r in caplog.records)

    bench.until(warned)
    assert bench.path.with_name("shard-003.aside").exists()
    assert bench.standby.hand_over(OWNED) == {}
    bench.standby.close()


def test_a_defect_is_carried_to_the_stage(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    def defect(_shard: int, _store: BandStore, _records: list[Record]) -> None:
        raise ZeroDivisionError

    bench.standby = Standby(
        [PLACE],
        lambda: bench.tape,
        bench.recovery,
        bench.directories,
        defect,
        background=True,
    )
    bench.tape.group = 3
    bench.standby.hand_over({})

    def raised() -> bool:
        try:
            bench.standby.hand_over({})
        except ZeroDivisionError:
            return True
        return False

    bench.until(raised)
    bench.standby.close()
