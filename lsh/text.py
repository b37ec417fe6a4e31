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
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from lsh.folding import Folding, code_points, fold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lsh.folding import Switches

Codes: TypeAlias = "NDArray[np.uint8] | NDArray[np.uint32]"

NORMALISER_VERSION = 1
"""Raised whenever the same text and switches give another normal form."""

_SPACE = 32
_UPPER_A = 65
_CASE_BIT = 32
_SEPARATOR = " "
_NFKC_SPACES = (0x85, 0x1680, 0x2028, 0x2029)  # those past ASCII that NFKC keeps


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
        spans = zip(self.begins.tolist(), self.ends.tolist(), strict=True)
        if self.codes.itemsize == 1:
            raw = self.codes.tobytes()
            return [raw[begin:end] for begin, end in spans]
        text = str(self.codes.data, "utf-32-le", "surrogatepass")
        return [text[begin:end].encode("utf-8", "surrogatepass") for begin, end in spans]

    def texts(self) -> list[str]:
        """Return each text as a string."""
        return [text.decode("utf-8", "surrogatepass") for text in self.encoded()]


def normalise(text: str, parameters: Switches) -> str:
    """Return the normal form of one text. The batch gives the same; this is the reference."""
    text = fold(text, parameters)
    return " ".join(text.split()) if parameters.collapse_whitespace else text


def normalise_ascii(texts: Sequence[str], parameters: Switches) -> Normalised:
    """Return the normal forms of texts that are all ASCII, where NFKC changes nothing.

    Raises UnicodeEncodeError if one isn't ASCII.
    """
    # Of a bytearray, so that it may be written to.
    codes = np.frombuffer(bytearray(_join(texts).encode("ascii")), dtype=np.uint8)
    begins, ends = _spans(_lengths(texts))
    if parameters.casefold:
        upper = (codes - np.uint8(_UPPER_A)) < 26  # noqa: PLR2004 (letters; below A wraps round)
        codes |= upper.view(np.uint8) * np.uint8(_CASE_BIT)
    if parameters.collapse_whitespace:
        spaces = _is_ascii_space(codes)
        # All of ASCII's white space lies at or below the space.
        np.maximum(codes, spaces.view(np.uint8) * np.uint8(_SPACE), out=codes)
        return _collapse(codes, spaces, begins, ends)
    return Normalised(codes, begins, ends)


def normalise_wide(
    texts: Sequence[str], parameters: Switches, folding: Folding | None = None
) -> Normalised:
    """Return the normal forms of texts of any kind.

    folding: made with the same switches, and kept from batch to batch, for it
        learns; None makes a new one.
    """
    folded = (folding or Folding(parameters)).fold(code_points(_join(texts)))
    begins, ends = _spans(_lengths(texts))
    joining = np.unique(np.searchsorted(ends, folded.joining)).tolist()
    codes = folded.codes
    begins = begins + np.searchsorted(folded.inserted, begins, side="right")
    ends = ends + np.searchsorted(folded.inserted, ends, side="right")
    if joining:
        replaced = {row: fold(texts[row], parameters) for row in joining}
        codes, begins, ends = _replace(codes, begins, ends, replaced)
    if parameters.collapse_whitespace:
        spaces = codes == _SPACE
        if joining:
            spaces = _is_nfkc_space(codes)
            np.putmask(codes, spaces, _SPACE)
        return _collapse(codes, spaces, begins, ends)
    return Normalised(codes, begins, ends)


def _join(texts: Sequence[str]) -> str:
    """Return all texts, a space behind each."""
    return _SEPARATOR.join(texts) + _SEPARATOR


def _lengths(texts: Sequence[str]) -> NDArray[np.int64]:
    return np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))


def _spans(lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each of the joined texts begins and ends."""
    ends: NDArray[np.int64] = np.cumsum(lengths + 1) - 1
    return ends - lengths, ends


def _replace(
    codes: NDArray[np.uint32],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    texts: dict[int, str],
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]:
    """Put each of `texts`, by row, ascending, in the place of what that row holds."""
    parts: list[NDArray[np.uint32]] = []
    lengths = ends - begins
    done = 0
    for row, text in texts.items():
        parts += [codes[done : begins[row]], code_points(text)]
        lengths[row] = len(text)
        done = ends[row]
    return np.concatenate([*parts, codes[done:]]), *_spans(lengths)


def _is_ascii_space(codes: Codes) -> NDArray[np.bool_]:
    # Tab to carriage return, and the four separators before the space and itself.
    one = codes.dtype.type
    spaces = (codes - one(9)) < 5  # noqa: PLR2004
    spaces |= (codes - one(28)) < 5  # noqa: PLR2004
    return spaces


def _is_nfkc_space(codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    spaces = _is_ascii_space(codes)
    for space in _NFKC_SPACES:
        spaces |= codes == space
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
