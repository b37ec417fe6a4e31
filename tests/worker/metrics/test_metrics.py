"""What metrics say of shards and partitions while they are here; and then no more."""

from __future__ import annotations

from pathlib import Path

from tests.support.filling import fill
from worker.bus import TopicPartition
from worker.index.store import BandStore, StoreOptions
from worker.metrics import Metrics
from worker.stages import IndexCounts, RestoreState, Status


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


def test_late_documents_are_counted() -> None:
    metrics = Metrics()
    metrics.index.indexed(IndexCounts(documents=9, late=2))
    metrics.index.indexed(IndexCounts(documents=1, late=1))
    assert metrics.registry.get_sample_value("neardup_index_late_total") == 3


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
