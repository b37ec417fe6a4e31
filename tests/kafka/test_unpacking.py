"""Batches that unpack to much, on a broker: what is read, what isn't, and what says so."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from localkafka.broker import Kafka, wait_until
from tests.support.bombs import CODECS, write_batch
from tests.support.breadth import slow
from worker.admin.bad_batch import Attempts, Outcome, end_of
from worker.bus import LogReader, PartitionUnreadable, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import ClientMemory, KafkaOptions
from worker.settings.loading import load

SMALL = ClientMemory(fetched=(8 << 20, 4 << 20), log_fetched=(8 << 20, 4 << 20), unpacked=8 << 20)
SIZE = 400_000
COUNTS = {"none": 2, "gzip": 20, "snappy": 20, "lz4": 20, "zstd": 20}
"""Documents of a batch; brokers take no more than 1 MB of it."""


def _topic(kafka: Kafka, app_id: str, **config: str) -> TopicPartition:
    return TopicPartition(kafka.create_topic(app_id, config=config), 0)


def _offsets(reader: LogReader, count: int) -> list[int]:
    """Return the offsets of the next records, at least so many."""
    found: list[int] = []

    def enough() -> bool:
        found.extend(one.offset for one in reader.read(1_000, 1 << 30, 0.1))
        return len(found) >= count

    wait_until(enough, 30, f"{count} records")
    return found


@pytest.mark.parametrize("codec", [slow(codec) if codec != "zstd" else codec for codec in CODECS])
def test_a_reader_of_single_batches_fetches_no_other(kafka: Kafka, app_id: str, codec: str) -> None:
    place = _topic(kafka, app_id)
    batches = [
        write_batch(kafka.bootstrap, place, codec, count, 1_000, f"batch-{n}")
        for n, count in enumerate((1, COUNTS[codec], 1))
    ]
    bus = KafkaBus(KafkaOptions(kafka.bootstrap))
    with closing(bus.log_reader(app_id, [place.topic], single=True)) as reader:
        at = 0
        for batch in batches:
            reader.start(place, at)
            assert _offsets(reader, len(batch)) == [one.offset for one in batch]
            at = batch[-1].offset + 1
            assert reader.position(place) == at


def test_a_batch_beyond_the_limit_is_named_and_is_no_damage(kafka: Kafka, app_id: str) -> None:
    place = _topic(kafka, app_id)
    before = write_batch(kafka.bootstrap, place, "none", 1, 10, "before")
    bomb = write_batch(kafka.bootstrap, place, "zstd", 60, SIZE)
    after = write_batch(kafka.bootstrap, place, "none", 1, 10, "after")
    bus = KafkaBus(KafkaOptions(kafka.bootstrap, memory=SMALL))
    with closing(bus.log_reader(app_id, [place.topic])) as reader:
        for start in (0, bomb[0].offset, bomb[7].offset):
            reader.start(place, start)
            if not start:
                assert _offsets(reader, 1) == [before[0].offset]
            with pytest.raises(
                PartitionUnreadable, match=r"Its checksum is right.*8 MiB"
            ) as raised:
                wait_until(partial(_nothing, reader), 30, "an error")
            assert (raised.value.partition, raised.value.whole) == (place, True)
            assert raised.value.position == max(start, bomb[0].offset)
        reader.start(place, bomb[-1].offset + 1)
        assert _offsets(reader, 1) == [after[0].offset]


def _nothing(reader: LogReader) -> bool:
    assert not reader.read(1_000, 1 << 30, 0.1)
    return False


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_end_of_a_batch_is_found_by_processes_that_die_of_it(
    kafka: Kafka, app_id: str, tmp_path: Path
) -> None:
    place = _topic(kafka, app_id)
    write_batch(kafka.bootstrap, place, "none", 1, 10, "before")
    bomb = write_batch(kafka.bootstrap, place, "gzip", 110, 950_000)
    write_batch(kafka.bootstrap, place, "none", 1, 10, "after")
    config = tmp_path / "neardup.toml"
    config.write_text(f'app = "{app_id}"\n[kafka]\nbootstrap = "{kafka.bootstrap}"\n')
    start, end = bomb[0].offset, bomb[-1].offset + 1
    with closing(Attempts(load(config), place, end + 1, 8 << 20)) as attempt:
        found = attempt(start)
        assert (found.outcome, found.why) == (
            Outcome.UNPACKABLE,
            "to unpack it takes more than 8 MiB",
        )
        assert attempt(0).outcome is Outcome.READ
        assert end_of(attempt, start, end + 1) == end


def test_a_topic_without_compression_refuses_what_unpacks_to_much(
    kafka: Kafka, app_id: str
) -> None:
    place = _topic(kafka, app_id, **{"compression.type": "uncompressed"})
    with pytest.raises(AssertionError) as raised:
        write_batch(kafka.bootstrap, place, "gzip", 20, SIZE)
    (error,) = raised.value.args
    assert "MSG_SIZE_TOO_LARGE" in str(error)
