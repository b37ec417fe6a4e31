"""``neardup topics acls``: what each command needs on a cluster with an authorizer."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

from worker.admin.acls import COMMANDS, Grant, grants, minimal, shell
from worker.cli.errors import CommandError
from worker.settings import Settings

__all__ = ["show"]

_PLAIN_WIDTH = 10_000  # Lines in a pipe are not wrapped.


def show(settings: Settings, *, command: str | None, principal: str | None) -> None:
    """Print a table of rights; with a principal, the kafka-acls.sh commands that grant them.

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
    if principal is None:
        width = None if sys.stdout.isatty() else _PLAIN_WIDTH
        Console(width=width, highlight=False).print(_table(wanted))
        return
    for name in chosen:
        for line in shell(wanted[name], principal):
            print(line)  # noqa: T201 -- the commands, to be copied or run


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
