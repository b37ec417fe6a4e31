"""Fixtures: applications under test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from localkafka.broker import Kafka
from tests.support.application import ApplicationUnderTest
from tests.support.breadth import slow

Launch = Callable[..., ApplicationUnderTest]

PROTOCOLS: Final = [pytest.param("classic", marks=pytest.mark.slow(ci=False)), slow("consumer")]
"""Those of groups, for a test that `.ci/run` does under one of them."""


@pytest.fixture
def launch(kafka: Kafka, app_id: str) -> Iterator[Launch]:
    """Yield a factory of applications on the shared broker; takes what the class takes."""
    with ExitStack() as stack:

        def make(**options: object) -> ApplicationUnderTest:
            application = ApplicationUnderTest(kafka, app_id, **options)  # type: ignore[arg-type]
            return stack.enter_context(application)

        yield make
