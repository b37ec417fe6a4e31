"""``neardup topics acls``: what each command needs on a cluster with an authorizer."""

from __future__ import annotations

from rich.table import Table

from worker.admin.acls import COMMANDS, Grant, grants, minimal, shell
from worker.admin.kafka_user import kafka_user
from worker.cli.errors import CommandError
from worker.cli.screen import print_json, screen
from worker.settings.model import Settings


def show(
    settings: Settings,
    *,
    command: str | None,
    principal: str | None,
    strimzi: str | None = None,
    as_json: bool = False,
) -> None:
    """Print a table of rights, or JSON; or kafka-acls.sh commands, or a KafkaUser of Strimzi.

    Raises:
        CommandError: there is no such command, or the principal or the user isn't one.
    """
    chosen = COMMANDS if command is None else [one.strip() for one in command.split(",")]
    for one in chosen:
        if one not in COMMANDS:
            raise CommandError(f"--command: got {one!r}, must be one of {', '.join(COMMANDS)}")
    if principal is not None and not principal.partition(":")[2]:
        raise CommandError(
            f"--principal: got {principal!r}, must be TYPE:NAME, such as User:worker"
        )
    cluster, _, user = (strimzi or "").partition("/")
    if strimzi is not None and not (cluster and user):
        raise CommandError(f"--strimzi: got {strimzi!r}, must be CLUSTER/USER")
    forms = {"--principal": principal, "--strimzi": strimzi, "--json": as_json or None}
    asked = [option for option, value in forms.items() if value is not None]
    if len(asked) > 1:
        raise CommandError(f"{' and '.join(asked)}: choose one")
    if command is None and asked not in ([], ["--json"]):
        raise CommandError(f"{asked[0]}: needs --command: each command has rights of its own")
    wanted = {
        name: grants(
            settings.topology(1),
            name,
            stages=settings.worker.stages,
            trim_log=settings.index.snapshots.trim_log,
        )
        for name in chosen
    }
    together = [right for rights in wanted.values() for right in rights]
    if principal is not None:
        print("\n".join(shell(together, principal)))  # noqa: T201 -- to be copied or run
    elif strimzi is not None:
        print(kafka_user(together, user, cluster), end="")  # noqa: T201 -- to be applied
    elif as_json:
        rows = [(name, one) for name, rights in wanted.items() for one in minimal(rights)]
        print_json([_facts(name, one) for name, one in rows])
    else:
        screen().print(_table({name: minimal(rights) for name, rights in wanted.items()}))


def _facts(command: str, one: Grant) -> dict[str, str]:
    return {
        "command": command,
        "resource": one.kind,
        "name": one.name,
        "pattern": "prefixed" if one.prefixed else "literal",
        "operation": one.operation,
        "when": one.when.replace("`", ""),
    }


def _table(wanted: dict[str, list[Grant]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("command", "resource", "name", "operations", "when"):
        table.add_column(title, overflow="fold")
    for command, rights in wanted.items():
        rows: dict[tuple[str, str, str], list[str]] = {}
        for one in rights:
            name = f"{one.name}*" if one.prefixed else one.name
            rows.setdefault((one.kind, name, one.when), []).append(one.operation)
        for (kind, name, when), operations in rows.items():
            table.add_row(command, kind, name, ", ".join(operations), when.replace("`", ""))
        table.add_section()
    return table
