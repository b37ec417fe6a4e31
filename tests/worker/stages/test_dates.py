"""What the log says of documents' dates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from lsh.index import NO_TIME, BucketRules
from tests.core.dictionaries import Driven
from tests.support.filling import random_documents
from worker.stages.dates import DateReports

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
