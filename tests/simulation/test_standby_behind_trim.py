"""A standby that the log is trimmed past: what it takes over must have no hole.

Its reader is told that an offset is out of range. It must begin anew from a snapshot, and the
index must not answer from a store with a hole.
"""

from tests.simulation.conftest import Judge, MakeWorld
from tests.simulation.measures import Keep, Measures
from tests.support.texts import near_copies

TEXTS = near_copies(54, 13)
OF_A = (0, 1)
"""The partitions that workers "a" and "b" read, of three."""
FOR_EVER = Keep(documents=None, matches=None, outputs=None, offsets=None)


def test_copies_are_duplicates_after_a_take_over(world: MakeWorld, judged: Judge) -> None:
    one = world(Measures(shards=2, snapshots=True, standby=True, keep=FOR_EVER))
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
