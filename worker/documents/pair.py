"""Finds two published documents that are to be compared, by their ids."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from worker.bus import LogReader, Record
from worker.bus.ranges import Ranges, read_ranges
from worker.documents.lookup import Gone, windows
from worker.documents.published import Match, ident_of, matches_of, source_of
from worker.formats.base import DocumentFormat
from worker.formats.choice import document_format
from worker.formats.unreadable import Unreadable
from worker.settings.model import Settings
from worker.untrusted import NOT_READ, why
from worker.wire.headers import ALLOWED_BY, MATCHES, SEQUENCE, header, number

_SPLICED_BYTES = 1 << 16
"""More than neardup adds to a document."""
_RECORDS = 1_000

Progress = Callable[[int], AbstractContextManager[Callable[[int, int], None]]]
"""Takes how many offsets there are; yields what is told how many offsets and records were read."""


class Side(NamedTuple):
    """One of two documents."""

    id: str
    text: str


class Pair(NamedTuple):
    """Two documents, and the similarity that one's header has for the other, if any."""

    left: Side
    right: Side
    recorded: float | None


def pair(
    reader: LogReader, ranges: Ranges, settings: Settings, ids: Sequence[str], progress: Progress
) -> Pair:
    """Return two documents in some ranges of *unique* and *duplicate*.

    For one id, that are the document and its best match.

    Raises:
        Gone: an id is not found, a document has no match, or can't be read.
        BusError: a partition can't be read.
    """
    documents = document_format(_roomier(settings))
    records = newest(reader, ranges, documents, ids, progress)
    matches = _matches(records[0])
    if len(records) == 1:
        if not matches:
            raise Gone(
                f"{ids[0]!r} is unique: {_why_unique(records[0])}. Name another id to compare it"
                " with"
            )
        records += newest(reader, ranges, documents, [matches[0].id], progress)
    left, right = (_side(documents, record) for record in records)
    listed = {match.id: match.similarity for match in (*matches, *_matches(records[1]))}
    return Pair(left, right, listed.get(right.id, listed.get(left.id)))


def newest(
    reader: LogReader,
    ranges: Ranges,
    documents: DocumentFormat,
    ids: Sequence[str],
    progress: Progress,
) -> list[Record]:
    """Return the newest record of each id, in order; an id that is given twice has two.

    Reading stops as soon as all are found, so a window that has them is the last one.

    Raises:
        Gone: an id is not found.
        BusError: a partition can't be read, or delivers nothing for 15 s.
    """
    wanted, found = Counter(ids), defaultdict[str, list[Record]](list)
    total = sum(high - low for low, high in ranges.values())
    with progress(total) as on_read:
        offsets = count = 0
        for window in windows(ranges):
            within = defaultdict[str, list[Record]](list)
            for record in read_ranges(reader, window):
                if record.value is None or source_of(record) is None:
                    continue  # Passed on: a tombstone, or a delete with a value.
                ident = ident_of(documents, record)
                if wanted[ident]:
                    newer = sorted([*within[ident], record], key=_sequence, reverse=True)
                    within[ident] = newer[: wanted[ident]]
                count += 1
                if not count % _RECORDS:
                    on_read(offsets, count)
            for ident, records in within.items():
                found[ident] += records
            offsets += sum(high - low for low, high in window.values())
            on_read(offsets, count)
            if all(len(found[ident]) >= times for ident, times in wanted.items()):
                break
    for ident, times in wanted.items():
        if len(found[ident]) < times:
            again = " twice" if found[ident] else ""
            topics = " and ".join(sorted({partition.topic for partition in ranges}))
            raise Gone(
                f"{ident!r} is not{again} on {topics} within {total:,} offsets; --since earliest"
                " searches all that are there"
            )
    return [found[ident][ids[at + 1 :].count(ident)] for at, ident in enumerate(ids)]


def _sequence(record: Record) -> int:
    return number(header(record, SEQUENCE)) or 0


def _roomier(settings: Settings) -> Settings:
    """Return the settings with a limit that fits documents with what neardup has added to them."""
    limits = settings.limits
    most = limits.record_bytes + _SPLICED_BYTES
    return settings.model_copy(update={"limits": limits.model_copy(update={"record_bytes": most})})


def _side(documents: DocumentFormat, record: Record) -> Side:
    ident = ident_of(documents, record)
    try:
        text = documents.read(documents.whole(record)._replace(headers=())).text
    except Unreadable as error:
        raise Gone(
            f"{ident!r}: {error}: these are not the settings of the workers that judged it"
        ) from None
    return Side(ident, text)


def _why_unique(record: Record) -> str:
    allowance = header(record, ALLOWED_BY)
    if allowance is None:
        return "it matched nothing"
    named = repr(allowance.decode(errors="replace"))
    return f"the allowance {named} let it through, whatever it matches (header {ALLOWED_BY})"


def _matches(record: Record) -> list[Match]:
    try:
        return matches_of(record)
    except NOT_READ as error:
        raise Gone(f"header {MATCHES} can't be read: {why(error)}") from None
