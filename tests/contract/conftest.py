"""The buses that the suite runs on."""

from collections.abc import Iterator

import pytest

from tests.contract.harness import Harness, MemoryHarness

BUSES = [
    "memory",
]


@pytest.fixture(params=BUSES)
def harness() -> Iterator[Harness]:
    """Yield a bus with its surroundings; all that joined it is closed at the end."""
    harness = MemoryHarness()
    yield harness
    harness.close()
