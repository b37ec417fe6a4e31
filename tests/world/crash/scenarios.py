"""Runs to be struck: what is fed when, and who comes and goes. Each leaves the end open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tests.support.texts import near_copies, slices
from tests.world.measures import Measures
from tests.world.world import World
from worker.corrections.request import Allow, Forget, Withdraw


class Scenario(NamedTuple):
    """What happens in a world of these measures, if nobody is struck."""

    measures: Measures
    play: Callable[[World], None]

    def run(self, world: World) -> None:
        """Run to the end."""
        self.play(world)
        world.finish()


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


def kept(world: World) -> None:
    """Two workers with snapshots: one is left behind by the log, one loses its disk."""
    first, second, third, fourth, last = slices(near_copies(48, 4), 10, 10, 12, 10)
    world.start("a")
    world.feed(first)
    world.rounds(4)
    world.start("b")
    world.feed(second)
    world.rounds(4)
    world.leave("b")
    world.feed(third)
    world.rounds(6)
    world.start("b")
    world.feed(fourth)
    world.rounds(4)
    world.suffer("a", "dies, disk lost")
    world.feed(last)
    world.rounds(3)


def corrected(world: World) -> None:
    """Two workers; a text is allowed, then another exactly, then one is withdrawn."""
    texts = near_copies(48, 5)
    first, second, third, fourth = slices(texts, 12, 12, 12)
    world.start("a")
    world.feed(first)
    world.correct(Allow("near", texts[0][1]))
    world.rounds(3)
    world.start("b")
    world.feed(second)
    world.correct(Allow("exact", texts[13][1], exact=True))
    world.correct(Forget(texts[1][0]))
    world.rounds(4)
    world.feed([(f"again-{ident}", text) for ident, text in texts[:14]])
    world.rounds(2)
    world.feed(third)
    world.correct(Withdraw("near"))
    world.rounds(3)
    world.suffer("a", "dies, disk lost")
    world.feed(fourth)
    world.feed([(f"at-last-{ident}", text) for ident, text in texts[:14]])
    world.rounds(2)


SCENARIOS: Final = {
    "alone": Scenario(Measures(), alone),
    "together": Scenario(Measures(partitions=3, shards=3), together),
    "corrected": Scenario(Measures(partitions=2, shards=2), corrected),
    "kept": Scenario(Measures(snapshots=0.001), kept),
}
