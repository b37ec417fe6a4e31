"""Stores that no shard uses any more are deleted in time, and only those."""

from __future__ import annotations

import json
import threading
from base64 import b32encode
from pathlib import Path
from random import Random

import msgspec
import pytest

from tests.support.brokers import Brokers
from tests.support.plans import taken_over
from tests.support.texts import near_copies
from worker.bus import Outgoing
from worker.generations.generation import Generation
from worker.generations.modes import Part, parts
from worker.generations.plan import Plan
from worker.index.directory import ShardDirectories, beside
from worker.index.keyspace import StoreHeader
from worker.index.leftovers import Leftovers, keep_looking, look_seconds, look_through
from worker.loop.loop import Loop
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.offline.embedded import create_topics
from worker.process.parts import Assembly
from worker.settings.model import Settings
from worker.topology import STAGES

SECONDS = 600.0
THIRD = SECONDS / 3
HEADER: StoreHeader = {"bands": 18}
COUNT = 40


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Worker:
    """One of several workers on a bus, all stages in the test's thread."""

    def __init__(self, site: Site, name: str, **index: object) -> None:
        settings = Settings.model_validate({"index": {**site.options, **index}})
        self.state_dir = site.directory / name
        self.plan = Plan.of(settings)
        self.metrics = Metrics()
        self.assembly = Assembly(
            settings,
            site.topology,
            site.bus,
            self.state_dir,
            metrics=self.metrics,
            clock=site.clock,
            wall_clock=site.clock,
        )
        self.loops: dict[Part, Loop] = {
            part: self.assembly.loop(part, name) for part in parts(STAGES, self.plan, site.topology)
        }

    @property
    def index(self) -> Loop:
        (loop,) = (loop for part, loop in self.loops.items() if part.stage == "index")
        return loop

    def tidy(self) -> None:
        self.assembly.tidy(self.plan, {self.plan.current: self.index})

    def stores(self) -> list[str]:
        return sorted(path.name for path in self.state_dir.iterdir() if path.suffix != ".journal")


