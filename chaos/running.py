"""A cell is run: an application that is fed, read and broken at the same time, then judged."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from tempfile import TemporaryDirectory
from threading import Event
from time import monotonic
from typing import Final
from uuid import uuid4

from confluent_kafka import KafkaException

from chaos.cell import Cell, Hit, Outcome, Protocol, Run
from chaos.disk import NoSmallDisk, mounted
from chaos.doing import Doing
from chaos.fault import World
from chaos.feeding import Feeding
from chaos.nemesis import Nemesis, Struck
from chaos.proxy import Proxies
from chaos.reindexing import Reindexing
from chaos.retention import Retention
from chaos.sections import sections_of
from chaos.supervisor import Supervisor
from chaos.timeline import longest_gap, longest_wait
from chaos.watch import TopicWatch
from localkafka.broker import KafkaCluster, wait_until
from tests.support.application import ApplicationUnderTest
from tests.support.audit import Arrival
from tests.support.proof import (
    book_of,
    by_containment,
    ended_run,
    index_problems,
    problems_of,
)
from tests.support.worker_process import ROOT
from worker.bus import BusError

Say = Callable[[str], None]
Ground = tuple[KafkaCluster, Proxies]
"""Three nodes, and the proxies before them."""

FAILURES: Final = (AssertionError, TimeoutError, KafkaException, BusError)
"""What ends a run as broken; anything else is a mistake in these tests."""

START_SECONDS: Final = 90.0
DRAIN_SECONDS: Final = 300.0
DISK_MEGABYTES: Final = 640
"""So much that 100,000 documents do not fill it by themselves."""


def run_cell(cell: Cell, protocol: Protocol, ground: Ground, run: Run, say: Say) -> Outcome:
    """Run a cell to its end, and judge it: what is wrong is in the outcome's ``problems``."""
    outcome = Outcome(cell.name, protocol)
    began = monotonic()
    try:
        _run(cell, ground, run, outcome, say)
    except NoSmallDisk as why:
        outcome.left_out = f"no disk can be mounted here: {why}"
    outcome.seconds = monotonic() - began
    return outcome


def _run(cell: Cell, ground: Ground, run: Run, outcome: Outcome, say: Say) -> None:
    with (
        application_of(cell, outcome.protocol, ground) as (application, world),
        concluding(cell, world, outcome),
    ):
        world.supervisor.start(*cell.workers)
        outcome.hits = attack(application, world, run, say)
        outcome.documents = len(application.inputs)
        say("judging")
        outcome.problems.extend(late(cell, outcome))
        outcome.problems.extend(judge(world, run.shards, outcome))


@contextmanager
def concluding(cell: Cell, world: World, outcome: Outcome) -> Iterator[None]:
    """Note what failed, and which workers ended by themselves, whom nobody expected to."""
    try:
        yield
    except FAILURES as error:
        outcome.problems.extend(f"{type(one).__name__}: {one}" for one in _failures(error))
    supervisor = world.supervisor
    outcome.reindexes, outcome.failures = world.reindexing.done, world.reindexing.failures
    outcome.restarts = supervisor.restarts
    outcome.unexpected = len(cell.unexpected(supervisor.restarts))
    wrong = cell.unexpected(supervisor.restarts)
    for kind, times in Counter(one.kind for one in wrong).items():
        first = next(one for one in wrong if one.kind == kind)
        outcome.problems.append(
            f"a worker ended by itself, {times} times like this: {first.worker}, status"
            f" {first.status}: {first.why}"
        )
    outcome.troubles = dict(supervisor.troubles())
    if outcome.problems:
        outcome.problems.append(f"logs: {keep_logs(world.application)}")


def _failures(error: BaseException) -> Iterator[BaseException]:
    """Return a failure, and before it the one that was being handled as it came."""
    before = error.__context__
    if isinstance(before, FAILURES) and not error.__suppress_context__:
        yield from _failures(before)
    yield error


@contextmanager
def application_of(
    cell: Cell, protocol: Protocol, ground: Ground
) -> Iterator[tuple[ApplicationUnderTest, World]]:
    """Set an application up behind the proxies; its topics go with it."""
    cluster, proxies = ground
    with ExitStack() as stack:
        snapshots = None
        if cell.snapshots is not None:
            snapshots = stack.enter_context(TemporaryDirectory(prefix="neardup-snapshots-"))
        application = ApplicationUnderTest(
            cluster,
            f"neardup-{cell.name}-{protocol}-{uuid4().hex[:6]}",
            settings=sections_of(cell, protocol, cluster.proxied_bootstrap, snapshots),
        )
        stack.callback(_delete_topics, cluster, application)
        stack.enter_context(application)
        disk = None
        if cell.small_disk:
            name = (cell.victims or tuple(cell.workers))[0]
            disk = stack.enter_context(
                mounted(application.directory / name / "state", DISK_MEGABYTES)
            )
            worker = application.worker(name, wrapper=disk.wrapper(ROOT))
            worker.state_from_outside = disk.inside
        over = Event()
        feeding = Feeding(application, over, cell.aborts, cell.forgets)
        supervisor = Supervisor(application, cell.workers, cell.unexpected)
        reindexing = stack.enter_context(Reindexing(application, over, cell.failures))
        world = World(cluster, proxies, supervisor, application, feeding, over, reindexing, disk)
        if cell.retention is not None:
            application.collect()
            world.retention = stack.enter_context(
                Retention(cluster.admin(), application, cell.retention)
            )
        if cell.speed is not None:
            stack.enter_context(proxies.speed(cell.speed))
        yield application, world


