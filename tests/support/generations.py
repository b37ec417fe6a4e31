"""The generations of an application's index, and the verdicts that each of them owes."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.support.application import ApplicationUnderTest
from tests.support.checker.history import Source, Verdict
from tests.support.replay import replay
from worker.admin.cluster import Cluster
from worker.admin.reindex.in_use import planned
from worker.bus import Record
from worker.generations.generation import Generation
from worker.generations.plan import Plan
from worker.settings.model import Settings
from worker.topology import Topology
from worker.wire.frame import POSITION_BITS

ADMIN_SECONDS = 30.0
_NO_END = 1 << 62


class Answering(NamedTuple):
    """A generation, and the offset of its log of fingerprints from which on it answers."""

    generation: Generation
    since: int
    settings: Settings
    topology: Topology

    def numbered(self, offset: int) -> int:
        """Return the number of a frame of its log, which sequence numbers begin with."""
        return self.topology.layout.numbered_from + offset


def in_force(application: ApplicationUnderTest, settings: Settings) -> list[Answering]:
    """Return the generations that have answered, in their order; the last one is in use.

    ``settings`` are those of the application.
    """
    plan = planned(Cluster(settings.kafka_options(), ADMIN_SECONDS), settings)
    if plan is None:
        base = Plan.of(settings).base
        return [Answering(base, 0, settings, application.topology)]
    known = {one.number: one for one in plan.ever()}
    since = {0: 0}
    for log, generation in {one.log: one for one in known.values()}.items():
        taken_over = application.hand_overs(generation.topology(application.topology))
        # One that ends a log begins another, which has a hand-over of its own.
        since |= {number: at for number, at in taken_over.items() if known[number].log == log}
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

    Each generation is given all frames of its log from the first to the last of its own, as if it
    had always been there.
    """
    found: dict[Source, Verdict] = {}
    for one, until in zip(generations, _ends(generations), strict=True):
        log = one.topology.fingerprints
        own = [frame for frame in frames if frame.topic == log and frame.offset < until]
        place = directory / f"generation-{one.generation.number}"
        most = one.topology.layout.parameters.bands  # As for workers.
        replayed = replay(own, one.settings, one.topology, min(shards, most), place)
        found |= {
            at: verdict
            for at, verdict in replayed.items()
            if verdict.sequence >> POSITION_BITS >= one.numbered(one.since)
        }
    return found


def _ends(generations: Sequence[Answering]) -> list[int]:
    """Return where in its log each generation ends; the last one of a log has all that follow."""
    return [
        following.since if following.generation.log == one.generation.log else _NO_END
        for one, following in pairwise(generations)
    ] + [_NO_END]
