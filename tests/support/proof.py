"""What every run ends with: all invariants hold, and a replay comes to the same verdicts."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Final, NamedTuple

from tests.support.application import ApplicationUnderTest
from tests.support.audit import Audit, read_from_start
from tests.support.checker import check, differences
from tests.support.checker.history import (
    History,
    Source,
    Verdict,
    frame_ranges,
    sightings,
    verdicts,
)
from tests.support.generations import Answering, in_force, judged_anew
from tests.support.index_proof import EndedRun
from worker.bus import Record, TopicPartition
from worker.settings.model import Settings
from worker.stages.base import StageError
from worker.wire.codec import decode
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.frame import POSITION_BITS

ANY_TEXT: Final = 0.01
"""A threshold below which no match is wrong."""
LARGE: Final = 20_000
"""Documents from which on it pays to judge in processes of their own."""
PROCESSES: Final = 2


class Book(NamedTuple):
    """What is judged: a run's history, and the frames in which its order lies."""

    history: History
    fingerprints: Sequence[Record]
    partial: bool = False
    """Whether frames hold documents that are left out of the history."""


def book_of(application: ApplicationUnderTest) -> Book:
    """Return all that went in and came out: as it reads now, and as it was seen meanwhile."""
    audit: Audit = application.audit
    topology = application.topology
    generations = in_force(application, application.settings)
    logs = {one.generation.log: one for one in reversed(generations)}.values()
    fingerprints = {one.generation.log: application.fingerprints(one.topology) for one in logs}
    history = History(
        list(application.inputs),
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
        frames=[
            covered._replace(number=first.numbered(covered.number))
            for first in sorted(logs, key=lambda one: one.generation.log)
            for covered in frame_ranges(
                (f for f in fingerprints[first.generation.log] if f.offset >= first.since),
                first.topology.layout.id,
            )
        ],
        parameters=topology.layout.parameters,
        deletes=application.settings.documents.deletes == "forget",
        expires=application.settings.index.window_ms is not None,
    )
    if len(fingerprints) > 1:
        history = _renumbered(history, logs, fingerprints)
    frames = [frame for log in sorted(fingerprints) for frame in fingerprints[log]]
    return Book(history, frames)


def _renumbered(
    history: History, logs: Iterable[Answering], fingerprints: Mapping[int, Sequence[Record]]
) -> History:
    """Return a history whose documents have other numbers in each log.

    What is similar is another thing in each of them, too: what matches is left to replays.
    """
    published = {at: one.sequence for at, one in verdicts(history).items()}
    numbers: dict[int, int] = {}
    for one in logs:
        for record in fingerprints[one.generation.log]:
            frame = decode(FingerprintFrame, record.value, one.topology.layout.id)
            first = one.numbered(record.offset) << POSITION_BITS
            for number, offset in enumerate(frame.offsets.tolist(), first):
                if (at := (frame.partition, frame.start + offset)) in published:
                    numbers[number] = published[at]
    lenient = replace(history.parameters, threshold=ANY_TEXT)
    return replace(history, renumbered=numbers, parameters=lenient)


def history_of(application: ApplicationUnderTest) -> History:
    """Give all that went in and came out."""
    return book_of(application).history


def published(book: Book, reached: Mapping[int, int]) -> Book:
    """Return the same, of the documents below an offset of each partition only."""
    inputs = [one for one in book.history.inputs if one.offset < reached.get(one.partition, 0)]
    return Book(replace(book.history, inputs=inputs), book.fingerprints, partial=True)


def by_containment(book: Book) -> int:
    """Return how many matches are there for their containment alone."""
    threshold = book.history.parameters.threshold
    return sum(
        similarity < threshold and share is not None
        for verdict in verdicts(book.history).values()
        for (_, similarity), share in zip(verdict.matches, verdict.containments, strict=False)
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
    book = book_of(application)
    problems = problems_of(application, book, shards)
    assert not problems, "\n".join(problems)
    return book.history


def problems_of(application: ApplicationUnderTest, book: Book, shards: Iterable[int]) -> list[str]:
    """Check the invariants, and replay the run's own order with other numbers of shards.

    If the index was replaced, each document is judged by the generation whose turn it was.
    """
    counts = sorted(shards, reverse=True)  # The more shards, the longer it takes.
    generations = in_force(application, _portable(application.settings))
    with _judges(application) as judges:
        replays = [
            judges.submit(judged_anew, book.fingerprints, generations, count, application.directory)
            for count in counts
        ]
        problems = check(book.history, partial=book.partial)
        judged = _shortened(verdicts(book.history), application.fewest_matches)
        for count, replayed in zip(counts, replays, strict=True):
            try:
                expected = _shortened(replayed.result(), application.fewest_matches)
            except StageError as error:  # A frame was lost or doubled: nothing to compare.
                problems += [f"replayed with {count} shards:", str(error)]
                continue
            if book.partial:
                expected = {at: expected[at] for at in judged.keys() & expected.keys()}
            if different := differences(judged, expected):
                problems += [f"replayed with {count} shards:", *different]
    return problems


def _shortened(
    decisions: Mapping[Source, Verdict], matches: int | None
) -> Mapping[Source, Verdict]:
    """Leave each decision its best matches, if workers published more or fewer of them."""
    if matches is None:
        return decisions
    return {
        at: one._replace(matches=one.matches[:matches], first=None, containments=())
        for at, one in decisions.items()
    }


def ended_run(application: ApplicationUnderTest, *, rotten: bool = False) -> EndedRun:
    """Return what the workers left behind of the index in use; all of them have just stopped.

    ``rotten``: tables were damaged, and stores that show it are left out.
    """
    in_use = in_force(application, _portable(application.settings))[-1]
    states = {name: worker.state_from_outside for name, worker in application.workers.items()}
    return EndedRun(
        application.kafka.bootstrap,
        in_use.settings,
        in_use.topology,
        {name: in_use.generation.directory(state) for name, state in states.items()},
        application.directory,
        EndedRun.committed(in_use.settings, in_use.topology),
        application.fingerprints(in_use.topology) if application.collected else None,
        rotten,
    )


def index_problems(application: ApplicationUnderTest, ended: EndedRun | None = None) -> list[str]:
    """Compare every index that is up to date with one rebuilt; all workers have stopped."""
    ended = ended or ended_run(application)
    with _judges(application) as judges:
        found = judges.map(ended.problems, range(ended.topology.layout.shards))
        return [problem for of_shard in found for problem in of_shard]


def _portable(settings: Settings) -> Settings:
    """Give the same as what another process can be sent: those read from a file can't."""
    return Settings.model_validate(settings.model_dump())


def _judges(application: ApplicationUnderTest) -> Executor:
    if len(application.inputs) < LARGE:
        return ThreadPoolExecutor(1)
    # This process has threads, librdkafka's among them: it must not be forked.
    return ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn"))


def _read(application: ApplicationUnderTest, topic: str) -> list[Record]:
    """Return what a topic holds, and before that what it held when it was seen."""
    bootstrap, seen = application.kafka.bootstrap, application.audit.of(topic)
    found: list[Record] = []
    for number in range(application.topology.layout.partitions):
        place = TopicPartition(topic, number)
        low, now = read_from_start(bootstrap, place)
        gone = [record for record in seen if record.partition == number and record.offset < low]
        found += [*gone, *now]
    return found
