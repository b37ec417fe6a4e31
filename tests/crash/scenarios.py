"""Runs to be struck: what is fed when, and who comes and goes. Each leaves the end open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.crash.texts import near_copies, slices
from tests.crash.world import World

__all__ = ["SCENARIOS", "Scenario", "alone", "together"]

Scenario = Callable[[World], None]


def alone(world: World) -> None:
    """One worker, and documents that come in three heaps."""
    world.start("a")
    for some in slices(near_copies(36, 2), 14, 12):
        world.feed(some)
        world.rounds(3)


def together(world: World) -> None:
    """Three workers that come one after the other, of which one leaves and comes back."""
    first, second, third, fourth, last = slices(near_copies(48, 3), 10, 10, 10, 10)
    world.start("a")
    world.feed(first)
    world.rounds(3)
    world.start("b")
    world.feed(second)
    world.rounds(4)
    world.start("c")
    world.feed(third)
    world.rounds(4)
    world.leave("b")
    world.feed(fourth)
    world.rounds(4)
    world.start("b")
    world.feed(last)
    world.rounds(2)


SCENARIOS: Final[dict[str, Scenario]] = {"alone": alone, "together": together}
