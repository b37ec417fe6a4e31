"""A standby that the log is trimmed past: what it takes over must have no hole.

Its reader is told that an offset is out of range, and must not lose what it had taken of
other shards; and if it did, the index must notice before it answers from such a store.
"""

import pytest

from tests.crash.texts import near_copies
from tests.simulation.conftest import Judge, MakeWorld
from tests.simulation.measures import Keep, Measures

TEXTS = near_copies(54, 13)
OF_A = (0, 1)
"""The partitions that worker "a" reads, of three."""
FOR_EVER = Keep(documents=None, matches=None, outputs=None, offsets=None)


@pytest.mark.parametrize("lossy", [True, False])
def test_copies_are_duplicates_after_a_take_over(
    world: MakeWorld, judged: Judge, *, lossy: bool
) -> None:
    one = world(Measures(shards=3, snapshots=True, standby=True, lossy=lossy, keep=FOR_EVER))
    one.start("a")
    one.start("b")
    one.writer.write(TEXTS[:6], range(3))
    one.rounds(10)
    one.freeze("b")
    for part in range(5):
        one.writer.write(TEXTS[6 + 6 * part : 12 + 6 * part], OF_A)
        one.rounds(25)
    standing_by = [s for s in range(3) if s in one.lives["a"].index.stores()]
    trimmed = [one.bus.start_offset(one.topology.bands, shard) for shard in standing_by]
    assert len(standing_by) == 2
    assert min(trimmed) > 6, "the log was not trimmed past the standby"
    one.writer.write(TEXTS[36:48], OF_A)  # Not in a snapshot yet.
    one.rounds(3)
    one.wake("b")
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
