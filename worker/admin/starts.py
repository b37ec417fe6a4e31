"""Where the groups begin: all readers of the documents start from one snapshot of offsets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from worker.admin.agreement import begun_with
from worker.admin.cluster import Cluster
from worker.bus import TopicPartition
from worker.bus.kafka.groups import Offsets
from worker.settings.errors import ConfigurationError
from worker.topology import STAGES, Topology

_AGE = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment_of(given: str, now: datetime) -> datetime | None:
    """Return the moment of an ISO 8601 time (by default UTC) or an age like ``24h``, else None."""
    age = _AGE.fullmatch(given)
    try:
        if age:
            return now - timedelta(**{_UNITS[age[2]]: int(age[1])})
        moment = datetime.fromisoformat(given)
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Start:
    """Where in the documents an application begins.

    ``time_ms`` goes with ``time``. ``app`` goes with ``after``: the application begins after the
    documents that the other application has published.
    """

    kind: Literal["earliest", "latest", "time", "after"]
    time_ms: int = 0
    app: str = ""

    @classmethod
    def parse(cls, given: str, now: datetime) -> Start:
        """Parse ``earliest``, ``latest``, an ISO 8601 time, an age like ``24h``, or ``app:NAME``.

        Raises:
            ConfigurationError: it is none of these, or a time in the future.
        """
        if given in ("earliest", "latest"):
            return cls("earliest" if given == "earliest" else "latest")
        if given.startswith("app:"):
            return cls("after", app=given.removeprefix("app:"))
        moment = moment_of(given, now)
        if moment is None:
            raise ConfigurationError(
                f"--from: got {given!r}, must be earliest, latest, an ISO 8601 time"
                " (2026-01-31T12:00:00Z), an age (90m, 24h, 7d), or app:NAME"
            )
        if moment > now:
            raise ConfigurationError(f"--from: {given} is in the future")
        return cls("time", int(moment.timestamp() * 1000))


@dataclass(frozen=True, slots=True)
class Begun:
    """The offsets that were committed, and those that existed already, by group."""

    committed: dict[str, dict[TopicPartition, int]]
    kept: dict[str, dict[TopicPartition, int]]


def begin(cluster: Cluster, topology: Topology, start: Start, *, force: bool = False) -> Begun:
    """Commit the starting offsets of all groups that have none.

    Raises:
        ConfigurationError: the application has processed records, so the offsets can't be guessed.
        BusError: the cluster doesn't answer, or a group has active members.
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
        # The offsets of *route* say what was published last, if they are there.
        known = len(present["route"]) == len(wanted["route"])
        way = (
            f"app:{topology.app}` continues after what was published"
            if known
            else "earliest` judges all that the topic has"
        )
        raise ConfigurationError(
            f"{what}, but {used[0]} holds records, or did: where to continue can't be guessed."
            f" Begin another application: `neardup topics create --app OTHER --from {way}, and"
            " --from TIME repeats what came since; see the runbook, 'Expired group offsets'"
        )
    chosen = {} if force else _agreed(topology, present)
    snapshot = _snapshot(cluster, topology, start)
    kept: dict[str, dict[TopicPartition, int]] = {}
    committed: dict[str, dict[TopicPartition, int]] = {}
    for stage in STAGES:
        starts = {
            partition: chosen.get(partition, snapshot[partition])
            if partition in snapshot
            else ends[topology.log_of(partition)][0]
            for partition in wanted[stage]
        }
        have = {} if force else present[stage]
        kept[groups[stage]] = have
        missing_here = {partition: at for partition, at in starts.items() if partition not in have}
        if missing_here:
            cluster.commit(groups[stage], missing_here, of={topology.seats: topology.fingerprints})
            committed[groups[stage]] = missing_here
    return Begun(committed, {group: offsets for group, offsets in kept.items() if offsets})


def used_topics(ranges: Mapping[TopicPartition, tuple[int, int]]) -> list[str]:
    """Return the topics that were ever written to, even if retention has emptied them."""
    return sorted({partition.topic for partition, (_, high) in ranges.items() if high > 0})


def _inputs(topology: Topology, stage: str) -> set[TopicPartition]:
    return {
        TopicPartition(topic, number)
        for topic, partitions in topology.inputs(stage).items()
        for number in range(partitions)
    }


def _agreed(topology: Topology, present: dict[str, dict[TopicPartition, int]]) -> Offsets:
    """Return the offsets that one reader of the documents has committed; the other must match.

    Raises:
        ConfigurationError: the two readers have committed different offsets.
    """
    first, last = present["fingerprint"], present["route"]
    for partition in first.keys() & last.keys():
        if first[partition] != last[partition]:
            raise ConfigurationError(
                f"{partition.topic}[{partition.partition}]: group {topology.group('fingerprint')}"
                f" is at {first[partition]} and group {topology.group('route')} is at"
                f" {last[partition]}, but the topics between them are empty: set both again with"
                " --force --from earliest|latest|TIME"
            )
    return {**last, **first}


def _snapshot(cluster: Cluster, topology: Topology, start: Start) -> dict[TopicPartition, int]:
    counts = {topology.documents: topology.layout.partitions}
    if start.kind == "after":
        return _published(cluster, topology, start.app)
    ranges = cluster.ranges(counts)
    if start.kind == "earliest":
        return {partition: low for partition, (low, _) in ranges.items()}
    if start.kind == "latest":
        return {partition: high for partition, (_, high) in ranges.items()}
    at = cluster.at_time(counts, start.time_ms)
    return {
        partition: high if (found := at[partition]) is None else found
        for partition, (_, high) in ranges.items()
    }


def _published(cluster: Cluster, topology: Topology, app: str) -> dict[TopicPartition, int]:
    """Return how far another application has published the same documents.

    Partitions that were added after it began are returned from their start: it never read them.

    Raises:
        ConfigurationError: it has no offsets of the partitions that it began with.
        BusError: one of its workers is running.
    """
    other = replace(topology, app=app)
    group = other.group("route")
    number = topology.layout.partitions
    partitions = [TopicPartition(topology.documents, n) for n in range(number)]
    offsets = cluster.committed({group: partitions})[group]
    missing = [partition for partition in partitions if partition not in offsets]
    if missing:
        count = begun_with(cluster, other) or number
        added = [partition for partition in missing if partition.partition >= count]
        if len(added) < len(missing) or not offsets:
            raise ConfigurationError(
                f"--from: got app:{app}, but group {group} has no offset for"
                f" {missing[0].topic}[{missing[0].partition}]"
            )
        lows = cluster.ranges({topology.documents: number})
        fresh = {partition: lows[partition][0] for partition in added}
    else:
        fresh = {}
    # Kafka refuses this while the group has members, which would publish more.
    cluster.commit(group, offsets)
    return {**offsets, **fresh}
