"""``neardup allow``: texts that are no duplicates, whatever they match; and what was corrected."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.table import Table
from rich.text import Text

from worker.cli.client import Client
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.options import (
    App,
    Bootstrap,
    Config,
    Json,
    Reason,
    Server,
    corrector,
    for_kafka,
    is_file,
    settings_of,
)
from worker.cli.screen import line, print_json, screen, shown
from worker.corrections.request import Allow, CorrectionError, Withdraw
from worker.corrections.service import Corrector, Made, MadeList, last_records
from worker.corrections.state import MOST_ALLOWANCES
from worker.documents.lookup import Gone
from worker.files.errors import of_file
from worker.formats.unreadable import Unreadable
from worker.settings.units import duration_text
from worker.untrusted import NOT_READ
from worker.untrusted import why as why_not_read
from worker.visible import counted, tell

_PATH = "/v1/corrections"
_PAGE = 100
_EXCERPT = 100
_BY_CELLS, _WHY_CELLS = 16, 26
_MOST_BYTES = 1 << 20


def allow(
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The text; - is standard input.")
    ] = None,
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    ident: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="ID", help="Allow the text of the latest document with this id."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Allow the texts of a file: one a line, or in FILE.jsonl objects with text, and"
            " maybe id, exact and why.",
        ),
    ] = None,
    remove: Annotated[
        str | None,
        typer.Option(metavar="ALLOWANCE", help="Withdraw the allowance with this id."),
    ] = None,
    show: Annotated[
        bool,
        typer.Option(
            "--list", help="List what is allowed and who had what forgotten; asks a server."
        ),
    ] = False,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Allow only the same text, once it is normalised."),
    ] = False,
    why: Reason = "",
    server: Server = None,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Don't wait until every shard has read it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Allow texts: what is near to one is no duplicate from then on.

    The same text again replaces its allowance. With index.window, one holds for that long.
    """
    if sum(one is not None for one in (text, ident, file, remove)) + show != 1:
        raise CommandError("TEXT, --id, --file, --remove, --list: give one of them")
    if text is not None and is_file(text):
        raise CommandError(f"{text} is a file; --file allows the texts in it")
    if show:
        show_corrections(Client.of(settings_of(config, None, app), server), as_json=as_json)
        return
    with corrector(for_kafka(config, bootstrap, app)) as sending:
        send_corrections(
            sending,
            requested(sending, text, ident=ident, file=file, remove=remove, exact=exact, why=why),
            exact=exact,
            from_file=file is not None,
            wait=not no_wait,
            as_json=as_json,
        )


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """A line of a file in JSON."""

    text: str
    id: str = ""
    exact: bool | None = None
    why: str | None = None


_line = msgspec.json.Decoder(_Line).decode


def requested(
    corrector: Corrector,
    text: str | None = None,
    *,
    ident: str | None = None,
    file: Path | None = None,
    remove: str | None = None,
    exact: bool = False,
    why: str = "",
) -> Sequence[Allow | Withdraw]:
    """Return what to send for a text, a document's id, a file, or an allowance to withdraw.

    Raises:
        CommandError: a text can't be allowed, or a document isn't found.
        BusError: Kafka failed.
    """
    if remove is not None:
        ident = remove.encode(errors="replace").decode()
        if ident != remove or not ident:
            raise CommandError(f"--remove: {remove!r} is no id; nothing was sent")
        return [corrector.withdraw(ident, why=why)]
    if file is not None:
        return _of_file(corrector, file, exact=exact, why=why)
    if ident is not None:
        try:
            text = corrector.text_of(ident)
        except (Gone, Unreadable) as error:
            raise CommandError(f"{ident!r}: {error}; nothing was sent", EXIT_FAILED) from None
    elif text == "-":
        said = sys.stdin.buffer.read(_MOST_BYTES)
        text = said.decode(errors="surrogateescape").strip("\r\n")
    try:
        return [corrector.allow(text or "", ident=ident or "", exact=exact, why=why)]
    except CorrectionError as error:
        raise CommandError(f"{error}; nothing was sent") from None


def _of_file(corrector: Corrector, path: Path, *, exact: bool, why: str) -> list[Allow]:
    requests = []
    for number, one in _lines(path):
        exactly = exact if one.exact is None else one.exact
        try:
            request = corrector.allow(one.text, ident=one.id, exact=exactly, why=one.why or why)
        except CorrectionError as error:
            raise CommandError(f"{path}:{number}: {error}; nothing was sent") from None
        requests.append(request)
    if not requests:
        raise CommandError(f"{path}: has no text")
    if len(requests) > MOST_ALLOWANCES:
        raise CommandError(
            f"{path}: has {len(requests):,} texts; {MOST_ALLOWANCES:,} can be allowed"
        )
    return requests


def _lines(path: Path) -> Iterator[tuple[int, _Line]]:
    """Yield the lines that have something, with their numbers.

    Raises:
        FileError: the file can't be read.
        CommandError: a line has another form.
    """
    as_json = path.suffix.lower() in {".jsonl", ".ndjson"}
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise of_file(error, path) from None
    for number, content in enumerate(lines, 1):
        if not content.strip():
            continue
        try:
            yield number, _line(content) if as_json else _Line(content.decode())
        except NOT_READ as error:
            raise CommandError(
                f"{path}:{number}: {why_not_read(error)}; nothing was sent"
            ) from None


