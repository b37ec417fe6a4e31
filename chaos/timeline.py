"""How long nothing came, and how long a document waited, in a stretch of a run."""

from collections.abc import Sequence

from tests.support.audit import Arrival


def longest_gap(arrivals: Sequence[Arrival], start: float, end: float) -> float:
    """Give the longest time, in seconds, in which nothing came, of those that reach into it.

    A gap counts in full if it began before ``start``; what comes after ``end`` ends it.
    """
    longest = 0.0
    before = start
    for arrival in arrivals:
        if arrival.at > start:
            longest = max(longest, arrival.at - before)
        before = arrival.at
        if arrival.at >= end:
            return longest
    return max(longest, end - max(before, start))


def longest_wait(arrivals: Sequence[Arrival], start: float, end: float) -> float:
    """Give the longest wait, in seconds, of a document that came in a stretch of time."""
    return max((arrival.wait for arrival in arrivals if start <= arrival.at <= end), default=0.0)
