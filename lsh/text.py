"""Normal forms of texts: one at a time for reference, and a whole batch as one array.

The normal form, in this order, each step a switch:

0. if so wished, HTML becomes text, and web addresses become hosts (`lsh.markup`); then listed
   lines are left out (`lsh.listed_lines`);
1. single characters: what nothing shows is dropped (`lsh.invisible`), and strokes over
   letters; if so wished, accents are dropped, and look-alikes and digits folded
   (`lsh.replacing`);
2. compatibility: NFKC (Unicode Standard Annex 15) of the text with long runs of marks
   cut, which changes no text of any language; see `lsh.stream_safe`;
3. case: full case folding, then the same again, because folding may decompose what
   NFKC had composed; if so wished, the two letters i of Turkish become one (`lsh.turkish`);
4. white space, as `str.split` defines it: runs become one space, and the ends are
   stripped;
5. if so wished, what stands between letters is dropped (`lsh.running_together`).

A change to any of this increases `NORMALISER_VERSION`. Characters that Python's
Unicode tables don't know yet are left unchanged, so a newer Python may fold a
letter that an older one does not; the folding of assigned letters never changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lsh.code_points import as_text, code_points
from lsh.columns import text_of
from lsh.folding import Folding, fold
from lsh.invisible import misplaced
from lsh.joining import without
from lsh.listed_lines import left_out, left_over
from lsh.markup import unwrapped
from lsh.running_together import run_together, symbols_between, white_space
from lsh.turkish import fold_one_i, with_one_i

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lsh.code_points import Codes
    from lsh.switches import Switches

NORMALISER_VERSION = 3
"""Increased whenever the same text and switches give another normal form."""

_SPACE = 32
_UPPER_A = 65
_ZERO = 48
_DELETE = 127
_CASE_BIT = 32
_SEPARATOR = " "


@dataclass(frozen=True, slots=True)
class Normalised:
    """The normal forms of a batch of n texts, in one buffer.

    codes: uint8 (all texts are ASCII) or uint32, little-endian: code points.
    begins, ends: int64[n]; text i is codes[begins[i]:ends[i]]. There may be
        code points between two texts that belong to neither.
    """

    codes: Codes
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]

    def encoded(self) -> list[bytes]:
        """Return each text in UTF-8, with lone surrogates passed through."""
        spans = zip(self.begins.tolist(), self.ends.tolist(), strict=True)
        if self.codes.itemsize == 1:
            raw = self.codes.tobytes()
            return [raw[begin:end] for begin, end in spans]
        text = as_text(self.codes.astype(np.uint32, copy=False))
        return [text[begin:end].encode("utf-8", "surrogatepass") for begin, end in spans]

    def texts(self) -> list[str]:
        """Return each text as a string."""
        return [text.decode("utf-8", "surrogatepass") for text in self.encoded()]


def normalise(text: str, parameters: Switches) -> str:
    """Return the normal form of one text. This is the reference for the batch functions.

    Raises TypeError if it is none.
    """
    text = text_of(text)
    return form_of(left_over(unwrapped(text, parameters), parameters, form_of), parameters)


def left_out_of(text: str, parameters: Switches) -> list[str]:
    """Return the lines of a text that `normalise` leaves out because they are listed."""
    return left_out(unwrapped(text, parameters), parameters, form_of)


def form_of(text: str, parameters: Switches) -> str:
    """Return the normal form of a text from step 1 on. This is the reference for these."""
    text = fold(text, parameters)
    if parameters.fold_turkish_i:
        text = with_one_i(text)
    if parameters.collapse_whitespace:
        text = " ".join(text.split())
    return run_together(text, parameters)


def normalise_ascii(texts: Sequence[str], parameters: Switches) -> Normalised:
    """Return the normal forms of ASCII texts, which NFKC doesn't change, from step 1 on.

    Raises UnicodeEncodeError if a text isn't ASCII.
    """
    # An array over a bytearray is writable.
    codes: Codes = np.frombuffer(bytearray(_join(texts).encode("ascii")), dtype=np.uint8)
    form = Normalised(codes, *_spans(_lengths(texts)))
    if parameters.casefold:
        upper = (codes - np.uint8(_UPPER_A)) < 26  # noqa: PLR2004 -- letters; below A wraps round
        codes |= upper.view(np.uint8) * np.uint8(_CASE_BIT)
    if parameters.fold_digits:
        codes[(codes - np.uint8(_ZERO)) < 10] = _ZERO  # noqa: PLR2004 -- digits
    if parameters.collapse_whitespace:
        spaces = _is_ascii_space(codes)
        # All of ASCII's white space lies at or below the space.
        np.maximum(codes, spaces.view(np.uint8) * np.uint8(_SPACE), out=codes)
        if parameters.drop_invisible:
            form = _without_controls(form)
        if form.codes is not codes:
            spaces = form.codes == _SPACE
        form = _collapse(form.codes, spaces, form.begins, form.ends)
    elif parameters.drop_invisible:
        form = _without_controls(form)
    return _run_together(form, parameters)


def _without_controls(form: Normalised) -> Normalised:
    """Drop the control characters of ASCII that aren't white space."""
    codes = form.codes
    if codes.min() >= _SPACE and codes.max() < _DELETE:
        return form
    hidden = (codes < _SPACE) | (codes == _DELETE)
    hidden &= ~_is_ascii_space(codes)
    return _dropped(form, hidden)


