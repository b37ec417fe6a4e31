"""What Prometheus reads is the table, and each series has the application's name."""

from __future__ import annotations

from functools import cache
from itertools import islice

import pytest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from worker.metrics import table
from worker.metrics.exposition import exposition
from worker.metrics.metric import Counter, Histogram, Metric
from worker.metrics.metrics import Metrics

APP = "news"
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}


def read(metrics: Metrics) -> dict[str, Family]:
    """Return what Prometheus reads, by the names of the metrics."""
    found = {}
    for family in text_string_to_metric_families(exposition(metrics).decode()):
        if family.name.startswith("process_"):
            continue
        found[family.name + ("_total" if family.type == "counter" else "")] = family
    return found


def some(metric: Metric) -> tuple[str, ...]:
    """Return values of a metric's labels."""
    return tuple(next(islice(values, 1), f"a {name}") for name, values in metric.labels.items())


@cache
def fed() -> dict[str, Family]:
    """Return what Prometheus reads of a series of each metric."""
    metrics = Metrics(APP)
    for metric in table.TABLE:
        if isinstance(metric, Histogram):
            metrics.observe(metric, [metric.buckets[0], 1e9], *some(metric))
        elif isinstance(metric, Counter):
            metrics.add(metric, 3, *some(metric))
        else:
            metrics.set(metric, 4, *some(metric))
    return read(metrics)


def test_a_fresh_worker_exports_the_table_and_nothing_else() -> None:
    assert {
        name: (family.type, family.documentation) for name, family in read(Metrics()).items()
    } == {metric.name: (type(metric).__name__.lower(), metric.meaning) for metric in table.TABLE}


@pytest.mark.parametrize("metric", table.TABLE, ids=lambda metric: metric.name)
def test_every_series_has_the_labels_of_the_table_and_the_application(metric: Metric) -> None:
    family = fed()[metric.name]
    base = metric.name.removesuffix("_total")
    names = {base + suffix for suffix in SUFFIXES[family.type]}
    assert {sample.name for sample in family.samples} == names
    for sample in family.samples:
        assert set(sample.labels) - {"le"} == {"app", *metric.labels}
        assert sample.labels["app"] == APP


def test_a_scrape_of_many_partitions_and_shards_is_small() -> None:
    metrics = Metrics("an-application-with-a-long-name")
    partitions, shards = 200, 16
    inputs = ["documents", *(f"matches-{shard}" for shard in range(shards))]
    lags = {
        (f"{metrics.app}.{topic}", str(number)): 123_456.0
        for topic in inputs
        for number in range(partitions)
    }
    metrics.show(table.CONSUMER_LAG_RECORDS, lags, "route")
    metrics.show(table.CONSUMER_LAG_RECORDS, dict(list(lags.items())[:partitions]), "fingerprint")
    for metric in table.TABLE:
        if "shard" in metric.labels and not isinstance(metric, Counter | Histogram):
            for shard in range(shards):
                for level in range(9 if "level" in metric.labels else 1):
                    more = [f"{level}"] * (len(metric.labels) - 1)
                    metrics.set(metric, 123_456_789.0, str(shard), *more)
    said = exposition(metrics)
    assert said.count(b"\n") > partitions * (shards + 2)
    assert len(said) < 1_000_000


def test_what_every_process_exports_has_the_application_as_well() -> None:
    families = text_string_to_metric_families(exposition(Metrics(APP)).decode())
    shown = {one.name: one for family in families for one in family.samples}
    assert shown["process_resident_memory_bytes"].value > 1 << 20
    assert shown["process_open_fds"].value > 2
    assert shown["process_cpu_seconds_total"].labels == {"app": APP}


def test_buckets_add_up() -> None:
    for metric in table.TABLE:
        if isinstance(metric, Histogram):
            own = {"app": APP, **dict(zip(metric.labels, some(metric), strict=True))}
            samples = [
                one for one in fed()[metric.name].samples if own.items() <= one.labels.items()
            ]
            buckets = {one.labels["le"]: one.value for one in samples if "le" in one.labels}
            bounds = [*map(float, metric.buckets), float("inf")]
            assert list(map(float, buckets)) == bounds
            assert list(buckets.values()) == [1] * len(metric.buckets) + [2]
            assert {one.name: one.value for one in samples}[f"{metric.name}_count"] == 2


def test_a_label_is_read_as_it_was_written() -> None:
    metrics = Metrics('a "name" \\ of\nan application')
    metrics.add(table.REJECTED, 1, "not\n\\json")
    [sample] = read(metrics)[table.REJECTED.name].samples
    assert sample.labels == {"app": metrics.app, "reason": "not\n\\json"}
