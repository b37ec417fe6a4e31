"""The pictures of ``neardup evaluate`` and ``tune``. Need the extra ``neardup[plots]``."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from lsh import Choice, Parameters, candidate_chance, detection, steepest
from lsh.spectrum import Spectrum
from worker.files.errors import FileError, of_file
from worker.measuring.evaluation import Evaluation, Reading, Truth
from worker.visible import counted

_SUFFIXES = (".pdf", ".png", ".svg")


def drawable(path: Path) -> None:
    """Check, before any work is done, that a picture can be drawn into this file.

    Raises:
        FileError: matplotlib is not installed, or the file can't be written.
    """
    if find_spec("matplotlib") is None:
        raise FileError("--picture needs matplotlib: pip install 'neardup[plots]'")
    if path.suffix not in _SUFFIXES:
        raise FileError(f"--picture: {path}: must end in {', '.join(_SUFFIXES)}")
    if not path.absolute().parent.is_dir():
        raise FileError(f"--picture: {path}: no such directory")


def draw_evaluation(
    path: Path, parameters: Parameters, reading: Reading, truth: Truth, found: Evaluation
) -> None:
    """Draw what was found by similarity, and estimates against exact similarities.

    Raises:
        FileError: the file can't be written.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 -- an extra, and slow to load

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    curve = np.linspace(truth.nearest.floor, 1, 200)
    slots, bands, rows = parameters.slots, parameters.bands, parameters.rows
    met = candidate_chance(curve, bands, rows)
    left.plot(curve, met, "--", color="0.6", label="share a band")
    left.plot(
        curve,
        detection(curve, found.threshold, slots, bands, rows),
        color="tab:blue",
        label="found, as predicted",
    )
    known = [band for band in found.bands if band.low and band.documents]
    left.plot(
        [(band.low + band.high) / 2 for band in known],
        [band.duplicates / band.documents for band in known],
        "o",
        color="tab:red",
        label="found",
    )
    left.set(xlabel="exact similarity to the nearest earlier document", ylabel="share of documents")
    later = np.flatnonzero(truth.nearest.document >= 0)
    estimate, _ = reading.estimated(later, truth.nearest.document[later])
    right.plot(
        truth.nearest.similarity[later], estimate, ".", markersize=3, alpha=0.4, color="tab:blue"
    )
    right.plot(curve, curve, color="0.6")
    right.axhline(found.threshold, linestyle=":", color="0.6")
    right.set(xlabel="exact similarity", ylabel="estimate")
    for axes in (left, right):
        axes.axvline(found.threshold, linestyle=":", color="0.6")
    left.legend(loc="lower right")
    figure.suptitle(
        f"{counted(found.documents, 'document')}, threshold {found.threshold:g}, {slots} slots,"
        f" {bands} bands of {rows}"
    )
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        path.unlink(missing_ok=True)  # Half of it may be there.
        raise of_file(error, f"--picture: {path}") from None


_BINS = 50


def draw_tuning(path: Path, seen: Spectrum, choices: Sequence[tuple[float, Choice]]) -> None:
    """Draw the curves of choices, each with its threshold, above the similarities of the sample.

    Raises:
        FileError: the file can't be written.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 -- an extra, and slow to load

    figure = Figure(figsize=(8, 7), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    grid = np.linspace(0, 1, 401)
    for number, (threshold, choice) in enumerate(choices):
        colour = f"C{number}"
        label = f"t = {threshold:g}, {choice.bands} x {choice.rows}, {choice.slots} slots"
        upper.plot(grid, detection(grid, threshold, *choice), color=colour, label=label)
        met = candidate_chance(grid, choice.bands, choice.rows)
        upper.plot(grid, met, ":", color=colour)
        at = steepest(choice.bands, choice.rows)
        upper.plot(at, candidate_chance(at, choice.bands, choice.rows), ".", color=colour)
    upper.set(ylabel="share of pairs: published (solid),\nsharing a band (dotted; dot: steepest)")
    upper.legend(loc="center left", fontsize="small")
    pairs, edges = np.histogram(seen.similarity, _BINS, (0.0, 1.0), weights=seen.weight)
    lower.stairs(pairs, edges, color="0.6", fill=True)
    lower.set(
        yscale="log",
        xlabel="exact similarity",
        ylabel=f"pairs of {counted(seen.documents, 'document')}",
    )
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        path.unlink(missing_ok=True)  # Half of it may be there.
        raise of_file(error, f"--picture: {path}") from None
