"""The queues of librdkafka's clients are bounded, and a key that is set takes precedence."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.bus.kafka.clients import check_clients
from worker.bus.kafka.config import ClientMemory, KafkaOptions, Value
from worker.settings.loading import load

MIB = 1 << 20
MEMORY = ClientMemory((6 * MIB, 3 * MIB), (4 * MIB, 2 * MIB), 20 * MIB)


def queue(config: Mapping[str, Value]) -> tuple[Value, Value]:
    return config["queued.max.messages.kbytes"], config["fetch.max.bytes"]


def test_every_client_has_a_bounded_queue() -> None:
    options = KafkaOptions("kafka:9092", memory=MEMORY)
    assert queue(options.member_config("g", "one")) == (6 << 10, 3 * MIB)
    assert queue(options.reader_config("g")) == (4 << 10, 2 * MIB)
    assert options.producer_config("p")["queue.buffering.max.kbytes"] == 20 << 10


@given(st.integers(1, 1 << 28), st.integers(1_000_000, 1 << 26))
def test_short_messages_take_about_the_queue(size: int, fetch: int) -> None:
    """A client fetches while the queue has fewer messages and fewer bytes than these."""
    options = KafkaOptions("kafka:9092", memory=ClientMemory((size, fetch)))
    messages = options.member_config("g", "one")["queued.min.messages"]
    assert 1 <= messages <= 20_000
    assert messages == 1 or 1_000 * messages <= size


@pytest.mark.parametrize("where", ["common", "consumer"])
@pytest.mark.parametrize(
    "key", ["queued.max.messages.kbytes", "queued.min.messages", "fetch.max.bytes"]
)
def test_a_consumers_key_that_is_set_stays(where: str, key: str) -> None:
    tables = {where: {key: 7_000_000}}
    options = KafkaOptions("kafka:9092", memory=MEMORY, **tables)  # type: ignore[arg-type]
    assert options.member_config("g", "one")[key] == 7_000_000
    assert options.reader_config("g")[key] == 7_000_000


@pytest.mark.parametrize("where", ["common", "producer"])
def test_a_producers_key_that_is_set_stays(where: str) -> None:
    tables = {where: {"queue.buffering.max.kbytes": 9}}
    options = KafkaOptions("kafka:9092", memory=MEMORY, **tables)  # type: ignore[arg-type]
    assert options.producer_config("p")["queue.buffering.max.kbytes"] == 9


@pytest.mark.parametrize("where", ["common", "consumer"])
@pytest.mark.parametrize("size", [30 * MIB, str(30 * MIB)])
def test_a_fetch_is_no_smaller_than_the_largest_record(where: str, size: int | str) -> None:
    """Otherwise librdkafka would refuse to start."""
    options = KafkaOptions(
        "kafka:9092",
        memory=MEMORY,
        **{where: {"message.max.bytes": size}},  # type: ignore[arg-type]
    )
    check_clients(options)
    assert options.member_config("g", "one")["fetch.max.bytes"] == 30 * MIB


@pytest.mark.parametrize("memory", ["256MiB", "1GiB"])
@pytest.mark.parametrize("shards", [1, 16])
def test_librdkafka_accepts_what_the_settings_come_to(memory: str, shards: int) -> None:
    settings = load(overrides={"worker.memory": memory, "index.shards": shards})
    options, shares = settings.kafka_options(), settings.memory()
    check_clients(options)
    queued, fetch = queue(options.member_config("g", "one"))
    assert 1024 * int(queued) + int(fetch) <= shares.client
    queued, fetch = queue(options.reader_config("g"))
    assert 1024 * int(queued) + int(fetch) <= shares.log_reader


def test_a_producer_has_room_for_the_largest_record() -> None:
    large = {"limits.record_bytes": 50_000_000, "worker.memory": "256MiB"}
    produced = load(overrides=large).kafka_options().memory.produced
    assert produced == 100_000_000


@pytest.mark.parametrize("given", [{}, {"socket.timeout.ms": 60_000}, {"socket.timeout.ms": 500}])
def test_a_writer_gives_up_before_the_brokers_do(given: dict[str, int]) -> None:
    """See `KafkaOptions.delivery_timeout_ms`."""
    waits = {"transaction_timeout_ms": 21_000, "delivery_timeout_ms": 15_000}
    options = KafkaOptions("kafka:9092", common=given, **waits)  # type: ignore[arg-type]
    check_clients(options)
    config = options.producer_config("p")
    assert config["transaction.timeout.ms"] == 21_000
    assert config["message.timeout.ms"] == 15_000
    assert config["socket.timeout.ms"] == min(15_000, given.get("socket.timeout.ms", 15_000))


def test_a_member_gives_up_when_the_brokers_do() -> None:
    config = KafkaOptions("kafka:9092", transaction_timeout_ms=7_000).producer_config("p")
    assert config["transaction.timeout.ms"] == config["message.timeout.ms"] == 7_000
    assert "socket.timeout.ms" not in config
