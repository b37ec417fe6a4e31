"""Compares an index with the oracle on a feed, and its shards with the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeAlias

from lsh.index import BucketRules
from tests.oracle.feeds import COLUMNS, Feed, Query
from tests.oracle.index import Answer, Match, MetBucket
from tests.oracle.subjects import Entries, Index, Naive

Subject: TypeAlias = Callable[[BucketRules, Sequence[int]], Index]
"""Makes an index of some columns."""


@dataclass
class Found:
    """What an index says of a feed."""

    matches: list[list[Match]] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    entries: Entries = field(default_factory=dict)


def found(index: Index, feed: Feed, cuts: Sequence[int]) -> Found:
    """Have an index judge a feed, in batches that end at some places and at queries."""
    result = Found()
    asked = [place for place, one in enumerate(feed) if isinstance(one, Query)]
    after = [place + 1 for place in asked]
    edges = sorted({0, *asked, *after, *(cut % (len(feed) + 1) for cut in cuts), len(feed)})
    for low, high in pairwise(edges):
        queries = [one.document for one in feed[low:high] if isinstance(one, Query)]
        if queries:
            result.answers += index.query(queries)
            continue
        judged = index.judge([one for one in feed[low:high] if not isinstance(one, Query)])
        result.matches += judged.matches
        result.counts += judged.counts
    result.entries = index.entries()
    return result


def assert_alike(
    subject: Subject, feed: Feed, rules: BucketRules, cuts: Sequence[Sequence[int]], shards: int
) -> None:
    """Compare each shard with the oracle's, and all together with an oracle of all columns."""
    whole, matches = found(Naive(rules, COLUMNS), feed, []), list[list[list[Match]]]()
    for shard in range(shards):
        columns = COLUMNS[shard::shards]
        expected = found(Naive(rules, columns), feed, [])
        result = found(subject(rules, columns), feed, cuts[shard])
        assert result.matches == expected.matches
        assert told(result, expected, rules) == expected
        matches.append(result.matches)
    assert [together(some, rules) for some in zip(*matches, strict=True)] == whole.matches


def told(result: Found, expected: Found, rules: BucketRules) -> Found:
    """Return what an index has found, with the oracle's word for what it needn't tell.

    An index that gives space back era by era counts a document twice that it has moved, and forgets
    that a bucket has overflow buckets when all in them is too old.
    """
    if rules.window_ms is None:
        return result
    answers = [
        one._replace(met=with_empty(one, other), compared=other.compared)
        for one, other in zip(result.answers, expected.answers, strict=True)
    ]
    counts = {name: expected.counts[name] for name in ("candidates", "divided")}
    return replace(
        result,
        answers=answers,
        counts=+Counter({**result.counts, **counts}),
    )


def with_empty(answer: Answer, expected: Answer) -> list[MetBucket]:
    """Return the buckets that have entries, and the empty ones that are expected among them."""
    filled, known = iter([one for one in answer.met if one.size]), expected.met
    met = [next(filled, one) if one.size else one for one in known]
    return [*met, *filled]


def together(parts: Sequence[list[Match]], rules: BucketRules) -> list[Match]:
    """Return the best matches of what several shards have found."""
    every = {match for part in parts for match in part}
    return sorted(every, key=lambda one: (-one.similarity, one.sequence))[: rules.max_matches]
