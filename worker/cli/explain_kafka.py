"""The documents that ``neardup explain --kafka`` compares, from the outputs of an application."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from worker.admin.agreement import (
    Difference,
    agreed,
    differences,
    partitions_in,
    recorded,
    with_similarity,
)
from worker.admin.cluster import Cluster
from worker.admin.reindex.in_use import planned
from worker.admin.starts import moment_of
from worker.bus import LogReader, Record
from worker.bus.kafka.bus import KafkaBus
from worker.bus.ranges import Ranges
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.explain import Side
from worker.cli.progress_bar import byte_progress
from worker.documents.search import newest
from worker.formats.base import DocumentFormat
from worker.formats.choice import document_format
from worker.formats.unreadable import Unreadable
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings
from worker.untrusted import NOT_READ, why
from worker.wire.headers import ALLOWED_BY, MATCHES, SEQUENCE, SOURCE

_READ = (
    "documents.format",
    "documents.id_field",
    "documents.text_fields",
    "limits.text_characters",
)
_ELSEWHERE = ("documents.", "index.", "limits.", "partitions", "topics.")
"""The settings that say nothing of two texts, but for the former."""
_SPLICED_BYTES = 1 << 16
"""More than neardup adds to a document."""


class Judged(NamedTuple):
    """Two documents, and the similarity that one's header has for the other, if any."""

    left: Side
    right: Side
    recorded: float | None


class InUse(NamedTuple):
    """What workers go by now.

    settings: those that were given, with what the application has recorded in place of their own.
    rules: whose rules these are; None if they are those that were given.
    others: in what else the workers' settings differ. No record has a seed, or a list of lines.
    """

    settings: Settings
    rules: str | None
    others: list[Difference]


class _Match(msgspec.Struct):
    id: str
    similarity: float


def in_use_there(cluster: Cluster, settings: Settings) -> InUse:
    """Return by what workers judge now.

    Settings that were given for another application, or for none, don't decide it: the application
    has recorded with what it began, and what each reindex changed.

    Raises:
        ConfigurationError: the topic with these records is missing, or may not be seen.
        BusError: the cluster doesn't answer, or a record can't be read.
    """
    named = settings.topology(1)
    _, known = cluster.counts()
    if named.layout_log not in known:
        raise ConfigurationError(
            f"there is no topic {named.layout_log}, or no right to see it; run"
            " `neardup topics create`"
        )
    used, rules, others = settings, None, list[Difference]()
    facts = recorded(cluster, named)
    if facts is not None:
        used = with_similarity(settings, facts)
        here = agreed(used, used.topology(partitions_in(facts, named.documents) or 1))
        others = [one for one in differences(facts, here) if _concerns(one.name)]
        if used.parameters() != settings.parameters():
            rules = f"those that {named.app} has recorded; the settings given here differ"
    plan = planned(cluster, settings)
    if plan is not None:
        # After the hand-over, the next generation judges what comes now.
        used = msgspec.structs.replace(plan, current=plan.latest).settings(used)
        rules = f"generation {plan.latest.number} of the index, in use now"
    return InUse(used, rules, others)


def _concerns(name: str) -> bool:
    """Return whether two texts may look different to who differs in this setting."""
    return name in _READ or not name.startswith(_ELSEWHERE)


def judged(settings: Settings, ids: Sequence[str], since: str) -> Judged:
    """Return two documents of *unique* and *duplicate*; for one id, with its best match.

    Raises:
        CommandError: an id is not found, or the document has no match.
        ConfigurationError: a topic is missing, or ``since`` is wrong.
        BusError: the cluster doesn't answer.
    """
    logging.getLogger("librdkafka").addHandler(logging.NullHandler())
    options = settings.kafka_options()
    cluster = Cluster(options)
    named = settings.topology(1)
    topics = (named.unique, named.duplicate)
    spans = _spans(cluster, topics, since)
    with closing(KafkaBus(options).log_reader(f"{named.app}.explain", topics)) as reader:
        return judged_in(reader, spans, settings, ids)


