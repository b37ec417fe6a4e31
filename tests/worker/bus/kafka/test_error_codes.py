"""What librdkafka's codes mean, and what follows for a transaction, a poll, and who asks."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from worker.bus import (
    Aborted,
    BusError,
    Denied,
    Fenced,
    OutcomeUnknown,
    PartitionUnreadable,
    TopicPartition,
)
from worker.bus.kafka.error_codes import CODES, Means, means, underlying
from worker.bus.kafka.errors import asking, consequence, damage, fatal, passes, refusal

PLACE = TopicPartition("t", 0)
NAMES = {value: name for name, value in vars(KafkaError).items() if isinstance(value, int)}


def coded(meaning: Means) -> set[str]:
    return {NAMES[code] for code, found in CODES.items() if found & meaning}


def test_every_code_is_one_of_librdkafkas_and_means_something() -> None:
    assert set(CODES) <= set(NAMES)
    assert all(CODES.values())


@pytest.mark.parametrize("meaning", list(Means))
def test_every_meaning_has_a_code(meaning: Means) -> None:
    assert coded(meaning)


def test_no_code_both_passes_and_does_not() -> None:
    lasting = Means.DENIED | Means.REFUSED | Means.DAMAGED | Means.TOO_LONG | Means.SUPERSEDED
    passing = Means.MOVING | Means.PASSING | Means.AWAY | Means.LATE
    assert not coded(lasting) & coded(passing)


@pytest.mark.parametrize(
    ("meaning", "names"),
    [
        (Means.REFUSED, {"MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_TIMESTAMP",
                         "INVALID_RECORD", "POLICY_VIOLATION"}),
        (Means.SUPERSEDED, {"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}),
        (Means.EVICTED, {"FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID"}),
        (Means.DISTURBING, {"_TIMED_OUT", "_TIMED_OUT_QUEUE", "_TRANSPORT", "_ALL_BROKERS_DOWN",
                            "REQUEST_TIMED_OUT"}),
        (Means.DAMAGED, {"_BAD_MSG", "_NOT_IMPLEMENTED", "INVALID_MSG"}),
        (Means.OCCUPIED, {"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "NON_EMPTY_GROUP",
                          "STALE_MEMBER_EPOCH"}),
    ],
)  # fmt: skip
def test_what_the_promise_depends_on_is_named_in_full(meaning: Means, names: set[str]) -> None:
    assert coded(meaning) == names


CONSEQUENCES = [
    ("FENCED_INSTANCE_ID", Fenced, Fenced),
    ("UNRELEASED_INSTANCE_ID", Fenced, Fenced),
    ("PRODUCER_FENCED", OutcomeUnknown, Fenced),
    ("INVALID_PRODUCER_EPOCH", OutcomeUnknown, Fenced),
    ("_FENCED", OutcomeUnknown, Fenced),
    ("_TIMED_OUT", OutcomeUnknown, OutcomeUnknown),
    ("_TIMED_OUT_QUEUE", OutcomeUnknown, OutcomeUnknown),
    ("TOPIC_AUTHORIZATION_FAILED", Denied, Denied),
    ("MSG_SIZE_TOO_LARGE", BusError, BusError),
    ("INVALID_TRANSACTION_TIMEOUT", BusError, BusError),
    ("UNKNOWN_TOPIC_OR_PART", BusError, BusError),
]


@pytest.mark.parametrize(("name", "member", "alone"), CONSEQUENCES)
def test_what_follows_for_a_transaction(
    name: str, member: type[Exception], alone: type[Exception]
) -> None:
    error = KafkaError(getattr(KafkaError, name))
    assert type(consequence(error, "x")) is member
    assert type(consequence(error, "x", alone=True)) is alone


@pytest.mark.parametrize("name", sorted(NAMES[code] for code in CODES))
def test_a_poll_and_a_question_have_no_transactions_outcome(name: str) -> None:
    error = KafkaError(getattr(KafkaError, name))
    right_missing = means(error, Means.DENIED) and not means(error, Means.SHUT_OUT)
    assert type(refusal(error, "x")) is (Denied if right_missing else BusError)


def test_a_missing_right_is_named() -> None:
    denied = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)
    assert str(refusal(denied, "group a", "Read on group a")).startswith(
        "group a: Read on group a is missing. `neardup topics acls` lists"
    )
    assert "Read on the group is missing" in str(consequence(denied, "offsets"))


def test_a_fatal_error_tells_of_a_missing_right_in_its_text() -> None:
    said = "Fatal error: Broker: Group authorization failed: ConsumerGroupHeartbeat fatal error"
    assert Means.DENIED in underlying(KafkaError(KafkaError._FATAL, said))


def test_librdkafkas_own_word_decides_on_all_others() -> None:
    code = KafkaError.UNKNOWN_TOPIC_OR_PART
    assert type(consequence(KafkaError(code, "", txn_requires_abort=True), "x")) is Aborted
    assert type(consequence(KafkaError(code, "", retriable=True), "x")) is OutcomeUnknown
    assert type(consequence(KafkaError(code, "", fatal=True), "x")) is OutcomeUnknown


@pytest.mark.parametrize("name", sorted(coded(Means.DAMAGED)))
def test_damage_names_the_place(name: str) -> None:
    error = KafkaError(getattr(KafkaError, name))
    found = damage(error, PLACE, 7, 1 << 20)
    assert isinstance(found, PartitionUnreadable)
    assert (found.partition, found.position, found.whole) == (PLACE, 7, False)
    assert "restore the log" in str(found)
    assert not passes(error)


def test_a_batch_that_can_t_be_unpacked_is_not_damaged() -> None:
    error = KafkaError(KafkaError._BAD_COMPRESSION)
    found = damage(error, PLACE, 7, 5 << 20)
    assert isinstance(found, PartitionUnreadable)
    assert (found.partition, found.position, found.whole) == (PLACE, 7, True)
    assert "Its checksum is right" in str(found)
    assert "more than 5 MiB" in str(found)
    assert "damaged" not in str(found)
    assert not passes(error)


@pytest.mark.parametrize("name", ["_TRANSPORT", "_ALL_BROKERS_DOWN", "ILLEGAL_GENERATION"])
def test_what_polls_report_while_brokers_come_and_go_passes(name: str) -> None:
    error = KafkaError(getattr(KafkaError, name))
    assert passes(error)
    assert damage(error, PLACE, 7, 1) is None


def test_a_fatal_error_means_what_its_text_names() -> None:
    text = KafkaError(KafkaError.FENCED_INSTANCE_ID).str()
    error = KafkaError(KafkaError._FATAL, f"Fatal error: {text}")
    assert Means.EVICTED in underlying(error)
    assert not means(error, Means.EVICTED)
    assert isinstance(fatal(error, "g"), Fenced)
    assert type(fatal(KafkaError(KafkaError._FATAL, "disk on fire"), "g")) is BusError


@pytest.mark.parametrize("name", ["_TIMED_OUT", "_TIMED_OUT_QUEUE", "_TRANSPORT", "_WAIT_COORD"])
def test_a_look_up_that_a_broker_missed_is_repeated(name: str) -> None:
    errors = [KafkaException(KafkaError(getattr(KafkaError, name)))] * 2

    def call(_: float) -> str:
        if errors:
            raise errors.pop()
        return "found"

    assert asking(call, 30, "offsets") == "found"
    assert not errors
