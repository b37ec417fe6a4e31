"""``neardup forget``: have the index forget documents, and say when nothing is left of them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from time import sleep
from typing import Annotated

import typer

from worker.cli.client import Client
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.options import App, Bootstrap, Config, Json, Reason, Server, corrector, for_kafka
from worker.cli.screen import print_json
from worker.corrections.request import Forget
from worker.corrections.service import Corrector, last_records
from worker.documents.lookup import Gone
from worker.formats.unreadable import Unreadable
from worker.serve.groups import Outline
from worker.settings.model import Settings
from worker.settings.secrets import without_credentials
from worker.topology import Topology
from worker.visible import counted, tell

_NAMED = 10
"""The most ids in a line."""


def forget(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID", help="The ids of the documents to forget, as they are published."
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="GROUP", help="Forget all documents of a group of `neardup campaigns`."
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Forget what this text matches, as `neardup query` lists it.",
        ),
    ] = None,
    undo: Annotated[
        bool,
        typer.Option("--undo", help="Send the documents again, to be judged and published anew."),
    ] = False,
    why: Reason = "",
    server: Server = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Don't ask before what --group or --text names.")
    ] = False,
    no_wait: Annotated[
        bool,
        typer.Option("--no-wait", help="Don't wait until every shard has forgotten them."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Have the index forget documents, and say when nothing is left of them.

    It sends a tombstone for each id: a record on the documents topic without a value, whose key
    is the one that has this id (documents.key). Your own producers may do the same.
    """
    if bool(ids) + (group is not None) + (text is not None) != 1:
        raise CommandError("ID, --group, --text: give one of them")
    if undo and not ids:
        raise CommandError("--undo takes ids")
    settings = for_kafka(config, bootstrap, app)
    chosen = ids or confirmed(Client.of(settings, server), group, text, yes=yes)
    with corrector(settings) as sending:
        if undo:
            restore_documents(sending, chosen, wait=not no_wait, as_json=as_json)
        else:
            forget_documents(sending, chosen, why=why, wait=not no_wait, as_json=as_json)


def confirmed(server: Client, group: str | None, text: str | None, *, yes: bool) -> list[str]:
    """Return the ids of a group's members, or of what is near to a text, once that is confirmed.

    Raises:
        CommandError: the server can't be asked, there are none, or that wasn't confirmed.
    """
    consists: Sequence[str] = ()
    if group is not None:
        ids, outline = server.members_of(group)
        of, consists = f"of group {group}", list(_consists(outline))
    else:
        # A server names at most as many as a record does.
        ids, of = server.matches_of(text or ""), "near to this text"
    ids = list(dict.fromkeys(ids))
    if not ids:
        raise CommandError(f"there is no document {of}", EXIT_FAILED)
    tell(f"{counted(len(ids), 'document')} {of}: {_named(ids)}")
    for said in consists:
        tell(said)
    if yes:
        return ids
    if not sys.stdin.isatty():
        raise CommandError("nothing was sent; --yes forgets them")
    if not typer.confirm("Forget them?", err=True):
        raise CommandError("nothing was sent", EXIT_FAILED)
    return ids


def _consists(outline: Outline) -> Iterator[str]:
    """Yield of what a group consists, so that nobody forgets what others have joined to it."""
    of = "" if outline.compared == outline.size else f" of the {outline.compared:,} compared"
    if outline.least is not None:
        yield f"The least similarity{of} to the representative is {outline.least:.2f}"
    if outline.count > 1:
        clusters = counted(outline.count, "cluster")
        yield f"It is a chain of {clusters} of documents that match the first one of each:"
        for one in outline.clusters:
            more = ", …" if one.size > len(one.members) else ""
            named = ", ".join(member.id for member in one.members)
            yield f"  {counted(one.size, 'document')}: {named}{more}"
        if outline.count > len(outline.clusters):
            yield f"  and {counted(outline.count - len(outline.clusters), 'smaller one')}"


