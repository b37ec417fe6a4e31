"""``neardup topics acls``: the rights that each command needs on a cluster with an authorizer."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from worker.admin.acls import COMMANDS, Grant, grants, kafka_user, minimal, shell
from worker.cli.errors import CommandError
from worker.cli.options import App, Config, Json, settings_of
from worker.cli.screen import print_json, screen


def acls(
    config: Config = None,
    app: App = None,
    *,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="Only these commands, such as 'run' or 'topics create,run'."
        ),
    ] = None,
    stages: Annotated[
        str | None,
        typer.Option(
            metavar="STAGES",
            help="Stages of a worker: fingerprint, index, route. Default: worker.stages.",
        ),
    ] = None,
    principal: Annotated[
        str | None,
        typer.Option(
            metavar="User:NAME", help="Print the kafka-acls.sh commands for this principal."
        ),
    ] = None,
    strimzi: Annotated[
        str | None,
        typer.Option(metavar="CLUSTER/USER", help="Print a KafkaUser for Strimzi's operator."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print what each command needs on a cluster with ACLs; doesn't connect."""
    settings = settings_of(config, None, app, worker__stages=stages)
    chosen = COMMANDS if command is None else [name.strip() for name in command.split(",")]
    for name in chosen:
        if name not in COMMANDS:
            raise CommandError(f"--command: got {name!r}, must be one of {', '.join(COMMANDS)}")
    if principal is not None and not principal.partition(":")[2]:
        raise CommandError(
            f"--principal: got {principal!r}, must be TYPE:NAME, such as User:worker"
        )
    cluster, _, user = (strimzi or "").partition("/")
    if strimzi is not None and not (cluster and user):
        raise CommandError(f"--strimzi: got {strimzi!r}, must be CLUSTER/USER")
    forms = {"--principal": principal, "--strimzi": strimzi, "--json": as_json or None}
    given = [option for option, value in forms.items() if value is not None]
    if len(given) > 1:
        raise CommandError(f"{' and '.join(given)}: choose one")
    if command is None and given not in ([], ["--json"]):
        raise CommandError(f"{given[0]}: needs --command: each command has rights of its own")
    rights = {
        name: grants(
            settings.topology(1),
            name,
            stages=settings.worker.stages,
            trim_log=settings.index.snapshots.trim_log,
        )
        for name in chosen
    }
    together = [grant for granted in rights.values() for grant in granted]
    if principal is not None:
        print("\n".join(shell(together, principal)))  # noqa: T201 -- to be copied or run
    elif strimzi is not None:
        print(kafka_user(together, user, cluster), end="")  # noqa: T201 -- to be applied
    elif as_json:
        rows = [(name, grant) for name, granted in rights.items() for grant in minimal(granted)]
        print_json([_facts(name, grant) for name, grant in rows])
    else:
        screen().print(_table({name: minimal(granted) for name, granted in rights.items()}))


def _facts(command: str, grant: Grant) -> dict[str, str]:
    return {
        "command": command,
        "resource": grant.kind,
        "name": grant.name,
        "pattern": "prefixed" if grant.prefixed else "literal",
        "operation": grant.operation,
        "when": grant.when.replace("`", ""),
    }


def _table(rights: dict[str, list[Grant]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("command", "resource", "name", "operations", "when"):
        table.add_column(title, overflow="fold")
    for command, granted in rights.items():
        rows: dict[tuple[str, str, str], list[str]] = {}
        for grant in granted:
            name = f"{grant.name}*" if grant.prefixed else grant.name
            rows.setdefault((grant.kind, name, grant.when), []).append(grant.operation)
        for (kind, name, when), operations in rows.items():
            table.add_row(command, kind, name, ", ".join(operations), when.replace("`", ""))
        table.add_section()
    return table
