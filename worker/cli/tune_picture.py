"""The picture of ``neardup tune``. Needs the extra ``neardup[plots]``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lsh import Choice, candidate_chance, detection, steepest
from lsh.spectrum import Spectrum
from worker.cli.errors import of_file

__all__ = ["draw"]

_BINS = 50


def draw(path: Path, seen: Spectrum, choices: Sequence[tuple[float, Choice]]) -> None:
    """Draw the curves of choices, each with its threshold, above the similarities of the sample.

    Raises:
        CommandError: the file can't be written.
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
        yscale="log", xlabel="exact similarity", ylabel=f"pairs of {seen.documents:,} documents"
    )
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        path.unlink(missing_ok=True)  # Half of it may be there.
        raise of_file(error, f"--picture: {path}") from None
