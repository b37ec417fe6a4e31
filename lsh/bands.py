"""Index keys: one for each band of a sketch, and one for the exact text."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from lsh.arguments import shown
from lsh.mixing import constants, derived, finalise, odd
from lsh.sketch import require_sketches

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

_BAND_STATE = 0x62616E64  # "band"
_WORD_STATE = 0x776F7264  # "word"
_WORD = 8  # slots of 8 bits in a word of 64


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
    documents, slots = sketches.shape
    if bands * rows > slots:
        message = f"bands * rows: got {bands} * {rows}, takes at most the number of slots, {slots}"
        raise ValueError(message)
    which = slice(None) if columns is None else list(columns)
    cut = sketches[:, : bands * rows].reshape(documents, bands, rows)[:, which]
    # The slots of a band are packed into words of 8 bytes, the last one filled up with zeros.
    words = -(-rows // _WORD)
    packed = np.zeros((documents, cut.shape[1], words * _WORD), dtype=np.uint8)
    packed[:, :, :rows] = cut
    # A linear form with odd factors for each band tells words apart; mixing makes every bit
    # of the key usable.
    keys = np.empty(cut.shape[:2], dtype=np.uint64)
    keys[:] = constants(_BAND_STATE, bands)[which]
    factors = odd(constants(_WORD_STATE, words * bands)).reshape(words, bands)[:, which]
    for word, own in enumerate(factors):
        keys += packed.view("<u8")[:, :, word] * own
    return finalise(keys)


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
    keyed = blake2b(digest_size=8, key=derived(seed, b"neardup text", 32))

    def digest(row: int, text: bytes) -> bytes:
        if not isinstance(text, bytes):
            raise TypeError(f"encoded: row {row} has {shown(text)}, takes bytes; encode texts")
        own = keyed.copy()  # cheaper than a new one
        own.update(text)
        return own.digest()

    digests = b"".join(digest(row, text) for row, text in enumerate(encoded))
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)