def forget_documents(
    corrector: Corrector,
    ids: Sequence[str],
    *,
    why: str = "",
    wait: bool,
    as_json: bool,
    pause: Callable[[float], None] = sleep,
) -> None:
    """Send a tombstone for each id, wait until every shard has judged them, and print that.

    ``pause`` waits for some seconds.

    Raises:
        CommandError: an id is not one, or no document ever had one of them.
        NotJudged: they were sent, and waiting failed.
        BusError: Kafka failed.
    """
    requests = _requests(corrector, ids, why)
    never = list[str]()
    if len(requests) <= _NAMED:
        unpublished = corrector.never_came({one.id for one in requests.values()})
        never = [ident for ident, request in requests.items() if request.id in unpublished]
    requests = {ident: one for ident, one in requests.items() if ident not in never}
    if never:
        message = f"no document with this id was ever published: {_named(never)}"
        if not requests:
            raise CommandError(f"{message}; nothing was sent", EXIT_FAILED)
        tell(message)
    ends, known = corrector.send_and_wait(list(requests.values()), wait=wait, pause=pause)
    unknown = None
    if known is not None:
        unknown = [ident for ident, request in requests.items() if request.id not in known]
    settings, topology = corrector.settings, corrector.topology
    left = _not_reached(settings, topology)
    if as_json:
        print_json(
            {
                "ids": list(dict.fromkeys(ids)),
                "tombstones": last_records(ends),
                "judged": wait,
                "unknown": None if unknown is None else [*never, *unknown],
                "erasure_seconds": settings.index.erasure_seconds,
                "not_reached": [{"what": what, "until": until} for what, until in left.items()],
            }
        )
        return
    number = len(requests)
    begun = _judged(number, unknown, settings) if wait else _sent(number, topology, settings)
    for line in (*begun, "This does not reach"):
        tell(line)
    for what, until in left.items():
        tell(f"  {what}: {until}")
    gone = [ident for ident in requests if ident not in (unknown or ())]
    named = shlex.join(gone) if len(gone) <= _NAMED else "ID…"
    if gone:
        tell(f"Undo, as long as {topology.documents} has them: neardup forget --undo {named}")


def restore_documents(
    corrector: Corrector,
    ids: Sequence[str],
    *,
    wait: bool,
    as_json: bool,
    pause: Callable[[float], None] = sleep,
) -> None:
    """Send documents again from where they are, so that they are judged and published anew.

    Raises:
        CommandError: one isn't there; nothing is sent then.
        NotJudged: they were sent, and waiting failed.
        BusError: Kafka failed.
    """
    wanted, records = list(_requests(corrector, ids)), []
    for ident in wanted:
        try:
            records.append(corrector.restoration(ident))
        except Gone as why:
            raise CommandError(f"{ident!r}: {why}; nothing was sent", EXIT_FAILED) from None
    ends, _ = corrector.send_and_wait(records, wait=wait, pause=pause)
    if as_json:
        print_json({"ids": wanted, "documents": last_records(ends), "judged": wait})
        return
    tell(
        f"{counted(len(wanted), 'document')} sent to {corrector.topology.documents} again: judged"
        " and published anew"
    )


def _requests(corrector: Corrector, ids: Sequence[str], why: str = "") -> dict[str, Forget]:
    """Return the requests by the ids that were given, one for each document.

    Raises:
        CommandError: no document can have this id.
    """
    requests: dict[str, tuple[str, Forget]] = {}
    for ident in ids:
        try:
            request = corrector.forget(ident.encode(errors="surrogateescape"), why=why)
        except Unreadable as error:
            raise CommandError(f"{ident!r}: {error}; nothing was sent") from None
        requests.setdefault(request.id, (ident, request))
    return dict(requests.values())


def _sent(number: int, topology: Topology, settings: Settings) -> list[str]:
    unknown = "Whether the index has them is not known before all shards have judged them"
    return [
        f"{counted(number, 'id')} sent to {topology.documents} to be forgotten. {unknown}",
        f"{_gone(settings)} after that (index.erasure_seconds)",
    ]


def _judged(number: int, unknown: Sequence[str] | None, settings: Settings) -> list[str]:
    known = number - len(unknown or ())
    lines = [f"{counted(known, 'id')} forgotten by all shards"] if known else []
    if unknown is None:
        lines.append("Whether the index had them is not known: not all answers of shards are there")
    elif unknown:
        lines.append(
            f"{counted(len(unknown), 'id')} unknown to the index: {_named(unknown)}. No such"
            " document came before it, or it is forgotten already, has expired, or is a copy for"
            " which another stands. `neardup explain --kafka ID` looks for it in the outputs"
        )
    return [*lines, f"{_gone(settings)} from now (index.erasure_seconds)"]


def _gone(settings: Settings) -> str:
    seconds = f"{settings.index.erasure_seconds:,.0f} s"
    return f"What the files of running workers hold of them is gone at most {seconds}"


def _named(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
    return f"{', '.join(ids[:_NAMED])}{more}"


def _not_reached(settings: Settings, topology: Topology) -> dict[str, str]:
    """Return what tombstones don't reach, and how long that is there."""
    kept = settings.index.snapshots
    left = {
        "a worker or a server that is off": "its state directory keeps them until you delete it or"
        f" start it: then for at most {settings.index.erasure_seconds:,.0f} s"
    }
    if kept.url is not None:
        left[f"snapshots in {without_credentials(kept.url)}"] = (
            f"until {kept.keep} newer ones of the shard replace them, one every"
            f" {kept.every_seconds:,.0f} s while documents come"
        )
    topics = (topology.documents, topology.unique, topology.duplicate, topology.rejected)
    logs = (topology.fingerprints, topology.matches(0).removesuffix("0") + "…")
    left[", ".join((*topics, *logs))] = "the retention of each, set on the brokers"
    return left
