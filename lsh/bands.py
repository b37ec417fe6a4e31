"""Keys of the index: one for each band of a signature, one for the exact text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mmh3
import numpy as np

from lsh.mixing import constants, finalise, odd, secret

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_BAND_STATE = 0x62616E64  # "band"
_ROW_STATE = 0x726F77  # "row"


def band_keys(signatures: NDArray[np.uint64], bands: int, rows: int) -> NDArray[np.uint64]:
    """Return the key of each band of each signature.

    signatures: uint64[n, slots] with slots >= bands * rows; slots past these
        don't matter.

    Returns uint64[n, bands]. Equal rows in the same band give equal keys;
    anything else, such as the same rows in another band, agrees by a
    collision of 64 bits only.

    Raises ValueError if there are fewer slots than bands * rows.
    """
    documents, slots = signatures.shape
    if bands * rows > slots:
        message = f"bands * rows: got {bands} * {rows}, takes at most the number of slots, {slots}"
        raise ValueError(message)
    cut = signatures[:, : bands * rows].reshape(documents, bands, rows)
    # The slots are uniform, so one linear form for each band, with odd factors,
    # spreads them well enough; the mixing makes every bit of the key usable.
    keys = np.empty((documents, bands), dtype=np.uint64)
    keys[:] = constants(_BAND_STATE, bands)
    for row, factors in enumerate(odd(constants(_ROW_STATE, rows * bands)).reshape(rows, bands)):
        keys += cut[:, :, row] * factors
    return finalise(keys)


def text_keys(encoded: Iterable[bytes], seed: bytes) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each whole text.

    encoded: n normalised texts in UTF-8 (surrogates passed through).
    seed: the site's secret.

    Returns uint64[n]: the first half of MurmurHash3 x64 128, mixed with 64 bits
    of the seed.
    """
    word = secret(seed, b"neardup text")
    low = [mmh3.hash64(text, word & 0xFFFFFFFF, signed=False)[0] for text in encoded]
    keys = np.array(low, dtype=np.uint64)
    keys ^= np.uint64(word)
    return finalise(keys)
