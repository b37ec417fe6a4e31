"""Which errors of a cluster pass by themselves, and which only a setting can mend."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from worker.admin.cluster import Cluster
from worker.bus import BusError, Unanswered
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.groups import refused
from worker.settings.errors import ConfigurationError

PASSING = [
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._WAIT_COORD,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_CONTROLLER,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.BROKER_NOT_AVAILABLE,
]
LASTING = [
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.INVALID_CONFIG,
]


def cluster() -> Cluster:
    return Cluster(KafkaOptions("127.0.0.1:1"))


@pytest.mark.parametrize("code", PASSING)
def test_what_passes_is_unanswered(code: int) -> None:
    error = KafkaError(code, "waiting for controller: timed out")
    with pytest.raises(Unanswered), cluster().explained("settings of a"):
        raise KafkaException(error)
    assert isinstance(refused(error, "a"), Unanswered)


@pytest.mark.parametrize("code", LASTING)
def test_what_lasts_is_refused(code: int) -> None:
    error = KafkaError(code)
    with pytest.raises(BusError) as caught, cluster().explained("settings of a"):
        raise KafkaException(error)
    assert not isinstance(caught.value, Unanswered)
    assert not isinstance(refused(error, "a"), Unanswered)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (KafkaError._AUTHENTICATION, "SASL authentication error: Invalid username or password"),
        (KafkaError._SSL, "SSL handshake failed: certificate verify failed"),
    ],
)
def test_brokers_that_let_nobody_in_are_a_wrong_setting(code: int, text: str) -> None:
    found = cluster()
    found.heard(KafkaError(code, text))
    found.heard(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    with pytest.raises(ConfigurationError) as caught, found.explained("settings of a"):
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))
    assert str(caught.value) == f"kafka: no broker of 127.0.0.1:1 lets this client in: {text}"


def test_a_handshake_that_the_broker_ends_is_waited_for() -> None:
    found = cluster()
    text = "SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?"
    found.heard(KafkaError(KafkaError._SSL, text))
    with pytest.raises(Unanswered), found.explained("settings of a"):
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))


@pytest.mark.slow(ci=False)  # confluent-kafka waits for ten seconds.
def test_no_token_is_waited_for() -> None:
    def provide(config: str) -> tuple[str, float]:
        raise OSError(config)

    options = KafkaOptions(
        "127.0.0.1:1",
        common={"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "OAUTHBEARER"},
        oauth=provide,
    )
    with pytest.raises(Unanswered, match=r"kafka\.oauth: OAuth token not set"):
        Cluster(options)
