"""Fixtures: applications under test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from localkafka.broker import Kafka
from tests.support.application import ApplicationUnderTest

Launch = Callable[..., ApplicationUnderTest]


@pytest.fixture
def launch(kafka: Kafka, app_id: str) -> Iterator[Launch]:
    """Yield a factory of applications on the shared broker; takes what the class takes."""
    with ExitStack() as stack:

        def make(**options: object) -> ApplicationUnderTest:
            application = ApplicationUnderTest(kafka, app_id, **options)  # type: ignore[arg-type]
            return stack.enter_context(application)

        yield make
