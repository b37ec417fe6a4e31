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
from lsh.ordered import without_repeats

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LEVELS", "finer_keys"]

_SLOTS = (2, 4, 8, 16, 32)
"""Slots that choose a finer bucket, by level from 1."""
LEVELS = len(_SLOTS)
_KEY_BYTES = 8


@lru_cache(maxsize=4096)
def _places(column: int, level: int, slots: int) -> NDArray[np.intp]:
    """Return the slots that choose a finer bucket; those of a level include the former's."""
    draws = constants(column + 1, slots)
    return np.argsort(draws, kind="stable")[: _SLOTS[level - 1]]


def finer_keys(
    columns: NDArray[np.uint8],
    hashes: NDArray[np.uint64],
    level: int,
    sketches: NDArray[np.uint8],
) -> NDArray[np.uint64]:
    """Return the keys of documents' finer buckets: uint64[n].

    columns, hashes: uint8[n], uint64[n], of the buckets. level: from 1 to `LEVELS`. sketches:
    uint8[n, slots].
    """
    chosen = min(_SLOTS[level - 1], sketches.shape[1])
    told = np.empty((len(hashes), _KEY_BYTES + chosen), np.uint8)
    told[:, :_KEY_BYTES] = hashes.astype("<u8").view(np.uint8).reshape(-1, _KEY_BYTES)
    for column in without_repeats(columns).tolist():
        mine = np.flatnonzero(columns == column)
        slots = _places(column, level, sketches.shape[1])
        told[mine, _KEY_BYTES:] = sketches[mine[:, None], slots]
    begun = blake2b(digest_size=_KEY_BYTES, person=b"finer %d" % level)
    digests: list[bytes] = []
    packed, each = told.tobytes(), told.shape[1]
    for start in range(0, len(packed), each):
        digest = begun.copy()
        digest.update(packed[start : start + each])
        digests.append(digest.digest())
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64, copy=False)
