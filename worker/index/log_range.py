"""The range of a shard's log, and whether a store can continue from it."""

from __future__ import annotations

from typing import NamedTuple


class LogRange(NamedTuple):
    """The half-open range of offsets in a shard's log, and its group's committed offset.

    ``forgets`` is whether brokers delete from the log what is older than the index remembers. They
    also delete the markers of transactions behind its last frame, of which no offset is committed.
    """

    low: int
    high: int
    committed: int
    forgets: bool = False

    def start(self, offset: int) -> int:
        """Return where a store at this offset reads on: past markers that were deleted."""
        return max(offset, self.low) if self.reaches(offset) else offset

    def reaches(self, offset: int) -> bool:
        """Return whether the log has every frame from this offset on, as far as that can be told.

        A frame is never alone: the marker of its transaction follows it. So if a single offset is
        missing, it was a marker. Several markers follow one another if workers wrote in turns. So
        where the group is, nothing is taken to be missing: frames tile, and the next one shows if
        some were deleted that nobody has read.
        """
        if offset >= self.low:
            return True
        return self.forgets and offset > 0 and offset in {self.low - 1, self.committed}

    @property
    def beginning(self) -> int | None:
        """Return the offset of a new store; None if the log is needed from before its start."""
        if self.low == 0:
            return 0
        if not (self.forgets and self.reaches(self.committed)):
            return None
        return min(self.low, self.committed)

    def objection(self, offset: int) -> str | None:
        """Return why a store at this offset can't continue; None if it can."""
        if offset > self.high:
            return f"its offset {offset} is after the end of the log, {self.high}"
        if offset > self.committed:
            return f"its offset {offset} is past the group's, {self.committed}"
        if offset > 0 and not self.reaches(offset):
            return f"its offset {offset} is before the start of the log, {self.low}"
        return None
