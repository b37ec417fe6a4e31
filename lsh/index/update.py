"""Updating: decides which buckets a document goes into, and which entries it displaces.

Every decision about a bucket and its finer ones depends only on their entries and the sketches.
Nothing in one column depends on another column, or on which index holds it, so the verdicts don't
depend on how the columns are divided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lsh.index.layout import BEYOND

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lsh.index.layout import Bucket
    from lsh.index.rules import BucketRules

__all__ = ["Updated", "update"]


class Updated(NamedTuple):
    """The change to one of a document's buckets.

    place: the bucket that it was inserted into, or that has the entry that stands for it.
    entry: that entry; None if it was inserted.
    dropped: how many entries were removed.
    """

    place: int
    entry: int | None
    dropped: int


def update(
    chain: Sequence[int],
    buckets: Mapping[int, Bucket],
    document: int,
    similar: Mapping[int, float],
    rules: BucketRules,
) -> Updated:
    """Insert a document into the first of its buckets with room, in place.

    If an entry stands for it, it isn't inserted: the most similar one, of equals the one that is in
    the coarsest bucket and came first.

    chain: the document's buckets for one key, from the coarsest; see `Chains`.
    buckets: their contents.
    document: the document's number in the index.
    similar: its estimated similarity to every document in the buckets.
    """
    best = -1.0
    place, entry = chain[0], BEYOND
    for number in chain:
        for other in buckets[number]:
            if other != BEYOND and similar[other] > best:
                best, place, entry = similar[other], number, other
    if best >= rules.absorb:
        return Updated(place, entry, 0)
    for number in chain:
        bucket = buckets[number]
        at = len(bucket) - (bucket[-1:] == [BEYOND])
        if at < rules.capacity:
            bucket.insert(at, document)
            return Updated(number, None, 0)
    bucket = buckets[chain[-1]]
    bucket.append(document)
    del bucket[0]
    return Updated(chain[-1], None, 1)
