"""Reads the clock of a shard, as `Writes.clock` has it; `core/src/index/clock.rs` has the rule."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from lsh.index import NO_TIME

_MARKS_END: Final = NO_TIME + (1 << 62)
"""Marks are below, and times aren't."""


class StoredClock(NamedTuple):
    """What is now, and as of when those documents count that came before there was a now.

    opening: the first now, then as of when each of them counts that had a time.
    """

    now: int | None
    opening: tuple[int, ...]

    @classmethod
    def unpacked(cls, packed: bytes | None) -> StoredClock:
        """Return the clock of these bytes; None is a new shard's."""
        if packed is None:
            return cls(None, ())
        now, count = struct.unpack_from("<qB", packed)
        return cls(None if now == NO_TIME else now, struct.unpack_from(f"<{count}q", packed, 9))

    def settled(self, time: int) -> int:
        """Return as of when a stored entry counts. Until there is a now, a mark stays a mark."""
        if self.now is None or time >= _MARKS_END:
            return time
        first, *others = self.opening
        bits = time - NO_TIME
        return max([first, *(other for place, other in enumerate(others) if bits >> place & 1)])
