"""Normal forms of texts: one at a time for reference, and a whole batch as one array.

The normal form, in this order, each step a switch:

1. compatibility: NFKC (Unicode Standard Annex 15);
2. case: full case folding, and NFKC again, for folding may take apart what
   NFKC had composed;
3. white space, as `str.split` sees it: runs become one space, none at the ends.

A change to any of this raises `NORMALISER_VERSION`. Characters that Python's
Unicode tables don't know yet stay as they are, so a newer Python may fold a
letter that an older one leaves alone; letters once assigned never change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias
from unicodedata import normalize

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Codes: TypeAlias = "NDArray[np.uint8] | NDArray[np.uint32]"

NORMALISER_VERSION = 1
"""Raised whenever the same text and switches give another normal form."""

_SPACE = 32
_UPPER_A = 65
_CASE_BIT = 32
_SEPARATOR = " "
_WIDE_SPACES = np.array(
    [0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000],
    dtype="<u4",
)


class Switches(Protocol):
    """The part of `Parameters` that the normaliser reads."""

    @property
    def nfkc(self) -> bool:
        """Whether compatibility forms are made one."""

    @property
    def casefold(self) -> bool:
        """Whether case is folded."""

    @property
    def collapse_whitespace(self) -> bool:
        """Whether runs of white space become one space."""


@dataclass(frozen=True, slots=True)
class Normalised:
    """The normal forms of a batch of n texts, in one buffer.

    codes: uint8 (all texts are ASCII) or uint32, little-endian: code points.
    begins, ends: int64[n]; text i is codes[begins[i]:ends[i]]. Between two
        texts there may be code points that belong to neither.
    """

    codes: Codes
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]

    def encoded(self) -> list[bytes]:
        """Return each text in UTF-8, lone surrogates passed through."""
        width = self.codes.itemsize
        raw = self.codes.tobytes()
        begins, ends = (self.begins * width).tolist(), (self.ends * width).tolist()
        parts = [raw[begin:end] for begin, end in zip(begins, ends, strict=True)]
        if width == 1:
            return parts
        return [
            part.decode("utf-32-le", "surrogatepass").encode("utf-8", "surrogatepass")
            for part in parts
        ]

    def texts(self) -> list[str]:
        """Return each text as a string."""
        return [text.decode("utf-8", "surrogatepass") for text in self.encoded()]


def normalise(text: str, parameters: Switches) -> str:
    """Return the normal form of one text. The batch gives the same; this is the reference."""
    text = fold(text, parameters)
    return " ".join(text.split()) if parameters.collapse_whitespace else text


def fold(text: str, parameters: Switches) -> str:
    """Return `text` after the steps before white space: compatibility and case."""
    if text.isascii():
        return text.lower() if parameters.casefold else text
    if parameters.nfkc:
        text = normalize("NFKC", text)
    if parameters.casefold:
        text = text.casefold()
        if parameters.nfkc:
            text = normalize("NFKC", text)
    return text


def normalise_ascii(texts: Sequence[str], parameters: Switches) -> Normalised:
    """Return the normal forms of texts that are all ASCII, where NFKC changes nothing.

    Raises UnicodeEncodeError if one isn't ASCII.
    """
    codes, begins, ends = _join(texts, "ascii")
    if parameters.casefold:
        upper = (codes - np.uint8(_UPPER_A)) < 26  # noqa: PLR2004 (letters; below A wraps round)
        codes |= upper.view(np.uint8) * np.uint8(_CASE_BIT)
    if parameters.collapse_whitespace:
        spaces = _is_ascii_space(codes)
        # All of ASCII's white space lies at or below the space.
        np.maximum(codes, spaces.view(np.uint8) * np.uint8(_SPACE), out=codes)
        return _collapse(codes, spaces, begins, ends)
    return Normalised(codes, begins, ends)


def normalise_wide(texts: Sequence[str], parameters: Switches) -> Normalised:
    """Return the normal forms of texts of any kind."""
    folded = [fold(text, parameters) for text in texts]
    codes, begins, ends = _join(folded, "utf-32-le")
    if parameters.collapse_whitespace:
        spaces = _is_space(codes)
        np.putmask(codes, spaces, _SPACE)
        return _collapse(codes, spaces, begins, ends)
    return Normalised(codes, begins, ends)


def _join(
    texts: Sequence[str], encoding: Literal["ascii", "utf-32-le"]
) -> tuple[Codes, NDArray[np.int64], NDArray[np.int64]]:
    """Return the code points of all texts, a space behind each, and where each begins and ends."""
    joined = bytearray((_SEPARATOR.join(texts) + _SEPARATOR).encode(encoding, "surrogatepass"))
    # Of a bytearray, so that it may be written to.
    codes: Codes = np.frombuffer(joined, dtype="u1" if encoding == "ascii" else "<u4")
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    ends: NDArray[np.int64] = np.cumsum(lengths + 1) - 1
    return codes, ends - lengths, ends


def _is_ascii_space(codes: Codes) -> NDArray[np.bool_]:
    # Tab to carriage return, and the four separators before the space and itself.
    one = codes.dtype.type
    spaces = (codes - one(9)) < 5  # noqa: PLR2004
    spaces |= (codes - one(28)) < 5  # noqa: PLR2004
    return spaces


def _is_space(codes: Codes) -> NDArray[np.bool_]:
    spaces = _is_ascii_space(codes)
    wide = np.flatnonzero((codes >= _WIDE_SPACES[0]) & (codes <= _WIDE_SPACES[-1]))
    spaces[wide] = np.isin(codes[wide], _WIDE_SPACES)
    return spaces


def _collapse(
    codes: Codes,
    spaces: NDArray[np.bool_],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> Normalised:
    """Drop every space behind another one, at the buffer's head, and at both ends of a text.

    `spaces` says where white space is; in `codes` it is `_SPACE` already.
    The space behind each text is part of the run, so that a text that begins
    with spaces loses them all, and one that ends with some keeps the first:
    its end is moved before it.
    """
    drop = spaces.copy()
    drop[1:] &= spaces[:-1]
    dropped = np.flatnonzero(drop)
    if len(dropped):
        codes = codes[~drop]
        begins = begins - np.searchsorted(dropped, begins)
        ends = ends - np.searchsorted(dropped, ends)
    filled = np.flatnonzero(ends > begins)
    ends[filled] -= codes[ends[filled] - 1] == _SPACE
    return Normalised(codes, begins, ends)
