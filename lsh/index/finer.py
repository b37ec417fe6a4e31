"""Full buckets key their later entries more finely, so nothing has to leave them.

A bucket has room for ``capacity`` entries. A document that comes to a full one, and for which no
entry stands, goes on to a finer bucket: the same key, with some slots of its sketch. Documents that
are much alike have most slots in common, so they meet there; those that only share the bucket's key
are divided. A finer bucket that is full has finer ones, too. Only the finest drops its oldest
entry.

So whoever fills a bucket can't make it forget what was there before. And what comes later shares
a finer bucket only with documents that are as alike to it as its copies are.

A bucket that has finer ones says so with a last entry, `BEYOND`, because its own entries may go
before theirs.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from lsh.mixing import constants

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LEVELS", "finer_key"]

_SLOTS = (2, 4, 8, 16, 32)
"""Slots that choose a finer bucket, by level from 1."""
LEVELS = len(_SLOTS)


@lru_cache(maxsize=4096)
def _places(column: int, level: int, slots: int) -> NDArray[np.intp]:
    """Return the slots that choose a finer bucket; those of a level include the former's."""
    draws = constants(column + 1, slots)
    return np.argsort(draws, kind="stable")[: _SLOTS[level - 1]]


def finer_key(column: int, key: int, level: int, sketch: NDArray[np.uint8]) -> int:
    """Return the key of a document's finer bucket.

    column, key: of the bucket. level: from 1 to `LEVELS`. sketch: uint8[slots].
    """
    chosen = sketch[_places(column, level, len(sketch))].tobytes()
    digest = blake2b(key.to_bytes(8, "little") + chosen, digest_size=8, person=b"finer %d" % level)
    return int.from_bytes(digest.digest(), "little")
