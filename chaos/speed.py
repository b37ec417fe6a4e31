"""How fast a link is: what each direction of a connection adds to whatever passes."""

from dataclasses import dataclass
from math import inf
from typing import Final


@dataclass(frozen=True)
class Speed:
    """The delay and the bandwidth of a link, the same in both directions."""

    delay: float = 0.0
    """Seconds that everything is under way, one way."""
    bytes_per_second: float = inf

    def __post_init__(self) -> None:
        """Check.

        Raises:
            ValueError: time would run backwards, or nothing would ever arrive.
        """
        if self.delay < 0 or self.bytes_per_second <= 0:
            raise ValueError(f"no link has {self}")


UNHINDERED: Final = Speed()


class Line:
    """One direction of a link: tells when a frame has arrived whole.

    The line is a bucket that holds no tokens: a frame begins once the frame before it has
    gone out, however long the line stood idle, and takes its length over the bandwidth. So a
    frame costs one addition, whatever its size.
    """

    def __init__(self) -> None:
        """Begin with a line on which nothing is."""
        self._free = 0.0

    def arrival(self, now: float, size: int, speed: Speed) -> float:
        """Return when a frame of ``size`` bytes that is sent ``now`` has arrived."""
        self._free = max(now, self._free) + size / speed.bytes_per_second
        return self._free + speed.delay
