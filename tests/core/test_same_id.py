"""Ids that come again: what each rule makes of a few documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh.index import BucketRules, Match
from tests.core.dictionaries import Driven
from tests.support.corpus import examples
from tests.worker.index.decisions import RULES, WINDOW, Document, batch, drawn_repeats
from worker.index.store_reader import matches_of

COLUMNS = [0, 1, 2, 3]
Events = Sequence[Document | bytes]


def judged(events: Events, cuts: Sequence[int], rules: BucketRules) -> list[list[Match]]:
    """Return the matches of each document."""
    shard = Driven(rules)
    answers: list[list[Match]] = []
    for low, high in pairwise([0, *sorted({cut % len(events) for cut in cuts}), len(events)]):
        answers += matches_of(shard.judge(batch(events[low:high], COLUMNS)).matches)
    return answers


def forgotten_before(events: Events) -> Iterator[Document | bytes]:
    """Yield the events, and before each document that its id is forgotten."""
    for event in events:
        if isinstance(event, Document):
            yield event.id
        yield event


events_strategy = st.integers(0, 1 << 32).map(drawn_repeats)
cuts_strategy = st.lists(st.integers(0, 1000), max_size=8)


@settings(max_examples=examples(12, 300), deadline=None)
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


def at(number: int, time: int, ident: bytes, family: int = 0) -> Document:
    """Return a document whose texts are alike if their family is the same."""
    document = Document(number, family, 0, (family,) * 4, time)
    document.id = ident
    return document


def ids(found: list[list[Match]]) -> list[list[bytes]]:
    return [[match.id for match in some] for some in found]


@pytest.mark.parametrize("cuts", [[], [1, 2, 3]])
def test_the_time_of_what_is_ignored_passes(cuts: list[int]) -> None:
    rules = replace(RULES, window_ms=WINDOW, same_id="ignore")
    events = [at(1, 0, b"y"), at(2, 50, b"x", 1), at(3, 101, b"x", 1), at(4, 60, b"z")]
    assert ids(judged(events, cuts, rules)) == [[], [], [], []]
    events[2].time = 100
    assert ids(judged(events, cuts, rules)) == [[], [], [], [b"y"]]


@pytest.mark.parametrize("cuts", [[], [1, 2, 3, 4]])
def test_what_is_ignored_renews_nothing_and_is_not_remembered(cuts: list[int]) -> None:
    rules = replace(RULES, window_ms=WINDOW, same_id="ignore")
    events = [
        at(1, 0, b"x"), at(2, 90, b"x"), at(3, 100, b"x"), at(4, 101, b"copy"), at(5, 101, b"x"),
    ]  # fmt: skip
    assert ids(judged(events, cuts, rules)) == [[], [], [], [], [b"copy"]]


@pytest.mark.parametrize("cuts", [[], [1, 2, 3, 4]])
def test_a_first_verdict_outlives_what_it_names(cuts: list[int]) -> None:
    """The copy is less alike than what renews an entry, so the original has expired."""
    rules = replace(RULES, window_ms=WINDOW, same_id="ignore")
    near = Document(2, 0, 4, (0, 0, 0, 0), 80)
    near.id = b"near"
    again = at(4, 150, b"near", 2)
    events = [at(1, 0, b"first"), near, at(3, 120, b"other", 1), again, at(5, 150, b"first")]
    found = judged(events, cuts, rules)
    assert ids(found) == [[], [b"first"], [], [b"first"], [b"near"]]
    assert found[3] == found[1]


def rounds_to_forget(shard: Driven, ident: bytes) -> tuple[int, int]:
    """Return in how many rounds an id is forgotten, and how many documents had it."""
    plan, rounds = shard.shard.plan(batch([ident], COLUMNS), RULES), 0
    while keys := plan.keys():
        rounds += 1
        plan.give(shard.store.get(keys))
    decision = plan.judge()
    shard.store.write(shard.prepare(plan))
    shard.shard.apply(plan)
    return rounds, decision.forgotten


def test_all_versions_of_an_id_are_found_in_few_rounds() -> None:
    shard = Driven(RULES)
    versions = [Document(number, number, 0, (number,) * 4) for number in range(1_200)]
    for document in versions:
        document.id = b"row"
    for low in range(0, 1_200, 7):
        shard.judge(batch(versions[low : low + 7], COLUMNS))
        if low % 100 == 0:
            shard.reopen()
    rounds, forgotten = rounds_to_forget(shard, b"row")
    assert forgotten == 1_200
    assert rounds <= 10
    assert rounds_to_forget(shard, b"row") == (1, 0)


def test_nothing_leads_to_what_was_forgotten() -> None:
    shard = Driven(RULES)
    for number in range(50):
        document = Document(number, number, 0, (number,) * 4)
        document.id = b"row"
        shard.judge(batch([document], COLUMNS))
        rounds, forgotten = rounds_to_forget(shard, b"row")
        assert forgotten == 1
        assert rounds <= 3


def test_only_an_id_that_came_before_is_forgotten() -> None:
    shard = Driven(replace(RULES, same_id="replace"))
    shard.judge(batch([at(1, 0, b"a")], COLUMNS))
    assert shard.judge(batch([at(2, 0, b"b", 1), at(3, 0, b"c", 2)], COLUMNS)).forgotten == 0
    decision = shard.judge(batch([at(4, 0, b"a"), b"d", at(5, 0, b"c", 2), b"b"], COLUMNS))
    assert (decision.forgotten, decision.known) == (3, [b"b"])
