"""The table of metrics, what is exported, and the page about it say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from worker.bus import Queued, TopicPartition
from worker.bus.memory import MemoryBus
from worker.index.snapshots import Damage, FileEntry, Manifest
from worker.metrics import TABLE, Metrics
from worker.metrics.reference import reference
from worker.process.service import Service
from worker.settings import load
from worker.stages import (
    IndexCounts,
    Parts,
    RefingerprintCounts,
    RestoreState,
    RouteCounts,
    Status,
)

DOCS = Path(__file__).parents[3] / "docs"
BY_NAME = {metric.name: metric for metric in TABLE}
SAMPLES = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_count", "_sum"),
}


class Store:
    """The sizes of a store that is none."""

    def size_bytes(self) -> int:
        return 1

    def memory_bytes(self) -> int:
        return 2

    def keys_estimate(self) -> int:
        return 3

    def oldest_seconds(self) -> float | None:
        return 4.5

    def expired_eras(self) -> int:
        return 5

    def parts(self) -> Parts:
        return Parts(6, 1, {"open": 1}, {"open": 7})


def fed() -> Metrics:
    """Return metrics that were told of everything there is."""
    metrics = Metrics()
    metrics.verdicts.rejected("not-json", 1)
    metrics.verdicts.routed(RouteCounts(unique=1, timestamps=[1]))
    loop = metrics.loop("index")
    loop.polled(1)
    loop.transaction("committed", 0.1)
    loop.assigned(1)
    loop.lagging({TopicPartition("shards", 0): 1})
    metrics.process.memory("cache", 1, 2)
    metrics.process.queued({"fetched": Queued(1, 100)}, {"fetched": 200})
    metrics.index.indexed(IndexCounts(documents=1))
    metrics.queries.asked("answered", 0.1)
    metrics.queries.told(["unique"])
    metrics.index.status(Status({0: RestoreState()}, 0, {1: 0}))
    metrics.index.holding({0: Store()})
    metrics.index.using(1)
    metrics.building.lagging({TopicPartition("g1.shards", 0): 1})
    metrics.rewriting.lagging({TopicPartition("fingerprints", 0): 1})
    metrics.rewriting.refingerprinted(RefingerprintCounts(documents=1))
    metrics.snapshots.shipped(manifest())
    metrics.process.limit("poll", 1)
    metrics.process.watched("index", "poll", 0)
    return metrics


def manifest() -> Manifest:
    return Manifest(shard=0, offset=7, documents=1, created=9.0, header={}, files=[], checked=True)


def exported(registry: CollectorRegistry) -> dict[str, tuple[str, str]]:
    """Return kind and help text of all that is exported, by name."""
    return {
        family.name + ("_total" if family.type == "counter" else ""): (
            family.type,
            family.documentation,
        )
        for family in registry.collect()
    }


def test_a_fresh_worker_exports_the_table_and_nothing_else(tmp_path: Path) -> None:
    settings = load()
    service = Service(settings, settings.topology(2), MemoryBus(), tmp_path, "one")
    assert exported(service.metrics.registry) == {
        metric.name: (metric.kind, metric.meaning) for metric in TABLE
    }


def test_no_name_is_there_twice() -> None:
    assert len(BY_NAME) == len(TABLE)


def test_every_metric_is_fed_with_the_labels_of_the_table() -> None:
    found: dict[str, set[tuple[str, ...]]] = {}
    for family in fed().registry.collect():
        for sample in family.samples:
            labels = tuple(sorted(set(sample.labels) - {"le"}))
            found.setdefault(sample.name, set()).add(labels)
    for metric in TABLE:
        base = metric.name.removesuffix("_total")
        for suffix in SAMPLES[metric.kind]:
            assert found.pop(base + suffix) == {tuple(sorted(metric.labels))}
    assert {name for name in found if not name.endswith("_created")} == set()


def test_buckets_are_those_of_the_table() -> None:
    found: dict[str, set[float]] = {}
    for family in fed().registry.collect():
        for sample in family.samples:
            if sample.name.endswith("_bucket"):
                found.setdefault(family.name, set()).add(float(sample.labels["le"]))
    assert found == {
        metric.name: {*metric.buckets, float("inf")} for metric in TABLE if metric.buckets
    }


def test_what_snapshots_tell_is_counted() -> None:
    metrics = fed()
    metrics.snapshots.failed(0)
    file = FileEntry("a.sst", 1, "digest")
    metrics.snapshots.damaged(0, Damage(repairable=[file, file], lost=[file]))
    sample = metrics.registry.get_sample_value
    assert sample("neardup_snapshots_total", {"outcome": "shipped"}) == 1
    assert sample("neardup_snapshots_total", {"outcome": "failed"}) == 1
    assert sample("neardup_snapshot_damaged_files_total", {"in_store": "yes"}) == 2
    assert sample("neardup_snapshot_damaged_files_total", {"in_store": "no"}) == 1
    assert sample("neardup_snapshot_offset", {"shard": "0"}) == 7


@pytest.mark.parametrize("outcome", ["committed", "aborted", "unknown"])
def test_each_outcome_of_a_transaction_is_counted_from_zero(outcome: str) -> None:
    metrics = Metrics()
    loop = metrics.loop("route")
    labels = {"stage": "route", "outcome": outcome}
    assert metrics.registry.get_sample_value("neardup_transactions_total", labels) == 0
    loop.transaction(outcome, 0.1)
    assert metrics.registry.get_sample_value("neardup_transactions_total", labels) == 1


def test_the_page_is_current() -> None:
    page = DOCS / "reference" / "metrics.md"
    assert page.read_text() == reference(), f"run: python -m worker.metrics > {page}"


def test_eight_metrics_are_worth_an_alert() -> None:
    alerts = [metric for metric in TABLE if metric.alert is not None]
    assert len(alerts) == 8
    for metric in alerts:
        assert metric.alert is not None
        assert metric.name in metric.alert


def test_every_metric_has_a_meaning_and_a_remedy() -> None:
    for metric in TABLE:
        assert metric.meaning.endswith("."), metric.name
        assert metric.remedy.endswith("."), metric.name


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_a_metric_that_a_page_names_exists(page: Path) -> None:
    for name in re.findall(r"\bneardup_[a-z_]*[a-z]\b(?!-)", page.read_text()):
        base = re.sub(r"_(bucket|count|sum)$", "", name)
        assert name in BY_NAME or base in BY_NAME, name


def test_a_heading_that_a_remedy_points_to_exists() -> None:
    for metric in TABLE:
        for page, anchor in re.findall(r"\]\(([a-z./-]+\.md)#([^)]+)\)", metric.remedy):
            headings = re.findall(
                r"^#+ (.+)$", (DOCS / "reference" / page).read_text(), re.MULTILINE
            )
            anchors = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in headings}
            assert anchor in anchors, (metric.name, page, anchor)