def judged_in(reader: LogReader, spans: Ranges, settings: Settings, ids: Sequence[str]) -> Judged:
    """Return what `judged` returns, from these offsets."""
    documents = document_format(_roomier(settings))
    found = _found(reader, spans, documents, ids)
    first = found[0]
    if len(found) == 1:
        matches = _matches(first)
        if not matches:
            raise CommandError(
                f"{ids[0]!r} is unique: {_why_unique(first)}. Name another id to compare it with",
                EXIT_FAILED,
            )
        found += _found(reader, spans, documents, [matches[0].id])
    left, right = (_side(documents, record) for record in found)
    listed = {m.id: m.similarity for m in (*_matches(first), *_matches(found[1]))}
    recorded = listed.get(right.id, listed.get(left.id))
    return Judged(left, right, recorded)


def _spans(cluster: Cluster, topics: Sequence[str], since: str) -> Ranges:
    _, known = cluster.counts()
    for topic in topics:
        if topic not in known:
            raise ConfigurationError(f"there is no topic {topic}; run `neardup topics create`")
    counts = {topic: known[topic][0] for topic in topics}
    ranges = cluster.ranges(counts)
    if since == "earliest":
        return ranges
    moment = moment_of(since, datetime.now(UTC))
    if moment is None:
        raise ConfigurationError(
            f"--since: got {since!r}, must be earliest, an ISO 8601 time (2026-01-31T12:00:00Z),"
            " or an age (90m, 24h, 7d)"
        )
    at = cluster.at_time(counts, int(moment.timestamp() * 1000))
    return {
        partition: (max(low, high if (begin := at[partition]) is None else begin), high)
        for partition, (low, high) in ranges.items()
    }


def _found(
    reader: LogReader, spans: Ranges, documents: DocumentFormat, ids: Sequence[str]
) -> list[Record]:
    total = sum(high - low for low, high in spans.values())
    with byte_progress(total, shown=sys.stderr.isatty()) as advance:
        found = newest(
            reader,
            spans,
            ids,
            identify=lambda record: _ident(documents, record),
            order=_sequence,
            on_read=advance,
        )
    for ident in ids:
        if len(found.get(ident, ())) < ids.count(ident):
            again = " twice" if ident in found else ""
            topics = " and ".join(sorted({partition.topic for partition in spans}))
            raise CommandError(
                f"{ident!r} is not{again} on {topics} within {total:,} offsets; --since earliest"
                " searches all that are there",
                EXIT_FAILED,
            )
    return [found[ident].pop() for ident in ids]


def _roomier(settings: Settings) -> Settings:
    """Return the settings with a limit that fits documents with what neardup has added to them."""
    limits = settings.limits
    most = limits.record_bytes + _SPLICED_BYTES
    return settings.model_copy(update={"limits": limits.model_copy(update={"record_bytes": most})})


def _ident(documents: DocumentFormat, record: Record) -> str:
    """Return the id under which the index knows the document."""
    source = _header(record, SOURCE)
    if source is None:
        return ""  # Passed on: a tombstone, or a delete with a value.
    own = documents.whole(record)
    return (documents.identify(own.value or b"", own.key) or source).decode(errors="replace")


def _side(documents: DocumentFormat, record: Record) -> Side:
    ident = _ident(documents, record)
    try:
        text = documents.read(documents.whole(record)._replace(headers=())).text
    except Unreadable as error:
        raise CommandError(
            f"{ident!r}: {error}: these are not the settings of the workers that judged it",
            EXIT_FAILED,
        ) from None
    return Side(ident, text)


def _why_unique(record: Record) -> str:
    allowance = _header(record, ALLOWED_BY)
    if allowance is None:
        return "it matched nothing"
    named = repr(allowance.decode(errors="replace"))
    return f"the allowance {named} let it through, whatever it matches (header {ALLOWED_BY})"


def _matches(record: Record) -> list[_Match]:
    listed = _header(record, MATCHES)
    if listed is None:
        return []
    try:
        return msgspec.json.decode(listed, type=list[_Match])
    except NOT_READ as error:
        raise CommandError(f"header {MATCHES} can't be read: {why(error)}", EXIT_FAILED) from None


def _sequence(record: Record) -> int:
    number = _header(record, SEQUENCE) or b""
    return int(number) if number.isdigit() and len(number) <= 20 else 0  # noqa: PLR2004 -- 64 bits


def _header(record: Record, name: str) -> bytes | None:
    return next((value for key, value in reversed(record.headers) if key == name), None)
