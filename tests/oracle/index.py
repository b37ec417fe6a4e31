"""The index by its definition: lists of entries, one document at a time, in order.

A document goes through its columns, one after the other, and in each through the bucket of its key
and that one's overflow buckets. In a bucket,

- an entry that is all but identical to the document stands for it;
- in a hot bucket, the first entries are looked at one by one, and the first that covers the
  document stands for it. If none does, and the bucket is full, any entry that covers it stands;
- if the bucket is full, it goes on to an overflow bucket. It is inserted into the first bucket
  on its way that has room. The finest drops its oldest entry for it.

What a document matches is among the entries that it was compared with on its way.
"""

from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from hashlib import blake2b
from math import sqrt
from operator import itemgetter
from typing import NamedTuple

from lsh.index import BucketRules
from tests.oracle.clock import Came, NaiveClock
from tests.oracle.hashing import splitmix64

FINER_SLOTS = (2, 4, 8, 16, 32)
"""How many slots of the sketch choose an overflow bucket, by level from 1."""
LEVELS = len(FINER_SLOTS)


class Document(NamedTuple):
    """A document. `keys` has one for each column, also for those of other shards."""

    sequence: int
    id: bytes
    time: int | None
    shingles: int
    keys: tuple[int, ...]
    sketch: bytes


class Match(NamedTuple):
    """An earlier document that is a near duplicate; `containment`, if that is enough."""

    sequence: int
    similarity: float
    id: bytes
    containment: float | None = None


class MetBucket(NamedTuple):
    """A bucket on a query's way that has entries, or has had overflow buckets.

    level: 0 for that of the key; from 1: overflow. size: how many live entries it has. holds:
    the sequence numbers of the matches that are among them, ascending.
    """

    column: int
    level: int
    size: int
    holds: list[int]


class Answer(NamedTuple):
    """What a query finds, the buckets that it met, and with how many documents it was compared."""

    matches: list[Match]
    met: list[MetBucket]
    compared: int


class Entry(NamedTuple):
    """A document in a bucket, and when those came that it stands for, itself among them."""

    document: Document
    came: set[Came]


