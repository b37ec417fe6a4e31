"""Logs that have lost their end, which a group had read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from worker.admin.cluster import Cluster
from worker.admin.problem import Problem
from worker.bus import LogTruncated, TopicPartition, claimed
from worker.bus.kafka.groups import Committed
from worker.topology import Topology

__all__ = ["CutLog", "cut_logs"]

_SEE = "see the runbook, 'A log that lost its end'"


@dataclass(frozen=True, slots=True)
class CutLog:
    """A group has committed an offset for a partition that is past the cut."""

    group: str
    place: TopicPartition
    offset: int
    log: LogTruncated
    internal: bool

    @property
    def problem(self) -> Problem:
        """Return the finding, with what to do."""
        place = f"{self.place.topic}[{self.place.partition}]"
        name = f"{self.log.partition.topic}[{self.log.partition.partition}]"
        end = self.log.end
        fix = f"`neardup init --accept`, then `neardup redrive`; {_SEE}"
        if self.internal:
            fix = f"begin another application; {_SEE}"
        return Problem(
            "error", f"group {self.group}", f"its offset of {place}",
            f"{self.offset} in leader epoch {self.log.claim.epoch}",
            "in a log that has what was read" if end is None else f"at most {end}",
            f"{name} has lost its end: records that were read are gone, and nobody would read the"
            " others that get their offsets", fix,
        )  # fmt: skip


def cut_logs(
    cluster: Cluster,
    topology: Topology,
    committed: Mapping[str, Mapping[TopicPartition, Committed]],
) -> Iterator[CutLog]:
    """Yield the offsets that are past the cut of their log.

    Raises:
        BusError: the cluster doesn't answer, or refuses.
    """
    claims = {
        group: claimed({place: (one.offset, one.epoch) for place, one in places.items()})
        for group, places in committed.items()
    }
    # Of each log, what reaches furthest: a cut is before that if it is before any of them.
    furthest = {
        topology.log_of(place): claim
        for place, claim in sorted(
            ((place, claim) for places in claims.values() for place, claim in places.items()),
            key=lambda one: one[1],
        )
    }
    found = cluster.truncated(topology.group("fingerprint"), furthest) if furthest else {}
    for group, places in claims.items():
        for place, claim in sorted(places.items()):
            log = found.get(topology.log_of(place))
            if log is not None and (log.end is None or claim.offset > log.end):
                internal = place.topic != topology.documents
                yield CutLog(group, place, claim.offset, log, internal)
