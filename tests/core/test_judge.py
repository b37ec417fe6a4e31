"""The compiled judgement is the one of `lsh.index`, in every respect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh._core import PlainIndex
from lsh.index import (
    BucketRules,
    Decision,
    DocumentBatch,
    Match,
    MemoryIndex,
    SameId,
    decide,
    query,
)
from lsh.index.layout import BEYOND, unpack_record
from lsh.index.verdicts import pack_verdict
from tests.support.corpus import examples
from tests.worker.index.decisions import (
    NOWS,
    RULES,
    SLOTS,
    WINDOW,
    Document,
    at_times,
    batch,
    drawn_documents,
    drawn_repeats,
    rules_strategy,
    with_forgotten,
    with_now,
)

COLUMNS = [0, 1, 2, 3]
Events = Sequence[Document | bytes]
Buckets = dict[tuple[int, int], tuple[list[int], bool]]


class Both:
    """Two indexes that judge the same documents."""

    def __init__(
        self, rules: BucketRules, columns: list[int], slots: int, *, reluctant: bool = False
    ) -> None:
        self.rules = rules
        self.columns = columns
        self.reluctant = reluctant
        self.index = MemoryIndex()
        self.core = PlainIndex(rules, bytes(columns), slots)

    def judge(self, documents: DocumentBatch, *, moved: float = 0.0) -> Decision:
        """Judge a batch by both, compare, and apply what is decided."""
        below = int(moved * self.index.inserted)
        self.index.moved_below = self.core.moved_below = below
        decision = decide(self.index, documents, self.rules)
        found = self.core.judge(documents, reluctant=self.reluctant)
        assert matches(found["matches"]) == dict(decision.matches)
        dates, names = decision.dates, ("candidates", "absorbed", "covered", "divided", "dropped")
        for name in (*names, "repeated", "forgotten"):
            assert found[name] == getattr(decision, name), name
        if self.rules.same_id != "ignore":  # `decide` leaves out those that were sent again.
            assert found["times"] == dates.times.tolist()
            assert found["oldest"] == (None if dates.oldest is None else dates.oldest.tolist())
        assert found["clock"] == dates.clock.packed()
        assert (found["latest"], found["older"]) == (dates.latest, dates.older)
        assert found["leap"] == dates.leap
        assert found["cells"] == len(decision.cells.documents)
        self.index.apply(decision)
        self.core.apply()
        return decision

    def compare(self) -> None:
        """Compare what both have."""
        records = [self.index.records([number])[0] for number in range(self.index.inserted)]
        assert self.core.records() == records
        numbers = range(self.index.inserted)
        assert self.core.renewals() == self.index.renewals(numbers)
        verdicts = self.index.verdicts(numbers)
        assert self.core.verdicts() == {
            number: pack_verdict(verdict) for number, verdict in verdicts.items()
        }
        assert self.live(self.core.buckets()) == self.live(stored(self.index))

    def live(self, buckets: Buckets) -> Buckets:
        """Return buckets without the entries that are forgotten or too old.

        When such an entry goes depends on which ones were looked at.
        """
        clock, window, kept = self.index.clock, self.rules.window_ms, {}
        for (column, key), (entries, beyond) in buckets.items():
            living = []
            for number in entries:
                (record,) = self.index.records([number])
                if not record:
                    continue
                renewals = self.index.renewals([number]).get(number, {})
                times = [unpack_record(record).time, renewals.get(column)]
                settled = clock.settled(np.array([time for time in times if time is not None]))
                if clock.now is None or window is None or max(settled) >= clock.now - window:
                    living.append(number)
            if living or beyond:
                kept[column, key] = (living, beyond)
        return kept

    def ask(self, documents: DocumentBatch) -> None:
        """Ask both for what the documents of a batch would match."""
        found, met, compared = self.core.query(documents, reluctant=self.reluctant)
        answers = query(
            self.index,
            self.columns,
            documents.keys,
            documents.sketches,
            self.rules,
            times=documents.times,
            sizes=documents.shingles,
        )
        own = matches(found)
        assert [own.get(row, []) for row in range(len(answers))] == [one.matches for one in answers]
        assert compared == [one.compared for one in answers]
        assert [[(*one[:3], tuple(one[3])) for one in some] for some in met] == [
            list(map(tuple, one.met)) for one in answers
        ]


def matches(found: dict[int, Any]) -> dict[int, list[Match]]:
    return {
        row: [
            Match(sequence, alike, ident, share or None) for sequence, alike, ident, share in some
        ]
        for row, some in found.items()
    }


def stored(index: MemoryIndex) -> Buckets:
    return {
        (key[0], int.from_bytes(key[1:], "big")): (
            [entry for entry in entries if entry != BEYOND],
            BEYOND in entries,
        )
        for key, entries in index.items().items()
    }


def judged_by_both(
    events: Events,
    cuts: Sequence[int],
    rules: BucketRules,
    *,
    columns: list[int] = COLUMNS,
    moved: Sequence[float] = (0.0,),
    reluctant: bool = False,
) -> Both:
    both = Both(rules, columns, SLOTS, reluctant=reluctant)
    places = [0, *sorted({cut % (len(events) + 1) for cut in cuts}), len(events)]
    for step, (low, high) in enumerate(pairwise(places)):
        part = batch(events[low:high], columns)
        if part.ids:
            both.ask(part)
        both.judge(part, moved=moved[step % len(moved)])
    both.compare()
    return both


cuts_strategy = st.lists(st.integers(0, 1000), max_size=12)
moved_strategy = st.lists(st.sampled_from([0.0, 0.5, 0.9, 1.0]), min_size=1, max_size=3)
events_strategy = (
    st.integers(0, 1 << 32).map(drawn_repeats)
    | st.builds(with_forgotten, st.just(drawn_documents(150, 1, crowded=True)), st.integers(0, 99))
    | st.tuples(st.integers(20, 250), st.integers(0, 1 << 32), st.booleans()).map(
        lambda drawn: list(drawn_documents(drawn[0], drawn[1], crowded=drawn[2]))
    )
)


@pytest.mark.parametrize("same_id", ["duplicate", "replace", "ignore"])
@pytest.mark.parametrize("window", [None, WINDOW])
@settings(max_examples=examples(40, 700), deadline=None)
@given(
    events=events_strategy,
    cuts=cuts_strategy,
    rules=rules_strategy,
    capacity=st.sampled_from([2, 3, 6]),
    crowded=st.sampled_from([1, 2, 8]),
    banded=st.booleans(),
    moved=moved_strategy,
    reluctant=st.booleans(),
)
def test_verdicts_and_changes_are_those_of_the_index(
    events: Events,
    cuts: list[int],
    rules: BucketRules,
    same_id: SameId,
    window: int | None,
    *,
    capacity: int,
    crowded: int,
    banded: bool,
    moved: list[float],
    reluctant: bool,
) -> None:
    rules = replace(
        rules,
        capacity=capacity,
        crowded=crowded,
        same_id=same_id,
        window_ms=window,
        rows=4 if banded else 0,
    )
    judged_by_both(events, cuts, rules, moved=moved, reluctant=reluctant)


fullness_strategy = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from([0, 0, 1, 2, 5, 8]),
        st.tuples(*[st.integers(0, 6)] * 4),
        st.sampled_from([0, 5, 10, 20, 60]),
        st.sampled_from([0, 0, 30, 100, 101, -50, -101, None]),
    ),
    min_size=20,
    max_size=120,
).map(at_times)


@settings(max_examples=examples(60, 1_000), deadline=None)
@given(
    documents=fullness_strategy,
    forgotten=st.dictionaries(st.integers(0, 119), st.integers(0, 119), max_size=8),
    same=st.dictionaries(st.integers(1, 119), st.integers(0, 119), max_size=8),
    cuts=cuts_strategy,
    now=st.sampled_from(NOWS),
    rules=st.sampled_from([RULES, replace(RULES, capacity=2, crowded=1)]),
    window=st.sampled_from([None, 0, 50, WINDOW, 1_000]),
    same_id=st.sampled_from(["duplicate", "replace", "ignore"]),
    moved=moved_strategy,
    reluctant=st.booleans(),
)
def test_buckets_that_fill_up_and_empty_again(
    documents: list[Document],
    forgotten: dict[int, int],
    same: dict[int, int],
    cuts: list[int],
    now: tuple[int, int, int],
    rules: BucketRules,
    window: int | None,
    same_id: SameId,
    *,
    moved: list[float],
    reluctant: bool,
) -> None:
    rules = replace(with_now(rules, now), window_ms=window, same_id=same_id, rows=2)
    events: list[Document | bytes] = []
    for number, document in enumerate(documents):
        document.id = b"d%d" % min(number, same.get(number, number))
        events.append(document)
        if number in forgotten:
            events.append(b"d%d" % forgotten[number])
    judged_by_both(events, cuts, rules, moved=moved, reluctant=reluctant)
