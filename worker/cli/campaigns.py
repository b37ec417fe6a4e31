"""``neardup campaigns``: the groups of documents that match one another, of a server or files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer
from rich import box
from rich.table import Table
from rich.text import Text

from worker.cli.client import PAGE, Client
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.options import App, Config, Json, Server, settings_of
from worker.cli.screen import fitted, line, print_json, screen, shown
from worker.files.inputs import Inputs
from worker.files.tables import PREFIX, Lines, without_mark
from worker.groups.components import Components, Name
from worker.offline.filter import Line, offline_settings
from worker.serve.groups import GROUPS_PATH, Group, GroupMember, Groups
from worker.settings.model import Settings
from worker.untrusted import NOT_READ
from worker.visible import counted, tell

_LINE_BYTES = 64 << 20
_BESIDE_GROUP, _BESIDE_MEMBER, _BESIDE_SIZE = 55, 30, 14
"""The cells of a row that are neither the number of a group or a member nor the id at its end."""
_LEAST_CELLS = 12
_Form = Literal["table", "json", "csv"]


def campaigns(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="Verdicts of `neardup dedupe`, or documents of the topic duplicate, instead of a"
            " server.",
        ),
    ] = None,
    *,
    sort: Annotated[
        str,
        typer.Option(
            metavar="ORDER",
            help="size; growth, by how many documents came in the last hour; or newest.",
        ),
    ] = "size",
    since: Annotated[
        str | None,
        typer.Option(metavar="LENGTH", help="Only groups that have grown since: 24h, 30m, 7d."),
    ] = None,
    least: Annotated[
        int,
        typer.Option(
            "--min", metavar="N", min=1, help="Only groups of at least so many documents."
        ),
    ] = 2,
    members: Annotated[
        str | None,
        typer.Option(
            metavar="GROUP", help="List the documents of this group, instead; in FILE: an id in it."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Show at most so many groups or documents.")
    ] = 50,
    server: Server = None,
    config: Config = None,
    app: App = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
) -> None:
    """List the groups of documents that match one another: campaigns, reposts, templates.

    A group is all that matches connect. `neardup serve` keeps them as documents come.
    """
    if as_json and as_csv:
        raise CommandError("--json and --csv: choose one")
    form: _Form = "json" if as_json else "csv" if as_csv else "table"
    if not files:
        client = Client.of(settings_of(config, None, app), server)
        if members is None:
            _show(_listed(client, sort=sort, since=since, least=least, limit=limit), form)
        else:
            _show_members(client.group(members, limit), form)
        return
    if server is not None:
        raise CommandError("FILE and --server: choose one")
    if since is not None or sort != "size":
        raise CommandError(
            "--since and --sort: only with a server; verdicts in files have no times"
        )
    groups = groups_in(files, offline_settings())
    if members is None:
        _show_sizes(groups, least, limit, form)
    else:
        _show_members(_group_of(groups, members, limit), form)


def _listed(server: Client, *, sort: str, since: str | None, least: int, limit: int) -> Groups:
    """Return the groups of a server, of as many pages as it takes.

    Raises:
        CommandError: it can't be reached, isn't ready, or keeps no groups.
    """
    asked: dict[str, object] = {"sort": sort, "min": least}
    if since is not None:
        asked["since"] = since
    groups: list[Group] = []
    while True:
        asked["limit"] = min(PAGE, limit - len(groups))
        page = server.get(GROUPS_PATH, asked, Groups)
        groups += page.groups
        if page.next is None or len(groups) >= limit:
            return msgspec.structs.replace(page, groups=groups)
        asked["cursor"] = page.next


class _Match(msgspec.Struct):
    id: str


class _Verdict(msgspec.Struct):
    """A verdict of ``dedupe``, or a document on the topic *duplicate*."""

    id: str = ""
    verdict: str | None = None
    duplicate_of: list[_Match] | str | None = None
    """Of CSV it is JSON until `_decoded` reads it."""
    duplicate_first: _Match | str | None = None
    group: str | None = None


_Kept = msgspec.defstruct(
    "_Kept",
    [(each.name, each.type, each.default) for each in msgspec.structs.fields(_Verdict)],
    bases=(_Verdict,),
    rename=(PREFIX + "{}").format,
)
"""A row of ``dedupe --keep-columns``."""
_decoders: Sequence[Any] = [msgspec.json.Decoder(kind) for kind in (_Kept, _Verdict)]
_matches = msgspec.json.Decoder(list[_Match])


def groups_in(files: Sequence[Path], settings: Settings) -> Components:
    """Return the groups that verdicts in files make.

    Raises:
        CommandError: a file can't be read, or has something else.
    """
    found = Components()
    with Inputs(files, settings.documents) as inputs:
        for number, one in enumerate(_verdicts(inputs)):
            matches, first = one.duplicate_of, one.duplicate_first
            if isinstance(matches, list) and matches:
                named = first.id if isinstance(first, _Match) else first
                name = number, one.group or named or matches[0].id
                found.join(one.id, [match.id for match in matches], name)
    return found


def _by_name(groups: Components) -> dict[Name, list[str]]:
    members: dict[Name, list[str]] = {}
    for ident, group in groups.members():
        members.setdefault(group, []).append(ident)
    return members


def _group_of(groups: Components, ident: str, limit: int) -> Group:
    """Return the group that a document is in.

    Raises:
        CommandError: it is in none.
    """
    name = groups.name(ident)
    if name is None:
        raise CommandError(f"{ident!r} is in no group", EXIT_FAILED)
    rows = [GroupMember(member, None, 0) for member in _by_name(groups)[name]]
    return Group(name[1], len(rows), None, None, 0, rows[0], rows[:limit], None)


def _verdicts(inputs: Inputs) -> Iterator[_Verdict]:
    for chunk in inputs.chunks(_LINE_BYTES):
        for read in chunk:
            found = next(filter(None, (_decoded(read, each) for each in _decoders)), None)
            if found is None:
                raise CommandError(f"{read.key.decode()}: is no verdict of neardup dedupe")
            yield found


def _decoded(read: Line, decoder: Any) -> _Verdict | None:  # noqa: ANN401 -- of a made type
    """Return what a line is; of CSV, as it was before a cell was kept from being a formula."""
    try:
        found: _Verdict = decoder.decode(read.value)
        if isinstance(found.duplicate_of, str):  # of a table of CSV
            found.duplicate_of = _matches.decode(found.duplicate_of) if found.duplicate_of else None
            found.id, found.group = without_mark(found.id), without_mark(found.group or "") or None
            if isinstance(found.duplicate_first, str):
                found.duplicate_first = without_mark(found.duplicate_first)
    except NOT_READ:
        return None
    return None if found.verdict is None and found.duplicate_of is None else found


_COLUMNS = ("id", "size", "growth", "first", "last", "representative")


def _show(found: Groups, form: _Form) -> None:
    if form == "json":
        print_json(msgspec.to_builtins(found))
        return
    if form == "csv":
        rows = [
            (one.id, one.size, one.growth, one.first, one.last, one.representative.id)
            for one in found.groups
        ]
        _print_csv(_COLUMNS, rows)
        return
    console = screen()
    table = _table("group", "size", "per hour", "first", "last", "first document")
    longest = max((len(one.id) for one in found.groups), default=0)
    cells = max(_LEAST_CELLS, console.width - _BESIDE_GROUP - longest)
    for one in found.groups:
        table.add_row(
            shown(one.id),
            f"{one.size:,}",
            Text(f"{one.growth:,}", "yellow" if one.growth else "dim"),
            _moment(one.first, found.now),
            _moment(one.last, found.now),
            fitted(one.representative.id, cells, "bold"),
        )
    console.print(table if found.groups else line(("no groups", "bold"), " like this"))
    of = f"{len(found.groups):,} of {counted(found.count, 'group')}"
    since = f"; known since offset {found.begun} of the log" if found.begun else ""
    now = f"; now is {_written(found.now)} UTC" if found.now else ""
    console.print(line((f"{of}{now}{since}", "dim")))


def _show_sizes(groups: Components, least: int, limit: int, form: _Form) -> None:
    """Print the groups of files, the largest first."""
    members = _by_name(groups)
    kept = [(name, len(some)) for (_, name), some in members.items() if len(some) >= least]
    sizes, count = sorted(kept, key=lambda one: -one[1])[:limit], len(members)
    if form == "json":
        print_json({"groups": [{"id": name, "size": size} for name, size in sizes], "count": count})
        return
    if form == "csv":
        _print_csv(("id", "size"), sizes)
        return
    console = screen()
    table = _table("size", "group")
    for name, size in sizes:
        table.add_row(
            f"{size:,}", fitted(name, max(_LEAST_CELLS, console.width - _BESIDE_SIZE), "bold")
        )
    console.print(table if sizes else line(("no groups", "bold"), " like this"))
    console.print(line((f"{len(sizes):,} of {counted(count, 'group')}", "dim")))


def _show_members(group: Group, form: _Form) -> None:
    members = group.members or []
    if form == "json":
        print_json(msgspec.to_builtins(group))
        return
    dated = any(one.time is not None or one.sequence for one in members)
    if form == "csv":
        columns = ("id", "time", "sequence")[: 3 if dated else 1]
        _print_csv(columns, [(one.id, one.time, one.sequence)[: len(columns)] for one in members])
        return
    console = screen()
    growth = f", {group.growth:,} of them in the last hour" if dated else ""
    console.print(
        line("group ", (group.id, "bold"), f": {counted(group.size, 'document')}{growth}")
    )
    table = _table("sequence", "time", "document") if dated else _table("document")
    longest = len(str(members[-1].sequence)) if dated else 0
    cells = max(_LEAST_CELLS, console.width - _BESIDE_MEMBER - longest)
    for one in members:
        row = [f"{one.sequence}", _written(one.time)] if dated else []
        table.add_row(*row, fitted(one.id, cells, "bold"))
    console.print(table)
    if len(members) < group.size:
        tell(f"neardup: {len(members):,} of {group.size:,} are shown; --limit shows more")


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    for name in columns:
        right = name in {"size", "per hour", "sequence"}
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    return table


def _written(time: str | None) -> str:
    """Return a time for people, to the second."""
    return "" if time is None else time[:19].replace("T", " ")


def _moment(time: str | None, now: str | None) -> str:
    """Return a time for people in few cells: its day and minute, or its date in another year."""
    if time is None:
        return ""
    moment = datetime.fromisoformat(time)
    this_year = now is not None and datetime.fromisoformat(now).year == moment.year
    return f"{moment:%d %b %H:%M}" if this_year else f"{moment:%d %b %Y}"


def _print_csv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    lines = Lines(",")
    for row in (columns, *rows):
        sys.stdout.write(lines.line(row))
    lines.say()
