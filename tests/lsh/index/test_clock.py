"""The rule of time: against lists, and one test for each way in which dates can be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh.index import BucketRules
from lsh.index.clock import NO_TIME, Clock, Dated, dated
from tests.oracle.clock import Came, NaiveClock
from tests.support.corpus import examples

WINDOW = 100
Times = Sequence[int | None]


def rules(
    rank: int = 16, last: int = 64, least: int = 32, window: int | None = WINDOW
) -> BucketRules:
    return BucketRules(0.8, window_ms=window, now_rank=rank, now_of=last, now_least=least)


def columns(times: Times) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([NO_TIME if time is None else time for time in times], np.int64)


rules_strategy = st.builds(
    rules,
    st.integers(1, 4),
    st.integers(6, 9),
    st.integers(4, 6),
    st.sampled_from([None, WINDOW]),
) | st.just(rules())
times_strategy = st.lists(
    st.one_of(
        st.none(),
        st.integers(-50, 50),
        st.integers(-300, 300),
        st.sampled_from([-(10**13), 10**13, 0, -1]),
    ),
    max_size=90,
) | st.lists(st.integers(-20, 400), max_size=90).map(sorted)


@settings(max_examples=examples(200, 3_000))
@given(times=times_strategy, rules=rules_strategy, cuts=st.lists(st.integers(0, 90), max_size=6))
def test_it_is_the_naive_rule_wherever_batches_are_cut(
    times: Times, rules: BucketRules, cuts: list[int]
) -> None:
    naive = NaiveClock(rules)
    came = [naive.come(time) for time in times]
    nows = [one.now for one in came]
    clock, parts = Clock(), list[Dated]()
    edges = [0, *sorted(cut for cut in cuts if cut < len(times)), len(times)]
    for low, high in pairwise(edges):
        parts.append(dated(clock, columns(times[low:high]), rules))
        clock = Clock.unpacked(parts[-1].clock.packed())
        assert clock == parts[-1].clock
    assert clock.now == naive.now
    stored = np.concatenate([part.times for part in parts])
    counted = clock.settled(stored).tolist()
    if naive.now is not None:
        assert counted == [naive.counts_as_of(one) for one in came]
        assert max(counted, default=NO_TIME) == max(part.latest for part in parts)
    if rules.window_ms is not None:
        assert sum(part.older for part in parts) == naive.older
        oldest = [one for part in parts for one in ([] if part.oldest is None else part.oldest)]
        assert oldest == [NO_TIME if now is None else now - rules.window_ms for now in nows]


@settings(max_examples=examples(200, 3_000))
@given(times=times_strategy, rules=rules_strategy, data=st.data())
def test_an_entry_that_stands_for_several_counts_as_of_the_latest(
    times: Times, rules: BucketRules, data: st.DataObject
) -> None:
    naive, clock = NaiveClock(rules), Clock()
    entries: list[tuple[int, list[Came]]] = []
    for time in times:
        one = dated(clock, columns([time]), rules)
        clock, came = one.clock, naive.come(time)
        stored, place = int(one.times[0]), data.draw(st.integers(0, len(entries)))
        if place < len(entries):
            own, stands_for = entries[place]
            pair = clock.settled(np.array([own, stored], np.int64))
            entries[place] = int(clock.later(pair[0], pair[1])), [*stands_for, came]
        else:
            entries.append((stored, [came]))
    if clock.now is None:
        return
    found = clock.settled(np.array([own for own, _ in entries], np.int64)).tolist()
    expected = [[naive.counts_as_of(came) for came in some] for _, some in entries]
    assert found == [max(one for one in some if one is not None) for some in expected]


@settings(max_examples=examples(100, 1_000))
@given(times=times_strategy, own=times_strategy, rules=rules_strategy)
def test_a_query_comes_as_its_document_would(times: Times, own: Times, rules: BucketRules) -> None:
    clock = dated(Clock(), columns(times), rules).clock
    found = clock.oldest_alone(columns(own), rules).tolist()
    for time, oldest in zip(own, found, strict=True):
        alone = dated(clock, columns([time]), rules).oldest
        if clock.now is None:  # What is older than the first now counts as of it.
            assert oldest == NO_TIME
        elif alone is not None:
            assert oldest == alone[0]
