"""What thresholds, bands and rows would find and cost, expected on a sample of documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lsh import (
    Choice,
    Fingerprinter,
    Fingerprints,
    choose,
    detection,
    standard_error,
    steepest,
    steepest_approximately,
)
from lsh.exact import SetsOfTexts, ShingleSets, jaccard
from lsh.index import BucketRules, comparisons
from lsh.sketch import SKETCH_BITS
from lsh.spectrum import Spectrum
from lsh.tuning import sought
from worker.measuring.evaluation import clearly_above
from worker.settings.judging import MOST_BANDS
from worker.settings.model import Settings

FLOOR = 0.2
"""The similarity from which on all pairs of the sample are known."""
CURVE = (0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
"""The similarities of `Outlook.curve`."""
_LABEL_THRESHOLDS = tuple(percent / 100 for percent in range(30, 100, 5))
_TOGETHER = 1_000  # documents that are judged at a time


class Outlook(NamedTuple):
    """What to expect of a choice on the sample.

    error: the standard error of an estimate at the threshold.
    clear: documents with an earlier one CLEAR above the threshold; found: the expected share of
        them that is a duplicate, None if there are none.
    duplicates: the expected number of duplicates.
    precision: the share of published pairs that is expected to be at or above the threshold; None
        if no pair is.
    compared: comparisons for a document, counted with the seed that is set; compared_expected:
        how many there are on average over all seeds, if nothing but equal sets is absorbed.
    steepest, steepest_approximately: where the curve of sharing a band is steepest.
    curve: the probabilities that a pair of each similarity in CURVE is published.
    """

    threshold: float
    slots: int
    bands: int
    rows: int
    error: float
    clear: int
    found: float | None
    duplicates: float
    precision: float | None
    compared: float
    compared_expected: float
    steepest: float
    steepest_approximately: float
    curve: list[float]


class ToldApart(NamedTuple):
    """What a threshold makes of labelled pairs and of others.

    found: labelled pairs that are expected to be published; others: other pairs that are.
    f1: the harmonic mean of the shares of labelled pairs that are published, and of published
        pairs that are labelled.
    """

    threshold: float
    found: float
    others: float
    f1: float


class Labels(NamedTuple):
    """Labelled pairs. Half of them have the similarity `half` or more, 90 % `most` or more."""

    pairs: int
    half: float
    most: float
    thresholds: list[ToldApart]

    @property
    def best(self) -> ToldApart:
        """Return the threshold with the highest F1, the lowest one of several."""
        return max(self.thresholds, key=lambda each: each.f1)

    def as_dict(self) -> dict[str, object]:
        """Return everything as plain values."""
        listed = [each._asdict() for each in self.thresholds]
        return {**self._asdict(), "thresholds": listed, "best": self.best.threshold}


class Sample:
    """The first documents that can be read: their texts, and their numbers by id."""

    def __init__(self, documents: Iterable[tuple[str, str]]) -> None:
        """Take the ids and texts."""
        self.texts: list[str] = []
        self.numbers: dict[str, int] = {}
        for named, text in documents:
            self.numbers[named] = len(self.texts)
            self.texts.append(text)

    def sets(self, fingerprinter: Fingerprinter) -> ShingleSets:
        """Return the sets of shingles of all texts."""
        sets = SetsOfTexts()
        for texts in self._parts():
            sets.add(fingerprinter.shingles(texts))
        return sets.finish()

    def fingerprints(self, fingerprinter: Fingerprinter) -> Iterator[Fingerprints]:
        """Yield the fingerprints of all texts, part by part."""
        return map(fingerprinter.fingerprint, self._parts())

    def _parts(self) -> Iterator[list[str]]:
        for low in range(0, len(self.texts), _TOGETHER):
            yield self.texts[low : low + _TOGETHER]


def chosen(settings: Settings, threshold: float) -> Choice:
    """Return the slots, bands and rows that settings mean at a threshold."""
    similarity = settings.similarity
    least = sought(threshold, similarity.containment, similarity.containment_ratio)
    return choose(least, similarity.slots, similarity.recall, MOST_BANDS)


def outlook(
    settings: Settings, sample: Sample, seen: Spectrum, threshold: float, choice: Choice
) -> Outlook:
    """Return what to expect of a choice on a sample."""
    slots, bands, rows = choice
    clear, found = seen.found(clearly_above(threshold), threshold, *choice)
    pairs = seen.published(0.0, threshold, *choice)
    return Outlook(
        threshold=threshold,
        slots=slots,
        bands=bands,
        rows=rows,
        error=float(standard_error(threshold, slots, SKETCH_BITS)),
        clear=clear,
        found=found / clear if clear else None,
        duplicates=seen.found(FLOOR, threshold, *choice)[1],
        precision=seen.published(threshold, threshold, *choice) / pairs if pairs else None,
        compared=_comparisons(settings, sample, threshold, choice) / seen.documents,
        compared_expected=seen.candidates(bands, rows),
        steepest=steepest(bands, rows),
        steepest_approximately=steepest_approximately(bands, rows),
        curve=detection(CURVE, threshold, *choice).tolist(),
    )


def _comparisons(settings: Settings, sample: Sample, threshold: float, choice: Choice) -> int:
    """Return how many comparisons a filter makes for the sample, with the seed that is set."""
    slots, bands, rows = choice
    parameters = replace(
        settings.parameters(), threshold=threshold, slots=slots, bands=bands, rows=rows
    )
    similarity = settings.similarity.model_copy(update={"threshold": threshold})
    rules = BucketRules(
        threshold=threshold,
        absorb=settings.model_copy(update={"similarity": similarity}).absorb,
        capacity=settings.index.bucket_capacity,
    )
    return comparisons(sample.fingerprints(Fingerprinter(parameters)), rules)


def told_apart(
    settings: Settings, seen: Spectrum, sets: ShingleSets, pairs: Sequence[tuple[int, int]]
) -> Labels:
    """Return how well each threshold tells labelled pairs from others."""
    one, other = np.array(pairs, np.int64).T
    exact = jaccard(sets, one, other)
    rows = []
    for threshold in _LABEL_THRESHOLDS:
        choice = chosen(settings, threshold)
        found = float(detection(exact, threshold, *choice).sum())
        others = max(seen.published(0.0, threshold, *choice) - found, 0.0)
        rows.append(ToldApart(threshold, found, others, 2 * found / (len(pairs) + found + others)))
    half, most = np.quantile(exact, [0.5, 0.1]).tolist()
    return Labels(len(pairs), half, most, rows)
