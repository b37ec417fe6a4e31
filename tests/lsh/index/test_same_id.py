"""Ids that come again: by each rule, an index is a naive list, however its documents are cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh.index import BucketRules, Match, MemoryIndex, SameId, decide
from tests.worker.index.decisions import (
    RULES,
    WINDOW,
    Document,
    batch,
    drawn_repeats,
    model,
)

COLUMNS = [0, 1, 2, 3]
Events = Sequence[Document | bytes]


def judged(
    events: Events, cuts: Sequence[int], rules: BucketRules, columns: Sequence[int] = COLUMNS
) -> list[list[Match]]:
    """Return the matches of each document."""
    index = MemoryIndex()
    answers: list[list[Match]] = []
    for low, high in pairwise([0, *sorted({cut % len(events) for cut in cuts}), len(events)]):
        part = batch(events[low:high], list(columns))
        decision = decide(index, part, rules)
        index.apply(decision)
        answers += [decision.matches.get(row, []) for row in range(len(part.ids))]
    return answers


def forgotten_before(events: Events) -> Iterator[Document | bytes]:
    """Yield the events, and before each document that its id is forgotten."""
    for event in events:
        if isinstance(event, Document):
            yield event.id
        yield event


def joined(parts: Sequence[list[list[Match]]], rules: BucketRules) -> list[list[Match]]:
    """Return the best matches of what several indexes have found."""
    return [
        sorted(set().union(*found), key=lambda match: (-match.similarity, match.sequence))[
            : rules.max_matches
        ]
        for found in zip(*parts, strict=True)
    ]


events_strategy = st.integers(0, 1 << 32).map(drawn_repeats)
cuts_strategy = st.lists(st.integers(0, 1000), max_size=8)


@pytest.mark.parametrize("same_id", ["duplicate", "replace", "ignore"])
@pytest.mark.parametrize("window", [None, WINDOW])
@settings(max_examples=80, deadline=None)
@given(events=events_strategy, cuts=cuts_strategy, shards=st.integers(1, 4))
def test_shards_together_are_a_naive_list(
    same_id: SameId, window: int | None, events: Events, cuts: list[int], shards: int
) -> None:
    rules = replace(RULES, window_ms=window, same_id=same_id)
    columns = [range(shard, 4, shards) for shard in range(shards)]
    parts = [judged(events, [cut + some.start for cut in cuts], rules, some) for some in columns]
    assert parts == [model(events, list(some), rules) for some in columns]
    assert joined(parts, rules) == model(events, COLUMNS, rules)


@settings(max_examples=80, deadline=None)
@given(events=events_strategy, cuts=cuts_strategy)
def test_to_replace_is_to_forget_just_before(events: Events, cuts: list[int]) -> None:
    replaced = judged(events, cuts, replace(RULES, same_id="replace"))
    assert replaced == judged(list(forgotten_before(events)), cuts, RULES)


def test_a_newer_version_is_matched_against_the_others_only() -> None:
    old, other, new = (Document(number, 1, 0, (1, 1, 1, 1)) for number in (1, 2, 3))
    old.id = new.id = b"page"
    apart = Document(4, 1, 0, (1, 1, 1, 1))
    found = {
        rule: judged([old, new, other, apart], [], replace(RULES, same_id=rule))
        for rule in ("duplicate", "replace")
    }
    named = {rule: [[one.sequence for one in some] for some in found[rule]] for rule in found}
    assert named == {"duplicate": [[], [1], [1], [1]], "replace": [[], [], [3], [3]]}
