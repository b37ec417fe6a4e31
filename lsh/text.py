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
from typing import TYPE_CHECKING, Literal, TypeAlias

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


def normalise_wide(
    texts: Sequence[str], parameters: Switches, folding: Folding | None = None
) -> Normalised:
    """Return the normal forms of texts of any kind.

    folding: made with the same switches, and kept from batch to batch, for it
        learns; None makes a new one.
    """
    codes, begins, ends = _join(texts, "utf-32-le")
    folded = (folding or Folding(parameters)).fold(codes)
    joining = np.unique(np.searchsorted(ends, folded.joining))
    codes = folded.codes
    begins = begins + np.searchsorted(folded.inserted, begins, side="right")
    ends = ends + np.searchsorted(folded.inserted, ends, side="right")
    if len(joining):
        replaced = {row: normalise(texts[row], parameters) for row in joining.tolist()}
        codes, begins, ends = _replace(codes, begins, ends, replaced)
    if parameters.collapse_whitespace:
        return _collapse(codes, codes == _SPACE, begins, ends)
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


def _replace(
    codes: Codes, begins: NDArray[np.int64], ends: NDArray[np.int64], texts: dict[int, str]
) -> tuple[Codes, NDArray[np.int64], NDArray[np.int64]]:
    """Put each of `texts`, whose keys are rows, ascending, in the place of that row's."""
    parts: list[NDArray[np.uint32]] = []
    lengths = ends - begins
    done = 0
    for row, text in texts.items():
        parts += [codes[done : begins[row]], code_points(text)]
        lengths[row] = len(text)
        done = ends[row]
    ends_now: NDArray[np.int64] = np.cumsum(lengths + 1) - 1
    return np.concatenate([*parts, codes[done:]]), ends_now - lengths, ends_now


def _is_ascii_space(codes: Codes) -> NDArray[np.bool_]:
    # Tab to carriage return, and the four separators before the space and itself.
    one = codes.dtype.type
    spaces = (codes - one(9)) < 5  # noqa: PLR2004
    spaces |= (codes - one(28)) < 5  # noqa: PLR2004
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