class Bucket:
    """The entries of a bucket, the oldest first; `divided`: an overflow bucket was written to."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.divided = False


class Way:
    """A document's way through the buckets of a column.

    `met` has the buckets, the coarsest first, with their live entries. `alike` has what it was
    compared with, and `stands` the entry that stands for it, if one does. Else `room` is the bucket
    that takes it, with these `live` entries; `full` are those before it.
    """

    def __init__(self) -> None:
        self.met: list[tuple[Bucket, list[Entry]]] = []
        self.alike: list[tuple[float, Entry]] = []
        self.stands: tuple[float, Entry] | None = None
        self.full: list[Bucket] = []
        self.room: Bucket | None = None
        self.live: list[Entry] = []


class NaiveIndex:
    """An index of some columns: one shard. `counts` are those of `lsh._core.Decision`."""

    def __init__(self, rules: BucketRules, columns: Sequence[int]) -> None:
        self._rules = rules
        self._columns = columns
        self._buckets: dict[tuple[int, int], Bucket] = {}
        self._firsts: dict[bytes, tuple[Came, list[Match]]] = {}
        self.clock = NaiveClock(rules)
        self.counts: Counter[str] = Counter()
        # A match, of which most is the document's own text. With a containment, a document may
        # match by its share alone, so only what is all but identical stands for it.
        self._covers = min(rules.absorb, max(rules.threshold, 0.8))
        self._heads: float = min(rules.crowded, rules.capacity)
        if rules.containment is not None:
            self._covers, self._heads = rules.absorb, float("inf")

    def forget(self, ident: bytes) -> None:
        """Forget all documents with an id, as if they had never been inserted."""
        self._firsts.pop(ident, None)
        for _, matches in self._firsts.values():
            for at, match in enumerate(matches):
                matches[at] = match._replace(id=b"") if match.id == ident else match
        for bucket in self._buckets.values():
            bucket.entries = [one for one in bucket.entries if one.document.id != ident]

    def judge(self, document: Document) -> list[Match]:
        """Return the best matches of a document, best first, and insert it."""
        if self._rules.same_id == "replace":
            self.forget(document.id)
        came = self.clock.come(document.time)
        if self._rules.same_id == "ignore" and document.id in self._firsts:
            first, matches = self._firsts[document.id]
            if self.clock.lives([first]):
                self.counts["repeated"] += 1
                return list(matches)
        ways = [self._way(document, column, self.clock) for column in self._columns]
        matches, compared = self._matches(document, ways)
        self.counts["candidates"] += compared
        for way in ways:
            self._take(document, came, way)
        self._firsts[document.id] = came, matches
        return list(matches)

    def query(self, document: Document) -> Answer:
        """Return what a document would match if it came now; change nothing.

        What its id was before doesn't count.
        """
        clock = deepcopy(self.clock)
        clock.come(document.time)
        ways = [self._way(document, column, clock) for column in self._columns]
        matches, compared = self._matches(document, ways)
        found = {match.sequence for match in matches}
        met = [
            MetBucket(column, level, len(live), sorted(found & {e.document.sequence for e in live}))
            for column, way in zip(self._columns, ways, strict=True)
            for level, (bucket, live) in enumerate(way.met)
            if live or bucket.divided
        ]
        return Answer(matches, met, compared)

    def entries(self) -> dict[tuple[int, int], list[tuple[int, int | None]]]:
        """Return the live entries by column and key: sequence numbers, and as of when they count.

        The time is None if nothing expires, or nothing yet.
        """
        found = {}
        for place, bucket in self._buckets.items():
            live = [entry for entry in bucket.entries if self.clock.lives(entry.came)]
            if live:
                found[place] = [(e.document.sequence, self.clock.latest(e.came)) for e in live]
        return found

    def _way(self, document: Document, column: int, clock: NaiveClock) -> Way:
        """Go through the buckets of a column; change nothing in them."""
        rules, way = self._rules, Way()
        for level in range(LEVELS + 1):
            key = document.keys[column]
            key = finer_key(column, key, level, document.sketch) if level else key
            bucket = self._buckets.setdefault((column, key), Bucket())
            live = [entry for entry in bucket.entries if clock.lives(entry.came)]
            way.met.append((bucket, live))
            alike = [(similarity(entry.document.sketch, document.sketch), entry) for entry in live]
            full, crowded = len(live) >= rules.capacity, len(live) >= self._heads
            for place, one in enumerate(alike):
                if crowded and place < self._heads and one[0] >= self._covers:
                    way.alike += alike[: place + 1]
                    way.stands = one
                    return way
            way.alike += alike
            best = max(alike, key=itemgetter(0), default=None)  # of several, the oldest
            if best and best[0] >= (self._covers if full else rules.absorb):
                way.stands = best
                return way
            if way.room is None and full and level < LEVELS:
                way.full.append(bucket)
            elif way.room is None:
                way.room, way.live = bucket, live
            # What is in overflow buckets came when this one was full, even if it has room by now.
            if not full and not bucket.divided:
                break
        return way

    def _take(self, document: Document, came: Came, way: Way) -> None:
        """Insert a document at the end of its way, unless an entry stands for it."""
        if way.stands is not None:
            alike, entry = way.stands
            entry.came.add(came)
            self.counts.update(absorbed=1, covered=int(alike < self._rules.absorb))
        elif way.room is not None:
            oldest = int(len(way.live) == self._rules.capacity)
            way.room.entries = [*way.live[oldest:], Entry(document, {came})]
            divided = [bucket for bucket in way.full if not bucket.divided]
            for bucket in divided:
                bucket.divided = True
            self.counts.update(dropped=oldest, divided=len(divided))

    def _matches(self, document: Document, ways: list[Way]) -> tuple[list[Match], int]:
        """Return the best matches on some ways, and with how many documents it was compared."""
        others = {entry.document: alike for way in ways for alike, entry in way.alike}
        matches = []
        for other, alike in others.items():
            share = self._share(document, other, alike)
            if alike >= self._rules.threshold or share is not None:
                matches.append(Match(other.sequence, alike, other.id, share))
        matches.sort(key=lambda match: (-match.similarity, match.sequence))
        return matches[: self._rules.max_matches], len(others)

    def _share(self, document: Document, other: Document, alike: float) -> float | None:
        """Return how much of a document is in another; None if it isn't enough, or uncertain."""
        if self._rules.containment is None:
            return None
        ratio = max(other.shingles, 1) / max(document.shingles, 1)
        variance = alike * (1.0 - alike) / len(document.sketch)
        more = 1.0 + alike
        share = (1.0 + ratio) * (alike / more + variance / (more * more * more))
        share = min(share, ratio, 1.0)
        error = (1.0 + ratio) / (more * more) * sqrt(variance)
        enough = share >= self._rules.containment and error <= self._rules.containment_error
        return share if enough else None


def similarity(one: bytes, other: bytes) -> float:
    """Return the share of equal slots, corrected for those that are equal by chance."""
    equal = sum(a == b for a, b in zip(one, other, strict=True))
    return max((equal / len(one) - 1 / 256) / (1 - 1 / 256), 0.0)


def finer_key(column: int, key: int, level: int, sketch: bytes) -> int:
    """Return the key of an overflow bucket: that of the first one, and some slots of the sketch."""
    slots = _slots_by_draw(column, len(sketch))[: FINER_SLOTS[level - 1]]
    told = key.to_bytes(8, "little") + bytes(sketch[slot] for slot in slots)
    digest = blake2b(told, digest_size=8, person=b"finer %d" % level).digest()
    return int.from_bytes(digest, "little")


@cache
def _slots_by_draw(column: int, slots: int) -> list[int]:
    return sorted(range(slots), key=splitmix64(column + 1, slots).__getitem__)
