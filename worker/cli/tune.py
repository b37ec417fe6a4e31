"""``neardup tune``: what a threshold, bands and rows find and cost on a sample."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

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
    sufficient_slots,
)
from lsh.exact import SetsOfTexts, ShingleSets, jaccard
from lsh.index import BucketRules, comparisons
from lsh.sketch import SKETCH_BITS
from lsh.spectrum import Spectrum, spectrum
from lsh.tuning import sought
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.labels import labelled_pairs, numbered
from worker.cli.pictures import draw_tuning, drawable
from worker.cli.progress_bar import share_progress
from worker.cli.rejects import Texts
from worker.cli.screen import print_json
from worker.cli.tune_tables import CURVE, FLOOR, Labels, Outlook, ToldApart, show
from worker.files.named_files import Argument
from worker.files.reading import Reading
from worker.offline.evaluation import clearly_above
from worker.settings.judging import MOST_BANDS
from worker.settings.model import Settings

_THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
_LABEL_THRESHOLDS = tuple(percent / 100 for percent in range(30, 100, 5))
_CHOICE = re.compile(r"\s*(\d{1,3})\s*[x×]\s*(\d{1,3})\s*")  # noqa: RUF001 -- as people write it
_TOGETHER = 1_000  # documents that are judged at a time


class _Sample:
    """The first documents that can be read: their texts, and their numbers by id."""

    def __init__(
        self, settings: Settings, files: Sequence[Argument], reading: Reading, most: int
    ) -> None:
        self.texts: list[str] = []
        self.numbers: dict[str, int] = {}
        texts = Texts(settings, files, reading)
        for named, text in texts.read(most):
            self.numbers[named] = len(self.texts)
            self.texts.append(text)
        texts.check()

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


def tune(
    settings: Settings,
    files: Sequence[Argument],
    reading: Reading,
    *,
    sample: int,
    compare: str | None,
    labels: Path | None,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Print what to expect of thresholds, and of bands and rows at the one that is set.

    Raises:
        CommandError: a file can't be read, the sample has too few documents, or a choice can't be.
    """
    if picture is not None:
        drawable(picture)
    pairs = None if labels is None else labelled_pairs(labels)
    similarity = settings.similarity
    others = _compared(compare, similarity.sought, similarity.slots)
    taken = _Sample(settings, files, reading, sample)
    sets = taken.sets(Fingerprinter(settings.parameters()))
    with share_progress("comparing all pairs", shown=sys.stderr.isatty()) as advance:
        seen = spectrum(sets, FLOOR, advance)
    if seen.documents < 2:  # noqa: PLR2004 -- a pair
        raise CommandError("fewer than two documents can be judged", EXIT_FAILED)
    parameters = settings.parameters()
    own = Choice(parameters.slots, parameters.bands, parameters.rows)
    choices = [
        (threshold, _chosen(settings, threshold))
        for threshold in sorted({*_THRESHOLDS} - {similarity.threshold})
    ]
    at = sum(threshold < similarity.threshold for threshold, _ in choices)
    choices[at:at] = [(similarity.threshold, each) for each in (own, *others)]
    outlooks = [_outlook(settings, taken, seen, *each) for each in choices]
    told = None
    if pairs is not None:
        told = _told_apart(settings, seen, sets, numbered(pairs, taken.numbers))
    if picture is not None:
        draw_tuning(picture, seen, choices)
    if as_json:
        listed = [outlook._asdict() for outlook in outlooks]
        labelled = None if told is None else told.as_dict()
        print_json(
            {
                "documents": seen.documents,
                "similarities": CURVE,
                "outlooks": listed,
                "labelled": labelled,
            }
        )
    else:
        show(seen, outlooks, told, contained=similarity.containment is not None)


def _compared(given: str | None, threshold: float, slots: int | None) -> list[Choice]:
    """Return the choices in ``BxR,BxR``."""
    choices = []
    for part in given.split(",") if given else []:
        found = _CHOICE.fullmatch(part)
        if found is None or "0" in found.groups():
            raise CommandError(f"--compare: got {part!r}, takes bands and rows, such as 18x7")
        bands, rows = int(found[1]), int(found[2])
        enough = sufficient_slots(threshold) if slots is None else slots
        if bands * rows > enough:
            raise CommandError(
                f"--compare: {bands} * {rows} is more than similarity.slots, {enough}"
            )
        choices.append(Choice(enough, bands, rows))
    return choices


def _chosen(settings: Settings, threshold: float) -> Choice:
    similarity = settings.similarity
    least = sought(threshold, similarity.containment, similarity.containment_ratio)
    return choose(least, similarity.slots, similarity.recall, MOST_BANDS)


def _outlook(
    settings: Settings, taken: _Sample, seen: Spectrum, threshold: float, choice: Choice
) -> Outlook:
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
        compared=_comparisons(settings, taken, threshold, choice) / seen.documents,
        compared_expected=seen.candidates(bands, rows),
        steepest=steepest(bands, rows),
        steepest_approximately=steepest_approximately(bands, rows),
        curve=detection(CURVE, threshold, *choice).tolist(),
    )


def _comparisons(settings: Settings, taken: _Sample, threshold: float, choice: Choice) -> int:
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
    return comparisons(taken.fingerprints(Fingerprinter(parameters)), rules)


def _told_apart(
    settings: Settings, seen: Spectrum, sets: ShingleSets, pairs: Sequence[tuple[int, int]]
) -> Labels:
    """Return how well each threshold tells labelled pairs from others.

    Raises:
        CommandError: there is no such pair.
    """
    if not pairs:
        raise CommandError("--labels: no pair names two documents of the sample", EXIT_FAILED)
    one, other = np.array(pairs, np.int64).T
    exact = jaccard(sets, one, other)
    rows = []
    for threshold in _LABEL_THRESHOLDS:
        choice = _chosen(settings, threshold)
        found = float(detection(exact, threshold, *choice).sum())
        others = max(seen.published(0.0, threshold, *choice) - found, 0.0)
        rows.append(ToldApart(threshold, found, others, 2 * found / (len(pairs) + found + others)))
    half, most = np.quantile(exact, [0.5, 0.1]).tolist()
    return Labels(len(pairs), half, most, rows)
