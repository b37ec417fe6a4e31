"""How long a group keeps the seat of a member that is gone, under KIP-848.

There the session is the brokers' setting, or the group's own. It begins anew whenever another
broker becomes the group's coordinator.
"""

from __future__ import annotations

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource  # The admin module doesn't export them,
from confluent_kafka.admin._resource import ResourceType  # so mypy wants these private modules.

LONGEST_SECONDS = 60.0
"""The longest session that brokers allow by default (group.consumer.max.session.timeout.ms)."""

_SETTING = "consumer.session.timeout.ms"


def session_seconds(admin: AdminClient, group: str, seconds: float) -> float | None:
    """Return how long a session of a group is, as its coordinator says; None if nobody tells.

    That takes *DescribeConfigs* on the group, and brokers that know settings of groups.
    """
    resource = ConfigResource(ResourceType.GROUP, group)
    try:
        asked = admin.describe_configs([resource], request_timeout=seconds)
        found = asked[resource].result(seconds + 1)
    except (KafkaException, TimeoutError):
        return None
    value = found[_SETTING].value if _SETTING in found else None
    return None if value is None else int(value) / 1_000