class Site:
    """A bus with a clock, and workers that come and go."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = Clock()
        self.options = {"shards": 2, "cache_bytes": 1 << 20, "erasure_seconds": SECONDS}
        self.bus = Brokers(clock=lambda: int(self.clock.now * 1_000))
        self.topology = Settings.model_validate({"index": self.options}).topology(1)
        create_topics(self.bus, self.topology)
        self.workers: dict[str, Worker] = {}

    def start(self, name: str, **index: object) -> Worker:
        self.workers[name] = worker = Worker(self, name, **index)
        self.run()
        return worker

    def stop(self, name: str) -> None:
        for loop in self.workers.pop(name).loops.values():
            loop.close(leave=True)
        self.run()

    def run(self) -> None:
        """Run until all is done, what is due once a second included."""
        for _ in range(3):
            self.clock.now += 1.01
            busy = True
            while busy:
                loops = [loop for one in self.workers.values() for loop in one.loops.values()]
                for loop in loops:
                    loop.step(0.0)
                busy = any(loop.busy for loop in loops)

    def wait(self, seconds: float) -> None:
        """Let time pass; the workers look at what they have all the while."""
        end = self.clock.now + seconds
        while self.clock.now < end:
            self.clock.now = min(end, self.clock.now + look_seconds(SECONDS))
            self.run()
            for worker in self.workers.values():
                worker.tidy()

    def put(self, ident: str, text: str | None) -> None:
        value = None if text is None else json.dumps({"id": ident, "text": text}).encode()
        self.bus.append(Outgoing(self.topology.documents, 0, ident.encode(), value))

    def files_with(self, idents: list[str]) -> set[str]:
        """Return the paths of all files that have any of these ids."""
        found = set()
        for path in self.directory.rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                if any(ident.encode() in content for ident in idents):
                    found.add(str(path.relative_to(self.directory)))
        return found

    def close(self) -> None:
        for name in list(self.workers):
            self.stop(name)


def chance_ids() -> list[str]:
    """Return ids that no compression shortens."""
    chance = Random(4)
    return [b32encode(chance.randbytes(20)).decode() for _ in range(COUNT)]


def test_what_is_forgotten_after_a_shard_has_moved_is_in_no_file_in_time(tmp_path: Path) -> None:
    site = Site(tmp_path)
    first = site.start("a")
    idents = chance_ids()
    for ident, (_, text) in zip(idents, near_copies(COUNT, 3), strict=True):
        site.put(ident, text)
    site.run()
    second = site.start("b")
    (moved,) = second.index.owned
    before = {path.split("/")[:2][1] for path in site.files_with(idents) if path[0] == "a"}
    assert f"shard-{moved.partition:03d}" in before, "nothing to delete"
    for ident in idents:
        site.put(ident, None)
    site.run()
    site.wait(SECONDS)
    assert site.files_with(idents) == set()
    assert first.stores() == [f"shard-{1 - moved.partition:03d}"]
    assert second.stores() == [f"shard-{moved.partition:03d}"]
    site.close()


def test_a_shard_that_comes_back_in_time_has_its_store(tmp_path: Path) -> None:
    site = Site(tmp_path)
    first = site.start("a")
    for ident, text in near_copies(COUNT, 3):
        site.put(ident, text)
    site.run()
    for _ in range(3):  # Each time anew.
        site.start("b")
        site.wait(THIRD - 10)
        assert len(first.index.owned) == 1
        site.stop("b")
        site.wait(THIRD - 10)
    assert len(first.index.owned) == 2
    assert first.metrics.value(table.INDEX_DOCUMENTS, "replayed") == 0
    assert first.stores() == ["shard-000", "shard-001"]
    site.close()


def test_a_shard_that_comes_back_later_is_restored(tmp_path: Path) -> None:
    site = Site(tmp_path)
    first = site.start("a")
    for ident, text in near_copies(COUNT, 3):
        site.put(ident, text)
    site.run()
    site.start("b")
    site.wait(SECONDS)
    assert len(first.stores()) == 1
    site.stop("b")
    assert first.stores() == ["shard-000", "shard-001"]
    site.close()


def test_shards_that_are_kept_warm_stay(tmp_path: Path) -> None:
    site = Site(tmp_path)
    workers = [site.start(name, standby="all") for name in "ab"]
    site.put("a", "a text")
    site.run()
    site.wait(2 * SECONDS)
    for worker in workers:
        assert worker.stores() == ["shard-000", "shard-001"]
    site.close()


def test_restarts_do_not_begin_the_time_anew(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.start("a")
    site.put("a", "a text")
    site.run()
    site.stop("a")
    site.start("b")
    for _ in range(4):
        worker = site.start("a")
        assert len(worker.index.owned) == 1
        site.wait(THIRD / 3)
        site.stop("a")
    assert len(worker.stores()) == 1
    site.close()


def test_a_worker_without_a_seat_deletes_nothing(tmp_path: Path) -> None:
    site = Site(tmp_path)
    worker = site.start("a")
    site.put("a", "a text")
    site.run()
    site.bus.silence(site.topology.group("index"))
    site.wait(2 * SECONDS)
    assert worker.index.member.waiting
    assert worker.stores() == ["shard-000", "shard-001"]
    site.bus.answer(site.topology.group("index"))
    site.wait(2 * SECONDS)
    assert worker.stores() == ["shard-000", "shard-001"]
    site.close()


def directories(path: Path, leftovers: Leftovers) -> ShardDirectories:
    return ShardDirectories(path, lambda _: HEADER, leftovers=leftovers)


def test_a_store_that_was_put_aside_goes_in_time_and_another_in_its_own(tmp_path: Path) -> None:
    clock = Clock()
    leftovers = Leftovers(clock)
    kept = directories(tmp_path, leftovers)
    aside = beside(kept.path(0), "aside")
    for _ in range(2):
        kept.open(0).close()
        kept.put_aside(0, "a test")
        for _ in range(2):
            leftovers.look(tmp_path, SECONDS, {kept.path(0)})
            assert aside.exists()
            clock.now += THIRD - 1
        clock.now -= THIRD - 1
    clock.now += 1
    leftovers.look(tmp_path, SECONDS, {kept.path(0)})
    assert list(tmp_path.iterdir()) == []


def test_what_is_being_made_beside_a_used_store_stays(tmp_path: Path) -> None:
    clock = Clock()
    leftovers = Leftovers(clock)
    store = tmp_path / "shard-003"
    halves = [beside(store, "fetching"), beside(store, "checkpoint"), beside(store, "tables")]
    for path in (store, *halves):
        path.mkdir()
    for _ in range(3):
        leftovers.look(tmp_path, SECONDS, {store})
        clock.now += SECONDS
    assert set(tmp_path.iterdir()) == {store, *halves}
    with directories(tmp_path, leftovers).taking_on(3):  # As a standby's shard.
        for _ in range(3):
            leftovers.look(tmp_path, SECONDS)
            clock.now += SECONDS
    assert set(tmp_path.iterdir()) == {store, *halves}
    for _ in range(2):
        leftovers.look(tmp_path, SECONDS)
        clock.now += SECONDS
    assert set(tmp_path.iterdir()) == set()


def test_generations_that_nobody_runs_go_in_time_and_those_that_were_left_at_once(
    tmp_path: Path,
) -> None:
    clock = Clock()
    leftovers = Leftovers(clock)
    (tmp_path / "lock").touch()
    (tmp_path / "g2 notes").mkdir()
    for generation in ("", "g1", "g2", "g3", "g4"):
        (tmp_path / generation / "shard-000").mkdir(parents=True)
    run = {tmp_path / "g3": {tmp_path / "g3" / "shard-000"}, tmp_path / "g4": None}
    look_through(tmp_path, leftovers, SECONDS, run, {tmp_path / "g1"})
    assert not (tmp_path / "g1").exists()
    assert (tmp_path / "g2" / "shard-000").exists()
    clock.now += THIRD
    look_through(tmp_path, leftovers, SECONDS, run)
    assert {path.name for path in tmp_path.iterdir()} == {"lock", "g2 notes", "g3", "g4"}


def test_the_stores_of_an_earlier_generation_go_at_once_also_when_its_topics_are_gone(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path)
    worker = site.start("one")
    site.stop("one")
    begun = taken_over(worker.plan, Generation.of(Settings()))
    for plan in (begun, msgspec.structs.replace(begun, left=())):
        earlier = tmp_path / "one" / "shard-001"
        earlier.mkdir(exist_ok=True)
        worker.assembly.tidy(plan, {plan.current: None})
        assert not earlier.exists()


def test_the_first_look_deletes_what_is_to_go_at_once(tmp_path: Path) -> None:
    (tmp_path / "shard-000").mkdir()
    Leftovers().look(tmp_path, SECONDS, at_once=True)
    assert set(tmp_path.iterdir()) == set()


def test_groups_that_nobody_keeps_any_more_go_in_time(tmp_path: Path) -> None:
    clock = Clock()
    leftovers = Leftovers(clock)
    kept = directories(tmp_path, leftovers)
    for path in kept.paths(1, groups=True):
        path.mkdir()
    assert kept.groups_path in kept.paths(1, groups=True)
    for groups in (True, False):
        assert kept.groups_path.exists()
        for _ in range(2):
            leftovers.look(tmp_path, SECONDS, kept.paths(1, groups=groups))
            clock.now += THIRD
    assert list(tmp_path.iterdir()) == [kept.path(0)]


def test_a_store_that_is_being_opened_stays(tmp_path: Path) -> None:
    clock = Clock()
    leftovers = Leftovers(clock)
    store = tmp_path / "shard-000"
    store.mkdir()
    leftovers.look(tmp_path, SECONDS)
    clock.now += SECONDS
    with leftovers.opening(store):
        leftovers.look(tmp_path, SECONDS)
        assert store.exists()
    leftovers.look(tmp_path, SECONDS)
    assert store.exists()
    clock.now += SECONDS
    with pytest.raises(ValueError, match="no store"), leftovers.opening(store):
        raise ValueError("no store")
    leftovers.look(tmp_path, SECONDS)
    assert not store.exists()


def test_whoever_opens_a_store_while_it_is_deleted_begins_an_empty_one(tmp_path: Path) -> None:
    clock = Clock()
    leftovers = Leftovers(clock)
    kept = directories(tmp_path, leftovers)
    kept.open(0).close()
    leftovers.look(tmp_path, SECONDS)
    clock.now += SECONDS
    looking = threading.Thread(target=leftovers.look, args=(tmp_path, SECONDS))
    looking.start()
    store = kept.open(0)
    looking.join()
    assert (store.offset, store.path.exists()) == (0, True)
    store.flush()
    store.close()
    assert {path.name for path in tmp_path.iterdir()} <= {"shard-000", "shard-000.unused"}


def test_a_deletion_that_was_cut_off_is_ended(tmp_path: Path) -> None:
    (tmp_path / "shard-000.dropped").mkdir()
    (tmp_path / "shard-000.dropped" / "000001.sst").touch()
    (tmp_path / "shard-001.unused").mkdir()
    Leftovers(Clock()).look(tmp_path, SECONDS, {tmp_path / "shard-000"})
    assert list(tmp_path.iterdir()) == []


def test_a_clock_that_was_ahead_keeps_nothing_for_ever(tmp_path: Path) -> None:
    clock = Clock()
    leftovers = Leftovers(clock)
    (tmp_path / "shard-000").mkdir()
    clock.now += 1e8
    leftovers.look(tmp_path, SECONDS)
    clock.now -= 1e8
    leftovers.look(tmp_path, SECONDS)
    clock.now += THIRD
    leftovers.look(tmp_path, SECONDS)
    assert list(tmp_path.iterdir()) == []


def test_what_can_not_be_deleted_is_named_and_costs_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    leftovers = Leftovers(clock)
    for number in range(2):
        (tmp_path / f"shard-00{number}").mkdir()
    leftovers.look(tmp_path, SECONDS)
    clock.now += SECONDS

    def full(path: Path) -> None:
        if "shard-000" in path.name:
            raise OSError(28, "No space left on device")
        path.rmdir()

    with monkeypatch.context() as context:
        context.setattr("worker.index.leftovers.shutil.rmtree", full)
        leftovers.look(tmp_path, SECONDS)
    assert [path.name for path in tmp_path.iterdir()] == ["shard-000.dropped"]
    assert "shard-000: nobody uses it, and it can't be deleted: [Errno 28] No space" in caplog.text
    leftovers.look(tmp_path, SECONDS)
    assert list(tmp_path.iterdir()) == []


def test_a_standby_whose_log_stands_still_forgets_in_time(tmp_path: Path) -> None:
    site = Site(tmp_path)
    for name in "ab":
        site.start(name, standby="all")
    idents = chance_ids()
    for ident, (_, text) in zip(idents, near_copies(COUNT, 3), strict=True):
        site.put(ident, text)
    site.run()
    site.wait(70)  # Stores are flushed.
    for ident in idents:
        site.put(ident, None)
    site.run()
    site.close()
    assert {path[0] for path in site.files_with(idents)} == {"a", "b"}, "nothing to remove"
    for name in "ab":
        site.start(name, standby="all")
    site.wait(SECONDS)
    assert site.files_with(idents) == set()
    site.close()


def test_a_look_that_fails_is_named_and_the_next_one_follows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    looks, stopping = [], threading.Event()

    def look() -> None:
        looks.append(1)
        if len(looks) == 1:
            raise RuntimeError("an accident")
        stopping.set()

    keep_looking(look, 0.03, stopping)
    assert len(looks) == 2
    assert "what nobody uses could not be deleted; trying again" in caplog.text
    assert "an accident" in caplog.text
