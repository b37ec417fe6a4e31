"""Compares two texts as the index does, and marks what differs."""

from __future__ import annotations

import numpy as np

from lsh import Fingerprinter, compare
from lsh.sketch import SKETCH_BITS, similarity
from lsh.tuning import standard_error
from worker.differences import Span, differences
from worker.serve.views import Compared, Comparison

_EXACT_CHARACTERS = 100_000
"""Longer texts are compared by their fingerprints alone: all shingles of them take much memory."""
_BLANK = "nothing is left of a text once it is normalised"


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
