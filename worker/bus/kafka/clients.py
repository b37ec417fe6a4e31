"""Whether librdkafka accepts the options, tried on every kind of client without connecting."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from worker.bus.kafka.config import PROTECTED, KafkaOptions, OptionError
from worker.bus.kafka.errors import cause
from worker.bus.kafka.shown_keys import HARMLESS, HIDDEN

_UNKNOWN = re.compile(r'No such configuration property: "([^"]+)"')
_REFUSED = re.compile(r'Invalid value .*for configuration property "([^"]+)"', re.DOTALL)
_RANGE = re.compile(
    r'Configuration property "([^"]+)" value .* is outside allowed range (-?\d+)\.\.(-?\d+)',
    re.DOTALL,
)
_CREATION = re.compile(r"Failed to create \w+( client)?: ")
_FILE_FAILED = re.compile(r"([a-z0-9.]+\.location) failed")
_LEAST = 3
"""Shorter values are not searched for in messages: they would occur by chance."""
_TAKES: Mapping[str, str] = {
    "security.protocol": "plaintext, ssl, sasl_plaintext or sasl_ssl",
    "ssl.endpoint.identification.algorithm": "https or none",
    "compression.codec": "none, gzip, snappy, lz4 or zstd",
    "compression.type": "none, gzip, snappy, lz4 or zstd",
    "client.dns.lookup": "use_all_dns_ips or resolve_canonical_bootstrap_servers_only",
    "broker.address.family": "any, v4 or v6",
    "sasl.oauthbearer.method": "default or oidc",
}
_OF_PYTHON = frozenset({"default.topic.config", "logger", "on_commit", "on_delivery"})
"""Names that confluent-kafka gives a meaning of its own, beside its callbacks."""
_OAUTH = "OAUTHBEARER"


def check_clients(options: KafkaOptions) -> None:
    """Create every kind of client once, without a broker to connect to.

    Raises:
        OptionError: librdkafka refuses an option; the message names it, and shows no secret.
    """
    for name, table in options.tables.items():
        for key in table:
            if key in _OF_PYTHON or key.endswith("_cb"):
                raise OptionError(f"kafka.{name}: {key} is not a setting of librdkafka")
    _check_oauth(options)
    makers: list[Callable[[], object]] = [
        lambda: AdminClient(_alone(options.client_config("admin"))),
        lambda: Consumer(_alone(options.member_config("group", "instance"))).close(),
        lambda: Consumer(_alone(options.reader_config("group"))).close(),
        lambda: Producer(_alone(options.producer_config("writer"))),
    ]
    for make in makers:
        try:
            make()
        except KafkaException as error:
            raise OptionError(_line(options, cause(error).str())) from None


def _alone(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with no broker to connect to, and without a log."""
    quiet = logging.Logger("unheard")  # noqa: LOG001 -- nobody else may find it
    quiet.addHandler(logging.NullHandler())
    kept = {key: value for key, value in config.items() if key != "oauth_cb"}
    return {**kept, "bootstrap.servers": "", "logger": quiet}


def _check_oauth(options: KafkaOptions) -> None:
    """Refuse OAuth without a source of tokens: librdkafka would wait for one for ever."""
    for table in (options.consumer, options.producer, options.common):
        given = {**options.common, **table}
        mechanism = given.get("sasl.mechanisms", given.get("sasl.mechanism"))
        provided = (
            options.oauth is not None
            or str(given.get("sasl.oauthbearer.method")).lower() == "oidc"
            or str(given.get("enable.sasl.oauthbearer.unsecure.jwt")).lower() == "true"
        )
        if mechanism == _OAUTH and not provided:
            raise OptionError(
                f"kafka: {_OAUTH} needs kafka.oauth, or sasl.oauthbearer.method = oidc"
            )
        if mechanism != _OAUTH and options.oauth is not None:
            raise OptionError(f"kafka.oauth: needs sasl.mechanisms = {_OAUTH} in kafka.common")


def _line(options: KafkaOptions, said: str) -> str:
    """Return what librdkafka says, in one line: where the option is set, and no secret."""
    if found := _UNKNOWN.search(said):
        near = difflib.get_close_matches(found[1], HARMLESS | HIDDEN - PROTECTED, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"{_where(options, found[1])}: librdkafka has no such setting{hint}"
    if found := _RANGE.search(said):
        return f"{_where(options, found[1])}: must be between {found[2]} and {found[3]}"
    if found := _REFUSED.search(said):
        takes = _TAKES.get(found[1])
        what = f"must be {takes}" if takes else "librdkafka doesn't accept the value"
        return f"{_where(options, found[1])}: {what}"
    text = _CREATION.sub("", said)
    if found := _FILE_FAILED.search(text):
        path = _value(options, found[1])
        if isinstance(path, str) and not Path(path).exists():
            return f"{_where(options, found[1])}: there is no such file"
    for table in options.tables.values():
        for key, value in table.items():
            if key not in HARMLESS and len(str(value)) >= _LEAST:
                text = text.replace(str(value), "****")
    return f"kafka: librdkafka can't use these settings: {' '.join(text.split())}"


_ALIASES: Mapping[str, str] = {
    "compression.codec": "compression.type",
    "compression.type": "compression.codec",
    "sasl.mechanism": "sasl.mechanisms",
    "sasl.mechanisms": "sasl.mechanism",
}
"""librdkafka names a setting by one name, whichever was given."""


def _where(options: KafkaOptions, key: str) -> str:
    """Return the table that a key is in, and the key as it was given."""
    for given in (key, _ALIASES.get(key)):
        for name, table in options.tables.items():
            if given in table:
                return f"kafka.{name}: {given}"
    return f"kafka: {key}"


def _value(options: KafkaOptions, key: str) -> object:
    return next((table[key] for table in options.tables.values() if key in table), None)
