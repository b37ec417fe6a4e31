"""Feeds that are judged: documents, ids that are forgotten, and queries, drawn to be hard."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple, TypeAlias

from hypothesis import strategies as st

from lsh.index import BucketRules
from tests.oracle.fingerprint import band_keys
from tests.oracle.index import Document
from tests.oracle.subjects import Event

BANDS, ROWS, SLOTS = 3, 2, 24
COLUMNS = range(BANDS + 1)
WINDOW = 100
NOWS = [(1, 1, 1), (2, 5, 4), (3, 3, 3), (2, 9, 8), (16, 64, 32)]
"""Which rank of how many times is now, and from how many on."""


class Query(NamedTuple):
    """A document that is only looked for."""

    document: Document


Feed: TypeAlias = list[Event | Query]


def document(  # what is drawn of one
    number: int, family: int, changes: int, bands: Sequence[int], text: int, size: int
) -> Document:
    """Return a document. Few keys differ, so buckets fill; most slots are those of its family."""
    own = [(slot * 7 + family * 31) % 251 for slot in range(SLOTS - BANDS * ROWS)]
    own[:changes] = [(slot + 1 + changes) % 251 for slot in own[:changes]]
    sketch = bytes([band for band in bands for _ in range(ROWS)] + own)
    keys = (*band_keys(sketch, BANDS, ROWS), text)
    return Document(number, b"d%d" % number, None, 10 * size, keys, sketch)


rules_strategy = st.builds(
    lambda now, **rules: BucketRules(
        now_rank=now[0], now_of=now[1], now_least=now[2], max_matches=rules.pop("most"), **rules
    ),
    now=st.sampled_from(NOWS),
    threshold=st.sampled_from([0.5, 0.6, 0.8, 1.1]),
    absorb=st.sampled_from([0.7, 0.9, 0.95, 1.1]),
    capacity=st.integers(1, 5),
    crowded=st.integers(1, 6),
    most=st.integers(1, 5),
    window_ms=st.sampled_from([None, WINDOW, WINDOW]),
    same_id=st.sampled_from(["duplicate", "replace", "ignore"]),
    containment=st.sampled_from([None, None, 0.8]),
    containment_error=st.sampled_from([0.15, 0.25, 1.0]),
    bands=st.just(BANDS),
    rows=st.just(ROWS),
)


class Row(NamedTuple):
    """What is drawn of an event.

    later: than the event before it. age: how old the document says it is; None: it says nothing.
    again: whose id it has, or forgets, counted backwards; 0: one of its own.
    """

    kind: str
    family: int
    changes: int
    bands: tuple[int, int, int]
    text: int
    size: int
    later: int
    age: int | None
    again: int


AGES = [*[0] * 8, 50, 99, 100, 101, 300, 5_000, -10, -99, -100, -101, -9_999, None, None]
KINDS = [*["document"] * 8, "forget", "query"]
LATER = [0, 0, 0, 1, 2, 5, 10, 20, 60, 250]


def feed_of(rows: Sequence[Row]) -> Feed:
    """Return a feed from before 1970 into the years after."""
    feed, ids, clock = Feed(), list[bytes](), -50
    for number, row in enumerate(rows):
        clock += row.later
        one = document(number, row.family, row.changes, row.bands, row.text, row.size)
        one = one._replace(time=None if row.age is None else clock - row.age)
        again = row.again or 4 * (row.kind == "forget")
        known = ids[-again] if 0 < again <= len(ids) else one.id
        if row.kind == "query":
            feed.append(Query(one))
        elif row.kind == "forget":
            feed.append(known)
        else:
            feed.append(one._replace(id=known))
            ids.append(known)
    return feed


rows_strategy = st.builds(
    Row,
    kind=st.sampled_from(KINDS),
    family=st.integers(0, 2),
    changes=st.sampled_from([0, 0, 0, 1, 2, 4, 6, 12]),
    bands=st.tuples(*[st.integers(0, 1)] * BANDS),
    text=st.integers(0, 3),
    size=st.integers(1, 4),
    later=st.sampled_from(LATER),
    age=st.sampled_from(AGES),
    again=st.sampled_from([0, 0, 0, 1, 2, 3, 4, 7]),
)
# Lists are short unless they must be long, and full buckets need many documents.
feeds_strategy = (
    st.sampled_from([0, 10, 25])
    .flatmap(lambda least: st.lists(rows_strategy, min_size=least, max_size=70))
    .map(feed_of)
)
cuts_strategy = st.lists(st.lists(st.integers(0, 1_000), max_size=8), min_size=4, max_size=4)


def long_feed(seed: int, count: int, *, alike: bool) -> Feed:
    """Return a feed of many windows; if alike, it is a flood from few moulds."""
    random, kinds = Random(seed), 2 if alike else 4
    rows = [
        Row(
            random.choice(KINDS),
            random.randrange(2 if alike else number // 40 + 6),
            random.choice([0, 1, 2, 3, 4, 5, 6] if alike else [0, 0, 0, 1, 4, 8]),
            (random.randrange(kinds), random.randrange(kinds), random.randrange(kinds)),
            random.randrange(9),
            random.randint(1, 4),
            random.choice([0, 0, 0, 1, 1, 2, 3, 45 if random.random() < 0.1 else 0]),
            random.choice(AGES),
            random.choice([0, 0, 0, 1, 2, 5, 20]),
        )
        for number in range(count)
    ]
    return feed_of(rows)
