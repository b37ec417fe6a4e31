"""Updating: decides which buckets a document goes into, and which entries it displaces.

Every decision about a bucket depends only on that bucket's entries and the sketches. Nothing
in one column depends on another column, or on which index holds it, so the verdicts don't
depend on how the columns are divided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lsh.index.layout import Bucket
    from lsh.index.rules import BucketRules

__all__ = ["Updated", "update"]


class Updated(NamedTuple):
    """The changes to a document's buckets.

    grown: the buckets that it was inserted into.
    absorbed: for each bucket that has entries that stand for it, the most similar of these (of
        equals, the one that came first): the bucket and the entry.
    dropped: how many entries were removed.
    """

    grown: list[int]
    absorbed: list[tuple[int, int]]
    dropped: int


def update(
    buckets: Mapping[int, Bucket],
    document: int,
    similar: Mapping[int, float],
    rules: BucketRules,
) -> Updated:
    """Insert a document into its buckets, in place.

    buckets: the buckets by place; the result uses these places.
    document: the document's number in the index.
    similar: its estimated similarity to every document in the buckets.
    """
    grown = []
    absorbed = []
    dropped = 0
    for place, bucket in buckets.items():
        best = max(bucket, key=similar.__getitem__, default=None)
        if best is not None and similar[best] >= rules.absorb:
            absorbed.append((place, best))
            continue
        bucket.append(document)
        grown.append(place)
        if len(bucket) > rules.capacity:
            del bucket[0]
            dropped += 1
    return Updated(grown, absorbed, dropped)
