"""Members as the suite drives them: polled in turn, in one thread, with deadlines.

On a cluster a join, a rebalance or a fetch takes its time, so nothing here expects that
the next poll brings it. Everything is waited for, and a deadline says what didn't come.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from worker.bus import Aborted, Member, OutcomeUnknown, Outgoing, Polled, Record, TopicPartition

DEADLINE_SECONDS: Final = 90.0
POLL_SECONDS: Final = 0.05


def until(condition: Callable[[], object], what: str) -> None:
    """Call ``condition`` until it is true; it does the polling itself."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_SECONDS:.0f} s: {what}"


def records_of(polled: Polled) -> list[Record]:
    """Give the records that a poll has returned."""
    return [*chain.from_iterable(polled.batches)]


def next_offsets(records: Iterable[Record]) -> dict[TopicPartition, int]:
    """Give the offsets to commit once these records are done with."""
    return {TopicPartition(r.topic, r.partition): r.offset + 1 for r in records}


class Seat:
    """A member, and what it has got so far.

    Attributes:
        assignment: what it owns; None until it was told.
        records: all that was delivered, in order; tests may clear it.
    """

    def __init__(self, member: Member) -> None:
        self.member = member
        self.assignment: frozenset[TopicPartition] | None = None
        self.records: list[Record] = []

    @property
    def owned(self) -> list[TopicPartition]:
        """The partitions that it owns, sorted."""
        return sorted(self.assignment or ())

    @property
    def values(self) -> list[bytes | None]:
        """The values that were delivered."""
        return [record.value for record in self.records]

    def poll(self, limit: int = 500, max_bytes: int = 1 << 20) -> Polled:
        """Poll once, and take note."""
        polled = self.member.poll(limit, max_bytes, POLL_SECONDS)
        records = records_of(polled)
        assert len(records) <= limit
        if polled.assignment is not None:
            assert not records, "records of the time before the rebalance"
            self.assignment = polled.assignment
        self.records += records
        return polled

    def start(self, positions: Mapping[TopicPartition, int] | int = 0) -> None:
        """Seek everything owned (0 where nothing is said), and let it flow."""
        at = positions if isinstance(positions, Mapping) else dict.fromkeys(self.owned, positions)
        for partition in self.owned:
            self.member.seek(partition, at.get(partition, 0))
        self.member.resume(self.owned)

    def rewind(self) -> None:
        """Go on from the committed offsets, as a stage does after anything went wrong."""
        committed = self.member.committed(self.owned)
        self.start({partition: offset or 0 for partition, offset in committed.items()})

    def collect(self, count: int, limit: int = 500) -> Sequence[Record]:
        """Poll until ``count`` records are there; more would be a mistake."""
        until(lambda: self.poll(limit) and len(self.records) >= count, f"{count} records")
        assert len(self.records) == count
        return self.records

    def copy(self, target: str, limit: int = 500) -> bool:
        """Do one round of a stage that copies; tell whether it was idle."""
        polled = self.poll(limit)
        if polled.assignment is not None:
            self.rewind()
            return False
        records = records_of(polled)
        if not records:
            return True
        copies = [Outgoing(target, r.partition, r.key, r.value) for r in records]
        try:
            self.member.commit(copies, next_offsets(records))
        except Aborted:
            self.rewind()
        except OutcomeUnknown:
            self.member.renew()
            self.rewind()
        return False
