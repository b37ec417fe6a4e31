"""What is published: everything once, unchanged, in order, each decision sound."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.support.checker.history import (
    OWN,
    History,
    Source,
    header,
    ident_of,
    is_tombstone,
    reason,
    source,
    verdict_of,
)
from worker.bus import Record


def exactly_once(history: History) -> Iterator[str]:
    """Every document on exactly one output; every tombstone on unique and on duplicate."""
    seen: dict[Source, list[str]] = defaultdict(list)
    tombstones: Counter[tuple[str, int, bytes | None, bytes | None]] = Counter()
    for kind, record in history.published():
        if is_tombstone(record):
            tombstones[kind, record.partition, record.key, record.value] += 1
        else:
            seen[source(record)].append(kind)
    wanted: Counter[tuple[str, int, bytes | None, bytes | None]] = Counter()
    for document in history.inputs:
        at = (document.partition, document.offset)
        if history.is_correction(document):
            continue
        if history.is_passed_on(document):
            wanted["unique", document.partition, document.key, document.value] += 1
            wanted["duplicate", document.partition, document.key, document.value] += 1
        elif len(where := seen.pop(at, [])) != 1:
            yield f"document {at} is on {where or 'no output'}"
    for at, where in seen.items():
        yield f"{where} hold a document {at} that was never written"
    for place in wanted.keys() | tombstones.keys():
        if wanted[place] != tombstones[place]:
            yield f"tombstone {place}: {tombstones[place]} times, not {wanted[place]}"


def payloads(history: History) -> Iterator[str]:
    """Key, headers, timestamp and value come out as they went in, but for what we add."""
    inputs = {(record.partition, record.offset): record for record in history.inputs}
    for kind, record in history.published():
        if is_tombstone(record) or (given := inputs.get(source(record))) is None:
            continue
        if reason(record) == "unreadable":  # Nobody has read it.
            if (record.key, record.value) != (None, None):
                yield f"rejected {source(record)} was set aside unread, and has a key or a value"
            continue
        headers = tuple(header for header in record.headers if not header[0].startswith(OWN))
        if (record.key, headers, record.timestamp) != (given.key, given.headers, given.timestamp):
            yield f"{kind} {source(record)}: key, headers or timestamp are not the input's"
        if record.value != given.value and (
            kind != "duplicate" or _without_matches(record) != given.value
        ):
            yield f"{kind} {source(record)}: the value is not the input's"


def order(history: History) -> Iterator[str]:
    """On each partition of unique and duplicate, documents are in the input's order."""
    last: dict[tuple[str, int], int] = {}
    for kind, record in history.published():
        if kind == "rejected" or is_tombstone(record):
            continue
        partition, offset = source(record)
        if partition != record.partition:
            yield f"{kind}[{record.partition}] holds a document of partition {partition}"
        if offset <= last.get((kind, partition), -1):
            yield f"{kind}[{partition}]: {offset} comes after {last[kind, partition]}"
        last[kind, partition] = offset


def decisions(history: History) -> Iterator[str]:
    """A document is on duplicate if and only if it has matches; sequences are distinct."""
    numbers: dict[int, Source] = {}
    for kind, record in history.published():
        if kind == "rejected" or is_tombstone(record):
            continue
        verdict = verdict_of(record)
        if header(record, "neardup-verdict") != kind.encode():
            yield f"{source(record)} is on {kind}, and its header says otherwise"
        if bool(verdict.matches) != (kind == "duplicate"):
            yield f"{kind} {source(record)} has {len(verdict.matches)} matches"
        if verdict.allowed is not None and kind != "unique":
            yield f"{kind} {source(record)} is allowed by {verdict.allowed}"
        if (verdict.first is not None) != (kind == "duplicate"):
            yield f"{kind} {source(record)} has {verdict.first} as its first match"
        if verdict.sequence in numbers:
            yield f"{source(record)} and {numbers[verdict.sequence]} share a sequence number"
        numbers[verdict.sequence] = source(record)


def references(history: History) -> Iterator[str]:
    """Every match names a document that is published, and earlier in the one order.

    The first match is the earliest of them.
    """
    numbers: dict[str, int] = {}
    documents = [
        record
        for record in (*history.unique, *history.duplicate)
        if record.value and not is_tombstone(record)
    ]
    for record in documents:
        numbers[ident_of(record)] = verdict_of(record).sequence
    for record in documents:
        verdict = verdict_of(record)
        for ident, _ in verdict.matches:
            if ident not in numbers:
                yield f"{source(record)} matches {ident}, which is not published"
            elif numbers[ident] >= verdict.sequence:
                yield f"{source(record)} matches {ident}, which is not before it"
        matched = [(numbers[ident], ident) for ident, _ in verdict.matches if ident in numbers]
        if verdict.matches and len(matched) == len(verdict.matches):
            first = min(matched)[::-1]
            ident, number = verdict.first or ("", -1)
            if (ident, history.renumbered.get(number, number)) != first:
                yield f"{source(record)} has {verdict.first} as its first match, not {first}"


def _without_matches(record: Record) -> bytes | None:
    """Give a value without what is spliced in, if that is what the headers say."""
    own = [header(record, name) or b"" for name in ("neardup-matches", "neardup-first")]
    added = b',"duplicate_of":%s,"duplicate_first":%s}' % tuple(own)
    head, found, tail = (record.value or b"").rpartition(added)
    return head + b"}" + tail if found else record.value
