"""Feeding a run in slices, with something happening in the middle of each."""

from collections.abc import Callable, Sequence
from random import Random

from tests.support.application import ApplicationUnderTest


def stream(
    application: ApplicationUnderTest,
    documents: Sequence[tuple[str, str]],
    events: Sequence[Callable[[], object]],
    seed: int = 0,
    *,
    seconds: float = 120.0,
) -> None:
    """Feed a slice per event, and one more; each event finds part of its slice published."""
    random = Random(seed)
    size = -(-len(documents) // (len(events) + 1))
    for number, event in enumerate(events):
        first = number * size
        application.feed(application.documents(documents[first : first + size], first))
        application.audit.reach(first + int(random.uniform(0.05, 0.6) * size), seconds)
        event()
    first = len(events) * size
    application.feed(application.documents(documents[first:], first))
