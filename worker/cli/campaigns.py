"""``neardup campaigns``: the groups of documents that match one another, of a server or files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from rich import box
from rich.table import Table
from rich.text import Text

from worker.cli.client import Client
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.screen import fitted, line, print_json, screen, shown
from worker.files.inputs import Inputs
from worker.files.tables import PREFIX, Lines, without_mark
from worker.groups.components import Components, Name
from worker.offline.filter import Line
from worker.serve.group_pages import GROUPS_PATH, Group, GroupMember, Groups
from worker.settings.model import Settings
from worker.untrusted import NOT_READ
from worker.visible import counted, tell

_PAGE = 1_000
_ALL = 1 << 62
_LINE_BYTES = 64 << 20
_BESIDE_GROUP, _BESIDE_MEMBER, _BESIDE_SIZE = 55, 30, 14
"""The cells of a row that are neither the number of a group or a member nor the id at its end."""
_LEAST_CELLS = 12


class Wanted(NamedTuple):
    """What is to be shown: groups in an order, or the members of one; and how."""

    sort: str
    since: str | None
    least: int
    limit: int
    members: str | None
    as_json: bool
    as_csv: bool


def of_server(server: Client, wanted: Wanted) -> None:
    """Show the groups of a server.

    Raises:
        CommandError: it can't be reached, isn't ready, or keeps no such group.
    """
    if wanted.members is None:
        _show(_listed(server, wanted), wanted)
    else:
        _show_members(_group(server, wanted.members, wanted.limit), wanted)


class Cluster(msgspec.Struct):
    """Members of a group that match the first one of them, and how many there are."""

    size: int
    members: list[GroupMember]


class Outline(msgspec.Struct):
    """Of what a group consists: the largest of ``count`` clusters.

    ``least`` is the least similarity of one of the ``compared`` members to the representative.
    """

    size: int
    compared: int
    least: float | None
    count: int
    clusters: list[Cluster]


def members_of(server: Client, group: str) -> tuple[list[str], Outline]:
    """Return the ids of all members of a group, and of what it consists.

    Raises:
        CommandError: the server can't be asked, or keeps no such group.
    """
    members = [one.id for one in _group(server, group, _ALL).members or ()]
    return members, server.get(f"{_path(group)}/outline", {}, Outline)


def _listed(server: Client, wanted: Wanted) -> Groups:
    """Return the groups of as many pages as it takes."""
    asked: dict[str, object] = {"sort": wanted.sort, "min": wanted.least}
    if wanted.since is not None:
        asked["since"] = wanted.since
    groups: list[Group] = []
    while True:
        asked["limit"] = min(_PAGE, wanted.limit - len(groups))
        page = server.get(GROUPS_PATH, asked, Groups)
        groups += page.groups
        if page.next is None or len(groups) >= wanted.limit:
            return msgspec.structs.replace(page, groups=groups)
        asked["cursor"] = page.next


def _path(group: str) -> str:
    return f"{GROUPS_PATH}/{quote(group, safe='')}"


def _group(server: Client, name: str, limit: int) -> Group:
    """Return a group with its members, of as many pages as it takes."""
    path, asked = _path(name), dict[str, object]()
    members: list[GroupMember] = []
    while True:
        asked["limit"] = min(_PAGE, limit - len(members))
        page = server.get(path, asked, Group)
        members += page.members or ()
        if not page.next or len(members) >= limit:
            return msgspec.structs.replace(page, members=members)
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


def of_files(files: Sequence[Path], settings: Settings, wanted: Wanted) -> None:
    """Show the groups that verdicts in files make, the largest first.

    Raises:
        CommandError: a file can't be read, or has something else; or there is no such group.
    """
    found = Components()
    with Inputs(files, settings.documents) as inputs:
        for number, one in enumerate(_verdicts(inputs)):
            matches, first = one.duplicate_of, one.duplicate_first
            if isinstance(matches, list) and matches:
                named = first.id if isinstance(first, _Match) else first
                name = number, one.group or named or matches[0].id
                found.join(one.id, [match.id for match in matches], name)
    members: dict[Name, list[str]] = {}
    for ident, group in found.members():
        members.setdefault(group, []).append(ident)
    if wanted.members is None:
        sizes = [(name, len(some)) for (_, name), some in members.items()]
        kept = sorted((one for one in sizes if one[1] >= wanted.least), key=lambda one: -one[1])
        _show_sizes(kept[: wanted.limit], len(members), wanted)
        return
    group_of = found.name(wanted.members)
    if group_of is None:
        raise CommandError(f"{wanted.members!r} is in no group", EXIT_FAILED)
    named = group_of[1]
    rows = [GroupMember(ident, None, 0) for ident in members[group_of]]
    listed = rows[: wanted.limit]
    _show_members(Group(named, len(rows), None, None, 0, rows[0], listed, None), wanted)


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


def _show(found: Groups, wanted: Wanted) -> None:
    if wanted.as_json:
        print_json(msgspec.to_builtins(found))
        return
    if wanted.as_csv:
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


def _show_sizes(sizes: Sequence[tuple[str, int]], count: int, wanted: Wanted) -> None:
    if wanted.as_json:
        print_json({"groups": [{"id": name, "size": size} for name, size in sizes], "count": count})
        return
    if wanted.as_csv:
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


def _show_members(group: Group, wanted: Wanted) -> None:
    members = group.members or []
    if wanted.as_json:
        print_json(msgspec.to_builtins(group))
        return
    dated = any(one.time is not None or one.sequence for one in members)
    if wanted.as_csv:
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
