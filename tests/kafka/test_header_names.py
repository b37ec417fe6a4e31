"""Headers whose names no Python client can read, in the midst of others."""

import pytest

from localkafka.broker import Kafka
from tests.support.kafka_harness import KafkaHarness
from tests.support.raw_producer import produce_raw
from worker.bus import UNREADABLE_HEADERS, Header, Outgoing
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions

pytestmark = pytest.mark.kafka

BAD = [(b"fine", b"1"), (b"\xff\xfe", b"x"), (b"empty", b""), (b"\xc0\xaf", b"y")]
FINE: tuple[Header, ...] = (("a", b"1"), ("b", None))
GIVEN = ["bad", "none", "fine", "bad", "bad", "fine", "none", "bad"]


def test_a_batch_keeps_the_headers_of_each_record(kafka: Kafka, app_id: str) -> None:
    mark = UNREADABLE_HEADERS[0]
    read: dict[str, tuple[Header, ...]] = {
        "bad": (("fine", b"1"), mark, ("empty", b""), mark),
        "none": (),
        "fine": FINE,
    }
    harness = KafkaHarness(kafka.bootstrap, KafkaBus(KafkaOptions(kafka.bootstrap)), app_id)
    topic = harness.topic(2)
    for number, kind in enumerate(GIVEN):
        value = b"%d" % number
        for partition in (0, 1):
            if kind == "bad":
                produce_raw(kafka.bootstrap, topic, partition, value, BAD)
            else:
                headers = FINE if kind == "fine" else ()
                harness.append(Outgoing(topic, partition, None, value, headers))
    seat = harness.alone(topic)
    seat.start()
    seat.collect(2 * len(GIVEN))
    for partition in (0, 1):
        records = [one for one in seat.records if one.partition == partition]
        assert [one.value for one in records] == [b"%d" % number for number in range(len(GIVEN))]
        assert [one.headers for one in records] == [read[kind] for kind in GIVEN]
    harness.close()
