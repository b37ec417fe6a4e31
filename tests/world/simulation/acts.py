"""Schedules: what happens in a world, as plain data that can be drawn, shrunk and read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

from hypothesis import strategies as st

from tests.support.texts import near_copies, pairs
from tests.world.measures import Keep, Measures
from tests.world.simulation.timed import TimedWorld
from tests.world.writer import Manner
from worker.topology import STAGES

__all__ = ["Act", "acts", "measures", "play"]

NAMES: Final = ("a", "b", "c")
"""The first runs from the beginning."""
TEXTS: Final = near_copies(400, 7)
PAIRS: Final = pairs(400, 7)
"""For worlds with a window: no verdict depends on what a shortened log has lost."""
DAY: Final = 24
_STAMPED: Final = (0, 30)
_DATED: Final = (None, 3 * DAY, 400 * DAY, 500_000, -30, -3 * DAY, -500_000)
"""Ages of dates, in hours: of before 1970, and of the years after 2050, too."""


class Act(Protocol):
    """Something that happens."""

    def do(self, world: TimedWorld) -> None:
        """Let it happen; to a worker that doesn't run, nothing does."""


class Write(NamedTuple):
    """So many documents are written, to these partitions in turn; others are idle."""

    documents: int
    partitions: tuple[int, ...]
    manner: Manner
    age_hours: int | None
    salt: bytes | None = None
    """What their keys begin with, if these are their ids."""

    def do(self, world: TimedWorld) -> None:
        """See `Act`."""
        done = len(world.writer.written)
        texts = TEXTS if world.measures.window == "none" else PAIRS
        new = texts[done : done + self.documents]
        dated = world.measures.dated
        age = self.age_hours if dated or self.age_hours in _STAMPED else 0
        world.writer.write(new, self.partitions, self.manner, age, self.salt, dated=dated)


class Stall(NamedTuple):
    """A worker takes no steps for so many rounds of the others, in which documents come."""

    worker: str
    rounds: int

    def do(self, world: TimedWorld) -> None:
        """See `Act`."""
        world.freeze(self.worker)
        for _ in range(4):
            Write(5, tuple(range(world.topology.layout.partitions)), "plain", 0).do(world)
            world.rounds(self.rounds)
        world.wake(self.worker)


class Work(NamedTuple):
    """Everybody goes on for so many rounds."""

    rounds: int

    def do(self, world: TimedWorld) -> None:
        """See `Act`."""
        world.rounds(self.rounds)


class Hurry(NamedTuple):
    """The first stages of a worker work off what there is; the others have to wait."""

    worker: str
    stages: int

    def do(self, world: TimedWorld) -> None:
        """See `Act`."""
        for _ in range(20):
            if self.worker in world.lives:
                world.work(world.lives[self.worker], STAGES[: self.stages])


class Pass(NamedTuple):
    """Hours go by."""

    hours: int

    def do(self, world: TimedWorld) -> None:
        """See `Act`."""
        world.pass_hours(self.hours)


class Start(NamedTuple):
    """A worker is started, if it may."""

    worker: str

    def do(self, world: TimedWorld) -> None:
        """See `Act`."""
        world.start(self.worker)


class Stop(NamedTuple):
    """A worker ends well."""

    worker: str

    def do(self, world: TimedWorld) -> None:
        """See `Act`."""
        world.stop(self.worker)


class Kill(NamedTuple):
    """A worker is killed."""

    worker: str
    lose_disk: bool

    def do(self, world: TimedWorld) -> None:
        """See `Act`."""
        world.kill(self.worker, lose_disk=self.lose_disk)


class KillCommitting(NamedTuple):
    """A worker will be killed in the midst of a transaction of this stage."""

    worker: str
    stage: str

    def do(self, world: TimedWorld) -> None:
        """See `Act`."""
        world.kill_committing(self.worker, self.stage)


class Freeze(NamedTuple):
    """A worker takes no steps until it is woken."""

    worker: str

    def do(self, world: TimedWorld) -> None:
        """See `Act`."""
        world.freeze(self.worker)


