"""Workers that stop, die and come back: nothing is lost or doubled."""

from collections.abc import Callable
from random import Random

import pytest

from tests.integration.conftest import Launch
from tests.integration.stream import stream
from tests.support.corpus import corpus, scaled
from tests.support.proof import prove

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(1_800)]

TRIO = ("alpha", "beta", "gamma")


@pytest.mark.slow(ci=False)
def test_a_worker_that_is_told_to_stop_ends_well_and_goes_on_where_it_was(launch: Launch) -> None:
    application = launch()
    application.seat(*TRIO)

    def restart() -> None:
        assert application.worker("beta").stop() == 0
        application.start("beta")

    stream(application, corpus(scaled(3_000, 30_000), 3), [restart, restart], 3, seconds=300)
    prove(application, seconds=600)


def test_workers_that_are_killed_lose_and_double_nothing(launch: Launch) -> None:
    application = launch(settings={"index": {"flush_seconds": 2, "flush_documents": 500}})
    application.seat(*TRIO)
    random = Random(4)

    def kill() -> None:
        application.start(application.kill_some(random))

    def kill_for_long() -> None:
        name = application.kill_some(random)
        # The others take its partitions over once its session has ended, and catch up.
        application.audit.reach(len(application.inputs))
        application.start(name)

    kills: list[Callable[[], None]] = [kill, kill_for_long, *scaled(0, 1) * [kill]]
    kills += scaled(0, 1) * [kill, kill, kill, kill_for_long, kill, kill, kill]
    stream(application, corpus(scaled(3_000, 50_000), 4), kills, 4, seconds=300)
    prove(application, shards=(1, 4), seconds=600)


@pytest.mark.slow
def test_all_workers_killed_at_once_come_back_to_the_same_verdicts(launch: Launch) -> None:
    application = launch()
    application.seat(*TRIO)

    def kill_all() -> None:
        for name in TRIO:
            application.worker(name).kill()
        application.start(*TRIO)

    stream(application, corpus(scaled(2_000, 20_000), 5), [kill_all], 5, seconds=300)
    prove(application, seconds=600)


@pytest.mark.slow(ci=False)
def test_a_killed_worker_that_lost_its_disk_rebuilds_its_shards(launch: Launch) -> None:
    application = launch()
    application.seat("alpha", "beta")

    def lose() -> None:
        worker = application.worker("beta")
        worker.kill()
        worker.state_dir.rename(worker.state_dir.with_name("lost"))
        application.start("beta")

    stream(application, corpus(scaled(2_000, 20_000), 6), [lose], 6, seconds=300)
    prove(application, seconds=600)


@pytest.mark.slow
def test_of_two_workers_under_one_name_the_older_ends(launch: Launch) -> None:
    application = launch()
    application.start("alpha")
    older = application.worker("alpha")
    documents = corpus(1_000, 7)
    application.feed(application.documents(documents[:500]))
    application.audit.reach(100)
    application.worker("impostor", instance="alpha")
    application.start("impostor")
    assert older.wait(60) == 1
    assert "Another worker runs under this instance's name" in older.output()
    application.feed(application.documents(documents[500:], 500))
    prove(application, may_end=True)
    assert application.worker("impostor").running
