"""What schedules are made of: plain data that can be drawn, shrunk and read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar

from hypothesis import strategies as st

from tests.world.world import World

W_contra = TypeVar("W_contra", bound=World, contravariant=True)
W = TypeVar("W", bound=World)


class Act(Protocol[W_contra]):
    """Something that happens."""

    def do(self, world: W_contra) -> None:
        """Let it happen; to a worker that doesn't run, nothing does."""


class Do(NamedTuple):
    """What a world's method of this name does."""

    what: str
    given: tuple[object, ...]

    def do(self, world: World) -> None:
        """See `Act`."""
        getattr(world, self.what)(*self.given)


def doing(what: str, *given: st.SearchStrategy[object]) -> st.SearchStrategy[Do]:
    """Draw what a method is given."""
    return st.tuples(*given).map(lambda drawn: Do(what, drawn))


def play(world: W, schedule: Iterable[Act[W]]) -> None:
    """Start the first worker, and let everything happen in turn."""
    world.start("a")
    for act in schedule:
        act.do(world)
