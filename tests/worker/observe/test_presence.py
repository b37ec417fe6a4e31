"""Who is here, told from the members of groups and their offsets."""

from worker.bus import TopicPartition
from worker.observe.presence import Presence, PresenceMeter, owners

SEATS = [TopicPartition("a.shards", number) for number in range(3)]
OWNED = [{"one": SEATS[:2], "two": SEATS[2:]}, {"three": [TopicPartition("a.documents", 0)]}]


def at(*offsets: int) -> dict[TopicPartition, int]:
    return dict(zip(SEATS, offsets, strict=True))


def test_workers_of_all_groups_count_once() -> None:
    meter = PresenceMeter("a.shards", 3)
    seen = meter.look(0, [*OWNED, {"one": []}], at(5, 5, 5), behind=False)
    assert seen == Presence(("one", "three", "two"), 3)


def test_a_shard_that_nobody_owns_is_named_and_is_not_still() -> None:
    meter = PresenceMeter("a.shards", 3)
    for now in (0, 20):
        seen = meter.look(now, [{"one": SEATS[:1]}], at(5, 1, 1), behind=True)
    assert (seen.unowned, seen.still) == ((1, 2), {})


def test_a_shard_that_is_behind_and_does_not_move_is_still() -> None:
    meter = PresenceMeter("a.shards", 3)
    assert meter.look(0, OWNED, at(5, 2, 5), behind=True).still == {}
    assert meter.look(9, OWNED, at(9, 2, 9), behind=True).still == {}
    assert meter.look(12, OWNED, at(12, 2, 12), behind=True).still == {1: 12}
    assert meter.look(13, OWNED, at(12, 3, 12), behind=True).still == {}


def test_shards_that_have_nothing_to_read_are_not_still() -> None:
    meter = PresenceMeter("a.shards", 3)
    for now in (0, 20):
        assert meter.look(now, OWNED, at(5, 5, 5), behind=False).still == {}
    for now in (21, 29):
        assert meter.look(now, OWNED, at(5, 5, 5), behind=True).still == {}
    assert meter.look(31, OWNED, at(5, 5, 5), behind=True).still == {0: 11, 1: 11, 2: 11}


def test_a_member_owns_the_partitions_of_the_topic_that_it_is_assigned() -> None:
    places = [TopicPartition(topic, n) for topic, n in (("a.shards", 2), ("a.shards", 0), ("b", 1))]
    members = {"alpha": places, "beta": [TopicPartition("a.shards", 1)], "gamma": []}
    assert owners(members, "a.shards") == {0: "alpha", 1: "beta", 2: "alpha"}
