"""Whether a client still knows a broker.

librdkafka removes every broker that an answer with metadata doesn't list. The only broker of a
cluster may list none for a moment after it was frozen. librdkafka then begins again with the
bootstrap servers, but it may cancel that itself. Then it knows no broker for good: it sends
nothing, and reports nothing (librdkafka issue 5301, open in 2.16). Only another client helps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from confluent_kafka import Consumer, KafkaException

FORGOTTEN = "group %s: librdkafka has no broker to connect to any more; connecting anew"
"""What is logged about a client, of a group, that is replaced for it."""

_INTERVAL = "statistics.interval.ms"
_INTERVAL_MS = 5_000
_CONCLUSIVE = 2
"""After so many statistics without a broker, it is not a moment between two lists of them."""
_REACH_SECONDS = 1.0


class _Broker(msgspec.Struct):
    source: str = ""


class _Statistics(msgspec.Struct):
    brokers: dict[str, _Broker] = msgspec.field(default_factory=dict)


_decoder = msgspec.json.Decoder(_Statistics)


class KnownBrokers:
    """What a client's statistics say of the brokers that it knows."""

    def __init__(self) -> None:
        """Begin with a client that knows its bootstrap servers."""
        self._without = 0

    def hear(self, statistics: str) -> None:
        """Take librdkafka's statistics."""
        brokers = _decoder.decode(statistics).brokers.values()
        # The group's coordinator is a connection of its own, and leads to no other broker.
        known = any(broker.source != "logical" for broker in brokers)
        self._without = 0 if known else self._without + 1

    @property
    def lost(self) -> bool:
        """Return whether the client knows no broker, and so never will again.

        While brokers can't be reached, it knows them still.
        """
        return self._without >= _CONCLUSIVE


def telling(config: Mapping[str, Any], *hear: Callable[[str], None]) -> dict[str, Any]:
    """Return a consumer's configuration that has its polls pass its statistics to these."""

    def hear_all(statistics: str) -> None:
        for one in hear:
            one(statistics)

    interval = config.get(_INTERVAL, _INTERVAL_MS)
    return {**config, _INTERVAL: interval, "stats_cb": hear_all}


def reaches_brokers(client: Consumer, topic: str) -> bool:
    """Ask for a topic's metadata, and return whether any broker answers."""
    try:
        client.list_topics(topic, timeout=_REACH_SECONDS)
    except KafkaException:
        return False
    return True
