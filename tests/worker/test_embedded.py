"""All stages on the in-process log: what verdicts don't depend on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from tests.crash.texts import near_copies
from tests.integration.checker import (
    History,
    check,
    differences,
    reason,
    verdict_of,
    verdicts,
)
from tests.integration.replay import replay
from worker.bus.memory import MemoryBus
from worker.bus.port import Outgoing, Record, TopicPartition
from worker.embedded import Embedded, create_topics
from worker.settings import Settings
from worker.topology import Topology

Texts = Sequence[tuple[str, str]]
Verdicts = dict[str, tuple[tuple[str, float], ...]]

NOW = 1_700_000_000_000


class Unforgetting(MemoryBus):
    """A log that can tell after a trim what it has had.

    Attributes:
        gone: the records that were deleted, by partition.
    """

    def __init__(self) -> None:
        super().__init__(clock=lambda: NOW)
        self.gone: dict[TopicPartition, list[Record]] = {}

    def trim(self, topic: str, partition: int, before_offset: int) -> None:
        here = self.read(topic, partition, self.start_offset(topic, partition), 1 << 30)
        gone = self.gone.setdefault(TopicPartition(topic, partition), [])
        gone += [record for record in here if record.offset < before_offset]
        super().trim(topic, partition, before_offset)

    def all_of(self, topic: str) -> list[Record]:
        """Give all records that a topic has ever had."""
        found: list[Record] = []
        for number in range(self.partitions([topic])[topic] or 0):
            found += self.gone.get(TopicPartition(topic, number), [])
            found += self.read(topic, number, self.start_offset(topic, number), 1 << 30)
        return found


class Run:
    """An application on a bus of its own, which can crash and come back."""

    def __init__(
        self,
        directory: Path,
        *,
        partitions: int = 3,
        shards: int = 4,
        batch: int = 4_000,
        snapshots: Mapping[str, object] | None = None,
    ) -> None:
        self.settings = Settings.model_validate(
            {
                "index": {
                    "shards": shards,
                    "cache_bytes": 1 << 20,
                    "bucket_capacity": 3,
                    "snapshots": snapshots or {},
                },
                "worker": {"batch_records": batch},
            }
        )
        self.topology = Topology.of(self.settings, partitions)
        self.bus = Unforgetting()
        create_topics(self.bus, self.topology)
        self._directory = directory
        self._lives = count()
        self._state = directory / "state"
        self.inputs: list[Record] = []
        self.embedded = self._open()

    def _open(self) -> Embedded:
        return Embedded(self.settings, self.topology, self.bus, self._state)

    def feed(self, texts: Texts, *, one_by_one: bool = False) -> None:
        for ident, text in texts:
            value = json.dumps({"id": ident, "text": text}).encode()
            partition = len(self.inputs) % self.topology.partitions
            self.put(Outgoing(self.topology.documents, partition, None, value))
            if one_by_one:
                self.embedded.run_until_idle()

    def put(self, record: Outgoing) -> None:
        (topic, partition), offset = self.bus.append(record)
        self.inputs.append(
            Record(topic, partition, offset, NOW, record.key, record.value, record.headers)
        )

    def finish(self) -> History:
        self.embedded.run_until_idle()
        return self.history()

    def restart(self) -> None:
        """End well, and come back."""
        self.embedded.close()
        self.embedded = self._open()

    def crash(self) -> None:
        """Come back with what was on disk, all write buffers lost."""
        self._state = self._directory / f"life-{next(self._lives)}"
        before = self.embedded
        disk = before.application.store_path(0).parent
        if disk.exists():
            shutil.copytree(disk, self._state)
        for loop in before.loops:
            loop.stage.close()
        for lock in self._state.glob("*/LOCK"):
            lock.unlink()
        self.embedded = self._open()

    def history(self) -> History:
        topology = self.topology
        return History(
            self.inputs,
            self.bus.all_of(topology.unique),
            self.bus.all_of(topology.duplicate),
            self.bus.all_of(topology.rejected),
        )

    def prove(self, directory: Path, shards: int = 1) -> History:
        """Check all invariants, and that a replay of the run's order comes to the same."""
        history = self.finish()
        assert not check(history)
        frames = self.bus.all_of(self.topology.fingerprints)
        expected = replay(frames, self.settings, self.topology, shards, directory)
        assert not differences(verdicts(history), expected)
        return history


def by_id(history: History) -> Verdicts:
    return {
        json.loads(record.value)["id"]: verdict_of(record).matches
        for record in (*history.unique, *history.duplicate)
        if record.value is not None
    }


