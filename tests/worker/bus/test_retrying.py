"""What is tried again while brokers come and go, and what isn't."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException

from worker.bus import BusError, OutcomeUnknown, Unanswered
from worker.bus.kafka.errors import asking, retrying


def failing_once(code: int) -> Callable[[float], str]:
    failures = [KafkaException(KafkaError(code))]

    def call(left: float) -> str:
        assert left > 0
        if failures:
            raise failures.pop()
        return "done"

    return call


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._TRANSPORT,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,  # A new leader, to who asks for its watermarks.
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    ],
)
def test_what_passes_when_a_leader_moves_is_tried_again(code: int) -> None:
    assert retrying(failing_once(code), 1.0, "asking") == "done"


def test_a_timeout_is_tried_again_by_who_only_asks() -> None:
    late = KafkaError._TIMED_OUT
    assert asking(failing_once(late), 1.0, "asking") == "done"
    with pytest.raises(KafkaException):
        retrying(failing_once(late), 1.0, "doing")


def test_what_does_not_pass_is_raised_at_once() -> None:
    denied = KafkaError.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        retrying(failing_once(denied), 1.0, "doing")
    with pytest.raises(BusError, match=r"asking: .*TOPIC_AUTHORIZATION_FAILED") as raised:
        asking(failing_once(denied), 1.0, "asking")
    assert not isinstance(raised.value, Unanswered)


def test_no_time_is_no_call() -> None:
    with pytest.raises(OutcomeUnknown, match="doing: no time left"):
        retrying(failing_once(KafkaError.LEADER_NOT_AVAILABLE), 0.0, "doing")
    with pytest.raises(Unanswered, match="asking: no time left"):
        asking(failing_once(KafkaError.LEADER_NOT_AVAILABLE), 0.0, "asking")


@pytest.mark.parametrize("code", [KafkaError._TIMED_OUT, KafkaError.LEADER_NOT_AVAILABLE])
def test_who_asks_in_vain_is_not_told_of_a_transaction(code: int) -> None:
    def never(left: float) -> None:
        assert left > 0
        raise KafkaException(KafkaError(code))

    with pytest.raises(Unanswered, match="asking: "):
        asking(never, 0.06, "asking")
