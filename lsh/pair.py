"""Compares two texts: how similar they are, and what an index would see of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lsh.columns import text_of
from lsh.containment import MOST_ERROR, containment_of, error_of
from lsh.measures import windows
from lsh.parameters import normaliser
from lsh.sketch import SKETCH_BITS, similarity
from lsh.tuning import candidate_chance, standard_error

if TYPE_CHECKING:
    from lsh.fingerprint import Fingerprinter


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts, compared.

    shingles: how many shingles each has, including repeats.
    distinct: how many distinct shingles each has; `common` of them are in both.
    similarity: the Jaccard similarity of the shingles, computed without hashes.
    estimate: the same, as the sketches estimate it; an index knows only this.
    error: the standard error of an estimate at this similarity.
    bands: the numbers of the bands that the texts share.
    chance: the probability that texts of this similarity share a band.
    same_text: the texts are equal once they are normalised.
    threshold: the similarity from which texts are near duplicates.
    contained: the share of each text that is in the other one, computed without hashes.
    contained_estimates: the same, as the sketches estimate it. contained_errors: the standard
        errors of these estimates.
    left_out: the lines of each text that were left out because they are listed, in their order.
    containment: the share from which a text is a duplicate of one that came before; None: it
        doesn't count.
    """

    shingles: tuple[int, int]
    distinct: tuple[int, int]
    common: int
    similarity: float
    estimate: float
    error: float
    bands: tuple[int, ...]
    chance: float
    same_text: bool
    threshold: float
    contained: tuple[float, float]
    contained_estimates: tuple[float, float]
    contained_errors: tuple[float, float]
    left_out: tuple[tuple[str, ...], tuple[str, ...]]
    containment: float | None

    @property
    def candidates(self) -> bool:
        """Return whether an index compares the two: they share a band, or are the same text."""
        return bool(self.bands) or self.same_text

    @property
    def duplicates(self) -> bool:
        """Return whether an index that holds one of them finds that the other is a duplicate.

        With a containment, it may do so in one order only; see `duplicate_of_the_other`.
        """
        return any(self.duplicate_of_the_other)

    @property
    def duplicate_of_the_other(self) -> tuple[bool, bool]:
        """Return of each text whether it is a duplicate if it comes after the other one."""
        similar, least = self.estimate >= self.threshold, self.containment
        one, other = (
            self.candidates
            and (similar or (least is not None and share >= least and error <= MOST_ERROR))
            for share, error in zip(self.contained_estimates, self.contained_errors, strict=True)
        )
        return one, other


def compare(fingerprinter: Fingerprinter, left: str, right: str) -> Pair:
    """Return the comparison of two texts.

    Raises ValueError if nothing is left of a text once it is normalised.
    """
    parameters = fingerprinter.parameters
    prints = fingerprinter.fingerprint([left, right])
    if prints.blank.any():
        raise ValueError("nothing is left of a text once it is normalised")
    texts = fingerprinter.normalise(left), fingerprinter.normalise(right)
    one, other = windows(texts[0], parameters), windows(texts[1], parameters)
    common = len(one & other)
    exact = common / (len(one) + len(other) - common)
    estimate = float(similarity(prints.sketches[0], prints.sketches[1:])[0])
    sizes = np.array([len(one), len(other)])
    pairs = np.full(2, estimate), sizes, sizes[::-1], parameters.slots
    within, errors = containment_of(*pairs).tolist(), error_of(*pairs).tolist()
    counts = np.diff(fingerprinter.shingles([left, right]).starts).tolist()
    shared = np.flatnonzero(prints.keys[0, :-1] == prints.keys[1, :-1])
    return Pair(
        shingles=(counts[0], counts[1]),
        distinct=(len(one), len(other)),
        common=common,
        similarity=exact,
        estimate=estimate,
        error=float(standard_error(exact, parameters.slots, SKETCH_BITS)),
        bands=tuple(shared.tolist()),
        chance=float(candidate_chance(exact, parameters.bands, parameters.rows)),
        same_text=texts[0] == texts[1],
        threshold=parameters.threshold,
        contained=(common / len(one), common / len(other)),
        contained_estimates=(within[0], within[1]),
        contained_errors=(errors[0], errors[1]),
        left_out=(
            tuple(normaliser(parameters).left_out(text_of(left))),
            tuple(normaliser(parameters).left_out(text_of(right))),
        ),
        containment=parameters.containment,
    )
