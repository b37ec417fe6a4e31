"""Compares two texts as the index does, and marks what differs."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import numpy as np

from lsh import Fingerprinter, compare
from lsh.sketch import SKETCH_BITS, similarity
from lsh.tuning import standard_error
from worker.differences import Span, differences

_EXACT_CHARACTERS = 100_000
"""Longer texts are compared by their fingerprints alone: all shingles of them take much memory."""
_BLANK = "nothing is left of a text once it is normalised"


Sequence = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
"""The number of a document."""


class Side(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One side of a comparison: a text, or the document with a sequence number."""

    text: str | msgspec.UnsetType = msgspec.UNSET
    sequence: Sequence | msgspec.UnsetType = msgspec.UNSET


class Right(Side, frozen=True, forbid_unknown_fields=True):
    """The right side; also the document with the id ``match`` that the left one matches."""

    match: str | msgspec.UnsetType = msgspec.UNSET


class Compare(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two texts to compare."""

    left: Side
    right: Right


class Compared(msgspec.Struct, frozen=True):
    """One of two documents. ``gone`` says why there is no text of it."""

    id: str | None
    sequence: int | None
    source: str | None
    time: int | None
    characters: int
    gone: str | None = None


class Comparison(msgspec.Struct, frozen=True):
    """Two documents side by side.

    ``spans`` are the two texts, or nothing if one is gone or can't be judged; ``reason`` says why
    then. ``cut``: they are parts of longer texts. ``coarse``: there are so many differences that
    neighbours were judged together: each of them counts if one does. ``similarity`` is exact, and
    None for texts that are too long for that; ``estimate`` is what the index knows, and ``error``
    its standard error. ``shared`` are the numbers of the bands that both have, of ``bands`` of
    ``rows`` slots each.
    ``left_out``: how many listed lines (`similarity.boilerplate`) of each weren't compared.
    """

    left: Compared
    right: Compared
    spans: list[Span]
    cut: bool
    coarse: bool
    reason: str | None
    verdict: Literal["unique", "duplicate"] | None
    threshold: float
    similarity: float | None
    estimate: float | None
    error: float | None
    shared: list[int]
    bands: int
    rows: int
    same_text: bool
    left_out: tuple[int, int] = (0, 0)


class Comparer:
    """Compares texts by an application's parameters. Thread-safe."""

    def __init__(self, fingerprinter: Fingerprinter) -> None:
        """Take what makes fingerprints."""
        self._fingerprinter = fingerprinter

    def compared(
        self, sides: tuple[Compared, Compared], texts: tuple[str | None, str | None]
    ) -> Comparison:
        """Return a comparison of two texts; a side whose text is None is gone."""
        left, right = texts
        if left is None or right is None:
            gone = sides[0].gone or sides[1].gone
            return self._without(sides, gone or "there is nothing to compare with")
        if self._fingerprinter.fingerprint([left, right]).blank.any():
            return self._without(sides, _BLANK)
        if max(len(left), len(right)) > _EXACT_CHARACTERS:
            return self._of_long(sides, left, right)
        parameters = self._fingerprinter.parameters
        pair = compare(self._fingerprinter, left, right)
        spans, cut, coarse = self._spans(left, right)
        return Comparison(
            *sides,
            spans,
            cut,
            coarse,
            None,
            "duplicate" if pair.duplicates else "unique",
            pair.threshold,
            round(pair.similarity, 4),
            round(pair.estimate, 4),
            round(pair.error, 4),
            list(pair.bands),
            parameters.bands,
            parameters.rows,
            pair.same_text,
            (len(pair.left_out[0]), len(pair.left_out[1])),
        )

    def _spans(self, left: str, right: str) -> tuple[list[Span], bool, bool]:
        """Return two texts as spans, and whether these are parts of longer texts, and coarse."""
        found = differences(left, right, self._fingerprinter.normalise)
        return list(found.spans), found.begins_later or found.ends_earlier, found.coarse

    def _of_long(self, sides: tuple[Compared, Compared], left: str, right: str) -> Comparison:
        made = self._fingerprinter
        prints = made.fingerprint([left, right])
        estimate = float(similarity(prints.sketches[0], prints.sketches[1:])[0])
        equal = prints.keys[0] == prints.keys[1]
        parameters = made.parameters
        spans, cut, coarse = self._spans(left, right)
        similar = estimate >= parameters.threshold and bool(equal.any())
        return Comparison(
            *sides,
            spans,
            cut=cut,
            coarse=coarse,
            reason=None,
            verdict="duplicate" if similar else "unique",
            threshold=parameters.threshold,
            similarity=None,
            estimate=round(estimate, 4),
            error=round(float(standard_error(estimate, parameters.slots, SKETCH_BITS)), 4),
            shared=np.flatnonzero(equal[:-1]).tolist(),
            bands=parameters.bands,
            rows=parameters.rows,
            same_text=bool(equal[-1]),
        )

    def _without(self, sides: tuple[Compared, Compared], reason: str) -> Comparison:
        parameters = self._fingerprinter.parameters
        return Comparison(
            *sides,
            [],
            cut=False,
            coarse=False,
            reason=reason,
            verdict=None,
            threshold=parameters.threshold,
            similarity=None,
            estimate=None,
            error=None,
            shared=[],
            bands=parameters.bands,
            rows=parameters.rows,
            same_text=False,
        )
