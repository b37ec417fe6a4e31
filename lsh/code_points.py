"""Texts as arrays of code points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

CODE_POINTS = 0x110000


def code_points(text: str) -> NDArray[np.uint32]:
    """Return the code points of `text` in a writable array."""
    # An array over bytes would be read-only.
    return np.frombuffer(bytearray(text.encode("utf-32-le", "surrogatepass")), dtype="<u4")


def as_text(codes: NDArray[np.uint32]) -> str:
    """Return the text of the code points `codes`, which may be lone surrogates."""
    return str(codes.data, "utf-32-le", "surrogatepass")


def splice(
    codes: NDArray[np.uint32], places: NDArray[np.int64], inserted: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """Return `codes` with inserted[i] before codes[places[i]].

    places: int64[m], ascending, from 0 to len(codes).
    inserted: uint32[m].
    """
    # Unlike numpy.insert, this sorts nothing.
    spliced = np.empty(len(codes) + len(places), dtype=np.uint32)
    kept = np.ones(len(spliced), dtype=np.bool_)
    at = places + np.arange(len(places))
    kept[at] = False
    spliced[at] = inserted
    spliced[kept] = codes
    return spliced
