"""``neardup allow``: texts that are no duplicates, whatever they match; and what was corrected."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from typing import NamedTuple

import msgspec
from rich import box
from rich.table import Table
from rich.text import Text

from lsh import Fingerprinter
from worker.admin.cluster import Cluster
from worker.admin.reindex.in_use import in_use
from worker.bus import Bus
from worker.bus.kafka.bus import KafkaBus
from worker.cli.client import Client
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.screen import line, print_json, screen, shown
from worker.cli.sent import documents_there, judged_and_found, places
from worker.corrections.records import allowance, correction, corrector
from worker.corrections.sending import send
from worker.corrections.state import MOST_ALLOWANCES, erasure_name
from worker.documents.lookup import Gone, Lookup
from worker.files.errors import of_file
from worker.formats.choice import document_format
from worker.formats.unreadable import Unreadable
from worker.generations.plan import Plan
from worker.serve.correcting import Made, MadeList
from worker.settings.model import Settings
from worker.settings.units import duration_text
from worker.topology import Topology
from worker.untrusted import NOT_READ, why
from worker.visible import counted, tell
from worker.wire.corrections import CorrectionError, Request

_CORRECTIONS = ("correction", "corrections")
_PATH = "/v1/corrections"
_PAGE = 100
_EXCERPT = 100
_BY_CELLS, _WHY_CELLS = 16, 26
_MOST_BYTES = 1 << 20


class Wanted(NamedTuple):
    """What to allow, one of a text, a document's id, and a file; or the allowance to withdraw."""

    text: str | None = None
    id: str | None = None
    file: Path | None = None
    remove: str | None = None
    exact: bool = False
    why: str = ""


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """A line of a file in JSON."""

    text: str
    id: str = ""
    exact: bool | None = None
    why: str | None = None


_line = msgspec.json.Decoder(_Line).decode


def allow(settings: Settings, wanted: Wanted, *, wait: bool, as_json: bool) -> None:
    """Send what allows texts, or withdraws that; wait until every shard has read it.

    Raises:
        CommandError: a text can't be allowed, there is no topic, or Kafka failed.
    """
    logging.getLogger("librdkafka").addHandler(logging.NullHandler())
    options = settings.kafka_options()
    plan = in_use(Cluster(options), settings)
    settings = plan.settings(settings)
    allow_on(KafkaBus(options), settings, wanted, plan=plan, wait=wait, as_json=as_json)


def allow_on(
    bus: Bus,
    settings: Settings,
    wanted: Wanted,
    *,
    plan: Plan | None = None,
    wait: bool,
    as_json: bool,
    pause: Callable[[float], None] = sleep,
) -> None:
    """Do what `allow` does, on any bus; ``pause`` waits for some seconds.

    Without a plan, the application was never reindexed.
    """
    topology = documents_there(bus, settings, plan or Plan.of(settings))
    by = corrector(settings)
    requests = [
        msgspec.structs.replace(one, by=by, why=one.why or wanted.why)
        for one in _requests(bus, settings, topology, wanted)
    ]
    records = [correction(topology, one) for one in requests]
    names = {one.id: erasure_name(one.id.encode()) for one in requests}
    ids = list(names)
    refused: list[str] | None = None
    if wait:
        known = names.values()
        sent, done = judged_and_found(bus, topology, records, known, pause, _CORRECTIONS)
        if done is not None:
            refused = [ident for ident, name in names.items() if name not in done]
    else:
        sent = send(bus, topology, records)
    if as_json:
        print_json({"ids": ids, "corrections": places(sent), "judged": wait, "refused": refused})
    if refused:
        raise CommandError(_why_refused(wanted, ids, refused), EXIT_FAILED)
    if not as_json:
        for said in _said(settings, wanted, ids, known=refused is not None):
            tell(said)


