"""Checks the groups' offsets: against the logs they belong to, and against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from worker.admin.problem import Problem
from worker.bus import TopicPartition
from worker.topology import STAGES, Topology

__all__ = ["check_offsets", "inputs", "lost_answers"]

_EXPIRED = "see docs/runbook.md, 'Expired group offsets'"
_UNREAD = "see docs/runbook.md, 'Documents that were deleted unread'"
_ANSWERS_LOST = "see docs/runbook.md, 'Answers that were deleted'"

_BELOW_START: Mapping[str, str | None] = {
    "fingerprint": "documents were deleted before they were read",
    "index": "frames were deleted before the shard had read them",
    "route": None,  # Answers tile; a document that was judged and is gone is rejected.
}
"""What it means, by stage, that a log begins above the group's offset; None: no error.

Behind the last record that a stage has read lie the markers of transactions. Once retention has
emptied an idle log, it begins behind them, and nothing is lost. Whether a record was among what
is gone, offsets don't tell; the stages named None go on and see it themselves.
"""


def inputs(topology: Topology, stage: str, counts: Mapping[str, int]) -> list[TopicPartition]:
    """Name the partitions that a stage reads, as far as they exist."""
    return [
        TopicPartition(topic, number)
        for topic, partitions in topology.inputs(stage).items()
        for number in range(min(partitions, counts.get(topic, 0)))
    ]


def check_offsets(
    topology: Topology,
    counts: Mapping[str, int],
    committed: Mapping[str, Mapping[TopicPartition, int]],
    ranges: Mapping[TopicPartition, tuple[int, int]],
    *,
    skip_deleted: bool = False,
) -> Iterator[Problem]:
    """Compare what the groups have committed with where the logs begin and end.

    With ``skip_deleted`` documents that were deleted unread are a warning.
    """
    for stage in STAGES:
        group = topology.group(stage)
        wanted = inputs(topology, stage, counts)
        have = committed[group]
        missing = [place for place in wanted if place not in have]
        if missing:
            yield Problem(
                "error", f"group {group}", "its offset of " + _place(missing[0]),
                "missing" + (f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""), "set",
                fix="neardup init --from earliest|latest|TIME",
            )  # fmt: skip
        for place in wanted:
            low, high = ranges[topology.log_of(place)]
            if place not in have or low <= have[place] <= high:
                continue
            why = "the topic is not the one that was read"
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
    yield from _order(topology, committed, ranges)


def _deleted(
    topology: Topology,
    committed: Mapping[str, Mapping[TopicPartition, int]],
    ranges: Mapping[TopicPartition, tuple[int, int]],
) -> Iterator[Problem]:
    """Name documents that may be gone though they were read: route will reject them."""
    first, last = committed[topology.group("fingerprint")], committed[topology.group("route")]
    for place, at in last.items():
        low, _ = ranges[place]
        if place.topic == topology.documents and at < min(low, first.get(place, 0)):
            yield Problem(
                "warning", f"group {topology.group('route')}", "its offset of " + _place(place),
                str(at), f"at least {low}, where the topic begins",
                "documents that were judged and not published are gone; each is reported on"
                f" {topology.rejected} as payload-gone",
                "give the documents more retention than the longest outage",
            )  # fmt: skip


def lost_answers(
    topology: Topology,
    committed: Mapping[str, Mapping[TopicPartition, int]],
    ranges: Mapping[TopicPartition, tuple[int, int]],
) -> list[Problem]:
    """Return a partition whose answers were deleted before route has read them, if there is one.

    As long as a later answer comes, it does not tile, and stops the worker. If none does, only
    this tells: fingerprint is past route, the stages between have nothing to read, and neither has
    route in a log that was cut. Route's offsets were asked first and the logs' ends last, so
    what is on its way is not mistaken for lost.
    """
    route = committed[topology.group("route")]
    fingerprint = committed[topology.group("fingerprint")]
    if any(
        _unread(at, ranges[topology.log_of(seat)])
        for seat, at in committed[topology.group("index")].items()
    ):
        return []
    for place, at in route.items():
        documents = TopicPartition(topology.documents, place.partition)
        waiting = route.get(documents, 0), fingerprint.get(documents, 0)
        if place.topic == topology.documents or waiting[0] >= waiting[1]:
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
    """Tell whether there may be a record to read; the topic's writers all use transactions.

    Behind each of their records there is a marker, so one offset alone holds nothing.
    """
    low, high = span
    return high - max(low, at) > 1


def _order(
    topology: Topology,
    committed: Mapping[str, Mapping[TopicPartition, int]],
    ranges: Mapping[TopicPartition, tuple[int, int]],
) -> Iterator[Problem]:
    """Route reads what fingerprint has read before it; both begin at the same offsets."""
    begun = any(high for place, (_, high) in ranges.items()
                if place.topic != topology.documents)  # fmt: skip
    first, last = committed[topology.group("fingerprint")], committed[topology.group("route")]
    for number in range(topology.partitions):
        place = TopicPartition(topology.documents, number)
        if place not in first or place not in last:
            continue
        if last[place] > first[place] or (not begun and last[place] != first[place]):
            yield Problem(
                "error", f"group {topology.group('route')}", "its offset of " + _place(place),
                str(last[place]),
                ("at most " if begun else "") + f"{first[place]}, where fingerprint is",
                "documents would be left out",
                _EXPIRED if begun else "neardup init --force",
            )  # fmt: skip
            return


def _place(place: TopicPartition) -> str:
    return f"{place.topic}[{place.partition}]"
