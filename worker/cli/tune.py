"""``neardup tune``: what a threshold, bands and rows find and cost on a sample."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.table import Table

from lsh import Choice, Fingerprinter, choose, detection, sufficient_slots
from lsh.nearest import SetsOfTexts
from lsh.spectrum import Spectrum, spectrum
from worker.bus import Record
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.evaluate_picture import drawable
from worker.cli.inputs import Inputs
from worker.cli.progress import share_progress
from worker.cli.screen import print_json, screen
from worker.cli.tune_picture import draw
from worker.formats.base import DocumentFormat, Unreadable
from worker.formats.choice import document_format
from worker.offline import Line
from worker.offline.evaluation import CLEAR
from worker.settings import Settings
from worker.settings.sections import MOST_BANDS

__all__ = ["tune"]

_FLOOR = 0.2
_THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
_CURVE = (0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
_CHOICE = re.compile(r"\s*(\d{1,3})\s*[x×]\s*(\d{1,3})\s*")  # noqa: RUF001 -- as people write it


class Outlook(NamedTuple):
    """What to expect of a choice on the sample.

    clear: documents with an earlier one CLEAR above the threshold; found: the expected share of
        them that is a duplicate, None if there are none.
    duplicates: the expected number of duplicates.
    compared: the expected number of comparisons for a document.
    curve: the probabilities that a pair of each similarity in _CURVE is published.
    """

    threshold: float
    slots: int
    bands: int
    rows: int
    clear: int
    found: float | None
    duplicates: float
    compared: float
    curve: list[float]


def tune(
    settings: Settings,
    files: Sequence[Path],
    *,
    sample: int,
    compare: str | None,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Print what to expect of thresholds, and of bands and rows at the one that is set.

    Raises:
        CommandError: a file can't be read, the sample has too few documents, or a choice can't be.
    """
    if picture is not None:
        drawable(picture)
    similarity = settings.similarity
    others = _compared(compare, similarity.threshold, similarity.slots)
    sets = _sample(settings, files, sample)
    with share_progress("comparing all pairs", shown=sys.stderr.isatty()) as advance:
        seen = spectrum(sets.finish(), _FLOOR, advance)
    if seen.documents < 2:  # noqa: PLR2004 -- a pair
        raise CommandError("fewer than two documents can be judged", EXIT_FAILED)
    parameters = settings.parameters()
    own = Choice(parameters.slots, parameters.bands, parameters.rows)
    recall, slots = similarity.recall, similarity.slots
    outlooks = [
        _outlook(seen, threshold, choose(threshold, slots, recall, MOST_BANDS))
        for threshold in sorted({*_THRESHOLDS} - {similarity.threshold})
    ]
    at = sum(outlook.threshold < similarity.threshold for outlook in outlooks)
    outlooks[at:at] = [_outlook(seen, similarity.threshold, each) for each in (own, *others)]
    if picture is not None:
        choices = [(each.threshold, Choice(each.slots, each.bands, each.rows)) for each in outlooks]
        draw(picture, seen, choices)
    if as_json:
        listed = [outlook._asdict() for outlook in outlooks]
        print_json({"documents": seen.documents, "similarities": _CURVE, "outlooks": listed})
    else:
        _show(seen, outlooks)


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


def _sample(settings: Settings, files: Sequence[Path], most: int) -> SetsOfTexts:
    """Return the shingles of the first documents that can be read."""
    documents = document_format(settings)
    fingerprinter = Fingerprinter(settings.parameters())
    sets, left = SetsOfTexts(), most
    with Inputs(files, settings.documents) as inputs:
        for chunk in inputs.chunks(settings.limits.record_bytes):
            texts = [text for line in chunk if (text := _text(documents, line)) is not None]
            sets.add(fingerprinter.shingles(texts[:left]))
            left -= len(texts[:left])
            if not left:
                break
    return sets


def _text(documents: DocumentFormat, line: Line) -> str | None:
    if not line.complete:
        return None
    try:
        return documents.read(Record("", 0, 0, -1, line.key, line.value)).text
    except Unreadable:
        return None


def _outlook(seen: Spectrum, threshold: float, choice: Choice) -> Outlook:
    clear, found = seen.found(min(threshold + CLEAR, 1.0), threshold, *choice)
    return Outlook(
        threshold,
        *choice,
        clear,
        found / clear if clear else None,
        seen.found(_FLOOR, threshold, *choice)[1],
        seen.candidates(choice.bands, choice.rows),
        detection(_CURVE, threshold, *choice).tolist(),
    )


def _show(seen: Spectrum, outlooks: Sequence[Outlook]) -> None:
    console = screen()
    near = len(seen.nearest)
    console.print(
        f"{seen.documents:,} documents, of which {near:,} have an earlier one at {_FLOOR:g} or"
        " above. Expected on these:"
    )
    table = Table(box=box.SIMPLE, pad_edge=False)
    headings = ("threshold", "slots", "bands", "duplicates", "clear", "found", "compared")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for each in outlooks:
        table.add_row(
            f"{each.threshold:g}",
            f"{each.slots}",
            f"{each.bands} x {each.rows}",
            f"{each.duplicates:,.0f}",
            f"{each.clear:,}",
            "-" if each.found is None else f"{each.found:.2%}",
            f"{each.compared:,.2f}",
        )
    console.print(table)
    console.print(
        f"clear: documents with an earlier one {CLEAR:g} above the threshold; found: of these."
        " compared: candidates for a document.\nShare of pairs that are published, by similarity:"
    )
    curves = Table(box=box.SIMPLE, pad_edge=False)
    for heading in ("threshold", "bands", *(f"{similarity:g}" for similarity in _CURVE)):
        curves.add_column(heading, justify="right", no_wrap=True)
    for each in outlooks:
        shares = [f"{share:.3f}" for share in each.curve]
        curves.add_row(f"{each.threshold:g}", f"{each.bands} x {each.rows}", *shares)
    console.print(curves)
