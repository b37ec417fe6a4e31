"""A reindex whose generation has fingerprints of its own: what it can be, and its steps."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

import msgspec

from lsh import SWITCHES
from worker.admin.agreement import Facts, recorded
from worker.admin.cluster import Cluster
from worker.bus import Bus, Offset, TopicPartition, state_of
from worker.bus.ranges import read_ranges
from worker.generations.generation import Generation, Signing
from worker.generations.plan import Plan
from worker.generations.turns import SEALED, WAITING
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings
from worker.topology import Topology
from worker.wire.codec import hand_over

_HEADROOM = 1 << 30
"""How many offsets the earlier log may grow by while the next one is built."""
_LAST_OFFSETS = 64
"""The end of a log, in which its last record is. Behind it are markers of transactions."""


def begun_with(cluster: Cluster, settings: Settings) -> tuple[Plan, Signing]:
    """Return as what an application began, and how its fingerprints were made.

    The settings only name it: they may be those of its next generation.

    Raises:
        ConfigurationError: it has not begun.
        BusError: the cluster doesn't answer.
    """
    named = settings.topology(1)
    _, counts = cluster.counts()
    facts = recorded(cluster, named) if named.layout_log in counts else None
    if facts is None:
        raise ConfigurationError(
            f"{named.app} has not begun: it gets the fingerprints of its settings"
        )
    base = generation_of(facts)
    return Plan(base, base), signing_of(facts)


def signing_of(facts: Facts) -> Signing:
    """Return what made the fingerprints with which an application began, as it recorded that."""
    given = {name: facts.get(f"similarity.{name}") for name in ("shingle", "shingle_size")}
    return msgspec.convert(
        {
            **given,
            "switches": [name for name in SWITCHES if facts.get(f"similarity.{name}")],
            "sized": facts.get("similarity.containment") is not None,
        },
        Signing,
    )


def generation_of(facts: Facts) -> Generation:
    """Return the generation with which an application began, as it recorded that."""
    similarity = ("threshold", "slots", "bands", "rows", "containment")
    given = {name: facts.get(f"similarity.{name}") for name in similarity}
    given |= {name: facts.get(f"index.{name}") for name in ("shards", "absorb", "bucket_capacity")}
    given |= {"number": 0, "window": facts.get("index.window", "none")}
    return msgspec.convert(given, Generation)


def fingerprinted(generation: Generation, signing: Signing | None) -> tuple[object, ...]:
    """Return what makes a generation's fingerprints, without whether they are sized."""
    unsized = None if signing is None else msgspec.structs.replace(signing, sized=False)
    return generation.slots, generation.bands, generation.rows, unsized


def check_anew(plan: Plan, following: Generation) -> None:
    """Check that a generation needs fingerprints of its own.

    Raises:
        ConfigurationError: those that are there are the same.
    """
    signing = plan.signing(plan.current)
    same = fingerprinted(plan.current, signing) == fingerprinted(following, following.signing)
    wants_sizes = following.signing is not None and following.signing.sized
    if same and not (wants_sizes and signing is not None and not signing.sized):
        raise ConfigurationError(
            "--from-documents: the fingerprints would be the same ones; run it without"
        )


def numbered(plan: Plan, following: Generation, end: int) -> Generation:
    """Return a generation with a log of its own, and the numbers of its frames.

    ``end`` is the end of the log in use, whose frames must have lower numbers.
    """
    number = plan.used + 1
    first = plan.current.numbered_from + end + _HEADROOM
    return msgspec.structs.replace(following, number=number, log=number, numbered_from=first)


def numbers_follow(following: Generation, source: Topology, end: int) -> bool:
    """Return whether frames of a generation's log have higher numbers than those of another log."""
    return source.layout.numbered_from + end + _HEADROOM // 2 < following.numbered_from


def set_starts(cluster: Cluster, source: Topology, target: Topology) -> None:
    """Set where the groups of a new log begin: before it is handed over, only *refingerprint* does.

    Raises:
        BusError: the cluster refuses.
    """
    low, _ = cluster.ranges({source.fingerprints: 1})[source.order]
    reached = _reached(cluster, source)
    wanted: dict[str, dict[TopicPartition, int]] = {
        target.group("refingerprint"): {source.order: low},
        target.group("fingerprint"): {
            place: Offset(reached.get(place, 0), WAITING) for place in _documents(target)
        },
    }
    present = cluster.committed(wanted)
    for group, offsets in wanted.items():
        missing = {place: at for place, at in offsets.items() if place not in present[group]}
        if missing:
            cluster.commit(group, missing)


def rewritten(cluster: Cluster, source: Topology, target: Topology) -> int:
    """Return the offset of the earlier log before which all have new fingerprints."""
    group = target.group("refingerprint")
    return cluster.committed({group: [source.order]})[group].get(source.order, 0)


def sealed(cluster: Cluster, source: Topology) -> list[int] | None:
    """Return up to where a log has the documents, by partition; None if it isn't sealed yet."""
    offsets = _reached(cluster, source)
    ends = {place: int(at) for place, at in offsets.items() if state_of(at) == SEALED}
    if len(ends) < source.layout.partitions:
        return None
    return [ends[place] for place in _documents(source)]


def begun(cluster: Cluster, target: Topology) -> bool:
    """Return whether all partitions of the documents have been begun for a log."""
    offsets = _reached(cluster, target)
    waiting = [at for at in offsets.values() if state_of(at) == WAITING]
    return len(offsets) == target.layout.partitions and not waiting


def _reached(cluster: Cluster, topology: Topology) -> Mapping[TopicPartition, int]:
    group = topology.group("fingerprint")
    return cluster.committed({group: _documents(topology)})[group]


def _documents(topology: Topology) -> list[TopicPartition]:
    return [TopicPartition(topology.documents, n) for n in range(topology.layout.partitions)]


def written(bus: Bus, target: Topology) -> bool:
    """Return whether the new log has its hand-over, which is the last that *refingerprint* writes.

    Ask it only before anything else is written there.
    """
    order = target.order
    with closing(bus.log_reader(target.group("refingerprint"), [order.topic])) as reader:
        low, high = reader.watermarks(order)
        return any(
            hand_over(record.value, target.layout.id) == target.generation
            for record in read_ranges(reader, {order: (max(low, high - _LAST_OFFSETS), high)})
        )


def fingerprinted_to(
    earlier: Mapping[TopicPartition, int], following: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return how far the documents are fingerprinted while one log takes over from another.

    Both are offsets of the groups of *fingerprint*, of the earlier log and of the following one.
    """
    begun = {place: at for place, at in following.items() if state_of(at) != WAITING}
    return {**earlier, **begun}
