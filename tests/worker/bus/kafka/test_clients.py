"""What librdkafka refuses is one line that names the setting, and shows no value of it."""

from __future__ import annotations

from typing import Literal

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from worker.bus.kafka.clients import check_clients
from worker.bus.kafka.config import KafkaOptions, OptionError, Value
from worker.bus.kafka.shown_keys import HARMLESS, HIDDEN

HUSH = "hush-hush"
UNKNOWN = "librdkafka has no such setting"
REFUSES = "kafka: librdkafka can't use these settings"


@pytest.mark.parametrize(
    ("common", "line"),
    [
        (
            {"sasl.passwrd": HUSH},
            f"kafka.common: sasl.passwrd: {UNKNOWN}; did you mean sasl.password?",
        ),
        (
            {"security.protocol": HUSH},
            "kafka.common: security.protocol: must be plaintext, ssl, sasl_plaintext or sasl_ssl",
        ),
        (
            {"security.protocol": "SSL", "ssl.ca.location": f"/{HUSH}.pem"},
            "kafka.common: ssl.ca.location: there is no such file",
        ),
        (
            {"socket.timeout.ms": 5},
            "kafka.common: socket.timeout.ms: must be between 10 and 300000",
        ),
        (
            {"socket.timeout.ms": HUSH},
            "kafka.common: socket.timeout.ms: librdkafka doesn't accept the value",
        ),
        (
            {"compression.type": HUSH},
            "kafka.common: compression.type: must be none, gzip, snappy, lz4 or zstd",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanisms": "PLAIN"},
            f"{REFUSES}: sasl.username and sasl.password must be set",
        ),
        (
            {"sasl.mechanisms": "OAUTHBEARER"},
            "kafka: OAUTHBEARER needs kafka.oauth, or sasl.oauthbearer.method = oidc",
        ),
        ({"error_cb": HUSH}, "kafka.common: error_cb is not a setting of librdkafka"),
        (
            {"default.topic.config": 4},
            "kafka.common: default.topic.config is not a setting of librdkafka",
        ),
    ],
)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_librdkafka_refuses_is_one_line(
    common: dict[str, Value], line: str, protocol: Literal["classic", "consumer"]
) -> None:
    with pytest.raises(OptionError) as caught:
        check_clients(KafkaOptions("kafka:9092", protocol, common=common))
    assert str(caught.value) == line


@pytest.mark.parametrize("key", ["ssl.key.pem", "plugin.library.paths", "ssl.certificate.pem"])
def test_other_refusals_show_no_secret_either(key: str) -> None:
    common: dict[str, Value] = {"security.protocol": "SSL", key: HUSH}
    with pytest.raises(OptionError, match=REFUSES) as caught:
        check_clients(KafkaOptions("kafka:9092", common=common))
    assert HUSH not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_table_is_named() -> None:
    for options in (
        KafkaOptions("kafka:9092", consumer={"fetch.wait.max.ms": HUSH}),
        KafkaOptions("kafka:9092", producer={"queue.buffering.max.ms": HUSH}),
    ):
        (table,) = (name for name, keys in options.tables.items() if keys)
        with pytest.raises(OptionError, match=f"^kafka.{table}: .* doesn't accept the value"):
            check_clients(options)


def test_tokens_need_the_mechanism_that_uses_them() -> None:
    with pytest.raises(OptionError, match=r"^kafka.oauth: needs sasl.mechanisms = OAUTHBEARER"):
        check_clients(KafkaOptions("kafka:9092", oauth=lambda _config: ("", 0.0)))


def test_good_options_pass_and_no_token_is_asked_for() -> None:
    def provide(config: str) -> tuple[str, float]:
        raise AssertionError(config)

    common: dict[str, Value] = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "OAUTHBEARER",
    }
    for protocol in ("classic", "consumer"):
        check_clients(KafkaOptions("kafka:9092", protocol, common=common, oauth=provide))
        check_clients(KafkaOptions("kafka:9092", protocol))


def test_the_known_keys_are_keys_of_librdkafka() -> None:
    for key in HARMLESS | HIDDEN:
        said = ""
        try:
            AdminClient({key: "", "log_level": 0})
        except KafkaException as error:
            said = str(error)
        assert "No such configuration property" not in said, key
