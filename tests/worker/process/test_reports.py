"""A worker logs once that it is ready, and its rates every minute, unless nothing happens."""

from __future__ import annotations

import pytest

from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.process.service import Reports, Seats, totals

STAGES = ("fingerprint", "index", "route")
SEATS = Seats(2, 4, 1, 2)
NONE = dict.fromkeys(STAGES, 0)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = list(caplog.messages)
    caplog.clear()
    return found


def test_it_is_ready_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    reports = Reports(STAGES, dict, 100.0)
    reports.look(101.0, SEATS, NONE, ready=False)
    assert said(caplog) == []
    reports.look(103.25, SEATS, NONE, ready=True)
    reports.look(104.25, SEATS, NONE, ready=False)
    reports.look(105.25, SEATS, NONE, ready=True)
    assert said(caplog) == ["ready after 3.2 s: 2 of 4 partitions, 1 of 2 shards"]


def test_rates_come_every_minute_and_an_idle_minute_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    metrics = Metrics()
    reports = Reports(STAGES, lambda: totals(metrics, STAGES), 0.0)
    metrics.add(table.RECORDS, 6_000, "fingerprint")
    for verdict, count in (("unique", 3_000), ("duplicate", 90), ("rejected", 6)):
        metrics.add(table.DOCUMENTS, count, verdict)
    reports.look(59.9, SEATS, NONE, ready=False)
    assert said(caplog) == []
    reports.look(60.0, SEATS, {**NONE, "route": 2_904}, ready=False)
    assert caplog.records[0].__dict__["per_second"]["unique"] == 50.0
    [told] = said(caplog)
    assert told == (
        "100.0 documents/s in, unique 50.0/s, duplicate 1.5/s, rejected 0.1/s;"
        " behind: fingerprint 0, index 0, route 2,904"
    )
    reports.look(120.0, SEATS, NONE, ready=False)
    assert said(caplog)[0].startswith("0.0 documents/s in")
    for now in (180.0, 240.0):
        reports.look(now, SEATS, NONE, ready=False)
        assert said(caplog) == []
    reports.look(300.0, SEATS, {**NONE, "index": 1}, ready=False)
    assert said(caplog)[0].endswith("behind: fingerprint 0, index 1, route 0")


@pytest.mark.parametrize(
    ("stages", "told"),
    [
        (("index",), "0.0 frames/s in; behind: "),
        (("fingerprint",), "0.0 documents/s in, rejected 0.0/s; behind: "),
        (("index", "route"), "unique 0.0/s, duplicate 0.0/s, rejected 0.0/s; behind: "),
    ],
)
def test_only_what_its_stages_know(
    stages: tuple[str, ...], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    metrics = Metrics()
    reports = Reports(stages, lambda: totals(metrics, stages), 0.0)
    reports.look(60.0, SEATS, dict.fromkeys(stages, 0), ready=False)
    assert said(caplog)[0].startswith(told)
