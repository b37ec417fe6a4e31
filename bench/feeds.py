"""Documents per second on Kafka for other feeds, compared with a plain copier in the same run.

Short comments, Chinese texts, and documents that come to an index that has millions already.
Two workers, and the default number of shards.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from bench.cluster import broker, feed
from bench.corpus import source, texts
from bench.kafka import Runs
from bench.report import Figures, Target, console, show
from bench.scripts import SCRIPTS

TURNS = 2
WORKERS = SHARDS = 2
SHORT = 100
"""Characters of a comment."""
BEFORE = 2_000_000


class Feed(NamedTuple):
    """A feed: what yields its documents, how many aren't timed, and the target."""

    name: str
    documents: Callable[[int], Iterator[str]]
    before: int
    turns: int
    least: float


def run(*, quick: bool = False) -> list[Target]:
    """Measure in turns, print the figures, and return the targets."""
    count, before, turns = (20_000, 20_000, 1) if quick else (120_000, BEFORE, TURNS)
    feeds = [
        Feed(f"comments of {SHORT} characters", _short, 0, turns, 0.3),
        Feed("Chinese, 900 characters", _chinese, 0, turns, 0.35),
        Feed(f"after {before:,} documents", texts, before, 1, 0.48),
    ]
    rates: list[Figures] = []
    targets = [_measured(one, count, rates) for one in feeds]
    show("Documents/s", rates)
    return targets


def _measured(one: Feed, count: int, rates: list[Figures]) -> Target:
    """Time ``count`` documents of a feed, and the copier with them; add both to ``rates``."""
    with broker() as kafka:
        total, _ = feed(kafka, one.documents(one.before + count))
        console.print(f"{one.name}: {total:,} documents ({source()})", style="dim")
        runs = Runs(kafka, total, one.before)
        runs.copier()
        pairs = [(runs.neardup(WORKERS, SHARDS), runs.copier()) for _ in range(one.turns)]
    rates += [
        Figures(f"{one.name}: neardup", [ours.rate for ours, _ in pairs]),
        Figures(f"{one.name}: copier", [copier.rate for _, copier in pairs]),
    ]
    ratios = Figures(one.name, [ours.rate / copier.rate for ours, copier in pairs], ".2f")
    name = f"{one.name}: to the copier"
    return Target(name, ratios.median, one.least, at_least=True, form=".2f")


def _short(count: int) -> Iterator[str]:
    """Yield the first characters of documents."""
    return (text[:SHORT] for text in texts(count))


def _chinese(count: int) -> Iterator[str]:
    """Yield texts of random ideographs; one in five nearly repeats an earlier one."""
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
