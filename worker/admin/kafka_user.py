"""Rights as a KafkaUser, the resource from which Strimzi's operator makes a user with ACLs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from worker.admin.acls import Grant, Kind, Operation, minimal

_KINDS: dict[Kind, str] = {
    "topic": "topic",
    "group": "group",
    "transactional-id": "transactionalId",
}


def kafka_user(wanted: Collection[Grant], user: str, cluster: str) -> str:
    """Return the manifest of a user who has these rights and a password, as YAML.

    A right that is needed only in some case is a comment, which names the case.
    """
    lines = [
        "apiVersion: kafka.strimzi.io/v1",
        "kind: KafkaUser",
        "metadata:",
        f"  name: {json.dumps(user)}",
        "  labels:",
        f"    strimzi.io/cluster: {json.dumps(cluster)}",
        "spec:",
        "  authentication:",
        "    type: scram-sha-512",
        "  authorization:",
        "    type: simple",
        "    acls:",
        *_rules(wanted),
    ]
    return "\n".join(lines) + "\n"


def _rules(wanted: Collection[Grant]) -> Iterator[str]:
    rules: dict[tuple[str, Kind, str, bool], list[Operation]] = {}
    for one in sorted(minimal(wanted), key=lambda grant: grant.when):
        rules.setdefault((one.when, one.kind, one.name, one.prefixed), []).append(one.operation)
    said = ""
    for (when, kind, name, prefixed), operations in rules.items():
        if when != said:
            said = when
            yield f"      # {when.replace('`', '')}:"
        pattern = "prefix" if prefixed else "literal"
        resource = f"{{type: {_KINDS[kind]}, name: {json.dumps(name)}, patternType: {pattern}}}"
        yield f"      {'# ' if when else ''}- {{resource: {resource},"
        yield f"      {'# ' if when else ''}   operations: [{', '.join(operations)}]}}"
