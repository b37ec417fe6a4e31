"""Every index gives the oracle's verdicts, wherever batches are cut, and however it is divided."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh.index import BucketRules
from tests.oracle.comparing import Subject, assert_alike
from tests.oracle.feeds import (
    BANDS,
    ROWS,
    WINDOW,
    Feed,
    cuts_strategy,
    feeds_strategy,
    long_feed,
    rules_strategy,
)
from tests.oracle.subjects import INDEXES
from tests.support.breadth import slow
from tests.support.corpus import examples, scaled


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("subject", INDEXES)
@settings(max_examples=examples(100, 1_000), deadline=None)
@given(feed=feeds_strategy, rules=rules_strategy, cuts=cuts_strategy, shards=st.integers(1, 4))
def test_an_index_is_the_oracle(
    subject: Subject, feed: Feed, rules: BucketRules, cuts: list[list[int]], shards: int
) -> None:
    assert_alike(subject, feed, rules, cuts, shards)


@pytest.mark.parametrize("subject", INDEXES)
@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("seed", range(scaled(2, 20)))
@pytest.mark.parametrize(
    "rules",
    [
        {"window_ms": WINDOW},
        {"window_ms": WINDOW, "same_id": "ignore"},
        slow({"same_id": "replace", "containment": 0.8, "containment_error": 0.25}),
        {"threshold": 1.1, "absorb": 1.1, "capacity": 1},
    ],
    ids=str,
)
def test_so_it_is_over_many_windows(
    subject: Subject, seed: int, rules: dict[str, Any], *, alike: bool
) -> None:
    given = BucketRules(**{
        "threshold": 0.6, "absorb": 0.9, "capacity": 4, "crowded": 2, "max_matches": 4,
        "now_rank": 5, "now_of": 16, "now_least": 8, "bands": BANDS, "rows": ROWS, **rules,
    })  # fmt: skip
    feed = long_feed(seed, scaled(300, 2_000), alike=alike)
    chance = Random(seed)
    cuts = [[chance.randrange(len(feed)) for _ in range(40)] for _ in range(2)]
    assert_alike(subject, feed, given, cuts, 2)