@pytest.fixture(scope="module")
def texts() -> Texts:
    return near_copies(150, 1)


@pytest.fixture(scope="module")
def expected(texts: Texts, tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    """Give the verdicts of one shard that sees one document at a time."""
    run = Run(tmp_path_factory.mktemp("expected"), partitions=1, shards=1, batch=1)
    run.feed(texts)
    found = by_id(run.finish())
    assert sum(map(bool, found.values())) > len(texts) / 5
    return found


@pytest.mark.parametrize("shards", [1, 2, 4, 18])
@pytest.mark.parametrize("batch", [1, 7, 4_000])
def test_verdicts_do_not_depend_on_shards_or_batches(
    tmp_path: Path, texts: Texts, expected: Verdicts, shards: int, batch: int
) -> None:
    run = Run(tmp_path, partitions=1, shards=shards, batch=batch)
    run.feed(texts)
    assert by_id(run.finish()) == expected


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_verdicts_do_not_depend_on_partitions(
    tmp_path: Path, texts: Texts, expected: Verdicts, partitions: int
) -> None:
    run = Run(tmp_path, partitions=partitions)
    run.feed(texts, one_by_one=True)
    assert by_id(run.finish()) == expected


@pytest.mark.parametrize("seed", range(5))
def test_in_any_order_of_arrival_one_of_equal_texts_is_unique(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    groups = [text for _, text in near_copies(12, seed) if len(text) > 60]
    distinct = enumerate(dict.fromkeys(groups))
    arrivals = [(f"{group}-{copy}", text) for group, text in distinct for copy in range(6)]
    random.shuffle(arrivals)
    run = Run(tmp_path, partitions=random.choice((2, 3, 5)), batch=random.choice((2, 9, 4_000)))
    run.feed(arrivals)
    history = run.prove(tmp_path, shards=random.choice((1, 2, 18)))
    firsts = [json.loads(r.value or b"")["id"].partition("-")[0] for r in history.unique]
    assert len(firsts) == len(set(firsts))


def test_tombstones_are_passed_on_to_both_outputs(tmp_path: Path, texts: Texts) -> None:
    run = Run(tmp_path)
    for number, text in enumerate(texts[:60]):
        run.feed([text])
        if number % 5 == 0:
            run.put(Outgoing(run.topology.documents, number % 3, b"key-%d" % number, None))
    history = run.prove(tmp_path)
    assert sum(record.value is None for record in history.duplicate) == 12


@pytest.mark.parametrize("how", ["restart", "crash"])
@pytest.mark.parametrize("batch", [3, 4_000])
def test_a_worker_that_comes_back_goes_on_with_its_state(
    tmp_path: Path, texts: Texts, expected: Verdicts, how: Literal["restart", "crash"], batch: int
) -> None:
    run = Run(tmp_path, partitions=1, batch=batch)
    for first in range(0, len(texts), 30):
        run.feed(texts[first : first + 30])
        run.finish()
        getattr(run, how)()
    assert by_id(run.finish()) == expected
    run.prove(tmp_path)


def empty(run: Run, topic: str) -> None:
    """Delete all of a topic, with the markers at its ends, as retention does after a while."""
    for number in range(run.bus.partitions([topic])[topic] or 0):
        place = TopicPartition(topic, number)
        run.bus.trim(*place, run.bus.reader("", [topic]).watermarks(place)[1])


@pytest.mark.parametrize("ends", ["restart", "crash"])
def test_a_worker_comes_back_after_retention_has_emptied_the_answers(
    tmp_path: Path, texts: Texts, ends: str
) -> None:
    run = Run(tmp_path / "run")
    run.feed(texts[:50])
    run.finish()
    for shard in range(run.topology.shards):
        empty(run, run.topology.matches(shard))
    getattr(run, ends)()
    run.feed(texts[50:100])
    run.prove(tmp_path / "replay")


def test_documents_deleted_once_they_were_judged_are_rejected(tmp_path: Path, texts: Texts) -> None:
    run = Run(tmp_path / "run")
    run.feed(texts[:50])
    for _ in range(3):
        for loop in run.embedded.loops[:-1]:
            loop.step(0.0)
    empty(run, run.topology.documents)
    run.restart()
    history = run.finish()
    assert len(history.rejected) == 50
    assert not history.unique
    assert {reason(record) for record in history.rejected} == {"payload-gone"}
    run.feed(texts[50:60])
    history = run.finish()
    assert len(history.unique) + len(history.duplicate) == 10
