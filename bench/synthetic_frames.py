"""Synthetic documents as an index shard sees them: keys and sketches, without texts.

Of five documents, four are new. The fifth is an exact copy, a near variant or a far variant
of an earlier new one: half the time of one of the last few thousand, else of any. One new document
in fifty has the slots of one band in common with thousands of unlike ones, so its bucket is full.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsh import band_keys
from lsh.index import DocumentBatch
from lsh.mixing import finalise

BANDS = 18
ROWS = 7
SLOTS = 128
_COLUMNS = BANDS + 1
"""One for each band, and the exact text."""
_NOW_MS = 1_767_225_600_000
_EVERY = 5
_RECENT = 5_000
_CROWDED_SHARE = 1 / 50
_CROWDED_BUCKETS = 200
_KINDS = {"copy": 0.4, "near": 0.4, "far": 0.2}
_CHANGED_SLOTS = np.array([0.0, 0.08, 0.45])


def synthetic_batch(first: int, count: int) -> DocumentBatch:
    """Return documents ``first`` to ``first + count``. A number always gives the same document."""
    numbers = np.arange(first, first + count, dtype=np.uint64)
    origins, kinds = _origins(numbers)
    sketches = sketches_of(origins)
    _crowd(origins, sketches)
    changed = np.flatnonzero(kinds > 0)
    sketches[changed] = _varied(numbers[changed], kinds[changed], sketches[changed])
    return batch_of(numbers, sketches, np.where(kinds > 0, numbers, origins))


def batch_of(
    numbers: NDArray[np.uint64], sketches: NDArray[np.uint8], texts: NDArray[np.uint64]
) -> DocumentBatch:
    """Return documents with these numbers, one each millisecond.

    numbers: uint64[n]. sketches: uint8[n, SLOTS]. texts: uint64[n]; equal ones are equal texts.
    """
    keys = np.empty((_COLUMNS, len(numbers)), np.uint64)
    keys[:BANDS] = band_keys(sketches, BANDS, ROWS).T
    keys[BANDS] = _words(texts, 1, 2)[:, 0]
    return DocumentBatch(
        sequences=numbers,
        times=_NOW_MS + numbers.astype(np.int64),
        ids=[b"document-%010d" % number for number in numbers.tolist()],
        shingles=np.full(len(numbers), 300, np.uint32),
        columns=range(_COLUMNS),
        keys=keys,
        sketches=sketches,
    )


def sketches_of(texts: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Return random sketches, uint8[n, SLOTS], each the same whenever its text is: uint64[n]."""
    return _words(texts, SLOTS // 8, 1).view(np.uint8)


def _origins(numbers: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return whose content each document has, and how: -1 new, else a place in ``_KINDS``."""
    draws = fractions(numbers, 3, 3)
    later = (numbers % _EVERY == _EVERY - 1) & (numbers > _EVERY)
    reach = np.where(draws[:, 0] < 0.5, np.minimum(numbers, _RECENT), numbers)
    back = (draws[:, 1] * (reach // _EVERY)).astype(np.uint64) * _EVERY + 1
    kinds = np.searchsorted(np.cumsum(list(_KINDS.values())), draws[:, 2], side="right")
    return np.where(later, numbers - back, numbers), np.where(later, kinds, -1)


def _crowd(origins: NDArray[np.uint64], sketches: NDArray[np.uint8]) -> None:
    """Give some documents the slots of a hot bucket's band, in place."""
    draws = fractions(origins, 2, 6)
    rows = np.flatnonzero(draws[:, 0] < _CROWDED_SHARE)
    bucket = (draws[rows, 1] * _CROWDED_BUCKETS).astype(np.uint64)
    slots = ROWS * (bucket % BANDS).astype(np.int64)[:, None] + np.arange(ROWS)
    sketches[rows[:, None], slots] = _words(bucket, 1, 7).view(np.uint8)[:, :ROWS]


def _varied(
    numbers: NDArray[np.uint64], kinds: NDArray[np.int64], sketches: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Return sketches of which some slots are changed. Each keeps those of at least one band."""
    changed = fractions(numbers, SLOTS, 5) < _CHANGED_SLOTS[kinds][:, None]
    kept = (numbers % BANDS).astype(np.int64)
    changed &= kept[:, None] != np.arange(SLOTS) // ROWS
    return np.where(changed, _words(numbers, SLOTS // 8, 4).view(np.uint8), sketches)


def _words(numbers: NDArray[np.uint64], width: int, purpose: int) -> NDArray[np.uint64]:
    """Return random words, uint64[n, width], that depend on number, place and purpose alone."""
    places = np.arange(1, width + 1, dtype=np.uint64) + np.uint64(purpose << 32)
    words = numbers[:, None] * np.uint64(0x9E3779B97F4A7C15) + finalise(places)
    return finalise(words)


def fractions(numbers: NDArray[np.uint64], width: int, purpose: int) -> NDArray[np.float64]:
    """Return random numbers from 0 to below 1, float64[n, width]; see `_words`."""
    whole = _words(numbers, width, purpose) >> np.uint64(11)
    return np.ldexp(whole.astype(np.float64), -53)
