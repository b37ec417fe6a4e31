"""What counts, what shows, and what counts only once a transaction is committed."""

from __future__ import annotations

import threading

from worker.metrics import table
from worker.metrics.metrics import Metrics, Tally


def test_counters_and_gauges_start_at_zero_if_their_labels_are_known() -> None:
    metrics = Metrics()
    assert metrics.value(table.TOMBSTONES) == 0
    assert metrics.value(table.KAFKA_SILENT_SECONDS) == 0
    assert metrics.value(table.TRANSACTIONS, "route", "unknown") == 0
    assert metrics.value(table.REJECTED, "not-json") is None
    metrics.add(table.REJECTED, 2, "not-json")
    metrics.add(table.REJECTED, 3, "not-json")
    assert metrics.numbers(table.REJECTED) == {("not-json",): 5}


def test_a_gauge_shows_exactly_what_is_there() -> None:
    metrics = Metrics()
    metrics.show(table.INDEX_BYTES, {("0",): 5, ("1",): 6})
    metrics.show(table.INDEX_BYTES, {("1",): 8})
    assert metrics.numbers(table.INDEX_BYTES) == {("1",): 8}
    metrics.show(table.INDEX_BYTES, {})
    assert metrics.numbers(table.INDEX_BYTES) == {}


def test_a_gauge_keeps_what_others_show() -> None:
    metrics = Metrics()
    lag = table.CONSUMER_LAG_RECORDS
    metrics.show(lag, {("documents", "0"): 5, ("documents", "1"): 6}, "fingerprint")
    metrics.show(lag, {("documents", "0"): 7}, "route")
    metrics.show(lag, {("documents", "1"): 8}, "fingerprint")
    assert metrics.numbers(lag) == {
        ("fingerprint", "documents", "1"): 8,
        ("route", "documents", "0"): 7,
    }


def test_a_value_on_a_bound_is_in_its_bucket() -> None:
    metrics = Metrics()
    metrics.observe(table.QUERY_SECONDS, [0.001, 0.0011, 3.0])
    [(counts, total)] = metrics.observations(table.QUERY_SECONDS).values()
    assert (counts[:2], counts[-1], sum(counts)) == ([1, 1], 1, 3)
    assert total == 0.001 + 0.0011 + 3.0


def test_a_tally_counts_what_is_committed() -> None:
    metrics, tally = Metrics(), Tally()
    tally.add(table.REJECTED, 1, "not-json")
    tally.clear()
    tally.add(table.REJECTED, 2, "not-json")
    tally.add(table.REJECTED, 3, "not-json")
    assert metrics.value(table.REJECTED, "not-json") is None
    tally.commit(metrics)
    tally.commit(metrics)
    assert metrics.value(table.REJECTED, "not-json") == 5


def test_no_count_of_any_thread_is_lost() -> None:
    metrics = Metrics(lock=threading.Lock())

    def count() -> None:
        for _ in range(2_000):
            metrics.add(table.TOMBSTONES)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert metrics.value(table.TOMBSTONES) == 8_000
