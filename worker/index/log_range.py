"""The range of a shard's log, and whether a store can continue from it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LogRange"]


class LogRange(NamedTuple):
    """The half-open range of offsets in a shard's log, and its group's committed offset."""

    low: int
    high: int
    committed: int

    def objection(self, offset: int) -> str | None:
        """Return why a store at this offset can't continue; None if it can."""
        if offset > self.high:
            return f"its offset {offset} is after the end of the log, {self.high}"
        if offset > self.committed:
            return f"its offset {offset} is past the group's, {self.committed}"
        if offset < self.low and offset > 0:
            return f"its offset {offset} is before the start of the log, {self.low}"
        return None
