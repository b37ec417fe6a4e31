"""The one clock of a world: brokers, writers and workers read it."""

from __future__ import annotations

from typing import Final

HOUR: Final = 3_600_000
"""In milliseconds."""
BEGINNING: Final = 1_700_000_000_000


class Clock:
    """Virtual time. Nothing moves it but the world."""

    def __init__(self) -> None:
        """Begin at some day."""
        self._now = BEGINNING

    def milliseconds(self) -> int:
        """Give milliseconds since the epoch, as records are stamped with them."""
        return self._now

    def seconds(self) -> float:
        """Give seconds from an unknown start, as intervals are measured with them."""
        return (self._now - BEGINNING) / 1_000

    def move(self, milliseconds: int) -> None:
        """Let time pass."""
        self._now += milliseconds
