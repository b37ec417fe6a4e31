"""``neardup topics acls``: what each command needs on a cluster with an authorizer."""

from __future__ import annotations

from rich.table import Table

from worker.admin.acls import COMMANDS, Grant, grants, minimal, shell
from worker.cli.errors import CommandError
from worker.cli.screen import print_json, screen
from worker.settings import Settings

__all__ = ["show"]


def show(
    settings: Settings, *, command: str | None, principal: str | None, as_json: bool = False
) -> None:
    """Print a table of rights, or JSON; with a principal, the kafka-acls.sh commands.

    Raises:
        CommandError: there is no such command, or the principal isn't one.
    """
    if command is not None and command not in COMMANDS:
        raise CommandError(f"--command: got {command!r}, must be one of {', '.join(COMMANDS)}")
    if principal is not None and not principal.partition(":")[2]:
        raise CommandError(
            f"--principal: got {principal!r}, must be TYPE:NAME, such as User:worker"
        )
    if principal is not None and command is None:
        raise CommandError("--principal: needs --command: each command has rights of its own")
    if principal is not None and as_json:
        raise CommandError("--principal and --json: choose one")
    chosen = [command] if command is not None else list(COMMANDS)
    wanted = {
        name: minimal(
            grants(
                settings.topology(1),
                name,
                stages=settings.worker.stages,
                trim_log=settings.index.snapshots.trim_log,
            )
        )
        for name in chosen
    }
    if as_json:
        print_json([_facts(name, one) for name, rights in wanted.items() for one in rights])
        return
    if principal is None:
        screen().print(_table(wanted))
        return
    for name in chosen:
        for line in shell(wanted[name], principal):
            print(line)  # noqa: T201 -- the commands, to be copied or run


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
