"""Workers that join and leave while documents stream, in both group protocols."""

from collections.abc import Callable
from time import monotonic

import pytest

from tests.integration.conftest import Launch
from tests.integration.stream import stream
from tests.support.application import ApplicationUnderTest
from tests.support.corpus import corpus, scaled
from tests.support.proof import prove

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900), pytest.mark.slow]


def joins(application: ApplicationUnderTest, *names: str) -> Callable[[], None]:
    """Give an event: workers start, and have taken on partitions before anything else is fed."""

    def event() -> None:
        application.start(*names)
        for name in names:
            application.worker(name).await_text("; stages ")

    return event


def leaves(application: ApplicationUnderTest, *names: str) -> Callable[[], None]:
    """Give an event: workers end, and never come back."""

    def event() -> None:
        for name in names:
            assert application.worker(name).stop() == 0

    return event


def test_from_one_worker_to_three_and_back(launch: Launch) -> None:
    application = launch()
    application.start("alpha")
    events = [joins(application, "beta", "gamma"), leaves(application, "alpha", "gamma")]
    stream(application, corpus(scaled(3_000, 30_000), 10), events, 10, seconds=300)
    prove(application, shards=(1, 4), seconds=600)


def test_kip_848_with_a_worker_that_joins_and_one_that_leaves(launch: Launch) -> None:
    application = launch(settings={"kafka": {"group_protocol": "consumer"}})
    application.seat("alpha", "beta")
    events = [joins(application, "gamma"), leaves(application, "alpha")]
    stream(application, corpus(scaled(2_000, 30_000), 11), events, 11, seconds=300)
    prove(application, shards=(1, 2, 4, 18), seconds=600)


@pytest.mark.slow(ci=False)
def test_kip_848_with_a_worker_that_is_killed_and_comes_back(launch: Launch) -> None:
    application = launch(settings={"kafka": {"group_protocol": "consumer"}})
    application.seat("alpha", "beta")

    def kill() -> None:
        application.worker("beta").kill()
        application.start("beta")

    stream(application, corpus(scaled(1_500, 15_000), 12), [kill], 12, seconds=300)
    prove(application, seconds=600)


def test_a_worker_soon_processes_its_first_document(
    launch: Launch, record_property: Callable[[str, object], None]
) -> None:
    application = launch()
    application.start("alpha", arguments=("--stages", "index,route"))
    application.worker("alpha").await_text("; stages ")
    application.feed(application.documents(corpus(1, 13)))
    # Nobody else fingerprints: what is published has gone through the one that joins.
    began = monotonic()
    application.start("beta", arguments=("--stages", "fingerprint"))
    application.audit.reach(1, 60)
    took = monotonic() - began
    record_property("seconds_to_first_document", round(took, 2))
    print(f"first document {took:.2f} s after the process was started")  # noqa: T201 -- a figure
    prove(application)
