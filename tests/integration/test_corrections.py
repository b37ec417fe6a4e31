"""What people correct holds on Kafka as it does anywhere, while workers come and go."""

from typing import Final

import pytest

from tests.integration.conftest import Launch
from tests.support.application import ApplicationUnderTest
from tests.support.checker.history import verdict_of
from tests.support.proof import prove
from tests.support.texts import near_copies, slices
from worker.bus import Outgoing
from worker.corrections.request import Allow, Forget, Request, Withdraw, encoded
from worker.wire.headers import CORRECTION, FORGET

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

SLOGAN: Final = "a slogan that everybody has below a mail, and that tells nothing of a campaign"


def correct(application: ApplicationUnderTest, *requests: Request) -> None:
    application.feed(
        Outgoing(
            application.topology.documents,
            number % application.topology.layout.partitions,
            request.id.encode(),
            None,
            (
                (CORRECTION, encoded(request)),
                *([(FORGET, request.id.encode())] if isinstance(request, Forget) else []),
            ),
        )
        for number, request in enumerate(requests)
    )


@pytest.mark.slow
def test_an_allowance_holds_while_workers_come_and_go(launch: Launch) -> None:
    application = launch(partitions=3)
    first, second, third, _ = slices(near_copies(90, 9), 30, 30, 29)
    application.start("alpha", "beta")
    application.feed(application.documents([(f"s{n}", SLOGAN) for n in range(3)]))
    application.feed(application.documents(first))
    application.audit.reach(33)
    correct(
        application,
        Allow("slogan", SLOGAN, by="ada", why="a footer"),
        Allow("first", first[0][1], exact=True),
        Forget(first[1][0], by="ada"),
    )
    application.feed(application.documents(second))
    application.audit.reach(33 + 30 + 2)  # The tombstone is on both outputs. All are corrected.
    application.worker("alpha").kill()
    application.feed(application.documents([(f"t{n}", SLOGAN) for n in range(6)]))
    application.start("alpha", "gamma")
    application.audit.reach(33 + 36 + 2)
    correct(application, Withdraw("slogan", by="ada"))
    assert application.worker("beta").stop() == 0
    application.feed(application.documents(third))
    application.feed(application.documents([(f"u{n}", SLOGAN) for n in range(3)]))
    prove(application)
    allowed = {
        record.key: verdict_of(record).allowed
        for record in application.audit.unique
        if record.value is not None
    }
    slogans = {f"t{number}".encode() for number in range(6)}
    assert {key for key, by in allowed.items() if by == "slogan"} == slogans
