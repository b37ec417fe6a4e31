"""Logs that have lost their end, which a group had read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from worker.admin.cluster import Cluster
from worker.admin.problem import Problem
from worker.bus import LogTruncated, TopicPartition, claimed
from worker.bus.kafka.groups import Committed
from worker.topology import Topology

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
        group: claimed(
            {partition: (one.offset, one.epoch) for partition, one in partitions.items()}
        )
        for group, partitions in committed.items()
    }
    # Of each log, what reaches furthest: a cut is before that if it is before any of them.
    furthest = {
        topology.log_of(partition): claim
        for partition, claim in sorted(
            (
                (partition, claim)
                for partitions in claims.values()
                for partition, claim in partitions.items()
            ),
            key=lambda one: one[1],
        )
    }
    found = cluster.truncated(topology.group("fingerprint"), furthest) if furthest else {}
    for group, partitions in claims.items():
        for partition, claim in sorted(partitions.items()):
            log = found.get(topology.log_of(partition))
            if log is not None and (log.end is None or claim.offset > log.end):
                internal = partition.topic != topology.documents
                yield CutLog(group, partition, claim.offset, log, internal)
