"""Checks the groups' offsets against their logs, and against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from worker.admin.cluster import Cluster
from worker.admin.problem import Problem
from worker.bus import LogTruncated, TopicPartition, claimed
from worker.bus.kafka.groups import Committed
from worker.topology import STAGES, Topology

_EXPIRED = "see the runbook, 'Expired group offsets'"
_UNREAD = "see the runbook, 'Documents that were deleted unread'"
_ANSWERS_LOST = "see the runbook, 'Answers that were deleted'"

_BELOW_START: Mapping[str, str | None] = {
    "fingerprint": "documents were deleted before they were read",
    "index": "frames were deleted before the shard had read them",
    "route": None,  # Answers tile; a document that was judged and is gone is rejected.
}
"""By stage, what it means if a log begins above the group's offset; None: no error.

Transaction markers follow the last record that a stage has read. Once retention has emptied an
idle log, it begins after them, and nothing is lost. Offsets alone don't show whether a record
was deleted unread; stages with None continue, and detect it themselves.
"""


def inputs(topology: Topology, stage: str, counts: Mapping[str, int]) -> list[TopicPartition]:
    """Return the existing partitions that a stage reads."""
    return [
        TopicPartition(topic, number)
        for topic, partitions in topology.inputs(stage).items()
        for number in range(min(partitions, counts.get(topic, 0)))
    ]


def check_offsets(  # noqa: PLR0913 -- two facts, each of one log
    topology: Topology,
    counts: Mapping[str, int],
    committed: Mapping[str, Mapping[TopicPartition, int]],
    ranges: Mapping[TopicPartition, tuple[int, int]],
    *,
    skip_deleted: bool = False,
    forgets: bool = False,
    begun: bool = False,
) -> Iterator[Problem]:
    """Yield the problems of the groups' offsets, compared with the logs' starts and ends.

    With ``skip_deleted``, documents that were deleted unread are only a warning. With ``forgets``,
    brokers delete old frames, and with the last ones the markers behind them. Once work has
    ``begun``, `neardup init` sets no offsets.
    """
    published = _published(topology, committed)
    for stage in STAGES:
        group = topology.group(stage)
        wanted = inputs(topology, stage, counts)
        have = committed[group]
        missing = [place for place in wanted if place not in have]
        if missing:
            yield Problem(
                "error", f"group {group}", "its offset of " + _place(missing[0]),
                "missing" + (f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""), "set",
                fix=_EXPIRED if begun else "neardup init --from earliest|latest|TIME",
            )  # fmt: skip
        for place in wanted:
            span = ranges.get(topology.log_of(place))
            if span is None or place not in have or span[0] <= have[place] <= span[1]:
                continue  # A log that can't be seen is a problem of its own.
            low, high = span
            # A single offset behind a frame is the marker of its transaction. Several may be, and
            # are, if all that was fingerprinted is published.
            markers = published or have[place] == low - 1
            if forgets and stage == "index" and 0 < have[place] < low and markers:
                continue
            why = "this is not the topic that was read"
            skipped = False
            fix = f"{_EXPIRED}; a worker never skips by itself"
            if have[place] < low:
                below = _BELOW_START[stage]
                if below is None:
                    continue
                why = below
                if stage == "fingerprint":
                    fix, skipped = _UNREAD, skip_deleted
            yield Problem(
                "warning" if skipped else "error", f"group {group}",
                "its offset of " + _place(place),
                str(have[place]), f"an offset from {low} to {high}", why, fix,
            )  # fmt: skip
            break
    yield from _deleted(topology, committed, ranges)


def _published(topology: Topology, committed: Mapping[str, Mapping[TopicPartition, int]]) -> bool:
    """Return whether all documents that were fingerprinted are published."""
    first, last = committed[topology.group("fingerprint")], committed[topology.group("route")]
    places = [place for place in first if place.topic == topology.documents]
    return bool(places) and all(first[place] == last.get(place) for place in places)


def _deleted(
    topology: Topology,
    committed: Mapping[str, Mapping[TopicPartition, int]],
    ranges: Mapping[TopicPartition, tuple[int, int]],
) -> Iterator[Problem]:
    """Yield a warning for documents that were judged, but deleted before route published them."""
    first, last = committed[topology.group("fingerprint")], committed[topology.group("route")]
    for place, at in last.items():
        low, _ = ranges[place]
        if place.topic == topology.documents and at < min(low, first.get(place, 0)):
            yield Problem(
                "warning", f"group {topology.group('route')}", "its offset of " + _place(place),
                str(at), f"at least {low}, where the topic begins",
                "documents that were judged but not published are gone; each is reported on"
                f" {topology.rejected} as payload-gone",
                "give the documents a longer retention than the longest outage",
            )  # fmt: skip


def lost_answers(
    topology: Topology,
    committed: Mapping[str, Mapping[TopicPartition, int]],
    ranges: Mapping[TopicPartition, tuple[int, int]],
) -> list[Problem]:
    """Return the first partition whose answers were deleted before route has read them, if any.

    If a later answer comes, it does not tile, and stops the worker. If none comes, only this check
    detects the loss: fingerprint is past route, *index* has nothing to read, and neither has route
    in a log that was trimmed. Route's offsets were looked up first and the logs' ends last, so
    answers in flight are not mistaken for lost ones. If the documents are gone as well, `_deleted`
    reports them, and route passes over the answers.
    """
    route = committed[topology.group("route")]
    fingerprint = committed[topology.group("fingerprint")]
    for seat, at in committed[topology.group("index")].items():
        span = ranges.get(topology.log_of(seat))
        if span is None or _unread(at, span):
            return []
    for place, at in route.items():
        documents = TopicPartition(topology.documents, place.partition)
        waiting = route.get(documents, 0), fingerprint.get(documents, 0)
        deleted = documents in ranges and ranges[documents][0] >= waiting[1]
        if place.topic == topology.documents or waiting[0] >= waiting[1] or deleted:
            continue
        if at < ranges[place][0] and not _unread(at, ranges[place]):
            problem = Problem(
                "error", _place(place), "its start", str(ranges[place][0]),
                f"at most {at}, where group {topology.group('route')} is",
                f"the answers for {_place(documents)} from offset {waiting[0]} to {waiting[1]} were"
                " deleted before they were read",
                _ANSWERS_LOST,
            )  # fmt: skip
            return [problem]
    return []


def _unread(at: int, span: tuple[int, int]) -> bool:
    """Return whether there may be a record to read.

    The topic's writers all use transactions, so a marker follows their records, and a single
    offset holds no record.
    """
    low, high = span
    return high - max(low, at) > 1


def check_order(
    topology: Topology,
    committed: Mapping[str, Mapping[TopicPartition, int]],
    ranges: Mapping[TopicPartition, tuple[int, int]],
) -> list[Problem]:
    """Return a problem if route is past fingerprint, or if they don't begin at the same offsets.

    A transaction's offsets may be visible before its records are. So in an application's first
    moments the logs' ends that readers of committed records see may be too early for this check.
    """
    begun = any(high for place, (_, high) in ranges.items()
                if place.topic != topology.documents)  # fmt: skip
    first, last = committed[topology.group("fingerprint")], committed[topology.group("route")]
    for number in range(topology.layout.partitions):
        place = TopicPartition(topology.documents, number)
        if place not in first or place not in last:
            continue
        if last[place] > first[place] or (not begun and last[place] != first[place]):
            problem = Problem(
                "error", f"group {topology.group('route')}", "its offset of " + _place(place),
                str(last[place]),
                ("at most " if begun else "") + f"{first[place]}, where fingerprint is",
                "documents would be left out",
                _EXPIRED if begun else "neardup init --force",
            )  # fmt: skip
            return [problem]
    return []


def _place(place: TopicPartition) -> str:
    return f"{place.topic}[{place.partition}]"


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
