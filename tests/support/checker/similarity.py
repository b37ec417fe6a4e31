"""Every match is really similar, by the exact Jaccard similarity of the published texts.

With a containment, the exact share of the later text in the earlier one may be in its place.

Nothing here comes from `lsh`: a text's shingles are a set of strings (or of tuples of
words). A verdict rests on an estimate, and estimates err: that of 128 slots has a
standard deviation of about 0.04 near 0.7, so that one match in a thousand may be of a
pair that lies 0.1 below the threshold (one in a smaller run), and none of one that lies
0.25 below, more than six deviations. Texts shorter than a shingle are left out: they
are one shingle, which an edit changes altogether.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Iterator
from functools import lru_cache
from random import Random
from typing import Final, NamedTuple

from lsh import Parameters
from tests.oracle.normal_form import normalise
from tests.support.checker.history import (
    History,
    Source,
    ident_of,
    is_tombstone,
    source,
    verdict_of,
)
from worker.bus import Record

TOLERANCE: Final = 0.1
NEVER: Final = 0.25
PER_THOUSAND: Final = 1
MOST_PAIRS: Final = 30_000
"""Of more matches than this, so many are drawn, by a fixed seed."""
KEPT_SETS: Final = 1_024


class _Pair(NamedTuple):
    """A document and one that it is said to match."""

    place: Source
    text: str
    ident: str
    others: tuple[str, ...]
    """Texts of all documents before it that have this id."""


def similarity(history: History) -> Iterator[str]:
    """Matches have at least the threshold less the tolerance, but for one in a thousand."""
    pairs = list(_pairs(history))
    if len(pairs) > MOST_PAIRS:
        drawn = Random(0).sample(range(len(pairs)), MOST_PAIRS)
        pairs = [pairs[place] for place in sorted(drawn)]
    known = _Sets(history.parameters)
    threshold, containment = history.parameters.threshold, history.parameters.containment
    low = []
    for pair in pairs:
        exact = max((known.jaccard(pair.text, other) for other in pair.others), default=1.0)
        problem = f"{pair.place} matches {pair.ident}, and their similarity is {exact:.3f}"
        above = exact - threshold
        if containment is not None:
            share = max((known.share(pair.text, other) for other in pair.others), default=1.0)
            above = max(above, share - containment)
        if above < -NEVER:
            yield problem
        elif above < -TOLERANCE:
            low.append(problem)
    if len(low) > max(1, len(pairs) * PER_THOUSAND // 1_000):
        yield from low


def shingles(text: str, parameters: Parameters) -> frozenset[Hashable]:
    """Give the set of shingles of a text: none if it is shorter than one."""
    normal = normalise(text, parameters)
    size = parameters.shingle_size
    units = normal if parameters.shingle == "char" else tuple(normal.split())
    return frozenset(units[at : at + size] for at in range(len(units) - size + 1))


def jaccard(one: frozenset[Hashable], other: frozenset[Hashable]) -> float:
    """Give the share of what both have in what either has."""
    both = len(one & other)
    return both / (len(one) + len(other) - both)


class _Sets:
    """Shingle sets, the latest ones kept."""

    def __init__(self, parameters: Parameters) -> None:
        self._set = lru_cache(KEPT_SETS)(lambda text: shingles(text, parameters))

    def jaccard(self, text: str, other: str) -> float:
        """Compare two texts; 1 if one of them is shorter than a shingle."""
        if text == other:
            return 1.0
        one, two = self._set(text), self._set(other)
        return jaccard(one, two) if one and two else 1.0

    def share(self, text: str, other: str) -> float:
        """Give the share of a text that is in another; 1 if one is shorter than a shingle."""
        one, two = self._set(text), self._set(other)
        return len(one & two) / len(one) if one and two else 1.0


def _pairs(history: History) -> Iterator[_Pair]:
    texts: dict[str, list[tuple[int, str]]] = defaultdict(list)
    documents = [
        record
        for record in (*history.unique, *history.duplicate)
        if not is_tombstone(record) and record.value is not None
    ]
    for record in documents:
        ident, text = _id_and_text(record)
        texts[ident].append((verdict_of(record).sequence, text))
    for record in documents:
        verdict = verdict_of(record)
        for ident, _ in verdict.matches:
            before = tuple(text for at, text in texts[ident] if at < verdict.sequence)
            yield _Pair(source(record), _id_and_text(record)[1], ident, before)


def _id_and_text(record: Record) -> tuple[str, str]:
    return ident_of(record), json.loads(record.value or b"").get("text", "")
