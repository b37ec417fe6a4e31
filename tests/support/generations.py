"""The generations of an application's index, and the verdicts that each of them owes."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.application import ApplicationUnderTest
from tests.support.checker import Source, Verdict
from tests.support.replay import replay
from worker.admin import Cluster
from worker.admin.reindex.in_use import planned
from worker.bus.port import Record
from worker.generations import Generation, Plan
from worker.settings import Settings
from worker.topology import Topology
from worker.wire import POSITION_BITS

__all__ = ["Answering", "in_force", "judged_anew"]

ADMIN_SECONDS = 30.0


class Answering(NamedTuple):
    """A generation, and the offset of ``fingerprints`` from which on it answers."""

    generation: Generation
    since: int
    settings: Settings
    topology: Topology


def in_force(application: ApplicationUnderTest, settings: Settings) -> list[Answering]:
    """Return the generations that have answered, in their order; the last one is in use.

    ``settings`` are those of the application.
    """
    plan = planned(Cluster(settings.kafka_options(), ADMIN_SECONDS), settings)
    if plan is None:
        base = Plan.of(settings).base
        return [Answering(base, 0, settings, application.topology)]
    known = {one.number: one for one in (plan.base, *plan.left, *plan.generations())}
    since = {0: 0, **application.hand_overs()}
    return [
        Answering(
            known[number],
            since[number],
            known[number].settings(settings),
            known[number].topology(application.topology),
        )
        for number in sorted(since)
    ]


def judged_anew(
    frames: Sequence[Record], generations: Sequence[Answering], shards: int, directory: Path
) -> dict[Source, Verdict]:
    """Judge a run's frames, each by the generation whose turn it was, with P = ``shards``.

    Each generation is given all frames from the first to the last of its own, as if it had always
    been there.
    """
    found: dict[Source, Verdict] = {}
    for one, until in zip(generations, _ends(generations), strict=True):
        own = [frame for frame in frames if frame.offset < until]
        place = directory / f"generation-{one.generation.number}"
        replayed = replay(own, one.settings, one.topology, shards, place)
        found |= {
            at: verdict
            for at, verdict in replayed.items()
            if verdict.sequence >> POSITION_BITS >= one.since
        }
    return found


def _ends(generations: Sequence[Answering]) -> Iterator[int]:
    yield from (one.since for one in generations[1:])
    yield 1 << 62
