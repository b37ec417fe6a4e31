"""Index keys: one for each band of a signature, and one for the exact text."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from lsh.mixing import constants, derived, finalise, odd

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_BAND_STATE = 0x62616E64  # "band"
_ROW_STATE = 0x726F77  # "row"


def band_keys(signatures: NDArray[np.uint64], bands: int, rows: int) -> NDArray[np.uint64]:
    """Return the key of each band of each signature.

    signatures: uint64[n, slots] with slots >= bands * rows; the slots after
        bands * rows are ignored.

    Returns uint64[n, bands]. Equal rows in the same band give equal keys.
    Otherwise, even for equal rows in different bands, keys are equal only by a
    64-bit collision.

    Raises ValueError if there are fewer slots than bands * rows.
    """
    documents, slots = signatures.shape
    if bands * rows > slots:
        message = f"bands * rows: got {bands} * {rows}, takes at most the number of slots, {slots}"
        raise ValueError(message)
    cut = signatures[:, : bands * rows].reshape(documents, bands, rows)
    # The slots are uniform, so a linear form with odd factors for each band
    # spreads them well enough; mixing makes every bit of the key usable.
    keys = np.empty((documents, bands), dtype=np.uint64)
    keys[:] = constants(_BAND_STATE, bands)
    for row, factors in enumerate(odd(constants(_ROW_STATE, rows * bands)).reshape(rows, bands)):
        keys += cut[:, :, row] * factors
    return finalise(keys)


def text_keys(encoded: Iterable[bytes], seed: bytes) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each whole text.

    encoded: n normalised texts in UTF-8, with surrogates passed through.
    seed: the site's secret.

    Returns uint64[n]: 64 bits of BLAKE2b, little-endian, keyed by the seed. Without the
    seed, nobody can construct two texts with one key. For a faster hash such as
    MurmurHash3 one can, whatever its seed.
    """
    keyed = blake2b(digest_size=8, key=derived(seed, b"neardup text", 32))

    def digest(text: bytes) -> bytes:
        own = keyed.copy()  # cheaper than a new one
        own.update(text)
        return own.digest()

    digests = b"".join(map(digest, encoded))
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)
