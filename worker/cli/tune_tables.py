"""What ``neardup tune`` prints in 80 columns: tables, and curves drawn in a line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from lsh import detection
from lsh.spectrum import Spectrum
from worker.cli.screen import screen
from worker.offline.evaluation import CLEAR
from worker.visible import counted

FLOOR = 0.2
"""The similarity from which on all pairs of the sample are known."""
CURVE = (0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
"""The similarities of `Outlook.curve`."""

_LEVELS = " ▁▂▃▄▅▆▇█"
_COLUMNS = 40  # of a drawn curve, from similarity 0 to 1
_TICKS = 5


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


def show(
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
