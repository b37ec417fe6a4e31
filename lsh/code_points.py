"""Texts as arrays of code points."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Codes: TypeAlias = "NDArray[np.uint8] | NDArray[np.uint32]"

CODE_POINTS = 0x110000


def code_points(text: str) -> NDArray[np.uint32]:
    """Return the code points of `text` in a writable array."""
    # An array over bytes would be read-only.
    return np.frombuffer(bytearray(text.encode("utf-32-le", "surrogatepass")), dtype="<u4")


def as_text(codes: NDArray[np.uint32]) -> str:
    """Return the text of the code points `codes`, which may be lone surrogates."""
    return str(codes.data, "utf-32-le", "surrogatepass")


class Pieces(NamedTuple):
    """Stretches of `codes`, uint32[n], by where they begin and their lengths, int64[m]."""

    codes: NDArray[np.uint32]
    begins: NDArray[np.int64]
    lengths: NDArray[np.int64]


def replaced(
    codes: NDArray[np.uint32],
    begins: NDArray[np.int64],
    lengths: NDArray[np.int64] | int,
    pieces: Pieces,
) -> NDArray[np.uint32]:
    """Return `codes` with the i-th piece for codes[begins[i]:][:lengths[i]].

    begins: int64[m], ascending; what is replaced doesn't overlap.
    lengths: int64[m], or one for all.
    """
    # What is taken from where, alternately: code points that stay, and others.
    taken = np.empty(2 * len(begins) + 1, dtype=np.int64)
    sizes = np.empty_like(taken)
    taken[0], taken[2::2], taken[1::2] = 0, begins + lengths, pieces.begins + len(codes)
    sizes[1::2] = pieces.lengths
    sizes[0:-1:2] = begins - taken[0:-1:2]
    sizes[-1] = len(codes) - taken[-1]
    filled = np.flatnonzero(sizes)
    if not len(filled):
        return codes[:0]
    places = stretches(taken.take(filled), sizes.take(filled))
    return np.concatenate((codes, pieces.codes)).take(places)


def stretches(begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return all positions from begins[i], lengths[i] of them, for every i: int64.

    begins, lengths: int64[m], m at least 1; each length is at least 1.
    """
    # One step at a time within a stretch. This takes half the time of numpy.repeat.
    steps = np.ones(int(lengths.sum()), dtype=np.int64)
    steps[0] = begins[0]
    steps[np.cumsum(lengths[:-1])] = begins[1:] - begins[:-1] - lengths[:-1] + 1
    return np.cumsum(steps, out=steps)