def _why_refused(wanted: Wanted, ids: Sequence[str], refused: Sequence[str]) -> str:
    if wanted.remove is not None:
        return (
            f"there is no allowance {wanted.remove!r}, so nothing is withdrawn; `neardup allow"
            " --list` names those that hold"
        )
    of = f"{len(refused):,} of {len(ids):,} texts are" if len(ids) > 1 else "the text is"
    return (
        f"{of} not allowed: {MOST_ALLOWANCES:,} allowances hold, which is the most. Withdraw some"
        " (`neardup allow --list` names them, `neardup allow --remove ALLOWANCE`), and run it again"
    )


def _requests(
    bus: Bus, settings: Settings, topology: Topology, wanted: Wanted
) -> Sequence[Request]:
    """Return what to send.

    Raises:
        CommandError: a text can't be allowed, or a document isn't found.
    """
    if wanted.remove is not None:
        ident = wanted.remove.encode(errors="replace").decode()
        if ident != wanted.remove or not ident:
            raise CommandError(f"--remove: {wanted.remove!r} is no id; nothing was sent")
        return [Request("withdraw", ident)]
    fingerprinter = Fingerprinter(topology.layout.parameters)
    if wanted.file is not None:
        return _of_file(fingerprinter, wanted, wanted.file)
    ident = ""
    if wanted.id is not None:
        ident, text = wanted.id, _text_of(bus, settings, topology, wanted.id)
    else:
        text = _given(wanted.text or "")
    try:
        return [allowance(fingerprinter, text, ident=ident, exact=wanted.exact)]
    except CorrectionError as why:
        raise CommandError(f"{why}; nothing was sent") from None


def _given(text: str) -> str:
    if text != "-":
        return text
    return sys.stdin.buffer.read(_MOST_BYTES).decode(errors="surrogateescape").strip("\r\n")


def _text_of(bus: Bus, settings: Settings, topology: Topology, ident: str) -> str:
    """Return the text of the latest document with an id."""
    with closing(Lookup(settings, topology, bus)) as lookup:
        try:
            return document_format(settings).read(lookup.origin(ident)).text
        except (Gone, Unreadable) as why:
            raise CommandError(f"{ident!r}: {why}; nothing was sent", EXIT_FAILED) from None


def _of_file(fingerprinter: Fingerprinter, wanted: Wanted, path: Path) -> list[Request]:
    requests = []
    for number, one in _lines(path):
        exact = wanted.exact if one.exact is None else one.exact
        try:
            request = allowance(fingerprinter, one.text, ident=one.id, exact=exact)
        except CorrectionError as why:
            raise CommandError(f"{path}:{number}: {why}; nothing was sent") from None
        requests.append(msgspec.structs.replace(request, why=one.why or ""))
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
        CommandError: the file can't be read, or a line has another form.
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
            raise CommandError(f"{path}:{number}: {why(error)}; nothing was sent") from None


def _said(settings: Settings, wanted: Wanted, ids: Sequence[str], *, known: bool) -> Iterator[str]:
    """Yield what was done, how long that holds, and how to undo it.

    ``known``: whether the shards have said that they have done it.
    """
    if wanted.remove is not None:
        done = "withdrawn" if known else "sent to be withdrawn; if it holds, it ends there"
        yield f"{wanted.remove} {done}: what is near to its text is judged like all others"
        yield "Undo: neardup allow TEXT"
        return
    near = "has the same normal form" if wanted.exact else "is near to"
    when = "from here on"
    if not known:
        when = f"once the shards have read it, unless {MOST_ALLOWANCES:,} allowances hold"
    of = "it" if len(ids) == 1 else "one of them"
    what = f"{near} as {of}" if wanted.exact else f"{near} {of}"
    if wanted.file is not None and not wanted.exact:
        what = f"{near} {of} (or the same, where the file says so)"
    done = "allowed" if known else "sent to be allowed"
    yield f"{counted(len(ids), 'text')} {done}: what {what} is unique {when}."
    window = settings.index.window_ms
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
