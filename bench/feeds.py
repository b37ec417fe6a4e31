"""Documents per second on Kafka for other feeds, as a part of a plain copier's rate in the same run.

Short comments, Chinese texts, and documents that come to an index that has millions already.
Two workers, and the default number of shards.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from bench.cluster import broker, feed
from bench.corpus import source, texts
from bench.kafka import Runs
from bench.report import Figures, Target, console, show
from bench.scripts import SCRIPTS

__all__ = ["run"]

TURNS = 3
WORKERS = SHARDS = 2
SHORT = 100
"""Characters of a comment."""


def run(*, quick: bool = False) -> list[Target]:
    """Measure in turns, print the figures, and return the targets."""
    count, before, turns = (20_000, 20_000, 1) if quick else (120_000, 2_000_000, TURNS)
    rates: list[Figures] = []
    targets = [
        _measured("comments of 100 characters", _short(count), 0, turns, 0.3, rates),
        _measured("Chinese, 900 characters", _chinese(count), 0, turns, 0.35, rates),
        _measured("after 2 million documents", texts(before + count), before, 1, 0.48, rates),
    ]
    show("Documents/s", rates)
    return targets


def _measured(
    name: str, documents: Iterator[str], before: int, turns: int, least: float, rates: list[Figures]
) -> Target:
    """Feed a broker; time what comes after the first ``before`` documents."""
    with broker() as kafka:
        total, _ = feed(kafka, documents)
        console.print(f"{name}: {total:,} documents ({source()})", style="dim")
        runs = Runs(kafka, total, before)
        runs.copier()
        pairs = [(runs.neardup(WORKERS, SHARDS), runs.copier()) for _ in range(turns)]
    rates += [
        Figures(f"{name}: neardup", [ours.rate for ours, _ in pairs]),
        Figures(f"{name}: copier", [copier.rate for _, copier in pairs]),
    ]
    ratios = Figures(name, [ours.rate / copier.rate for ours, copier in pairs], ".2f")
    return Target(f"{name}: to the copier", ratios.median, least, at_least=True, form=".2f")


def _short(count: int) -> Iterator[str]:
    """Yield the first characters of documents."""
    return (text[:SHORT] for text in texts(count))


def _chinese(count: int) -> Iterator[str]:
    """Yield texts of random ideographs, of which each fifth nearly repeats an earlier one."""
    chance = random.Random(1)
    letters = SCRIPTS["Chinese"]
    earlier: list[str] = []
    for _ in range(count):
        if earlier and chance.random() < 1 / 5:
            fresh = chance.choice(earlier)[:-3] + "".join(chance.choices(letters, k=3))
        else:
            fresh = "".join(chance.choices(letters, k=900))
        earlier = [*earlier[-999:], fresh]
        yield fresh
