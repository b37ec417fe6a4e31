"""What is exported of shards while they are here, and what the log says of documents' dates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from lsh.index import NO_TIME, BucketRules
from tests.core.dictionaries import Driven
from tests.support.filling import fill, random_documents
from tests.support.texts import near_copies
from worker.bus import Outgoing
from worker.bus.memory.bus import MemoryBus
from worker.index.directory import stores_in
from worker.index.inspection import store_statistics
from worker.index.rocksdb import StoreOptions
from worker.index.store import BandStore
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.offline.embedded import Embedded, create_topics
from worker.settings.model import Settings
from worker.stages.base import RestoreState, Status
from worker.stages.judge import Parts
from worker.stages.shard_reports import DateReports, ShardFigures


def test_a_restore_is_told_of_until_it_has_ended() -> None:
    metrics, figures = Metrics(), ShardFigures()
    state = RestoreState(bytes_done=5, bytes_total=9, remaining=70)
    figures.status(metrics, Status(restoring={2: state}))
    assert metrics.numbers(table.RESTORE_BYTES) == {("2", "done"): 5, ("2", "total"): 9}
    assert metrics.numbers(table.RESTORE_REMAINING_RECORDS) == {("2",): 70}
    figures.status(metrics, Status())
    assert metrics.numbers(table.RESTORE_BYTES) == {}
    assert metrics.numbers(table.RESTORE_REMAINING_RECORDS) == {}


def test_the_lag_of_shards_kept_warm() -> None:
    metrics, figures = Metrics(), ShardFigures()
    figures.status(metrics, Status(standby_lag={1: 30}))
    figures.status(metrics, Status(standby_lag={0: 4}))
    assert metrics.numbers(table.STANDBY_LAG_RECORDS) == {("0",): 4}


class Aging:
    """What a store tells of itself."""

    def __init__(self, oldest: float | None, expired: int, stalled: float = 0.0) -> None:
        self.oldest = oldest
        self.expired = expired
        self.stalled = stalled

    def size_bytes(self) -> int:
        return 0

    def memory_bytes(self) -> int:
        return 0

    def keys_estimate(self) -> int:
        return 0

    def pending_compaction_bytes(self) -> int:
        return 0

    @property
    def stalled_seconds(self) -> float:
        return self.stalled

    def oldest_seconds(self) -> float | None:
        return self.oldest

    def expired_eras(self) -> int:
        return self.expired

    def parts(self) -> Parts:
        return Parts(0, 1, {"memtable": 1}, {"memtable": 0})


def test_how_far_back_shards_reach() -> None:
    metrics, figures = Metrics(), ShardFigures()
    figures.stores(metrics, {0: Aging(90.0, 0), 1: Aging(None, 0)})
    assert metrics.numbers(table.INDEX_OLDEST_SECONDS) == {("0",): 90.0}
    figures.stores(metrics, {1: Aging(0.5, 0)})
    assert metrics.numbers(table.INDEX_OLDEST_SECONDS) == {("1",): 0.5}


def test_a_shard_that_answers_has_nothing_to_restore() -> None:
    metrics, figures = Metrics(), ShardFigures()
    figures.status(metrics, Status(restoring={2: RestoreState(remaining=70)}), [1, 2])
    assert metrics.numbers(table.RESTORE_REMAINING_RECORDS) == {("1",): 0, ("2",): 70}
    figures.status(metrics, Status(), [2])
    assert metrics.numbers(table.RESTORE_REMAINING_RECORDS) == {("2",): 0}


def test_waits_of_all_shards_are_counted_once() -> None:
    metrics, figures = Metrics(), ShardFigures()
    stalled = partial(metrics.value, table.INDEX_STALLED_SECONDS)
    figures.stores(metrics, {0: Aging(None, 0, 0.5)})
    figures.stores(metrics, {0: Aging(None, 0, 2.0), 1: Aging(None, 0, 1.0)})
    assert stalled() == 3.0
    figures.stores(metrics, {1: Aging(None, 0, 1.0)})
    figures.stores(metrics, {0: Aging(None, 0, 0.25), 1: Aging(None, 0, 1.0)})  # Opened anew.
    assert stalled() == 3.25


def test_eras_are_counted_from_when_a_shard_is_first_seen() -> None:
    metrics, figures = Metrics(), ShardFigures()
    expired = partial(metrics.value, table.INDEX_EXPIRED_TIME_SLICES)
    figures.stores(metrics, {0: Aging(1.0, 2), 1: Aging(1.0, 1)})
    assert expired() == 0
    figures.stores(metrics, {0: Aging(1.0, 2), 1: Aging(1.0, 4)})
    assert expired() == 3
    figures.stores(metrics, {0: Aging(1.0, 1), 1: Aging(1.0, 4)})
    assert expired() == 3
    figures.stores(metrics, {0: Aging(1.0, 3)})
    figures.stores(metrics, {0: Aging(1.0, 3), 1: Aging(1.0, 9)})
    assert expired() == 5


def test_the_buckets_that_became_full_are_those_that_the_statistics_find(tmp_path: Path) -> None:
    sections = {"bucket_capacity": 1, "absorb": 1.0, "cache_bytes": 1 << 20}
    settings = Settings.model_validate({"index": sections})
    topology, bus = settings.topology(1), MemoryBus()
    create_topics(bus, topology)
    stages = Embedded(settings, topology, bus, tmp_path)
    for ident, text in near_copies(60, 7):
        value = json.dumps({"id": ident, "text": text}).encode()
        bus.append(Outgoing(topology.documents, 0, None, value))
    stages.run_until_idle()
    stages.close()
    there = sum(store_statistics(path).divided for path in stores_in(tmp_path).values())
    assert stages.application.metrics.value(table.INDEX_DIVIDED) == there > 0


def test_a_shard_that_is_gone_is_not_shown(tmp_path: Path) -> None:
    metrics, figures = Metrics(), ShardFigures()
    store = BandStore(tmp_path / "1", {"shard": 1})
    fill(store, 1, 1_000)
    figures.stores(metrics, {1: store})
    held = metrics.value(table.INDEX_MEMORY_BYTES, "1")
    assert held == store.memory_bytes() >= 1_000 * 12
    assert metrics.value(table.INDEX_KEYS, "1") == 3_000
    assert metrics.value(table.INDEX_BYTES, "1") == store.size_bytes()
    figures.stores(metrics, {})
    store.close()
    for gauge in (table.INDEX_MEMORY_BYTES, table.INDEX_KEYS, table.INDEX_BYTES):
        assert metrics.numbers(gauge) == {}


def test_what_a_shard_consists_of_is_shown_by_tier(tmp_path: Path) -> None:
    metrics, figures = Metrics(), ShardFigures()
    options = StoreOptions(run_documents=16)
    store = BandStore(tmp_path / "1", {"shard": 1}, options=options)
    for offset in range(11):
        fill(store, offset, 16)
    figures.stores(metrics, {1: store})
    assert metrics.value(table.INDEX_KEPT_DOCUMENTS, "1") == 11 * 16
    assert metrics.value(table.INDEX_TIME_SLICES, "1") == 1
    postings = metrics.numbers(table.INDEX_POSTINGS)
    # Each document has a posting for its bucket, and one for its id.
    assert sum(postings.values()) + 11 * 16 == metrics.value(table.INDEX_KEYS, "1")
    assert postings == {("1", "memtable"): 32, ("1", "0"): 64, ("1", "1"): 256}
    assert metrics.numbers(table.INDEX_RUNS) == {("1", "memtable"): 1, ("1", "0"): 2, ("1", "1"): 1}
    figures.stores(metrics, {})
    store.close()
    for gauge in (table.INDEX_POSTINGS, table.INDEX_RUNS, table.INDEX_KEPT_DOCUMENTS):
        assert metrics.numbers(gauge) == {}


DAY = 86_400_000
START = 1_550_000_000_000
RULES = BucketRules(threshold=0.8, window_ms=30 * DAY)


def told(caplog: pytest.LogCaptureFixture, bursts: Sequence[Sequence[int | None]]) -> list[str]:
    """Return what is said of documents that come at some days, or have no time."""
    caplog.set_level("INFO")
    reports, shard = DateReports(window=True), Driven(RULES)
    for burst in bursts:
        times = [NO_TIME if day is None else START + DAY * day for day in burst]
        documents = random_documents(len(burst), first=shard.shard.inserted)
        documents = replace(documents, times=np.array(times, np.int64))
        reports.judged(shard.judge(documents), len(burst))
    return [f"{one.levelname} {one.getMessage()}" for one in caplog.records]


def test_the_first_old_document_is_told_of_and_then_each_tenfold(
    caplog: pytest.LogCaptureFixture,
) -> None:
    said = told(caplog, [[0] * 32, [-31], [-31] * 8, [-31], [-31] * 300, [-(10**9)]])
    assert [one.split(":")[3].split(".")[0] for one in said] == [
        " 1 so far",
        " 10 so far",
        " 310 so far",
    ]
    assert said[0] == (
        "INFO documents dated more than index.window before now, which is 2019-02-12T19:33:20Z: 1"
        " so far. They count as of now (docs/how-to/operate.md, 'How long the index remembers')"
    )


def test_a_leap_over_a_window_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    said = told(caplog, [[0] * 64, [30] * 16, [61] * 15, [61], [10**9] * 64])
    assert len(said) == 2
    assert said[0].startswith(
        "WARNING now went from 2019-03-14T19:33:20Z to 2019-04-14T19:33:20Z at one document, by"
        " more than index.window: the index has forgotten what is older."
    )
    assert f"to {START + DAY * 10**9} ms at one document" in said[1]


def test_it_is_said_once_that_documents_have_no_time(caplog: pytest.LogCaptureFixture) -> None:
    said = told(caplog, [[None] * 60, [0] * 9, [None] * 40, [None] * 200, [0] * 64])
    assert said == [
        (
            "WARNING of the first 109 documents, 9 have a time: nothing expires before 32 have"
            " (index.window, documents.time_field)"
        )
    ]


def test_a_feed_with_times_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    assert told(caplog, [[0, None, 1] * 20, [2] * 100]) == []
