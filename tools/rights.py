"""Writes the reference page of rights: ``python -m tools.rights > docs/reference/acls.md``."""

from __future__ import annotations

import sys

from worker.admin.acls import COMMANDS, Grant, Operation, grants, minimal
from worker.settings.model import Settings
from worker.topology import STAGES, Topology

_INTRODUCTION = """\
# ACLs

    neardup topics acls                                            # what each command needs
    neardup topics acls --command run --principal User:worker      # as kafka-acls.sh commands
    neardup topics acls --command init,run --strimzi main/worker   # as a KafkaUser of Strimzi

On a cluster with an authorizer, these rights are enough for each principal: every command was run
with them. `topics acls` prints them with the names of your application, topics and stages; it
doesn't connect. `APP` is the application's name. `APP.matches-*` is a prefix, as is every name
below that ends with `*`.

Clients authenticate by `kafka.common` (SASL, TLS):

    [kafka.common]
    "security.protocol" = "SASL_SSL"
    "sasl.mechanism" = "SCRAM-SHA-512"
    "sasl.username" = "worker"
    "ssl.ca.location" = "/etc/ssl/kafka.pem"

*Read*, *Write* and *Delete* include *Describe* on the same resource. Brokers before Kafka 3.0 also
want *IdempotentWrite* on the cluster from `neardup feed`. `neardup index`, `dedupe`, `demo` and
`config` never connect.

A worker or a command that lacks a right names it in one line, and ends with status 2:

    neardup: settings of APP.unique: DescribeConfigs on topic APP.unique is missing. …

Workers meet a missing *Write* only with the first record.
"""

_FOOT = """
## Your own clients

| client | topics | groups |
|---|---|---|
| a producer of documents | *Write* on `APP.documents` | |
| a reader of verdicts | *Read* on `APP.unique`, `APP.duplicate` | *Read* on a group of its own |

Nobody else needs *Write* on `APP.documents`, `APP.unique` or `APP.duplicate`, and nobody at all on
`APP.shards`. *Write* on `APP.fingerprints` or `APP.matches-*` is the power over verdicts. *Delete*
on `APP.fingerprints` is the power to stop all workers. [Threats](../explanation/threats.md)
has the rest.

A test on a broker with SASL, TLS and an authorizer runs each command with these rights. Its
slow part takes rights away, one by one (`tests/kafka/test_acls.py`).

This page is generated: `python -m tools.rights > docs/reference/acls.md`.
"""


def page() -> str:
    """Return the page of rights, as Markdown."""
    topology = Settings(app="APP").topology(1)
    parts = [_INTRODUCTION]
    for command in COMMANDS:
        wanted = grants(topology, command)
        parts.append(f"\n## `neardup {command}`\n\n{_about(command)}")
        parts.append("| resource | name | operations | when |\n|---|---|---|---|\n")
        parts += _rows(minimal(wanted))
    parts.append(_stages(topology))
    return "".join([*parts, _FOOT])


def _about(command: str) -> str:
    if command == "run":
        return (
            "For a worker that runs all stages. At its start each worker makes the check of"
            " `neardup topics\nverify`. [Below](#one-stage) is what each stage needs besides.\n\n"
        )
    if command == "serve":
        return "It makes the same check, and writes only corrections.\n\n"
    return ""


def _rows(wanted: list[Grant]) -> list[str]:
    """Return a row for each resource and case."""
    rows: dict[tuple[str, str, str], list[Operation]] = {}
    for one in wanted:
        name = f"{one.name}*" if one.prefixed else one.name
        rows.setdefault((one.kind, name, one.when), []).append(one.operation)
    return [
        f"| {kind} | `{name}` | {', '.join(operations)} | {when} |\n"
        for (kind, name, when), operations in rows.items()
    ]


def _stages(topology: Topology) -> str:
    parts = ["\n## One stage\n\nWhat a worker with `--stages` needs besides the check.\n\n"]
    parts.append("| stage | resource | name | operations | when |\n|---|---|---|---|---|\n")
    for stage in STAGES:
        wanted = grants(topology, "run", stages=[stage])
        own = minimal([one for one in wanted if one.role == stage])
        parts += [f"| {stage} {row}" for row in _rows(own)]
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
