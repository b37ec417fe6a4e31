"""Where the groups begin: one snapshot of the documents' offsets, the same for all readers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from worker.admin.cluster import Cluster
from worker.admin.groups import Offsets
from worker.bus import TopicPartition
from worker.settings import ConfigurationError
from worker.topology import STAGES, Topology

__all__ = ["Begun", "Start", "begin", "used_topics"]

_AGE = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True)
class Start:
    """Where in the documents an application begins.

    ``time_ms`` goes with ``time``. ``app`` goes with ``after``: what that application has
    published is left out, and all that comes after it is not.
    """

    kind: Literal["earliest", "latest", "time", "after"]
    time_ms: int = 0
    app: str = ""

    @classmethod
    def parse(cls, given: str, now: datetime) -> Start:
        """Read ``earliest``, ``latest``, an ISO 8601 time, an age like ``24h``, or ``app:NAME``.

        Raises:
            ConfigurationError: it is none of these, or in the future.
        """
        if given in ("earliest", "latest"):
            return cls("earliest" if given == "earliest" else "latest")
        if given.startswith("app:"):
            return cls("after", app=given.removeprefix("app:"))
        age = _AGE.fullmatch(given)
        try:
            if age:
                moment = now - timedelta(**{_UNITS[age[2]]: int(age[1])})
            else:
                moment = datetime.fromisoformat(given)
        except (ValueError, OverflowError):
            raise ConfigurationError(
                f"--from: got {given!r}, takes earliest, latest, an ISO 8601 time"
                " (2026-01-31T12:00:00Z), an age (90m, 24h, 7d), or app:NAME"
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
    ends = cluster.ranges(topology.internal())
    used = used_topics(ends)
    groups = {stage: topology.group(stage) for stage in STAGES}
    wanted = {stage: _inputs(topology, stage) for stage in STAGES}
    found = cluster.committed({groups[stage]: wanted[stage] for stage in STAGES})
    present = {stage: found[groups[stage]] for stage in STAGES}
    if not force and all(len(present[stage]) == len(wanted[stage]) for stage in STAGES):
        return Begun({}, {groups[stage]: present[stage] for stage in STAGES})
    if used:
        missing = [groups[stage] for stage in STAGES if len(present[stage]) < len(wanted[stage])]
        what = (
            f"group {missing[0]} has no offsets"
            if missing
            else "the groups have offsets, and work has begun"
        )
        raise ConfigurationError(
            f"{what}, but {used[0]} holds records, or did: where to go on can't be guessed."
            f" To start over, delete the topics {topology.app}.fingerprints, .shards and"
            " .matches-*, then run `neardup topics create --force`; or choose another --app"
        )
    chosen = {} if force else _agreed(topology, present)
    snapshot = _snapshot(cluster, topology, start)
    kept: dict[str, dict[TopicPartition, int]] = {}
    committed: dict[str, dict[TopicPartition, int]] = {}
    for stage in STAGES:
        starts = {
            place: chosen.get(place, snapshot[place])
            if place in snapshot
            else ends[topology.log_of(place)][0]
            for place in wanted[stage]
        }
        have = {} if force else present[stage]
        kept[groups[stage]] = have
        missing_here = {place: at for place, at in starts.items() if place not in have}
        if missing_here:
            cluster.commit(groups[stage], missing_here, of={topology.seats: topology.fingerprints})
            committed[groups[stage]] = missing_here
    return Begun(committed, {group: offsets for group, offsets in kept.items() if offsets})


def used_topics(ranges: Mapping[TopicPartition, tuple[int, int]]) -> list[str]:
    """Name the topics that were written to, whatever retention has left of them."""
    return sorted({place.topic for place, (_, high) in ranges.items() if high > 0})


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
    if start.kind == "after":
        return _published(cluster, topology, start.app)
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


def _published(cluster: Cluster, topology: Topology, app: str) -> dict[TopicPartition, int]:
    """Return how far another application has published the same documents.

    Raises:
        ConfigurationError: it has not begun with them.
        BusError: one of its workers is at work.
    """
    group = replace(topology, app=app).group("route")
    places = [TopicPartition(topology.documents, n) for n in range(topology.partitions)]
    offsets = cluster.committed({group: places})[group]
    missing = [place for place in places if place not in offsets]
    if missing:
        raise ConfigurationError(
            f"--from: got app:{app}, but group {group} has no offset of"
            f" {missing[0].topic}[{missing[0].partition}]"
        )
    # Kafka refuses this as long as the group has members, which would publish more.
    cluster.commit(group, offsets)
    return offsets
