"""Index keys: one for each band of a sketch, and one for the exact text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsh import _core
from lsh.arguments import shown
from lsh.mixing import derived
from lsh.sketch import require_sketches

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


def band_keys(
    sketches: NDArray[np.uint8], bands: int, rows: int, columns: Sequence[int] | None = None
) -> NDArray[np.uint64]:
    """Return the keys of the bands of each sketch.

    sketches: uint8[n, slots] with slots >= bands * rows; the slots after
        bands * rows are ignored.
    columns: the numbers of the bands whose keys are wanted, each from 0 to bands - 1.
        None: all, in order.

    Returns uint64[n, bands], or uint64[n, len(columns)]. Equal rows in the same band
    give equal keys. Otherwise, even for equal rows in different bands, keys are equal
    only by a 64-bit collision; in a band of up to 8 rows, never.

    Raises ValueError if there are fewer slots than bands * rows, or these are no sketches.
    """
    require_sketches(sketches, np.shape(sketches)[-1])
    if columns is not None and not set(columns) <= set(range(bands)):
        raise ValueError(f"columns: takes numbers from 0 to {bands - 1}")
    if bands < 1 or rows < 1:
        raise ValueError(f"bands, rows: got {bands} and {rows}, takes integers of at least 1")
    slots = sketches.shape[1]
    if bands * rows > slots:
        message = f"bands * rows: got {bands} * {rows}, takes at most the number of slots, {slots}"
        raise ValueError(message)
    which = None if columns is None else list(map(int, columns))
    return _core.band_keys(np.ascontiguousarray(sketches), int(bands), int(rows), which)


def text_keys(encoded: Iterable[bytes], seed: bytes) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each whole text.

    encoded: n normalised texts in UTF-8, with surrogates passed through.
    seed: the site's secret.

    Returns uint64[n]: 64 bits of BLAKE2b, little-endian, keyed by the seed. Without the
    seed, nobody can construct two texts with one key. For a faster hash such as
    MurmurHash3 one can, whatever its seed.

    Raises TypeError, which names the row, for what isn't bytes.
    """
    if not isinstance(seed, bytes):
        raise TypeError(f"seed: got a value of type {type(seed).__name__}, takes bytes")
    if isinstance(encoded, (str, bytes)):
        raise TypeError("encoded: got a single text, takes a sequence of texts in UTF-8")
    texts = list(encoded)
    for row, text in enumerate(texts):
        if not isinstance(text, bytes):
            raise TypeError(f"encoded: row {row} has {shown(text)}, takes bytes; encode texts")
    return _core.text_keys(texts, derived(seed, b"neardup text", 32))
