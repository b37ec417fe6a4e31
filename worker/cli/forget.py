"""``neardup forget``: have the index forget documents, and say when nothing is left of them."""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from time import sleep
from typing import NamedTuple

import typer

from worker.admin.cluster import Cluster
from worker.admin.reindex.in_use import in_use
from worker.bus import Bus, BusError, Record, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.bus.ranges import read_ranges
from worker.cli.campaigns import Outline, members_of
from worker.cli.client import Client
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.query import matches_of
from worker.cli.screen import print_json
from worker.cli.sent import await_judged, documents_there, judged_and_found, places
from worker.corrections.records import corrector, erasure, restored
from worker.corrections.sending import judged_reader, send
from worker.documents.lookup import Gone, Lookup
from worker.formats.base import DocumentFormat
from worker.formats.choice import document_format
from worker.formats.unreadable import Unreadable
from worker.generations.plan import Plan
from worker.settings.mask import without_credentials
from worker.settings.model import Settings
from worker.topology import Topology
from worker.visible import counted, tell
from worker.wire.corrections import Request
from worker.wire.headers import FORGET

_TOMBSTONES = ("tombstone", "tombstones")
_NAMED = 10
"""The most ids in a line."""


class _Left(NamedTuple):
    """What a tombstone doesn't reach, and how long that is there."""

    what: str
    until: str


def chosen(server: Client, group: str | None, text: str | None, *, yes: bool) -> list[str]:
    """Return the ids of a group's members, or of what is near to a text, once that is confirmed.

    Raises:
        CommandError: the server can't be asked, there are none, or that wasn't confirmed.
    """
    consists: Sequence[str] = ()
    if group is not None:
        ids, outline = members_of(server, group)
        of, consists = f"of group {group}", list(_consists(outline))
    else:
        # A server names at most as many as a record does.
        ids, of = matches_of(server, text or ""), "near to this text"
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


def forget(
    settings: Settings, ids: Sequence[str], *, why: str, undo: bool, wait: bool, as_json: bool
) -> None:
    """Send a tombstone for each id, wait until every shard has judged them, and print that.

    With ``undo``, send their documents again, instead.

    Raises:
        CommandError: an id is not one, there is no topic, or Kafka failed.
    """
    logging.getLogger("librdkafka").addHandler(logging.NullHandler())
    options = settings.kafka_options()
    plan = in_use(Cluster(options), settings)
    settings, bus = plan.settings(settings), KafkaBus(options)
    if undo:
        restore_on(bus, settings, ids, plan=plan, wait=wait, as_json=as_json)
    else:
        forget_on(bus, settings, ids, plan=plan, why=why, wait=wait, as_json=as_json)


def forget_on(
    bus: Bus,
    settings: Settings,
    ids: Sequence[str],
    *,
    plan: Plan | None = None,
    why: str = "",
    wait: bool,
    as_json: bool,
    pause: Callable[[float], None] = sleep,
) -> None:
    """Do what `forget` does, on any bus; ``pause`` waits for some seconds.

    Without a plan, the application was never reindexed.
    """
    documents = document_format(settings)
    wanted = _wanted(documents, ids)
    topology = documents_there(bus, settings, plan or Plan.of(settings))
    never = _never_came(bus, settings, topology, wanted) if len(wanted) <= _NAMED else []
    wanted = {ident: given for ident, given in wanted.items() if given not in never}
    if never:
        said = f"no document with this id was ever published: {_named(never)}"
        if not wanted:
            raise CommandError(f"{said}; nothing was sent", EXIT_FAILED)
        tell(said)
    by = corrector(settings)
    requests = [Request("forget", ident.decode(), by=by, why=why) for ident in wanted]
    tombstones = [erasure(topology, documents.keys, one) for one in requests]
    unknown: list[str] | None = None
    if wait:
        sent, known = judged_and_found(bus, topology, tombstones, wanted, pause, _TOMBSTONES)
        if known is not None:
            unknown = [given for ident, given in wanted.items() if ident not in known]
    else:
        sent = send(bus, topology, tombstones)
    if as_json:
        unknown = unknown if unknown is None else [*never, *unknown]
        print_json(_summary(settings, topology, ids, sent, unknown, judged=wait))
        return
    number = len(wanted)
    begun = _judged(number, unknown, settings) if wait else _sent(number, topology, settings)
    left = [f"  {one.what}: {one.until}" for one in _not_reached(settings, topology)]
    for line in (*begun, "This does not reach", *left):
        tell(line)
    gone = [one for one in wanted.values() if one not in (unknown or ())]
    named = shlex.join(gone) if len(gone) <= _NAMED else "ID…"
    if gone:
        tell(f"Undo, as long as {topology.documents} has them: neardup forget --undo {named}")


