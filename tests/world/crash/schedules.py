"""Schedules of faults and of workers that come and go, drawn at random."""

from __future__ import annotations

from typing import Final, NamedTuple, get_args

from hypothesis import strategies as st

from tests.support.checker.history import History
from tests.support.points import DONE, Fault, Point, Strike
from tests.support.texts import near_copies
from tests.world import acts as world_acts
from tests.world.acts import Act, doing
from tests.world.measures import Measures
from tests.world.world import World
from worker.corrections import request
from worker.topology import STAGES

NAMES: Final = ("a", "b", "c")
TEXTS: Final = near_copies(120, 7)


class Feed(NamedTuple):
    """So many documents are written."""

    documents: int

    def do(self, world: World) -> None:
        """See `Act`."""
        done = _fed(world)
        world.feed(TEXTS[done : done + self.documents])


class Forget(NamedTuple):
    """A document is forgotten: so many before the last one; by a delete with a value, or not."""

    back: int
    delete: bool

    def do(self, world: World) -> None:
        """See `Act`."""
        fed = min(_fed(world), len(TEXTS))
        if fed:
            ident, _ = TEXTS[max(0, fed - 1 - self.back)]
            world.forget(ident, delete=self.delete)


class Allow(NamedTuple):
    """A text is allowed, that of a document so many before the last one; or no longer."""

    back: int
    exact: bool
    withdrawn: bool

    def do(self, world: World) -> None:
        """See `Act`."""
        fed = min(_fed(world), len(TEXTS))
        if fed:
            ident, text = TEXTS[max(0, fed - 1 - self.back)]
            allow = request.Allow(f"like {ident}", text, exact=self.exact, by="ada", why="slogan")
            withdraw = request.Withdraw(f"like {ident}", by="ada")
            world.correct(withdraw if self.withdrawn else allow)


class Note(NamedTuple):
    """A person has a document forgotten: so many before the last one."""

    back: int

    def do(self, world: World) -> None:
        """See `Act`."""
        fed = min(_fed(world), len(TEXTS))
        if fed:
            ident, _ = TEXTS[max(0, fed - 1 - self.back)]
            world.correct(request.Forget(ident, by="ada", why="asked to"))


def _fed(world: World) -> int:
    own = History(world.inputs, deletes=True)
    return sum(
        not (own.is_passed_on(record) or own.is_correction(record)) for record in world.inputs
    )


def play(world: World, schedule: list[Act[World]]) -> None:
    """Let everything happen in turn, then run to the end; somebody is always there."""
    world_acts.play(world, schedule)
    if not world.lives:
        world.start("a")
    world.finish()


def measures() -> st.SearchStrategy[Measures]:
    """Draw a run's measures."""
    return st.builds(
        Measures,
        partitions=st.integers(1, 3),
        shards=st.integers(1, 3),
        batch=st.integers(1, 6),
        snapshots=st.sampled_from([None, 0.001]),
    )


@st.composite
def _strikes(draw: st.DrawFn) -> Strike:
    """Draw a fault, and a point where it can occur: mostly one that all come to often."""
    # A torn transaction is completed by the worker that began it; if that dies first, nobody does.
    faults = [fault for fault in get_args(Fault) if not fault.startswith("torn")]
    fault: Fault = draw(st.sampled_from(faults))
    stage = draw(st.sampled_from(STAGES))
    names: tuple[str, ...]
    if fault == "unknown":
        names = _TRANSACTION[-2:]
    elif fault == "aborted":
        names = _TRANSACTION[:-1]
    else:
        rare = _STORES if stage == "index" else ()
        names = (*_TRANSACTION, *_TAKING_OVER, *rare)
    point = Point(draw(st.sampled_from("aab")), stage, draw(st.sampled_from(names)))
    return Strike(point, draw(st.integers(1, 3)), fault)


_TRANSACTION: Final = ("begin", "produce", "offsets", "commit", "commit" + DONE)
_TAKING_OVER: Final = ("look up", "adopt", "adopt" + DONE, "renew")
_STORES: Final = (
    *("write", "write" + DONE, "flush" + DONE, "open" + DONE, "close"),
    *("ship", "trim" + DONE, "fetch" + DONE, "exchange", "put aside"),
)


def acts() -> st.SearchStrategy[list[Act[World]]]:
    """Draw a schedule: heaps of documents, and what happens before each is worked off."""
    workers = st.sampled_from(NAMES)
    start = doing("start", workers)
    lasting: list[Fault] = ["dies", "dies, disk lost", "dies, away", "replaced", "evicted"]
    armed = doing("arm", _strikes())
    act: st.SearchStrategy[Act[World]] = st.one_of(
        start,
        doing("hurry", workers, st.sampled_from([(stage,) for stage in STAGES]), st.integers(1, 4)),
        doing("suffer", workers, st.sampled_from(lasting)),
        doing("restart", workers),
        doing("leave", workers),
        doing("flush", workers),
        st.builds(Forget, st.integers(0, 20), st.booleans()),
        st.builds(Allow, st.integers(0, 20), st.booleans(), st.booleans()),
        st.builds(Note, st.integers(0, 20)),
    )
    heap = st.tuples(
        st.builds(Feed, st.integers(4, 14)),
        st.lists(st.one_of(armed, armed, act), min_size=1, max_size=6),
        doing("rounds", st.integers(1, 5)),
    )
    heaps = st.lists(heap, min_size=2, max_size=8)
    return st.tuples(st.lists(start, max_size=2), heaps).map(
        lambda drawn: [*drawn[0], *(a for fed, acts, go in drawn[1] for a in (fed, *acts, go))]
    )
