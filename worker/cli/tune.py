"""``neardup tune``: what a threshold, bands and rows find and cost on a sample."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from lsh import Choice, Fingerprinter, detection, sufficient_slots
from lsh.spectrum import Spectrum, spectrum
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.options import (
    Config,
    Containment,
    Encoding,
    FileFormat,
    Files,
    FollowLinks,
    IdField,
    Json,
    Picture,
    TextField,
    Threshold,
)
from worker.cli.reading import Texts, for_files, labelled_pairs, numbered
from worker.cli.screen import print_json, screen, share_progress
from worker.measuring.evaluation import CLEAR
from worker.measuring.pictures import draw_tuning, drawable
from worker.measuring.tuning import (
    CURVE,
    FLOOR,
    Labels,
    Outlook,
    Sample,
    chosen,
    outlook,
    told_apart,
)
from worker.visible import counted

_THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
_CHOICE = re.compile(r"\s*(\d{1,3})\s*[x×]\s*(\d{1,3})\s*")  # noqa: RUF001 -- as people write it
_LEVELS = " ▁▂▃▄▅▆▇█"
_COLUMNS = 40  # of a drawn curve, from similarity 0 to 1
_TICKS = 5


def tune(
    files: Files,
    *,
    sample: Annotated[
        int,
        typer.Option(metavar="N", min=2, help="Look at the first N documents."),
    ] = 5_000,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="18x7,16x8",
            help="Bands and rows to compare with the ones chosen for the threshold.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="PAIRS",
            help="Pairs of ids that somebody calls duplicates, to see which threshold tells them"
            " from others: a line for each, separated by a tab.",
        ),
    ] = None,
    picture: Picture = None,
    threshold: Threshold = None,
    containment: Containment = None,
    as_json: Json = False,
    config: Config = None,
    format_: FileFormat = None,
    encoding: Encoding = None,
    follow_links: FollowLinks = False,
    id_field: IdField = None,
    text_field: TextField = None,
) -> None:
    """Show what thresholds, bands and rows would find and cost on your documents.

    Compute the exact similarities of a sample, and apply the S-curves to them.
    """
    settings, reading = for_files(
        config,
        format_,
        encoding,
        follow_links=follow_links,
        similarity__threshold=threshold,
        similarity__containment=containment,
        documents__id_field=id_field,
        documents__text_fields=text_field or None,
    )
    if picture is not None:
        drawable(picture)
    pairs = None if labels is None else labelled_pairs(labels)
    similarity = settings.similarity
    others = _compared(compare, similarity.sought, similarity.slots)
    texts = Texts(settings, files, reading)
    taken = Sample(texts.read(sample))
    texts.check()
    sets = taken.sets(Fingerprinter(settings.parameters()))
    with share_progress("comparing all pairs", shown=sys.stderr.isatty()) as advance:
        seen = spectrum(sets, FLOOR, advance)
    if seen.documents < 2:  # noqa: PLR2004 -- a pair
        raise CommandError("fewer than two documents can be judged", EXIT_FAILED)
    parameters = settings.parameters()
    own = Choice(parameters.slots, parameters.bands, parameters.rows)
    choices = [
        (threshold, chosen(settings, threshold))
        for threshold in sorted({*_THRESHOLDS} - {similarity.threshold})
    ]
    at = sum(threshold < similarity.threshold for threshold, _ in choices)
    choices[at:at] = [(similarity.threshold, each) for each in (own, *others)]
    outlooks = [outlook(settings, taken, seen, *each) for each in choices]
    told = None
    if pairs is not None:
        known = numbered(pairs, taken.numbers)
        if not known:
            raise CommandError("--labels: no pair names two documents of the sample", EXIT_FAILED)
        told = told_apart(settings, seen, sets, known)
    if picture is not None:
        draw_tuning(picture, seen, choices)
    if as_json:
        listed = [each._asdict() for each in outlooks]
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
        _show(seen, outlooks, told, contained=similarity.containment is not None)


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


def _show(
    seen: Spectrum, outlooks: Sequence[Outlook], labels: Labels | None, *, contained: bool
) -> None:
    """Print what to expect; ``contained``: documents are also found by their containment."""
    console = screen()
    near = len(seen.nearest)
    console.print(
        f"{counted(seen.documents, 'document')}, {near:,} of them with an earlier one at {FLOOR:g}"
        " or above. Expected:\n"
    )
    console.print(_outlooks(outlooks))
    console.print(
        "\nerror: standard error of an estimate at the threshold.\n"
        f"clear: documents with an earlier one {CLEAR:g} above the threshold; found: of these.\n"
        "precision: share of published pairs that are at or above the threshold.\n"
        "compared: candidates for a document with your seed; any seed: the mean of all.\n"
        + (
            "similarity.containment is set, so slots and bands are those that it needs.\n"
            "All else here goes by similarity alone.\n"
            if contained
            else ""
        )
        + "\n"
        "Share of pairs that are published, by similarity, and how many pairs there are:\n"
    )
    console.print(_curves(seen, outlooks))
    console.print(
        "\nsteepest: where the share of pairs with a band in common rises fastest; next to\n"
        "it the usual approximation, (1/b)^(1/r). Half to two thirds of the pairs there\n"
        "share a band, so neither is a threshold to choose bands by: neardup takes those\n"
        "that meet nearly all pairs at the threshold."
    )
    if labels is not None:
        _show_labels(console, labels)


def _outlooks(outlooks: Sequence[Outlook]) -> Table:
    headings = ("threshold", "slots", "bands", "error", "duplicates", "clear", "found")
    table = _table(*headings, "precision", "compared", "any\nseed")
    for each in outlooks:
        table.add_row(
            f"{each.threshold:g}",
            f"{each.slots}",
            f"{each.bands} x {each.rows}",
            f"{each.error:.3f}",
            f"{each.duplicates:,.0f}",
            f"{each.clear:,}",
            "-" if each.found is None else f"{each.found:.2%}",
            "-" if each.precision is None else f"{each.precision:.1%}",
            _few(each.compared),
            _few(each.compared_expected),
        )
    return table


def _few(number: float) -> str:
    """Return a number in few cells."""
    return f"{number:,.2f}" if number < 100 else f"{number:,.0f}"  # noqa: PLR2004


def _curves(seen: Spectrum, outlooks: Sequence[Outlook]) -> Table:
    table = _table("threshold", "bands", "steepest", "(1/b)^(1/r)")
    width = _COLUMNS // _TICKS
    axis = "".join(f"{tick / _TICKS:<{width}g}" for tick in range(_TICKS)) + "1"
    table.add_column(axis, no_wrap=True)
    middles = (np.arange(_COLUMNS) + 0.5) / _COLUMNS
    for each in outlooks:
        shares = detection(middles, each.threshold, each.slots, each.bands, each.rows)
        table.add_row(
            f"{each.threshold:g}",
            f"{each.bands} x {each.rows}",
            f"{each.steepest:.3f}",
            f"{each.steepest_approximately:.3f}",
            _drawn(shares),
        )
    pairs, _ = np.histogram(seen.similarity, _COLUMNS, (0.0, 1.0), weights=seen.weight)
    logs = np.log1p(pairs)
    table.add_row("", "", "", "pairs, log", _drawn(logs / max(float(logs.max()), 1.0)))
    return table


def _drawn(shares: NDArray[np.float64]) -> str:
    """Return a line of blocks. Whatever is above zero can be seen from a hundredth on."""
    levels = np.ceil(shares * (len(_LEVELS) - 1) - 0.08)
    return "".join(_LEVELS[int(level)] for level in np.maximum(levels, 0))


def _show_labels(console: Console, labels: Labels) -> None:
    console.print(
        f"\n{counted(labels.pairs, 'labelled pair')}: half of them at {labels.half:.2f} or above,"
        f" nine in\nten at {labels.most:.2f} or above. Expected:\n"
    )
    table = _table("threshold", "labelled pairs published", "share", "others published", "F1")
    for each in labels.thresholds:
        table.add_row(
            f"{each.threshold:g}",
            f"{each.found:,.0f}",
            f"{each.found / labels.pairs:.1%}",
            f"{each.others:,.0f}",
            f"{each.f1:.3f}",
        )
    console.print(table)
    console.print(
        "\nF1: the harmonic mean of the share of labelled pairs that are published, and of\n"
        "the share of published pairs that are labelled. It is highest at"
        f" {labels.best.threshold:g}."
    )


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE, padding=0, show_edge=False)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
