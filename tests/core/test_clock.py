"""The rule of time, against lists; `tests/oracle` compares what expires by it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lsh.index import NO_TIME, BucketRules, DocumentBatch
from tests.core.dictionaries import Driven
from tests.oracle.clock import NaiveClock
from tests.support.corpus import examples
from tests.support.stored_clock import StoredClock

WINDOW = 100
Times = Sequence[int | None]


def rules(
    rank: int = 16, last: int = 64, least: int = 32, window: int | None = WINDOW
) -> BucketRules:
    return BucketRules(0.8, window_ms=window, now_rank=rank, now_of=last, now_least=least)


def batch(times: Times, first: int) -> DocumentBatch:
    """Return documents that have nothing in common."""
    numbers = np.arange(first, first + len(times), dtype=np.uint64)
    return DocumentBatch(
        sequences=numbers,
        times=np.array([NO_TIME if time is None else time for time in times], np.int64),
        ids=[b"%d" % number for number in numbers.tolist()],
        shingles=np.ones(len(times), np.uint32),
        columns=[0],
        keys=numbers[None],
        sketches=np.zeros((len(times), 16), np.uint8),
    )


rules_strategy = st.builds(
    rules,
    st.integers(1, 4),
    st.integers(6, 9),
    st.integers(4, 6),
    st.sampled_from([None, WINDOW]),
) | st.just(rules())
times_strategy = st.one_of(
    st.lists(
        st.one_of(
            st.none(),
            st.integers(-50, 50),
            st.integers(-300, 300),
            st.sampled_from([-(10**13), 10**13, 0, -1]),
        ),
        max_size=90,
    ),
    st.lists(st.integers(-20, 400), max_size=90).map(sorted),
    st.lists(st.sampled_from([0, 0, 0, 10, 150]), max_size=90).map(
        lambda gaps: [*accumulate(gaps)]
    ),
)


@settings(max_examples=examples(200, 3_000), deadline=None)
@given(times=times_strategy, rules=rules_strategy, cuts=st.lists(st.integers(0, 90), max_size=6))
@example(times=[0, 0, 0, 0, 150, 300, 450], rules=rules(1, 6, 4), cuts=[])
@example(times=[0] * 29 + [150, 300], rules=rules(1, 6, 4, 100), cuts=[4, 30])
def test_it_is_the_naive_rule_wherever_batches_are_cut(
    times: Times, rules: BucketRules, cuts: list[int]
) -> None:
    naive, came = NaiveClock(rules), []
    shard = Driven(rules, run_documents=1_000)
    edges = [0, *sorted(cut for cut in cuts if cut < len(times)), len(times)]
    for low, high in pairwise(edges):
        older, leap = naive.older, None
        for time in times[low:high]:
            before = naive.now
            came.append(naive.come(time))
            if before is not None and naive.now is not None and rules.window_ms is not None:
                leap = (before, naive.now) if naive.now - before > rules.window_ms else leap
        decision = shard.judge(batch(times[low:high], low))
        assert (decision.now, decision.leap) == (naive.now, leap)
        assert decision.older == naive.older - older
        voting = sum(one.own is not None for one in came)
        assert decision.dated == min(voting, rules.now_of - 1)
        shard.reopen()
        assert shard.shard.now == naive.now
    if naive.now is not None:
        clock = StoredClock.unpacked(shard.store.clock)
        contents = shard.store.contents()
        stored = [record for record in contents.records() if record is not None]
        counted = [clock.settled(record.time) for record in stored]
        expected = [naive.counts_as_of(one) for one in came]
        assert counted == expected[contents.first :]
        # An era is given back once all of it is out of the window.
        oldest = naive.now - (rules.window_ms or 0)
        assert all(one is not None and one < oldest for one in expected[: contents.first])