def attack(application: ApplicationUnderTest, world: World, run: Run, say: Say) -> list[Hit]:
    """Feed, read and break, until all is fed, broken and published."""
    audit, supervisor, over = application.audit, world.supervisor, world.over
    nemesis = Nemesis(world, run.strikes, say, run.seconds)
    warm_up = min(len(run.documents) // 10, 200)
    world.feeding.first(run.documents[:warm_up])
    audit.reach(warm_up, START_SECONDS)
    say(f"{', '.join(supervisor.names)} at work; {run.rate:.0f} documents a second")

    fed_at: list[float] = []
    struck = Event()

    def feed() -> None:
        world.feeding.run(run, warm_up, struck)
        fed_at.append(monotonic())

    def strike() -> None:
        try:
            nemesis.run()
            world.reindexing.finish()
        finally:
            struck.set()

    watch = TopicWatch(world.cluster.bootstrap, application.topology.fingerprints)
    with watch, Doing({"the feeder": feed, "the nemesis": strike}, over.set) as doing:
        while not doing.all_done():
            audit.read(0.1)
            supervisor.supervise()
        if world.book is None:
            _drain(application, supervisor, say)
    hits = list(_hits(nemesis.struck, audit.arrivals, watch.arrivals, fed_at[0]))
    for hit in hits:
        say(f"{hit.what}: {hit.gap:.1f} s without a verdict, the longest wait {hit.wait:.1f} s")
    return hits


def _drain(application: ApplicationUnderTest, supervisor: Supervisor, say: Say) -> None:
    """Read until everything is published, and restart who falls meanwhile."""
    say(f"{len(application.inputs):,} fed, {len(application.audit.records):,} published")
    checked = 0.0

    def drained() -> bool:
        nonlocal checked
        supervisor.supervise()
        if monotonic() - checked < 1.0:
            return False
        checked = monotonic()
        return application.audit.drained()

    audit = application.audit
    audit.until(drained, DRAIN_SECONDS, "all documents to be published", may_end=True)
    audit.finish(DRAIN_SECONDS, may_end=True)


def _hits(
    struck: Sequence[Struck], arrivals: Sequence[Arrival], upstream: Sequence[Arrival], end: float
) -> Iterator[Hit]:
    for number, one in enumerate(struck):
        following = struck[number + 1].began if number + 1 < len(struck) else max(end, one.began)
        until = max(following, one.healed or one.began)
        yield Hit(
            one.strike.fault,
            one.what,
            (one.healed or until) - one.began,
            longest_gap(arrivals, one.began, until),
            longest_wait(arrivals, one.began, until),
            longest_gap(upstream, one.began, until),
            longest_gap(arrivals, one.began, one.healed or until),
        )


def judge(world: World, shards: Sequence[int], outcome: Outcome) -> Iterator[str]:
    """Stop all workers; say what is wrong with what they have done."""
    application, supervisor = world.application, world.supervisor
    if world.book is not None:  # They have ended, and may have ended between any two records.
        yield from problems_of(application, world.book, shards)
        return
    try:
        wait_until(
            lambda: _all_ready(supervisor), START_SECONDS, "all workers to be ready at the end"
        )
    except TimeoutError as error:
        yield str(error)
        yield from (f"{name}: {supervisor.worker(name).readiness()}" for name in supervisor.names)
    for name in supervisor.names:
        status = supervisor.stop(name)
        if status != 0:
            yield f"{name}, told to stop at the end, ended with {status}"
    ended = ended_run(application, rotten=world.rotten)
    book = book_of(application)
    yield from problems_of(application, book, shards)
    outcome.contained = by_containment(book)
    if application.settings.similarity.containment is not None and not outcome.contained:
        yield "no document matched by its containment alone, though some are excerpts"
    yield from index_problems(application, ended)


def late(cell: Cell, outcome: Outcome) -> Iterator[str]:
    """Say which of a cell's limits were passed."""
    for what, limit, found in (
        ("no verdict for", cell.gap, outcome.gap),
        ("while a worker was away, no verdict for", cell.away, outcome.away),
        ("a document waited", cell.wait, outcome.wait),
        ("nothing fingerprinted for", cell.upstream_gap, outcome.upstream_gap),
    ):
        if limit is not None and found > limit:
            yield f"{what} {found:.1f} s; the limit is {limit:.0f} s"


def _all_ready(supervisor: Supervisor) -> bool:
    supervisor.supervise()
    return all(supervisor.worker(name).ready() for name in supervisor.names)


def keep_logs(application: ApplicationUnderTest) -> str:
    """Copy the workers' logs to where they stay; say where."""
    kept = application.directory.with_name(f"{application.directory.name}-logs")
    kept.mkdir(exist_ok=True)
    for name, worker in application.workers.items():
        if worker.log.exists():
            (kept / f"{name}.log").write_bytes(worker.log.read_bytes())
    for log in application.directory.glob("*.log"):
        (kept / log.name).write_bytes(log.read_bytes())
    return os.fspath(kept)


def _delete_topics(cluster: KafkaCluster, application: ApplicationUnderTest) -> None:
    admin = cluster.admin()
    prefix = f"{application.topology.app}."
    with suppress(KafkaException):  # Of a run that broke the cluster, which is given up.
        ours = [name for name in admin.list_topics(timeout=30).topics if name.startswith(prefix)]
        for deleted in admin.delete_topics(ours).values():
            deleted.result(timeout=60)
