"""Who strikes, and where everybody has been."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.support.life import Life
from tests.support.points import Fault, Point, Strike


@dataclass(slots=True)
class _Armed:
    """A strike, and how many arrivals it still lets pass; at 0 it is due."""

    strike: Strike
    left: int

    def comes_to(self, point: Point) -> bool:
        """Count an arrival; tell whether the strike is due (again, if another came first)."""
        self.left -= point == self.strike.point
        return self.left <= 0 and point == self.strike.point


class Nemesis:
    """Deals strikes to those who come to their points.

    Attributes:
        trace: every point that anybody came to, in order.
        struck: the strikes that have been dealt.
    """

    def __init__(self, befall: Callable[[Life, Fault], None]) -> None:
        """Take what lets a fault befall a worker; it may raise."""
        self._befall = befall
        self._armed: list[_Armed] = []
        self.trace: list[Point] = []
        self.struck: list[Strike] = []

    def arm(self, strike: Strike) -> None:
        """Have a fault dealt."""
        self._armed.append(_Armed(strike, strike.nth))

    def disarm(self) -> None:
        """Have no strike dealt any more."""
        self._armed.clear()

    def arrive(self, life: Life, stage: str, name: str) -> None:
        """Somebody comes to a point."""
        point = Point(life.name, stage, name)
        self.trace.append(point)
        due = [armed for armed in self._armed if armed.comes_to(point)]
        for armed in due[:1]:
            self._armed.remove(armed)
            self.struck.append(armed.strike)
            if armed.strike.then is not None:
                self.arm(armed.strike.then)
            self._befall(life, armed.strike.fault)
