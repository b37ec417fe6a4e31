"""What every run ends with: all invariants hold, and a replay comes to the same verdicts."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Final

from tests.integration.audit import Audit, read_all
from tests.integration.checker import (
    History,
    check,
    differences,
    frame_ranges,
    sightings,
    verdicts,
)
from tests.integration.harness import ApplicationUnderTest
from tests.integration.index_proof import EndedRun
from tests.integration.replay import replay
from worker.bus.port import Record, TopicPartition
from worker.settings import Settings
from worker.stages import StageError

__all__ = ["history_of", "index_problems", "problems_of", "prove"]

LARGE: Final = 20_000
"""Documents from which on it pays to judge in processes of their own."""
PROCESSES: Final = 2


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
    counts = sorted(shards, reverse=True)  # The more shards, the longer it takes.
    frames = _fingerprints(application)
    settings, topology = _portable(application.settings), application.topology
    with _judges(application) as judges:
        replays = [
            judges.submit(replay, frames, settings, topology, count, application.directory)
            for count in counts
        ]
        problems = check(history)
        published = verdicts(history)
        for count, replayed in zip(counts, replays, strict=True):
            try:
                different = differences(published, replayed.result())
            except StageError as error:  # A frame was lost or doubled: nothing to compare.
                different = [str(error)]
            if different:
                problems += [f"replayed with {count} shards:", *different]
    return problems


def index_problems(application: ApplicationUnderTest) -> list[str]:
    """Compare every index that is up to date with one rebuilt; all workers have stopped."""
    ended = EndedRun(
        application.kafka.bootstrap,
        _portable(application.settings),
        application.topology,
        {name: worker.state_from_outside for name, worker in application.workers.items()},
        application.directory,
    )
    with _judges(application) as judges:
        found = judges.map(ended.problems, range(application.topology.shards))
        return [problem for of_shard in found for problem in of_shard]


def _portable(settings: Settings) -> Settings:
    """Give the same as what another process can be sent: those read from a file can't."""
    return Settings.model_validate(settings.model_dump())


def _judges(application: ApplicationUnderTest) -> Executor:
    if len(application.inputs) < LARGE:
        return ThreadPoolExecutor(1)
    # This process has threads, librdkafka's among them: it must not be forked.
    return ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn"))


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