def _never_came(
    bus: Bus, settings: Settings, topology: Topology, wanted: Mapping[bytes, str]
) -> list[str]:
    """Return the ids of which it is certain that no document ever had them.

    Nothing is certain while documents wait, or if the outputs can't be read whole.
    """
    try:
        with closing(judged_reader(bus, topology)) as reader:
            numbers = range(topology.layout.partitions)
            read_to = reader.committed([TopicPartition(topology.documents, n) for n in numbers])
            ends = {place: reader.watermarks(place)[1] for place in read_to}
            waiting = {place: (at or 0, ends[place]) for place, at in read_to.items()}
            if None in read_to.values() or any(
                record.value is not None for record in read_ranges(reader, waiting)
            ):
                return []
        with closing(Lookup(settings, topology, bus)) as lookup:
            return [given for ident, given in wanted.items() if lookup.never_came(ident.decode())]
    except BusError:
        return []


def restore_on(
    bus: Bus,
    settings: Settings,
    ids: Sequence[str],
    *,
    plan: Plan | None = None,
    wait: bool,
    as_json: bool,
    pause: Callable[[float], None] = sleep,
) -> None:
    """Send documents again from where they are, so that they are judged and published anew.

    Raises:
        CommandError: one isn't there; nothing is sent then.
    """
    wanted = list(_wanted(document_format(settings), ids).values())
    topology = documents_there(bus, settings, plan or Plan.of(settings))
    with closing(Lookup(settings, topology, bus)) as lookup:
        records = []
        for ident in wanted:
            try:
                records.append(restored(lookup.origin(ident)))
            except Gone as why:
                raise CommandError(f"{ident!r}: {why}; nothing was sent", EXIT_FAILED) from None
    sent = send(bus, topology, records)
    if wait:
        with closing(judged_reader(bus, topology)) as reader:
            await_judged(reader, sent, pause, ("last one", "documents"))
    if as_json:
        print_json({"ids": wanted, "documents": places(sent), "judged": wait})
        return
    tell(f"{counted(len(wanted), 'document')} sent to {topology.documents} again: judged and"
         " published anew")  # fmt: skip


def _wanted(documents: DocumentFormat, ids: Sequence[str]) -> dict[bytes, str]:
    """Return the ids, each once, as they were given.

    Raises:
        CommandError: no document can have this id.
    """
    wanted: dict[bytes, str] = {}
    for ident in ids:
        header = (FORGET, ident.encode(errors="surrogateescape"))
        try:
            forgotten = documents.forgotten(Record("", 0, 0, -1, None, None, (header,)))
        except Unreadable as error:
            raise CommandError(f"{ident!r}: {error}; nothing was sent") from None
        wanted.setdefault(forgotten, ident)
    return wanted


def _summary(
    settings: Settings,
    topology: Topology,
    ids: Sequence[str],
    sent: Mapping[TopicPartition, int],
    unknown: Sequence[str] | None,
    *,
    judged: bool,
) -> dict[str, object]:
    return {
        "ids": list(dict.fromkeys(ids)),
        "tombstones": places(sent),
        "judged": judged,
        "unknown": unknown,
        "erasure_seconds": settings.index.erasure_seconds,
        "not_reached": [one._asdict() for one in _not_reached(settings, topology)],
    }


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
        lines.append(_said_unknown(unknown))
    return [*lines, f"{_gone(settings)} from now (index.erasure_seconds)"]


def _gone(settings: Settings) -> str:
    seconds = f"{settings.index.erasure_seconds:,.0f} s"
    return f"What the files of running workers hold of them is gone at most {seconds}"


def _said_unknown(unknown: Sequence[str]) -> str:
    return (
        f"{counted(len(unknown), 'id')} unknown to the index: {_named(unknown)}. No such"
        " document came before it, or it is forgotten already, has expired, or is a copy for which"
        " another stands. `neardup explain --kafka ID` looks for it in the outputs"
    )


def _named(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
    return f"{', '.join(ids[:_NAMED])}{more}"


def _not_reached(settings: Settings, topology: Topology) -> list[_Left]:
    """Return what tombstones don't reach: what no running worker has, and what brokers keep."""
    kept = settings.index.snapshots
    left = [
        _Left(
            "a worker or a server that is off",
            "its state directory keeps them until you delete it or start it: then for at most"
            f" {settings.index.erasure_seconds:,.0f} s",
        )
    ]
    if kept.url is not None:
        left.append(
            _Left(
                f"snapshots in {without_credentials(kept.url)}",
                f"until {kept.keep} newer ones of the shard replace them, one every"
                f" {kept.every_seconds:,.0f} s while documents come",
            )
        )
    topics = (topology.documents, topology.unique, topology.duplicate, topology.rejected)
    logs = (topology.fingerprints, topology.matches(0).removesuffix("0") + "…")
    left.append(_Left(", ".join((*topics, *logs)), "the retention of each, set on the brokers"))
    return left
