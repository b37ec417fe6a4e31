"""What metrics say of shards and partitions while they are here; and then no more."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.support.filling import fill
from tests.support.texts import near_copies
from worker.bus import Outgoing, Queued, TopicPartition
from worker.bus.memory import MemoryBus
from worker.index.directory import stores_in
from worker.index.statistics import store_statistics
from worker.index.store import BandStore, StoreOptions
from worker.metrics import Metrics
from worker.offline.embedded import Embedded, create_topics
from worker.settings import Settings
from worker.stages import IndexCounts, LeftOut, RefingerprintCounts, RestoreState, Status


def test_a_restore_is_told_of_until_it_has_ended() -> None:
    metrics = Metrics()

    def sample(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, labels)

    state = RestoreState(bytes_done=5, bytes_total=9, remaining=70)
    metrics.index.status(Status(restoring={2: state}))
    assert sample("neardup_restore_bytes", shard="2", part="done") == 5
    assert sample("neardup_restore_bytes", shard="2", part="total") == 9
    assert sample("neardup_restore_remaining_records", shard="2") == 70
    metrics.index.status(Status())
    assert sample("neardup_restore_bytes", shard="2", part="done") is None
    assert sample("neardup_restore_remaining_records", shard="2") is None


def test_the_lag_of_shards_kept_warm() -> None:
    metrics = Metrics()
    metrics.index.status(Status(standby_lag={1: 30}))
    metrics.index.status(Status(standby_lag={0: 4}))
    lag = "neardup_standby_lag_records"
    assert metrics.registry.get_sample_value(lag, {"shard": "0"}) == 4
    assert metrics.registry.get_sample_value(lag, {"shard": "1"}) is None


def test_the_lag_of_partitions_that_a_stage_owns_and_of_no_others() -> None:
    metrics = Metrics()

    def lag(stage: str, number: str) -> float | None:
        labels = {"stage": stage, "topic": "documents", "partition": number}
        return metrics.registry.get_sample_value("neardup_consumer_lag_records", labels)

    first, second = TopicPartition("documents", 0), TopicPartition("documents", 1)
    fingerprint, route = metrics.loop("fingerprint"), metrics.loop("route")
    fingerprint.lagging({first: 5, second: 6})
    route.lagging({first: 7})
    fingerprint.lagging({second: 8})
    assert lag("fingerprint", "0") is None
    assert lag("fingerprint", "1") == 8
    assert lag("route", "0") == 7


class Aging:
    """What a store tells of itself."""

    def __init__(self, oldest: float | None, expired: int) -> None:
        self.oldest = oldest
        self.expired = expired

    def size_bytes(self) -> int:
        return 0

    def memory_bytes(self) -> int:
        return 0

    def keys_estimate(self) -> int:
        return 0

    def oldest_seconds(self) -> float | None:
        return self.oldest

    def expired_eras(self) -> int:
        return self.expired


def test_how_far_back_shards_reach() -> None:
    metrics = Metrics()

    def oldest(shard: int) -> float | None:
        labels = {"shard": str(shard)}
        return metrics.registry.get_sample_value("neardup_index_oldest_seconds", labels)

    metrics.index.holding({0: Aging(90.0, 0), 1: Aging(None, 0)})
    assert (oldest(0), oldest(1)) == (90.0, None)
    metrics.index.holding({1: Aging(0.5, 0)})
    assert (oldest(0), oldest(1)) == (None, 0.5)


def test_eras_are_counted_from_when_a_shard_is_first_seen() -> None:
    metrics = Metrics()

    def expired() -> float | None:
        return metrics.registry.get_sample_value("neardup_index_expired_eras_total")

    metrics.index.holding({0: Aging(1.0, 2), 1: Aging(1.0, 1)})
    assert expired() == 0
    metrics.index.holding({0: Aging(1.0, 2), 1: Aging(1.0, 4)})
    assert expired() == 3
    metrics.index.holding({0: Aging(1.0, 1), 1: Aging(1.0, 4)})
    assert expired() == 3
    metrics.index.holding({0: Aging(1.0, 3)})
    metrics.index.holding({0: Aging(1.0, 3), 1: Aging(1.0, 9)})
    assert expired() == 5


def test_documents_older_than_the_window_are_counted() -> None:
    metrics = Metrics()
    metrics.index.indexed(IndexCounts(documents=9, older=2))
    metrics.index.indexed(IndexCounts(documents=1, older=1))
    assert metrics.registry.get_sample_value("neardup_index_older_total") == 3


def test_buckets_that_became_full_are_counted() -> None:
    metrics = Metrics()
    for divided in (1, 0, 4):
        metrics.index.indexed(IndexCounts(documents=9, divided=divided, dropped=9))
    assert metrics.registry.get_sample_value("neardup_index_divided_total") == 5


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
    registry = stages.application.metrics.registry
    paths = stores_in(tmp_path).values()
    there = sum(store_statistics(path).divided for path in paths)
    assert registry.get_sample_value("neardup_index_divided_total") == there > 0


def test_documents_that_were_ignored_are_counted() -> None:
    metrics = Metrics()
    for repeated in (2, 0, 5):
        metrics.index.indexed(IndexCounts(documents=9, repeated=repeated))
    assert metrics.registry.get_sample_value("neardup_index_repeated_total") == 7


def test_a_shard_that_is_gone_is_not_shown(tmp_path: Path) -> None:
    metrics = Metrics()
    store = BandStore(tmp_path / "1", {"shard": 1})

    def sample(name: str) -> float | None:
        return metrics.registry.get_sample_value(f"neardup_index_{name}", {"shard": "1"})

    fill(store, 1, 1_000)
    metrics.index.holding({1: store})
    assert sample("memory_bytes") == store.memory_bytes() >= 1_000 * 12
    assert sample("keys") == 3_000
    assert sample("bytes") == store.size_bytes()
    metrics.index.holding({})
    store.close()
    assert {sample("keys"), sample("bytes"), sample("memory_bytes")} == {None}


def test_what_a_shard_consists_of_is_shown_by_tier(tmp_path: Path) -> None:
    metrics = Metrics()
    options = StoreOptions(run_documents=16)
    store = BandStore(tmp_path / "1", {"shard": 1}, options=options)

    def by_tier(name: str) -> dict[str, float]:
        samples = next(
            family.samples
            for family in metrics.registry.collect()
            if family.name == f"neardup_index_{name}"
        )
        return {one.labels["tier"]: one.value for one in samples}

    def sample(name: str) -> float | None:
        return metrics.registry.get_sample_value(f"neardup_index_{name}", {"shard": "1"})

    for offset in range(11):
        fill(store, offset, 16)
    metrics.index.holding({1: store})
    assert (sample("kept_documents"), sample("eras")) == (11 * 16, 1)
    # Each document has a cell for its bucket, and one for its id.
    assert sum(by_tier("cells").values()) + 11 * 16 == sample("keys")
    assert by_tier("cells") == {"open": 32, "0": 64, "1": 256}
    assert by_tier("runs") == {"open": 1, "0": 2, "1": 1}
    metrics.index.holding({})
    store.close()
    assert by_tier("cells") == by_tier("runs") == {}
    assert (sample("kept_documents"), sample("eras")) == (None, None)


def test_memory_is_shown_with_its_share_part_by_part() -> None:
    metrics = Metrics()
    metrics.process.memory("cache", 7, 9)
    metrics.process.share("lanes", 5)
    metrics.verdicts.waiting(3)

    def sample(name: str, part: str) -> float | None:
        return metrics.registry.get_sample_value(f"neardup_memory_{name}", {"part": part})

    assert (sample("bytes", "cache"), sample("share_bytes", "cache")) == (7, 9)
    assert (sample("bytes", "lanes"), sample("share_bytes", "lanes")) == (3, 5)


def test_queues_are_shown_of_the_parts_that_have_a_share() -> None:
    metrics = Metrics()
    queues = {"fetched": Queued(3, 700), "produced": Queued(1, 50)}
    metrics.process.queued(queues, {"fetched": 9_000, "none": 1})

    def sample(name: str, part: str) -> float | None:
        return metrics.registry.get_sample_value(f"neardup_{name}", {"part": part})

    assert sample("queued_messages", "fetched") == 3
    assert (sample("memory_bytes", "fetched"), sample("memory_share_bytes", "fetched")) == (
        700, 9_000,
    )  # fmt: skip
    for part in ("produced", "none"):
        assert sample("queued_messages", part) is None
        assert sample("memory_share_bytes", part) is None


def test_what_is_left_to_fingerprint_anew_is_told_by_the_worker_that_does_it() -> None:
    metrics = Metrics()

    def left() -> float | None:
        return metrics.registry.get_sample_value("neardup_rewriting_remaining_records")

    assert left() == 0
    metrics.rewriting.assigned(1)
    metrics.rewriting.lagging({TopicPartition("fingerprints", 0): 7})
    assert left() == 7
    metrics.rewriting.assigned(0)
    assert left() == 0


def test_documents_are_counted_by_what_came_of_new_fingerprints() -> None:
    metrics = Metrics()

    def count(outcome: str) -> float | None:
        name = "neardup_rewriting_documents_total"
        return metrics.registry.get_sample_value(name, {"outcome": outcome})

    outcomes = ("signed", "gone", "unreadable", "blank", "poison")
    assert [count(outcome) for outcome in outcomes] == [0] * 5
    for _ in range(2):
        left_out = Counter[LeftOut]({"gone": 3, "blank": 1})
        metrics.rewriting.refingerprinted(RefingerprintCounts(7, left_out))
    assert [count(outcome) for outcome in outcomes] == [14, 6, 0, 2, 0]
