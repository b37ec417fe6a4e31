"""Where the groups begin: one snapshot of the documents' offsets, the same for all readers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from worker.admin.cluster import Cluster
from worker.admin.groups import Offsets
from worker.bus import TopicPartition
from worker.settings import ConfigurationError
from worker.topology import STAGES, Topology

__all__ = ["Begun", "Start", "begin"]

_AGE = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True)
class Start:
    """Where in the documents an application begins; ``time_ms`` goes with ``time``."""

    kind: Literal["earliest", "latest", "time"]
    time_ms: int = 0

    @classmethod
    def parse(cls, given: str, now: datetime) -> Start:
        """Read ``earliest``, ``latest``, an ISO 8601 time, or an age like ``24h``.

        Raises:
            ConfigurationError: it is none of these, or in the future.
        """
        if given in ("earliest", "latest"):
            return cls("earliest" if given == "earliest" else "latest")
        age = _AGE.fullmatch(given)
        try:
            if age:
                moment = now - timedelta(**{_UNITS[age[2]]: int(age[1])})
            else:
                moment = datetime.fromisoformat(given)
        except (ValueError, OverflowError):
            raise ConfigurationError(
                f"--from: got {given!r}, takes earliest, latest, an ISO 8601 time"
                " (2026-01-31T12:00:00Z) or an age (90m, 24h, 7d)"
            ) from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        if moment > now:
            raise ConfigurationError(f"--from: {given} is in the future")
        return cls("time", int(moment.timestamp() * 1000))


@dataclass(frozen=True, slots=True)
class Begun:
    """What was committed, and what was there already, by group."""

    committed: dict[str, dict[TopicPartition, int]]
    kept: dict[str, dict[TopicPartition, int]]


def begin(cluster: Cluster, topology: Topology, start: Start, *, force: bool = False) -> Begun:
    """Commit the starting offsets of all groups that have none.

    Raises:
        ConfigurationError: something was processed already, so that no offset can be guessed.
        BusError: the cluster doesn't answer, or a group is at work.
    """
    groups = {stage: topology.group(stage) for stage in STAGES}
    wanted = {stage: _inputs(topology, stage) for stage in STAGES}
    found = cluster.committed({groups[stage]: wanted[stage] for stage in STAGES})
    present = {stage: found[groups[stage]] for stage in STAGES}
    if not force and all(len(present[stage]) == len(wanted[stage]) for stage in STAGES):
        return Begun({}, {groups[stage]: present[stage] for stage in STAGES})
    ends = cluster.ranges(topology.internal())
    # One that retention has emptied was used all the same.
    used = sorted({place.topic for place, (_, high) in ends.items() if high > 0})
    if used:
        missing = [groups[stage] for stage in STAGES if len(present[stage]) < len(wanted[stage])]
        what = (
            f"group {missing[0]} has no offsets"
            if missing
            else "the groups have offsets, and work has begun"
        )
        raise ConfigurationError(
            f"{what}, but {used[0]} holds records, or did: where to go on can't be guessed."
            f" To start over, delete the topics {topology.app}.fingerprints, .bands and"
            " .matches-*, then run `neardup topics create --force`; or choose another --app"
        )
    chosen = {} if force else _agreed(topology, present)
    snapshot = _snapshot(cluster, topology, start)
    kept: dict[str, dict[TopicPartition, int]] = {}
    committed: dict[str, dict[TopicPartition, int]] = {}
    for stage in STAGES:
        starts = {
            place: chosen.get(place, snapshot[place]) if place in snapshot else ends[place][0]
            for place in wanted[stage]
        }
        have = {} if force else present[stage]
        kept[groups[stage]] = have
        missing_here = {place: at for place, at in starts.items() if place not in have}
        if missing_here:
            cluster.commit(groups[stage], missing_here)
            committed[groups[stage]] = missing_here
    return Begun(committed, {group: offsets for group, offsets in kept.items() if offsets})


def _inputs(topology: Topology, stage: str) -> set[TopicPartition]:
    return {
        TopicPartition(topic, number)
        for topic, partitions in topology.inputs(stage).items()
        for number in range(partitions)
    }


def _agreed(topology: Topology, present: dict[str, dict[TopicPartition, int]]) -> Offsets:
    """Give what one reader of the documents has committed already: the other must follow."""
    first, last = present["fingerprint"], present["route"]
    for place in first.keys() & last.keys():
        if first[place] != last[place]:
            raise ConfigurationError(
                f"{place.topic}[{place.partition}]: group {topology.group('fingerprint')} is at"
                f" {first[place]}, group {topology.group('route')} at {last[place]}, and nothing"
                " lies between them: set both again with --force --from earliest|latest|TIME"
            )
    return {**last, **first}


def _snapshot(cluster: Cluster, topology: Topology, start: Start) -> dict[TopicPartition, int]:
    counts = {topology.documents: topology.partitions}
    ranges = cluster.ranges(counts)
    if start.kind == "earliest":
        return {place: low for place, (low, _) in ranges.items()}
    if start.kind == "latest":
        return {place: high for place, (_, high) in ranges.items()}
    at = cluster.at_time(counts, start.time_ms)
    return {
        place: high if (found := at[place]) is None else found
        for place, (_, high) in ranges.items()
    }
