"""What every run ends with: all invariants hold, and a replay comes to the same verdicts."""

from collections.abc import Iterable, Iterator, Sequence

from tests.integration.audit import Audit, read_all
from tests.integration.checker import (
    History,
    check,
    differences,
    dump,
    frame_ranges,
    index_differences,
    rebuilt,
    sightings,
    verdicts,
)
from tests.integration.harness import ApplicationUnderTest
from tests.integration.replay import replay
from worker.app import Application
from worker.bus.kafka import KafkaBus
from worker.bus.port import Record, TopicPartition

__all__ = ["history_of", "index_problems", "problems_of", "prove"]


def history_of(application: ApplicationUnderTest) -> History:
    """Give all that went in and came out: as it reads now, and as it was seen meanwhile."""
    audit: Audit = application.audit
    topology = application.topology
    return History(
        application.inputs,
        _read(application, topology.unique),
        _read(application, topology.duplicate),
        _read(application, topology.rejected),
        seen={
            kind: sightings(record for record in audit.records if record.topic == topic)
            for kind, topic in (
                ("unique", topology.unique),
                ("duplicate", topology.duplicate),
                ("rejected", topology.rejected),
            )
        },
        frames=frame_ranges(_fingerprints(application), topology.layout),
        parameters=topology.parameters,
    )


def prove(
    application: ApplicationUnderTest,
    shards: Iterable[int] = (1,),
    *,
    seconds: float = 120.0,
    may_end: bool = False,
) -> History:
    """Read to the end; fail with what is wrong."""
    application.audit.finish(seconds, may_end=may_end)
    history = history_of(application)
    problems = problems_of(application, history, shards)
    assert not problems, "\n".join(problems)
    return history


def problems_of(
    application: ApplicationUnderTest, history: History, shards: Iterable[int]
) -> list[str]:
    """Check the invariants, and replay the run's own order with other numbers of shards."""
    problems = check(history)
    published = verdicts(history)
    frames = _fingerprints(application)
    for count in shards:
        expected = replay(
            frames, application.settings, application.topology, count, application.directory
        )
        if different := differences(published, expected):
            problems += [f"replayed with {count} shards:", *different]
    return problems


def index_problems(application: ApplicationUnderTest) -> list[str]:
    """Compare every index that is up to date with one rebuilt; all workers have stopped."""
    return list(_index_problems(application))


def _index_problems(application: ApplicationUnderTest) -> Iterator[str]:
    topology = application.topology
    bus = KafkaBus(application.settings.kafka_options())
    for shard in range(topology.shards):
        bands = read_all(application.kafka.bootstrap, TopicPartition(topology.bands, shard))
        fresh = None
        for name, worker in sorted(application.workers.items()):
            owner = Application(application.settings, topology, bus, worker.state_from_outside)
            if not owner.store_path(shard).exists():
                continue
            store = owner.open_store(shard)
            try:
                # Who lost a shard to another worker keeps what it had, for when it comes back.
                if store.offset <= bands[-1].offset:
                    continue
                fresh = fresh or rebuilt(
                    bands, topology, owner.rules(), shard, application.directory
                )
                for problem in index_differences(dump(store), fresh):
                    yield f"shard {shard} of {name}: {problem}"
            finally:
                store.close()
        if fresh is None:
            yield f"no worker has an index of shard {shard} that has reached the end of its log"


def _fingerprints(application: ApplicationUnderTest) -> Sequence[Record]:
    return read_all(
        application.kafka.bootstrap, TopicPartition(application.topology.fingerprints, 0)
    )


def _read(application: ApplicationUnderTest, topic: str) -> list[Record]:
    return [
        record
        for number in range(application.topology.partitions)
        for record in read_all(application.kafka.bootstrap, TopicPartition(topic, number))
    ]