class Wake(NamedTuple):
    """A worker goes on."""

    worker: str

    def do(self, world: TimedWorld) -> None:
        """See `Act`."""
        world.wake(self.worker)


def play(world: TimedWorld, schedule: list[Act]) -> None:
    """Let everything happen, in order."""
    world.start(NAMES[0])
    for act in schedule:
        act.do(world)


def _outage(names: Sequence[str], stages: int, hours: int) -> list[Act]:
    """Have everybody killed when so many stages are done, and nobody there for some time."""
    done: list[Act] = [Hurry(name, stages) for name in names] if stages else []
    return [*done, *(Kill(name, lose_disk=False) for name in names), Pass(hours)]


def measures(*, window: bool = False, dated: bool = False) -> st.SearchStrategy[Measures]:
    """Draw how large a world is, and for how long it keeps what.

    With a window, brokers delete old frames, unless the log is trimmed behind snapshots. Documents
    may be dated, at any time.
    """
    hours = st.sampled_from([None, DAY, 3 * DAY])

    def make(*, snapshots: bool, standby: bool, overlap: bool, shards: int, keep: Keep) -> Measures:
        if window and not snapshots:
            keep = replace(keep, fingerprints=5 * DAY)
        return Measures(
            partitions=3,
            shards=shards,
            snapshots=5.0 if snapshots else None,
            standby=standby,
            window="2d" if window else "none",
            dated=dated,
            overlap=overlap,
            keep=keep,
        )

    return st.builds(
        make,
        snapshots=st.booleans() if window else st.sampled_from([True, True, False]),
        standby=st.sampled_from([True, True, False]),
        overlap=st.booleans(),
        shards=st.integers(2, 3),
        keep=st.builds(
            Keep, documents=hours, matches=hours, outputs=hours, offsets=st.just(7 * DAY)
        ),
    )


def acts() -> st.SearchStrategy[list[Act]]:
    """Draw a schedule: who comes, then in turns what is written, what befalls whom, and when."""
    workers = st.sampled_from(NAMES)
    some: st.SearchStrategy[tuple[int, ...]] = st.sampled_from(
        [(0,), (1,), (0, 1), (1, 2), (0, 1, 2), (0, 1, 2)]
    )
    manners: list[Manner] = ["plain", "transaction", "aborted first", "overlapping"]
    write: st.SearchStrategy[Act] = st.builds(
        Write,
        st.integers(1, 12),
        some,
        st.sampled_from(manners),
        st.sampled_from([*_STAMPED * 7, *[0] * 14, *_DATED]),
        st.none() | st.binary(max_size=9) | st.sampled_from([b"k" * 1_024, b"\xff" * 1_024]),
    )
    act: st.SearchStrategy[Act] = st.one_of(
        st.builds(Start, workers),
        st.builds(Start, workers),
        st.builds(Stop, workers),
        st.builds(Kill, workers, st.booleans()),
        st.builds(KillCommitting, workers, st.sampled_from(STAGES)),
        st.builds(Freeze, workers),
        st.builds(Wake, workers),
        st.builds(Stall, workers, st.integers(2, 12)),
        st.builds(Hurry, workers, st.integers(1, 2)),
    )
    hours = st.sampled_from([1, 6, 30, 30, 4 * DAY, 9 * DAY])
    after: st.SearchStrategy[list[Act]] = st.one_of(
        st.builds(Work, st.integers(1, 30)).map(lambda work: [work]),
        st.builds(Pass, hours).map(lambda passing: [passing]),
        st.builds(_outage, st.just(NAMES), st.sampled_from([0, 2, 2, 3]), hours),
    )
    # Somebody is started in every turn: with nobody there, time only deletes what is unread.
    turn = st.tuples(st.builds(Start, workers), write, st.lists(act, max_size=4), after)
    others: st.SearchStrategy[list[Act]] = st.lists(st.builds(Start, workers), max_size=2)
    return st.tuples(others, st.lists(turn, min_size=2, max_size=10)).map(
        lambda drawn: [
            *drawn[0],
            *(a for start, write, acts, after in drawn[1] for a in (start, write, *acts, *after)),
        ]
    )
