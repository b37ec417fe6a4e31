"""Schedules: what is written, what befalls whom, and how much time passes, drawn at random."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from hypothesis import strategies as st

from tests.support.texts import near_copies, pairs
from tests.world.acts import Act, Do, doing
from tests.world.measures import Keep, Measures
from tests.world.simulation.timed import TimedWorld
from tests.world.writer import Manner
from worker.topology import STAGES

NAMES: Final = ("a", "b", "c")
TEXTS: Final = near_copies(400, 7)
PAIRS: Final = pairs(400, 7)
"""For worlds with a window: no verdict depends on what a shortened log has lost."""
DAY: Final = 24
_STAMPED: Final = (0, 30)
_DATED: Final = (None, 3 * DAY, 400 * DAY, 500_000, -30, -3 * DAY, -500_000)
"""Ages of dates, in hours: of before 1970, and of the years after 2050, too."""


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


def _outage(stages: int, hours: int) -> list[Do]:
    """Have everybody killed when so many stages are done, and nobody there for some time."""
    done = [Do("hurry", (name, STAGES[:stages], 20)) for name in NAMES]
    return [*done, *(Do("suffer", (name, "dies")) for name in NAMES), Do("pass_hours", (hours,))]


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


def acts() -> st.SearchStrategy[list[Act[TimedWorld]]]:
    """Draw a schedule: who comes, then in turns what is written, what befalls whom, and when."""
    workers = st.sampled_from(NAMES)
    some: st.SearchStrategy[tuple[int, ...]] = st.sampled_from(
        [(0,), (1,), (0, 1), (1, 2), (0, 1, 2), (0, 1, 2)]
    )
    manners: list[Manner] = ["plain", "transaction", "aborted first", "overlapping"]
    write = st.builds(
        Write,
        st.integers(1, 12),
        some,
        st.sampled_from(manners),
        st.sampled_from([*_STAMPED * 7, *[0] * 14, *_DATED]),
        st.none() | st.binary(max_size=9) | st.sampled_from([b"k" * 1_024, b"\xff" * 1_024]),
    )
    start = doing("start", workers)
    act: st.SearchStrategy[Act[TimedWorld]] = st.one_of(
        start,
        start,
        doing("stop", workers),
        doing("suffer", workers, st.sampled_from(["dies", "dies, disk lost"])),
        doing("kill_committing", workers, st.sampled_from(STAGES)),
        doing("freeze", workers),
        doing("wake", workers),
        st.builds(Stall, workers, st.integers(2, 12)),
        doing("hurry", workers, st.sampled_from([STAGES[:1], STAGES[:2]]), st.just(20)),
    )
    hours = st.sampled_from([1, 6, 30, 30, 4 * DAY, 9 * DAY])
    after = st.one_of(
        doing("rounds", st.integers(1, 30)).map(lambda work: [work]),
        doing("pass_hours", hours).map(lambda passing: [passing]),
        st.builds(_outage, st.sampled_from([0, 2, 2, 3]), hours),
    )
    # Somebody is started in every turn: with nobody there, time only deletes what is unread.
    turn = st.tuples(start, write, st.lists(act, max_size=4), after)

    def in_order(
        others: list[Do], turns: list[tuple[Do, Write, list[Act[TimedWorld]], list[Do]]]
    ) -> list[Act[TimedWorld]]:
        schedule: list[Act[TimedWorld]] = [*others]
        for started, written, befalls, afterwards in turns:
            schedule += [started, written, *befalls, *afterwards]
        return schedule

    return st.builds(in_order, st.lists(start, max_size=2), st.lists(turn, min_size=2, max_size=10))
