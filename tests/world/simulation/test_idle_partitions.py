"""A partition that nobody writes to is emptied by time, and that is no reason to stop.

A stage commits the offset after the last record that it has read. The marker of the
transaction that wrote it follows, and once time has deleted both, the log begins above
the committed offset, though there is nothing between that anybody could have missed.
"""

import pytest

from tests.support.breadth import slow
from tests.support.texts import near_copies
from tests.world.conftest import Judge, Make
from tests.world.measures import Keep, Measures
from tests.world.simulation.timed import TimedWorld
from tests.world.writer import Manner

TEXTS = near_copies(24, 11)
BUSY = (0, 1)
"""The partitions that go on being written to; the other is idle."""
IDLE_MATCHES = Keep(documents=None, outputs=None)
IDLE_DOCUMENTS = Keep(matches=None, outputs=None)


def live(one: TimedWorld, manner: Manner) -> None:
    """Have every partition written to once, and then all but one for three days."""
    one.start("a")
    one.writer.write(TEXTS[:9], range(3), manner)
    for part in range(3):
        one.pass_hours(24)
        one.writer.write(TEXTS[9 + 4 * part : 13 + 4 * part], BUSY, manner)
    one.pass_hours(1)
    assert one.endings == []


def test_a_worker_starts_when_answers_to_an_idle_partition_are_deleted(
    make: Make, judged: Judge
) -> None:
    one = make(TimedWorld, Measures(partitions=3, keep=IDLE_MATCHES))
    live(one, "plain")
    idle = [(one.topology.matches(shard), 2) for shard in range(one.topology.layout.shards)]
    for place in idle:
        assert one.bus.start_offset(*place) == one.bus.end_offset(*place) > 0
    one.stop("a")
    assert one.start("a"), one.endings
    assert judged(one) == []


def test_a_worker_goes_on_when_another_joins_it(make: Make, judged: Judge) -> None:
    one = make(TimedWorld, Measures(partitions=3, keep=IDLE_MATCHES))
    one.start("a")
    one.start("b")
    live(one, "plain")
    one.stop("b")
    one.pass_hours(1)  # Its session ends, and all that was its own is adopted anew.
    assert one.endings == []
    assert judged(one) == []


@pytest.mark.parametrize("manner", [slow("transaction"), slow("aborted first"), "overlapping"])
def test_a_worker_starts_when_documents_of_a_transaction_are_deleted(
    make: Make, judged: Judge, manner: Manner
) -> None:
    one = make(TimedWorld, Measures(partitions=3, keep=IDLE_DOCUMENTS))
    live(one, manner)
    idle = (one.topology.documents, 2)
    assert one.bus.start_offset(*idle) == one.bus.end_offset(*idle) > 0
    one.stop("a")
    assert one.start("a"), one.endings
    assert judged(one) == []


def test_an_application_that_is_idle_as_a_whole_starts_again(make: Make, judged: Judge) -> None:
    one = make(TimedWorld, Measures(partitions=3))
    one.start("a")
    one.writer.write(TEXTS[:9], range(3), "transaction")
    one.pass_hours(100)
    one.kill("a")
    assert one.start("a"), one.endings
    assert judged(one) == []
