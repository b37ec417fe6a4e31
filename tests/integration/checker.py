"""The invariants, as pure functions of a run's history: each gives the problems it finds.

Modelled on the invariants of Jepsen's Kafka test and of Kafka's own system tests: no
loss, no doubling, order kept, one decision per document, every match decided earlier and
itself published.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from worker.bus.port import Record

__all__ = ["History", "Verdict", "check", "verdicts"]

Source = tuple[int, int]
"""Partition and offset of a document."""

OWN: Final = "neardup-"
SHOWN: Final = 5


class Verdict(NamedTuple):
    """The decision about a document: its place in the order, and what it matches."""

    sequence: int
    matches: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class History:
    """All inputs, and all that was published, each topic by partition and offset."""

    inputs: list[Record]
    unique: list[Record] = field(default_factory=list)
    duplicate: list[Record] = field(default_factory=list)
    rejected: list[Record] = field(default_factory=list)

    def published(self) -> Iterator[tuple[str, Record]]:
        """Give every record with the kind of its topic."""
        for kind in ("unique", "duplicate", "rejected"):
            for record in getattr(self, kind):
                yield kind, record


def check(history: History) -> list[str]:
    """Check all invariants; give what is wrong, a few examples of each kind."""
    problems: list[str] = []
    for invariant in (exactly_once, payloads, order, decisions, references):
        found = list(invariant(history))
        problems += found[:SHOWN]
        if len(found) > SHOWN:
            problems.append(f"… and {len(found) - SHOWN} more of {invariant.__name__}")
    return problems


def exactly_once(history: History) -> Iterator[str]:
    """Every document on exactly one output; every tombstone on unique and on duplicate."""
    seen: dict[Source, list[str]] = defaultdict(list)
    tombstones: Counter[tuple[str, int, bytes | None]] = Counter()
    for kind, record in history.published():
        if is_tombstone(record):
            tombstones[kind, record.partition, record.key] += 1
        else:
            seen[source(record)].append(kind)
    wanted: Counter[tuple[str, int, bytes | None]] = Counter()
    for document in history.inputs:
        at = (document.partition, document.offset)
        if document.value is None:
            wanted["unique", document.partition, document.key] += 1
            wanted["duplicate", document.partition, document.key] += 1
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
        headers = tuple(header for header in record.headers if not header[0].startswith(OWN))
        if (record.key, headers, record.timestamp) != (given.key, given.headers, given.timestamp):
            yield f"{kind} {source(record)}: key, headers or timestamp are not the input's"
        if record.value != given.value and (
            kind != "duplicate" or _without_matches(record.value) != given.value
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
        if _header(record, "neardup-verdict") != kind.encode():
            yield f"{source(record)} is on {kind}, and its header says otherwise"
        if bool(verdict.matches) != (kind == "duplicate"):
            yield f"{kind} {source(record)} has {len(verdict.matches)} matches"
        if verdict.sequence in numbers:
            yield f"{source(record)} and {numbers[verdict.sequence]} share a sequence number"
        numbers[verdict.sequence] = source(record)


def references(history: History) -> Iterator[str]:
    """Every match names a document that is published, and earlier in the one order."""
    numbers: dict[str, int] = {}
    documents = [record for record in (*history.unique, *history.duplicate) if record.value]
    for record in documents:
        assert record.value is not None
        numbers[str(json.loads(record.value).get("id"))] = verdict_of(record).sequence
    for record in documents:
        verdict = verdict_of(record)
        for ident, _ in verdict.matches:
            if ident not in numbers:
                yield f"{source(record)} matches {ident}, which is not published"
            elif numbers[ident] >= verdict.sequence:
                yield f"{source(record)} matches {ident}, which is not before it"


def verdicts(history: History) -> dict[Source, Verdict]:
    """Give every decision by document."""
    return {
        source(record): verdict_of(record)
        for record in (*history.unique, *history.duplicate)
        if not is_tombstone(record)
    }


def differences(
    published: Mapping[Source, Verdict], expected: Mapping[Source, Verdict]
) -> list[str]:
    """Say where two sets of decisions differ."""
    return [
        f"{at}: published {published.get(at)}, expected {expected.get(at)}"
        for at in sorted(published.keys() | expected.keys())
        if published.get(at) != expected.get(at)
    ][:SHOWN]


def is_tombstone(record: Record) -> bool:
    """Tell a tombstone from a document that has no payload any more."""
    return record.value is None and not any(name.startswith(OWN) for name, _ in record.headers)


def source(record: Record) -> Source:
    """Give where a published document came from."""
    if (found := _header(record, "neardup-source")) is not None:
        _, partition, offset = found.rsplit(b"-", 2)
        return int(partition), int(offset)
    partition = _header(record, "neardup-error-partition") or b"-1"
    return int(partition), int(_header(record, "neardup-error-offset") or b"-1")


def verdict_of(record: Record) -> Verdict:
    """Give the decision that a record's headers tell."""
    matches = json.loads(_header(record, "neardup-matches") or b"[]")
    return Verdict(
        int(_header(record, "neardup-sequence") or b"-1"),
        tuple((match["id"], match["similarity"]) for match in matches),
    )


def reason(record: Record) -> str:
    """Give the code that a rejected record names."""
    return (_header(record, "neardup-error-reason") or b"").decode().partition(":")[0]


def _header(record: Record, name: str) -> bytes | None:
    """Give the last header of a name, which is ours if there are several."""
    return next((value for key, value in reversed(record.headers) if key == name), None)


def _without_matches(value: bytes | None) -> bytes | None:
    if value is None:
        return None
    start = value.rfind(b',"duplicate_of":[')
    return value[:start] + value[value.rindex(b"]") + 1 :] if start >= 0 else value
