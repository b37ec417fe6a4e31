"""A cluster of plain values, in place of `worker.admin.Cluster`."""

from collections.abc import Collection, Iterable, Mapping
from typing import cast

from worker.admin.agreement import agreed, dump
from worker.admin.cluster import Cluster, TopicState
from worker.admin.plan import DEFAULT_MAX_BYTES, plan
from worker.bus import Claim, LogTruncated, TopicPartition
from worker.bus.kafka.groups import Committed
from worker.generations.plan import Plan
from worker.settings.model import Settings
from worker.topology import STAGES


class FakeCluster:
    def __init__(
        self,
        settings: Settings,
        partitions: int = 2,
        replicas: int = 3,
        generations: Plan | None = None,
    ) -> None:
        """Make everything as `neardup topics create` would, and begin at 0."""
        generations = generations or Plan.of(settings)
        self.options = settings.kafka_options()
        self.topology = generations.topology(settings, partitions)
        settings = generations.settings(settings)
        self.brokers = 3
        self.states: dict[str, TopicState | None] = {
            one.name: TopicState(
                one.partitions, replicas, {**one.settings(), "min.insync.replicas": "2"}
            )
            for one in plan(settings, self.topology, DEFAULT_MAX_BYTES)
        }
        self.ends: dict[TopicPartition, tuple[int, int]] = {}
        self.written: dict[TopicPartition, tuple[int, int]] = {}
        """Where an open transaction holds readers of committed records back."""
        self.offsets: dict[str, dict[TopicPartition, int]] = {
            self.topology.group(stage): {
                TopicPartition(topic, number): 0
                for topic, count in self.topology.inputs(stage).items()
                for number in range(count)
            }
            for stage in STAGES
        }
        self.epochs: dict[TopicPartition, int] = {}
        self.cut: dict[TopicPartition, int] = {}
        """Where logs have lost their end."""
        self.belongs: dict[str, str] = {}
        """Of topics whose offsets are another's, that other one."""

        facts = agreed(settings, self.topology)
        self.records: dict[str, dict[bytes | None, bytes]] = {
            self.topology.layout_log: {b"layout": dump(facts)}
        }
        """Of compacted topics, the last ones."""

    def as_cluster(self) -> Cluster:
        return cast("Cluster", self)

    def change(self, topic: str, **settings: str) -> None:
        """Set a topic's settings; write them with ``_`` for a dot."""
        state = self.states[topic]
        assert state is not None
        given = {name.replace("_", "."): value for name, value in settings.items()}
        self.states[topic] = TopicState(
            state.partitions, state.replicas, {**state.settings, **given}
        )

    def counts(self) -> tuple[int, dict[str, tuple[int, int]]]:
        found = self.states.items()
        return self.brokers, {
            name: (state.partitions, state.replicas) for name, state in found if state is not None
        }

    def topics(
        self, names: Iterable[str], optional: Collection[str] = ()
    ) -> tuple[int, dict[str, TopicState | None]]:
        del optional
        return self.brokers, {name: self.states.get(name) for name in names}

    def create(
        self, topics: Mapping[str, tuple[int, Mapping[str, str]]], replication: int
    ) -> list[str]:
        for name, (partitions, settings) in topics.items():
            self.states[name] = TopicState(partitions, replication, dict(settings))
        return list(topics)

    def delete(self, topics: Iterable[str]) -> list[str]:
        there = [topic for topic in topics if self.states.get(topic) is not None]
        for topic in there:
            del self.states[topic]
        return there

    def delete_group(self, group: str) -> None:
        self.offsets.pop(group, None)

    def known_settings(self, topic: str) -> set[str]:
        state = self.states[topic]
        assert state is not None
        return set(state.settings)

    def widen(self, counts: Mapping[str, int]) -> None:
        for name, count in counts.items():
            state = self.states[name]
            assert state is not None
            assert count > state.partitions
            self.states[name] = TopicState(count, state.replicas, state.settings)

    def ranges(
        self, counts: Mapping[str, int], *, committed: bool = True
    ) -> dict[TopicPartition, tuple[int, int]]:
        ends = self.ends if committed else self.ends | self.written
        places = [TopicPartition(t, n) for t, count in counts.items() for n in range(count)]
        return {place: ends.get(place, (0, 0)) for place in places}

    def last_records(self, topic: str) -> dict[bytes | None, bytes]:
        return self.records[topic]

    def at_time(self, counts: Mapping[str, int], time_ms: int) -> dict[TopicPartition, int | None]:
        return {
            place: 5 if time_ms <= 1_000 and high > 5 else None
            for place, (_, high) in self.ranges(counts).items()
        }

    def committed(
        self, asked: Mapping[str, Iterable[TopicPartition]]
    ) -> dict[str, dict[TopicPartition, int]]:
        return {
            group: {
                place: self.offsets[group][place]
                for place in places
                if place in self.offsets.get(group, {})
            }
            for group, places in asked.items()
        }

    def annotated(
        self, asked: Mapping[str, Iterable[TopicPartition]]
    ) -> dict[str, dict[TopicPartition, Committed]]:
        return {
            group: {
                place: Committed(offset, epoch=self.epochs.get(place))
                for place, offset in places.items()
            }
            for group, places in self.committed(asked).items()
        }

    def truncated(
        self, group: str, claims: Mapping[TopicPartition, Claim]
    ) -> dict[TopicPartition, LogTruncated]:
        assert group in self.offsets
        return {
            place: LogTruncated(place, claim, self.cut[place])
            for place, claim in claims.items()
            if place in self.cut and claim.offset > self.cut[place]
        }

    def commit(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        of: Mapping[str, str] | None = None,
    ) -> None:
        self.offsets.setdefault(group, {}).update(offsets)
        self.belongs |= of or {}
