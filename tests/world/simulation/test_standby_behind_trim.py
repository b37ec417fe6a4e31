"""Stores that the log is trimmed past, while they read it: they must have no hole.

A standby's reader is told that an offset is out of range, and so is that of a shard that replays
its log. Either must begin anew from a snapshot, and the index must not answer from a store with a
hole. Nothing was lost, so nobody has to end.
"""

from pathlib import Path

import pytest

from tests.support.texts import near_copies
from tests.world.conftest import Judge, Make
from tests.world.measures import Keep, Measures
from tests.world.simulation.timed import TimedWorld

TEXTS = near_copies(54, 13)
OF_A = (0, 1)
"""The partitions that workers "a" and "b" read, of three."""
FOR_EVER = Keep(documents=None, matches=None, outputs=None, offsets=None)


def test_copies_are_duplicates_after_a_take_over(make: Make, judged: Judge) -> None:
    one = make(TimedWorld, Measures(partitions=3, snapshots=5.0, standby=True, keep=FOR_EVER))
    for name in ("a", "b", "c"):  # The third one has no shard of its own.
        one.start(name)
    one.writer.write(TEXTS[:6], range(3))
    one.rounds(10)
    one.freeze("c")
    for part in range(5):
        one.writer.write(TEXTS[6 + 6 * part : 12 + 6 * part], OF_A)
        one.rounds(25)
    trimmed = one.bus.start_offset(*one.topology.order)
    assert trimmed > 6, "the log was not trimmed past the standby"
    one.writer.write(TEXTS[36:48], OF_A)  # Not in a snapshot yet.
    one.rounds(3)
    one.wake("c")
    one.rounds(6)
    one.writer.write(TEXTS[48:], OF_A)  # To be applied after what the reader has lost.
    one.rounds(20)
    one.lose("a")
    one.pass_hours(1)
    copies = [(f"copy-of-{ident}", text) for ident, text in TEXTS]
    one.writer.write(copies, OF_A)
    assert judged(one) == []
    duplicates = one.archive.of(one.topology.duplicate)
    assert sum(b"copy-of-" in (record.value or b"") for record in duplicates) == len(copies)


def shipped(one: TimedWorld) -> int:
    """Return the offset up to which snapshots have all shards."""
    shards = Path(one.settings.index.snapshots.url or "").glob("*/shard-*")
    names = [[path.name for path in shard.glob("snapshots/*.json")] for shard in shards]
    if len(names) < one.settings.index.shards:
        return 0
    return min(int(max(own, default="0").partition("-")[0]) for own in names)


@pytest.mark.slow
def test_a_shard_that_replays_begins_anew_from_a_snapshot(make: Make, judged: Judge) -> None:
    """Its worker was away for a while, and the other one has shipped more snapshots since."""
    one = make(TimedWorld, Measures(partitions=3, snapshots=5.0, keep=FOR_EVER))
    one.start("b")
    one.writer.write(TEXTS[:30], range(3))
    assert one.quiet()
    one.kill("b")
    one.start("a")
    one.writer.write(TEXTS[30:36], range(3))  # So few that no snapshot is fetched for them.
    index, order = one.topology.group("index"), one.topology.order
    for _ in range(50):  # Snapshots are shipped by a thread of their own.
        one.pass_hours(1)
        reached = min(offset or 0 for offset in one.bus.committed(index).values())
        if shipped(one) == reached > one.bus.start_offset(*order):
            break
    one.start("b")
    stores = one.lives["b"].index.stores
    while not stores():
        one.rounds(1)
    (store,) = stores().values()
    assert store.offset < reached == shipped(one), "it has nothing to replay"
    one.bus.trim(*order, reached)
    one.writer.write(TEXTS[36:], range(3))
    assert judged(one) == []
    assert one.endings == []
