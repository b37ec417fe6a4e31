"""Documents that kill their worker are set aside; all others are published, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import pytest
from msgspec.structs import replace

from lsh import Fingerprinter, _core
from tests.support.breadth import mostly_slow
from tests.support.checker.history import Source, header, reason, source
from tests.support.life import Life
from tests.support.texts import near_copies
from tests.world.conftest import Make
from tests.world.crash.proof import Oracle
from tests.world.measures import Measures
from tests.world.world import World
from worker.corrections.request import Allow
from worker.stages.fingerprint import Fingerprint
from worker.stages.framing import Aside, Framer, Signed, Span
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.frame import FRAME_BYTES

POISON = "kills whoever reads it"


class Mortal(Fingerprinter):
    """Dies of some texts."""

    def __init__(self, world: World, die: Callable[[], None]) -> None:
        super().__init__(world.topology.layout.parameters)
        self._die = die

    def sign(self, texts: Iterable[str]) -> _core.Signed:
        if any(POISON in text for text in texts):
            self._die()
        return super().sign(texts)


def mortal(world: World) -> list[str]:
    """Have every worker die of poison; return the names of those who do, as they do."""
    died: list[str] = []

    def born(life: Life) -> None:
        def die() -> None:
            died.append(life.name)
            world.befall(life, "dies")

        stage = life.loops["fingerprint"].stage
        assert isinstance(stage, Fingerprint)
        stage._fingerprinter = Mortal(world, die)

    world.mistake = born
    return died


class Buggy(Framer):
    """Makes frames whose allowances have ids that no answer can name."""

    def frames(self, span: Span, signed: Signed, aside: Aside) -> Iterator[FingerprintFrame]:
        for frame in super().frames(span, signed, aside):
            huge = tuple(replace(one, id=b"i" * 70_000) for one in frame.corrections)
            yield replace(frame, corrections=huge)


def with_a_frame_that_nobody_can_carry_out(run: World) -> dict[Source, str]:
    """Give the topic of each record, after an earlier worker has written such a frame."""

    def born(life: Life) -> None:
        stage = life.loops["fingerprint"].stage
        assert isinstance(stage, Fingerprint)
        stage._framer = Buggy(run.topology.layout.id, FRAME_BYTES)

    texts = near_copies(36, 2)
    run.mistake = born
    run.start("a")
    run.feed(texts[:12])
    run.rounds(3)
    run.correct(Allow("a", texts[0][1]))
    run.feed([*texts[12:16], ("again", texts[0][1])])
    run.rounds(3)
    run.leave("a")
    run.mistake = lambda _: None
    run.start("b")  # Its disk is empty, so it replays what "a" has answered.
    run.feed([*texts[16:], ("and again", texts[0][1])])
    run.finish()
    history = run.history()
    left = [*history.unique, *history.duplicate, *history.rejected]
    assert sorted(map(source, left)) == sorted((one.partition, one.offset) for one in run.inputs)
    assert {reason(one) for one in history.rejected} == {"refused-frame"}
    last = run.inputs[-1]
    assert (last.partition, last.offset) in map(source, history.duplicate)
    return {source(one): f"{one.topic} {header(one, 'neardup-matches')!r}" for one in left}


def test_a_frame_that_nobody_can_carry_out_costs_its_own_documents(make: Make) -> None:
    found = [
        with_a_frame_that_nobody_can_carry_out(make(World, Measures(shards=shards, batch=8)))
        for shards in (1, 3)
    ]
    assert found[0] == found[1]
    rejected = [one for one in found[0].values() if one.startswith("neardup.rejected")]
    assert 1 <= len(rejected) <= 6


PLACES: Final = ((5,), (0,), (35,), (4, 6), (8, 9, 10, 11), (0, 1, 2, 3))


@pytest.mark.parametrize("at", mostly_slow(PLACES, (0,), (8, 9, 10, 11)))
def test_a_document_that_kills_its_worker_is_rejected(
    make: Make, oracle: Oracle, at: tuple[int, ...]
) -> None:
    run = make(World, Measures(batch=8))
    died = mortal(run)
    texts = [
        (ident, f"{text} {POISON} {ident}" if number in at else text)
        for number, (ident, text) in enumerate(near_copies(36, 2))
    ]
    run.start("a")
    run.feed(texts[:20])
    run.rounds(3)
    run.feed(texts[20:])
    run.finish()
    assert oracle.problems(run) == []
    rejected = run.history().rejected
    assert {(r.value or b"") for r in rejected} == {(run.inputs[n].value or b"") for n in at}
    assert {reason(r) for r in rejected} == {"poison"}
    assert 2 * len(at) < len(died) <= 3 * len(at)


def test_each_worker_pays_its_own_deaths(make: Make, oracle: Oracle) -> None:
    """A partition that moves to another worker is read there as if nothing had happened."""
    run = make(World, Measures(batch=8))
    died = mortal(run)
    run.start("a")
    run.feed([("d0", f"a text that {POISON}")])
    while len(died) < 2:
        run.rounds(1)
    run.leave("a")
    run.start("b")
    run.finish()
    assert oracle.problems(run) == []
    assert died == ["a"] * 2 + ["b"] * 3
    # What the first one has noted is void, because the others have come further.
    run.leave("b")
    run.start("a")
    run.feed(near_copies(12, 3))
    run.finish()
    assert oracle.problems(run) == []
    assert [reason(r) for r in run.history().rejected] == ["poison"]
    assert len(died) == 5