def send_corrections(
    corrector: Corrector,
    requests: Sequence[Allow | Withdraw],
    *,
    exact: bool = False,
    from_file: bool = False,
    wait: bool,
    as_json: bool,
    pause: Callable[[float], None] = sleep,
) -> None:
    """Send corrections, wait until every shard has judged them, and print that.

    ``exact`` was asked for by an option. ``pause`` waits for some seconds.

    Raises:
        CommandError: too many texts are allowed, or an allowance doesn't hold.
        NotJudged: they were sent, and waiting failed.
        BusError: Kafka failed.
    """
    ids = list(dict.fromkeys(request.id for request in requests))
    ends, done = corrector.send_and_wait(requests, wait=wait, pause=pause)
    refused = None if done is None else [ident for ident in ids if ident not in done]
    if as_json:
        corrections = last_records(ends)
        print_json({"ids": ids, "corrections": corrections, "judged": wait, "refused": refused})
    withdrawn = isinstance(requests[0], Withdraw)
    if refused:
        raise CommandError(_why_refused(ids, refused, withdrawn=withdrawn), EXIT_FAILED)
    if as_json:
        return
    known = refused is not None
    if withdrawn:
        ending = "withdrawn" if known else "sent to be withdrawn; if it holds, it ends there"
        tell(f"{ids[0]} {ending}: what is near to its text is judged like all others")
        tell("Undo: neardup allow TEXT")
        return
    for text in _allowed(corrector, ids, known=known, exact=exact, from_file=from_file):
        tell(text)


def _why_refused(ids: Sequence[str], refused: Sequence[str], *, withdrawn: bool) -> str:
    if withdrawn:
        return (
            f"there is no allowance {ids[0]!r}, so nothing is withdrawn; `neardup allow"
            " --list` names those that hold"
        )
    of = f"{len(refused):,} of {len(ids):,} texts are" if len(ids) > 1 else "the text is"
    return (
        f"{of} not allowed: {MOST_ALLOWANCES:,} allowances hold, which is the most. Withdraw some"
        " (`neardup allow --list` names them, `neardup allow --remove ALLOWANCE`), and run it again"
    )


def _allowed(
    corrector: Corrector, ids: Sequence[str], *, known: bool, exact: bool, from_file: bool
) -> Iterator[str]:
    """Yield what was allowed, how long that holds, and how to undo it.

    ``known``: whether the shards have said that they have done it.
    """
    of = "it" if len(ids) == 1 else "one of them"
    if exact:
        what = f"has the same normal form as {of}"
    elif from_file:
        what = f"is near to {of} (or the same, where the file says so)"
    else:
        what = f"is near to {of}"
    when = "from here on"
    if not known:
        when = f"once the shards have read it, unless {MOST_ALLOWANCES:,} allowances hold"
    done = "allowed" if known else "sent to be allowed"
    yield f"{counted(len(ids), 'text')} {done}: what {what} is unique {when}."
    window = corrector.settings.index.window_ms
    if window is not None:
        yield f"That holds for {duration_text(window)} (index.window); allow again to renew it."
    which = ids[0] if len(ids) == 1 else "ALLOWANCE, for each that neardup allow --list names"
    yield f"Undo: neardup allow --remove {which}"


def show_corrections(server: Client, *, as_json: bool) -> None:
    """Print what a server knows of corrections.

    Raises:
        CommandError: it can't be reached, or isn't ready.
    """
    found: list[Made] = []
    cursor: str | None = "0"
    while cursor is not None:
        page = server.get(_PATH, {"limit": _PAGE, "cursor": cursor}, MadeList)
        found += page.corrections
        cursor = page.next
    if as_json:
        print_json(msgspec.to_builtins(found))
        return
    console = screen()
    if not found:
        console.print(line(("nothing is corrected", "bold")))
        return
    for kind, heading in (("allow", "allowed"), ("forget", "forgotten")):
        some = [one for one in found if one.kind == kind]
        if some:
            console.print(_table(heading, some))
    console.print(line(("Undo: neardup allow --remove ID; neardup forget --undo ID", "dim")))


def _table(heading: str, some: Sequence[Made]) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column(heading, overflow="fold")
    table.add_column("when", no_wrap=True)
    table.add_column("by", overflow="fold", max_width=_BY_CELLS)
    table.add_column("why", overflow="fold", max_width=_WHY_CELLS)
    for one in some:
        table.add_row(_what(one), _when(one), shown(one.by), shown(one.why))
    return table


def _what(one: Made) -> Text:
    if one.kind == "allow":
        which = ", exactly" if one.exact else ", and what is near"
        excerpt = one.text[:_EXCERPT] + ("…" if len(one.text) > _EXCERPT else "")
        return line((one.id, "bold"), (which, "dim")).append("\n").append_text(shown(excerpt))
    what = line((one.id, "bold"))
    if one.source:
        what.append("\n").append_text(shown(f"was at {one.source}", "dim"))
    return what


def _when(one: Made) -> Text:
    when = Text(_moment(one.at))
    if one.until is not None:
        when.append(f"\nuntil {_day(one.until)}", "dim")
    return when


def _day(time: int) -> str:
    return f"{datetime.fromtimestamp(time / 1_000, UTC):%d %b %Y}"


def _moment(time: int) -> str:
    """Return a time for people in few cells: its day and minute, or its date in another year."""
    moment = datetime.fromtimestamp(time / 1_000, UTC)
    this_year = datetime.now(UTC).year == moment.year
    return f"{moment:%d %b %H:%M}" if this_year else f"{moment:%d %b %Y}"
