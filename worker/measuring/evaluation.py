"""Compares the verdicts of a run with exact similarities.

`Reading` collects documents and verdicts. `Truth` says how similar documents are; it depends
on the texts alone, so several runs on the same documents share one. `evaluate` compares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from lsh import Fingerprinter, Parameters, detection, pairwise_similarity, standard_error
from lsh.exact import Nearest, SetsOfTexts, ShingleSets, contained, jaccard, nearest_earlier
from lsh.tuning import CONTAINMENT_RATIO, sought
from worker.formats.base import DocumentFormat
from worker.offline.filter import Line, Verdict, text_of

CLEAR = 0.05
"""A document whose nearest is this far above the threshold must be found."""
BELOW = 0.1
"""A published pair this far below the threshold is wrong."""
_DIGITS = 9  # of a sum: 0.8 + 0.05 is 0.8500000000000001, and 17 of 20 shingles are 0.85
_STEP = 0.05
_LEAST_FLOOR = 0.05


def clearly_above(least: float) -> float:
    """Return the similarity, or share, CLEAR above one, at most 1."""
    return min(round(least + CLEAR, _DIGITS), 1.0)


def far_below(least: float) -> float:
    """Return the similarity, or share, BELOW one."""
    return round(least - BELOW, _DIGITS)


class Truth(NamedTuple):
    """What is true of n documents: the sets of their shingles, and the nearest earlier ones."""

    sets: ShingleSets
    nearest: Nearest


@dataclass(frozen=True, slots=True)
class Run:
    """What a filter made of n documents.

    duplicate, rejected: bool[n], the verdicts.
    later, earlier: int64[m], the published pairs.
    estimate: float64[m], their published similarities, rounded to 4 digits.
    contained: bool[m], which of them are published with a containment.
    comparisons: how many comparisons with candidates were made.
    """

    duplicate: NDArray[np.bool_]
    rejected: NDArray[np.bool_]
    later: NDArray[np.int64]
    earlier: NDArray[np.int64]
    estimate: NDArray[np.float64]
    contained: NDArray[np.bool_]
    comparisons: int


class Band(NamedTuple):
    """Documents whose nearest earlier one has a similarity in [low, high); 1 is a band by itself.

    predicted: how many of them should be duplicates, if nothing but the nearest one counted.
    """

    low: float
    high: float
    documents: int
    duplicates: int
    predicted: float


class Estimates(NamedTuple):
    """Estimates of the similarity of documents and their nearest earlier ones, in [low, high).

    bias: the mean of estimate - exact. error: the root of the mean of its square.
    expected: what that would be with independent slots.
    """

    low: float
    high: float
    pairs: int
    bias: float
    error: float
    expected: float


class Missed(NamedTuple):
    """Why clear duplicates were judged unique: the first cause that applies to the nearest pair.

    estimate: it is estimated below the threshold. bands: it shares no band.
    gone: neither, so no bucket had the earlier document any more, or it was absorbed.
    """

    estimate: int
    bands: int
    gone: int


class LabelledBand(NamedTuple):
    """Labelled pairs of an exact similarity in [low, high); 1 belongs to the last band."""

    low: float
    high: float
    pairs: int
    found: int


class Labelled(NamedTuple):
    """What became of pairs that somebody calls duplicates.

    published: the pair itself was published. found: its later document is a duplicate, of
    whichever document.
    """

    pairs: int
    published: int
    found: int
    bands: list[LabelledBand]

    def as_dict(self) -> dict[str, object]:
        """Return everything as plain values."""
        return {**self._asdict(), "bands": [band._asdict() for band in self.bands]}


class Evaluation(NamedTuple):
    """How right a run was. Numbers are of documents, unless they are of pairs.

    at_threshold, clear: documents with an earlier one at or above the threshold, and CLEAR above
        it; found_at_threshold, found_clear: those of them that are duplicates.
    comparisons: with candidates, of all documents.
    pairs: published ones; right_pairs: of similarity at or above the threshold; wrong_pairs:
        below the threshold minus BELOW. With a containment, pairs are also right that reach it, and
        only those are wrong that are by so much below both.
    containment: the least one that is published, or None. contained_pairs: those that are
        published for it alone; right_contained: those of them that reach it.
    contained: documents of which an earlier one has CLEAR more than that, and is no longer than
        `Reading.truth` was told; found_contained: those of them that are duplicates.
    """

    documents: int
    rejected: int
    duplicates: int
    threshold: float
    at_threshold: int
    found_at_threshold: int
    clear: int
    found_clear: int
    comparisons: int
    pairs: int
    right_pairs: int
    wrong_pairs: int
    missed: Missed
    bands: list[Band]
    estimates: list[Estimates]
    containment: float | None = None
    contained_pairs: int = 0
    right_contained: int = 0
    contained: int = 0
    found_contained: int = 0

    @property
    def recall(self) -> float | None:
        """Return the share of clear duplicates that were found; None if there are none."""
        return self.found_clear / self.clear if self.clear else None

    @property
    def precision(self) -> float | None:
        """Return the share of published pairs at or above the threshold; None without any."""
        return self.right_pairs / self.pairs if self.pairs else None

    def as_dict(self) -> dict[str, object]:
        """Return everything as plain values."""
        return {
            **self._asdict(),
            "recall": self.recall,
            "precision": self.precision,
            "missed": self.missed._asdict(),
            "bands": [band._asdict() for band in self.bands],
            "estimates": [row._asdict() for row in self.estimates],
        }


class Reading:
    """Collects documents in order, and the verdicts on them."""

    def __init__(
        self, format_: DocumentFormat, parameters: Parameters, *, exact: bool = True
    ) -> None:
        """Start without a document.

        exact: keep what `truth` needs; False for another run on documents with a known truth.
        """
        self._exact = exact
        self._format = format_
        self._fingerprinter = Fingerprinter(parameters)
        self._sets = SetsOfTexts()
        self._keys: list[NDArray[np.uint64]] = []
        self._sketches: list[NDArray[np.uint8]] = []
        self._numbers: dict[str, int] = {}
        self._duplicate: list[bool] = []
        self._rejected: list[bool] = []
        self._pairs: list[tuple[int, int, float, bool]] = []

    @property
    def numbers(self) -> Mapping[str, int]:
        """Return the documents' numbers by their ids; of equal ids, the last one's."""
        return self._numbers

    def add(self, lines: Sequence[Line], verdicts: Sequence[Verdict]) -> None:
        """Add documents, and a verdict on each. Texts that can't be read count as empty."""
        texts = []
        for line, verdict in zip(lines, verdicts, strict=True):
            number = len(self._duplicate)
            self._duplicate.append(verdict.kind == "duplicate")
            unread = verdict.kind in {"rejected", "deleted"}
            self._rejected.append(unread)
            texts.append("" if unread else text_of(self._format, line) or "")
            if verdict.kind == "duplicate":
                for match in msgspec.json.decode(verdict.matches):
                    earlier, estimate = self._numbers[match["id"]], match["similarity"]
                    self._pairs.append((number, earlier, estimate, "containment" in match))
            value = line.value if line.complete else b""
            named = self._format.identify(value, line.key) or line.key
            self._numbers[named.decode()] = number
        if self._exact:
            self._sets.add(self._fingerprinter.shingles(texts))
        prints = self._fingerprinter.fingerprint(texts)
        self._keys.append(prints.keys)
        self._sketches.append(prints.sketches)

    def run(self, comparisons: int = 0) -> Run:
        """Return the verdicts on all documents, for which so many comparisons were made."""
        columns = zip(*self._pairs, strict=True) if self._pairs else ((), (), (), ())
        later, earlier, estimate, contained = columns
        return Run(
            np.array(self._duplicate, np.bool_),
            np.array(self._rejected, np.bool_),
            np.array(later, np.int64),
            np.array(earlier, np.int64),
            np.array(estimate, np.float64),
            np.array(contained, np.bool_),
            comparisons,
        )

    def truth(
        self,
        threshold: float,
        progress: Callable[[float], None] | None = None,
        *,
        containment: float | None = None,
        ratio: float = CONTAINMENT_RATIO,
    ) -> Truth:
        """Return the truth about all documents, for thresholds from this one on.

        With a containment, also for containments CLEAR above it, in documents up to ``ratio`` times
        as long. The sets are forgotten here: this works once.
        """
        sets = self._sets.finish()
        floor = far_below(threshold)
        if containment is not None:
            floor = sought(floor, clearly_above(containment), ratio)
        return Truth(sets, nearest_earlier(sets, max(floor, _LEAST_FLOOR), progress, ratio=ratio))

    def estimated(
        self, left: NDArray[np.int64], right: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the estimated similarity of pairs, and whether they share a key."""
        keys, sketches = np.concatenate(self._keys), np.concatenate(self._sketches)
        shared = (keys[left] == keys[right]).any(axis=1)
        return pairwise_similarity(sketches[left], sketches[right]), shared


def evaluate(parameters: Parameters, reading: Reading, run: Run, truth: Truth) -> Evaluation:
    """Compare a run with the truth about its documents."""
    threshold = parameters.threshold
    similarity, document = truth.nearest.similarity, truth.nearest.document
    judged = np.flatnonzero(document >= 0)
    estimate, shared = reading.estimated(judged, document[judged])
    exact = similarity[judged]
    found = run.duplicate[judged]
    clear = exact >= clearly_above(threshold)
    published = jaccard(truth.sets, run.later, run.earlier)
    right, wrong = published >= threshold, published < far_below(threshold)
    alone = run.contained & (run.estimate < threshold)
    within = np.zeros(len(run.duplicate), np.bool_)
    if (least := parameters.containment) is not None:
        shares = contained(truth.sets, run.later, run.earlier, published)
        right |= shares >= least
        wrong &= shares < far_below(least)
        within = truth.nearest.containment >= clearly_above(least)
    missed, low = clear & ~found, estimate < threshold
    predicted = detection(exact, threshold, parameters.slots, parameters.bands, parameters.rows)
    edges = _edges(threshold, max(truth.nearest.floor, far_below(threshold)))
    others = ~run.rejected
    others[judged[exact >= edges[0]]] = False
    lowest = Band(0.0, edges[0], int(others.sum()), int((run.duplicate & others).sum()), 0.0)
    bands = [lowest]
    bands += [
        Band(low, high, int(part.sum()), int(found[part].sum()), float(predicted[part].sum()))
        for low, high, part in _parts(exact, edges)
    ]
    estimates = [
        _estimates(low, high, exact[part], estimate[part], parameters.slots)
        for low, high, part in _parts(exact, edges)
        if part.any()
    ]
    return Evaluation(
        documents=len(run.duplicate),
        rejected=int(run.rejected.sum()),
        duplicates=int(run.duplicate.sum()),
        threshold=threshold,
        at_threshold=int((exact >= threshold).sum()),
        found_at_threshold=int((found & (exact >= threshold)).sum()),
        clear=int(clear.sum()),
        found_clear=int((found & clear).sum()),
        comparisons=run.comparisons,
        pairs=len(published),
        right_pairs=int(right.sum()),
        wrong_pairs=int(wrong.sum()),
        missed=Missed(
            int((missed & low).sum()),
            int((missed & ~low & ~shared).sum()),
            int((missed & ~low & shared).sum()),
        ),
        bands=bands,
        estimates=estimates,
        containment=least,
        contained_pairs=int(alone.sum()),
        right_contained=int((alone & right).sum()),
        contained=int(within.sum()),
        found_contained=int((within & run.duplicate).sum()),
    )


def evaluate_labels(pairs: Sequence[tuple[int, int]], run: Run, truth: Truth) -> Labelled:
    """Compare a run with pairs of documents, given by their numbers, in any order."""
    ordered = np.sort(np.array(pairs, np.int64).reshape(-1, 2), axis=1)
    earlier, later = ordered[:, 0], ordered[:, 1]
    known = set(zip(run.earlier.tolist(), run.later.tolist(), strict=True))
    published = sum(pair in known for pair in zip(earlier.tolist(), later.tolist(), strict=True))
    found = run.duplicate[later]
    exact = jaccard(truth.sets, earlier, later)
    tenths = np.minimum((exact * 10 + 1e-9).astype(np.int64), 9)
    counts = np.bincount(tenths, minlength=10).tolist()
    hits = np.bincount(tenths[found], minlength=10).tolist()
    bands = [
        LabelledBand(at / 10, (at + 1) / 10, count, hit)
        for at, (count, hit) in enumerate(zip(counts, hits, strict=True))
        if count
    ]
    return Labelled(len(pairs), published, int(found.sum()), bands)


def _estimates(
    low: float,
    high: float,
    exact: NDArray[np.float64],
    estimate: NDArray[np.float64],
    slots: int,
) -> Estimates:
    difference = estimate - exact
    expected = standard_error(exact, slots, 8)
    return Estimates(
        low,
        high,
        len(exact),
        float(difference.mean()),
        float(np.sqrt((difference**2).mean())),
        float(np.sqrt((expected**2).mean())),
    )


def _edges(threshold: float, floor: float) -> list[float]:
    """Return the borders of bands of 0.05, the threshold being one of them."""
    steps = range(-round((threshold - floor) / _STEP), int((1 - threshold) / _STEP + 1e-9) + 1)
    inner = [round(threshold + step * _STEP, 4) for step in steps]
    return [*(edge for edge in inner if floor - 1e-9 <= edge < 1), 1.0]


def _parts(
    exact: NDArray[np.float64], edges: Sequence[float]
) -> list[tuple[float, float, NDArray[np.bool_]]]:
    """Return the bands, and which pairs are in each; the last one has those of similarity 1."""
    highs = [*edges[1:], np.inf]
    return [
        (low, min(high, 1.0), (exact >= low) & (exact < high))
        for low, high in zip(edges, highs, strict=True)
    ]
