"""A soak: a steady stream, a fault every 5 to 20 s from the whole list, and an eye on leaks.

The same texts come round and round under new ids, so that the index stops growing once it
has seen them all, and what still grows is a leak. Every log forgets what is older than three
minutes, so everything in the logs goes many times. Two workers are never ended by a fault:
theirs are the long series of samples (they meet everything that befalls the others, the
brokers and the network).

One text in ten is an excerpt of another, which containment finds. On request, the index is
replaced by its next generation every few minutes. That one is built from all of ``fingerprints``,
so workers don't trim it then.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

from chaos.cell import Cell, Outcome, Protocol, Run
from chaos.disk import NoSmallDisk, mounted
from chaos.matrix import DISK_FULL_ENDINGS, QUARTET, cluster_of
from chaos.nemesis import EVERYWHERE, plan, printed
from chaos.of_disks import DiskFull
from chaos.of_reindex import ReindexOften
from chaos.proxy import Proxies
from chaos.running import Ground, application_of, attack, concluding, judge
from chaos.samples import Sampler
from chaos.strike import Strike
from chaos.trends import Trend
from tests.support.corpus import corpus, with_excerpts

RATE: Final = 300.0
ROUND_SECONDS: Final = 20.0
"""How long all texts take to come round once."""

SPACING: Final = (5.0, 20.0)
SHARDS: Final = (1, 4)
TELLING_MINUTES: Final = 30.0
"""Shorter soaks show their slopes, and judge everything else."""

CELL: Final = Cell(
    "soak",
    EVERYWHERE,
    QUARTET,
    victims=("alpha", "beta"),
    small_disk=True,
    snapshots=20.0,
    retention=180.0,
    containment=0.9,
    endings=DISK_FULL_ENDINGS,
)
REINDEXING: Final = replace(
    CELL,
    name="soak-reindex",
    faults=(*EVERYWHERE, ReindexOften.name),
    trims=False,
    failures=20,
)


def soak(
    minutes: float,
    seed: int,
    say: Callable[[str], None],
    *,
    protocol: Protocol,
    reindexes: bool = False,
    rate: float | None = None,
    schedule: Sequence[Strike] | None = None,
) -> Outcome:
    """Run for so many minutes, and judge."""
    per_second = rate or RATE
    cell = _possible(REINDEXING if reindexes else CELL, say)
    strikes = list(schedule or _schedule(cell, minutes, seed))
    say(f"{cell.name} of {minutes:g} minutes, {protocol}, seed {seed}; the schedule:")
    say(printed(strikes))
    seconds = max(minutes * 60, strikes[-1].at)
    documents = _documents(int(per_second * seconds), per_second, seed)
    run = Run(documents, strikes, per_second, SHARDS, minutes * 60)
    with ExitStack() as stack:
        cluster = stack.enter_context(cluster_of(cell.brokers))
        proxies = stack.enter_context(Proxies(cluster.proxied))
        return _run(cell, protocol, (cluster, proxies), run, minutes, say)


def _possible(cell: Cell, say: Callable[[str], None]) -> Cell:
    try:
        with TemporaryDirectory() as directory, mounted(Path(directory), 1):
            return cell
    except NoSmallDisk as why:
        say(f"LEFT OUT: disk-full, since no disk can be mounted here: {why}")
        faults = tuple(name for name in cell.faults if name != DiskFull.name)
        return replace(cell, faults=faults, small_disk=False)


def _run(
    cell: Cell,
    protocol: Protocol,
    ground: Ground,
    run: Run,
    minutes: float,
    say: Callable[[str], None],
) -> Outcome:
    outcome = Outcome(cell.name, protocol)
    began = monotonic()
    with (
        application_of(cell, protocol, ground) as (application, world),
        concluding(cell, world, outcome),
    ):
        world.supervisor.start(*cell.workers)
        with Sampler(world.supervisor, min(10.0, minutes)) as sampler:
            outcome.hits = attack(application, world, run, say)
        outcome.documents = len(application.inputs)
        outcome.trends = list(sampler.trends())
        say("judging")
        outcome.problems.extend(creeping(outcome.trends, minutes))
        outcome.problems.extend(judge(world, run.shards, outcome))
    outcome.seconds = monotonic() - began
    return outcome


def _schedule(cell: Cell, minutes: float, seed: int) -> list[Strike]:
    random = Random(seed)
    count = max(1, round(minutes * 60 / (sum(SPACING) / 2)))
    names: list[str] = []
    while len(names) < count:
        names += random.sample(cell.faults, len(cell.faults))
    return plan(names[:count], cell.victims, seed, count, SPACING)


def _documents(count: int, rate: float, seed: int) -> list[tuple[str, str]]:
    texts = [
        text for _, text in with_excerpts(corpus(max(100, int(rate * ROUND_SECONDS)), seed), seed)
    ]
    return [(f"doc-{number}", texts[number % len(texts)]) for number in range(count)]


def creeping(trends: Sequence[Trend], minutes: float) -> Iterator[str]:
    """Say what rises; and if nobody ran long enough to tell, though there was time, that."""
    if minutes >= TELLING_MINUTES and not any(one.tells for one in trends):
        yield "no worker ran long enough to tell whether it leaks"
    for one in trends:
        if one.creeps:
            first, last = one.medians[0], one.medians[-1]
            yield (
                f"{one.worker}: {one.what} rose from {first:.1f} to {last:.1f} in"
                f" {one.minutes:.0f} minutes, by {one.slope.median:.2f} a minute (at least"
                f" {one.slope.low:.2f}; the limit is {one.limit})"
            )