def normalise_wide(
    texts: Sequence[str], parameters: Switches, folding: Folding | None = None
) -> Normalised:
    """Return the normal forms of texts of any kind, from step 1 on.

    folding: made with the same switches, and reused for its table; None makes
        a new one.
    """
    folding = folding or Folding(parameters)
    _, ends = _spans(_lengths(texts))
    folded = folding.fold(code_points(_join(texts)), ends, texts)
    codes, ends, joining = folded.codes, folded.ends, folded.joining
    if len(joining) and parameters.nfkc:
        codes, ends = _joined(folding, codes, joining, ends, texts)
    elif len(joining):
        codes, _, ends = without(misplaced(codes), codes, joining, ends)
    form = Normalised(codes, np.append(0, ends + 1)[:-1], ends)
    if parameters.fold_turkish_i:
        form = _dropped(form, fold_one_i(codes))
    if parameters.collapse_whitespace:
        form = _collapse(form.codes, form.codes == _SPACE, form.begins, form.ends)
    return _run_together(form, parameters)


def _joined(
    folding: Folding,
    codes: NDArray[np.uint32],
    joining: NDArray[np.int64],
    ends: NDArray[np.int64],
    texts: Sequence[str],
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the code points with what joins others joined, and the ends of the texts."""
    if joining[0] > 0:
        return folding.joiner.join(codes, joining, ends, texts)
    # There must be something to join, such as the space after another text.
    led = np.append(np.uint32(_SPACE), codes)
    codes, ends = folding.joiner.join(led, joining + 1, ends + 1, texts)
    return codes[1:], ends - 1


def _run_together(form: Normalised, parameters: Switches) -> Normalised:
    """Drop what stands between letters."""
    if parameters.join_letters:
        form = _dropped(form, white_space(form.codes, _apart(form)))
    if parameters.drop_symbols:
        form = _dropped(form, symbols_between(form.codes, _apart(form)))
    return form


def _apart(form: Normalised) -> NDArray[np.int64]:
    """Return where texts end, without empty ones that end where the next one begins."""
    return form.ends[form.ends < np.append(form.begins[1:], len(form.codes))]


def _dropped(form: Normalised, which: NDArray[np.bool_]) -> Normalised:
    """Drop some of the code points."""
    places = np.flatnonzero(which)
    if not len(places):
        return form
    begins, ends = (at - np.searchsorted(places, at) for at in (form.begins, form.ends))
    return Normalised(form.codes[~which], begins, ends)


def _join(texts: Sequence[str]) -> str:
    """Return all texts, each followed by a space."""
    return _SEPARATOR.join(texts) + _SEPARATOR


def _lengths(texts: Sequence[str]) -> NDArray[np.int64]:
    return np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))


def _spans(lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each of the joined texts begins and ends."""
    ends: NDArray[np.int64] = np.cumsum(lengths + 1) - 1
    return ends - lengths, ends


def _is_ascii_space(codes: Codes) -> NDArray[np.bool_]:
    one = codes.dtype.type
    spaces = (codes - one(9)) < 5  # noqa: PLR2004 -- tab to carriage return
    spaces |= (codes - one(28)) < 5  # noqa: PLR2004 -- the four separators, and the space
    return spaces


def _collapse(
    codes: Codes,
    spaces: NDArray[np.bool_],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> Normalised:
    """Drop spaces after a space, at the start of the buffer, and at both ends of each text.

    `spaces` marks the white space; in `codes` it is already `_SPACE`. The space
    after each text is part of a run, so a text that begins with spaces loses
    them all. A text that ends with spaces keeps the first, and its end is moved
    before it.
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
