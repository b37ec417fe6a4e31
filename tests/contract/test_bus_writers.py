"""What a writer beside all groups promises: all or nothing, and one owner of a name."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from tests.support.bus_harness import Harness
from worker.bus import Fenced, LogWriter, Offset, Outgoing, Refused, TopicPartition


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def written(harness: Harness, topic: str) -> list[bytes | None]:
    return [record.value for record in harness.read_committed(topic)]


def begun(harness: Harness, stack: ExitStack, name: str, topic: str) -> LogWriter:
    writer = stack.enter_context(closing(harness.bus.log_writer(name, topic)))
    writer.renew()
    return writer


def test_records_become_visible_together(harness: Harness, stack: ExitStack) -> None:
    one, two = harness.topic(), harness.topic(2)
    writer = begun(harness, stack, harness.name("writer"), one)
    writer.commit([Outgoing(one, 0, None, b"a"), Outgoing(two, 1, b"k", None), Outgoing(
        two, 0, None, b"b", (("h", b"v"),), 7)])  # fmt: skip
    writer.commit([])
    writer.commit([Outgoing(one, 0, None, b"c")])
    assert written(harness, one) == [b"a", b"c"]
    assert written(harness, two) == [b"b", None]
    found = harness.read_committed(two)
    assert (found[0].headers, found[0].timestamp, found[1].key) == ((("h", b"v"),), 7, b"k")


def test_a_writer_knows_where_its_records_are(harness: Harness, stack: ExitStack) -> None:
    topic = harness.topic(3)
    writer = begun(harness, stack, harness.name("writer"), topic)
    assert writer.commit([]) == {}
    for values in ((b"a", b"b"), (b"c",)):
        ends = writer.commit(
            [Outgoing(topic, 0, None, value) for value in values]
            + [Outgoing(topic, None, b"k", values[0]), Outgoing(topic, None, b"k", None)]
        )
        found = {TopicPartition(topic, one.partition): one for one in harness.read_committed(topic)}
        assert {place: found[place].offset for place in ends} == ends
        assert {(found[place].key, found[place].value) for place in ends} == {
            (None, values[-1]),
            (b"k", None),
        }


def test_nothing_is_written_before_the_name_is_taken(harness: Harness, stack: ExitStack) -> None:
    topic = harness.topic()
    writer = stack.enter_context(closing(harness.bus.log_writer(harness.name("writer"), topic)))
    with pytest.raises(RuntimeError, match="renew first"):
        writer.commit([Outgoing(topic, 0, None, b"a")])
    assert written(harness, topic) == []


def test_who_began_before_another_can_write_nothing(harness: Harness, stack: ExitStack) -> None:
    topic, name = harness.topic(), harness.name("writer")
    older = begun(harness, stack, name, topic)
    older.commit([Outgoing(topic, 0, None, b"before")])
    newer = begun(harness, stack, name, topic)
    for _ in range(2):
        with pytest.raises(Fenced, match="nother writer"):
            older.commit([Outgoing(topic, 0, None, b"late")])
    newer.commit([Outgoing(topic, 0, None, b"after")])
    assert written(harness, topic) == [b"before", b"after"]


def test_who_is_fenced_while_it_produces_says_so(harness: Harness, stack: ExitStack) -> None:
    topic, name = harness.topic(), harness.name("writer")
    older = begun(harness, stack, name, topic)
    newer = begun(harness, stack, name, topic)
    with pytest.raises(Fenced, match="nother writer"):
        # The first one has it ask for a transaction; the answer comes before the last is queued.
        older.commit([Outgoing(topic, 0, None, b"late")] * 90_000)
    newer.commit([Outgoing(topic, 0, None, b"after")])
    assert written(harness, topic) == [b"after"]


def test_who_takes_the_name_again_writes_again(harness: Harness, stack: ExitStack) -> None:
    topic, name = harness.topic(), harness.name("writer")
    older = begun(harness, stack, name, topic)
    newer = begun(harness, stack, name, topic)
    older.renew()
    older.commit([Outgoing(topic, 0, None, b"a")])
    with pytest.raises(Fenced):
        newer.commit([Outgoing(topic, 0, None, b"b")])
    assert written(harness, topic) == [b"a"]


def test_two_names_do_not_meet(harness: Harness, stack: ExitStack) -> None:
    topic = harness.topic()
    one, two = (begun(harness, stack, harness.name("writer"), topic) for _ in range(2))
    one.commit([Outgoing(topic, 0, None, b"a")])
    two.commit([Outgoing(topic, 0, None, b"b")])
    one.commit([Outgoing(topic, 0, None, b"c")])
    assert written(harness, topic) == [b"a", b"b", b"c"]


def test_a_refused_record_takes_its_transaction_with_it(harness: Harness, stack: ExitStack) -> None:
    topic, small = harness.topic(), harness.topic(max_bytes=50_000)
    writer = begun(harness, stack, harness.name("writer"), topic)
    large = Outgoing(small, 0, None, random.Random(7).randbytes(200_000))
    with pytest.raises(Refused) as raised:
        writer.commit([Outgoing(topic, 0, None, b"a"), large])
    assert raised.value.records == [large]
    assert raised.value.error == "MSG_SIZE_TOO_LARGE"
    with pytest.raises(RuntimeError, match="renew first"):
        writer.commit([Outgoing(topic, 0, None, b"b")])
    writer.renew()
    writer.commit([Outgoing(topic, 0, None, b"c")])
    assert written(harness, topic) == [b"c"]
    assert written(harness, small) == []


def test_offsets_of_a_group_with_members_are_committed_with_records(
    harness: Harness, stack: ExitStack
) -> None:
    """They are of a partition of which the group has none yet."""
    topic, group, name = harness.topic(2), harness.name("group"), harness.name("writer")
    first, second = (TopicPartition(topic, number) for number in range(2))
    harness.commit_offsets(group, {first: 0})
    member = harness.alone(topic, group=group).member
    writer = begun(harness, stack, name, topic)
    offset = Offset(7, "on")
    writer.commit([Outgoing(topic, 0, None, b"a")], {group: {second: offset}})
    assert member.committed([first, second]) == {first: 0, second: offset}
    begun(harness, stack, name, topic)
    with pytest.raises(Fenced):
        writer.commit([Outgoing(topic, 0, None, b"b")], {group: {second: 9}})
    member.commit([Outgoing(topic, 0, None, b"c")], {first: 1})
    assert member.committed([first, second]) == {first: 1, second: offset}
    assert written(harness, topic) == [b"a", b"c"]
