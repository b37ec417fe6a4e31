"""A run's history: what went in, what came out, and what was seen meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple

from lsh import Parameters
from tests.support.ids_of_keys import id_of_key
from worker.bus import Record
from worker.corrections.request import Allow, Request, Withdraw, decoded
from worker.wire.frame import envelope
from worker.wire.headers import ALLOWED_BY, CORRECTION, FORGET

Source = tuple[int, int]
"""Partition and offset of a document."""

KINDS: Final = ("unique", "duplicate", "rejected")
OWN: Final = "neardup-"


class Verdict(NamedTuple):
    """The decision about a document: its place in the order, and what it matches.

    ``first`` is the id and the place of the earliest match; None if there is none.
    ``containments`` has a value for each match, None for one without; if no match has any, it
    is empty. ``allowed`` is the id of the allowance that holds for it.
    """

    sequence: int
    matches: tuple[tuple[str, float], ...]
    first: tuple[str, int] | None = None
    containments: tuple[float | None, ...] = ()
    allowed: str | None = None


class Sighting(NamedTuple):
    """A record of an output as a reader met it; ``digest`` covers all that it carries."""

    partition: int
    offset: int
    digest: bytes


class FrameRange(NamedTuple):
    """What a frame of ``fingerprints`` covers; ``number`` is its offset there."""

    number: int
    partition: int
    start: int
    end: int


@dataclass(frozen=True)
class History:
    """All inputs, and all that was published, each topic by partition and offset.

    Attributes:
        seen: by kind of output, what a reader of committed records met while the run
            went on, in order of arrival; None if nobody read along.
        frames: what the records of ``fingerprints`` cover, in their order; None if they
            were not read.
        parameters: by which texts were compared.
        deletes: whether an input whose text is null is a delete.
        expires: whether allowances end when they are old.
        renumbered: by the number that a document has in a later log, that with which it was
            published.
    """

    inputs: Sequence[Record]
    unique: Sequence[Record] = ()
    duplicate: Sequence[Record] = ()
    rejected: Sequence[Record] = ()
    seen: Mapping[str, Sequence[Sighting]] | None = None
    frames: Sequence[FrameRange] | None = None
    parameters: Parameters = field(default_factory=Parameters)
    renumbered: Mapping[int, int] = field(default_factory=dict)
    deletes: bool = False
    expires: bool = False

    def forgets(self, document: Record) -> bytes | None:
        """Give the id that an input forgets; None if it is a document, or forgets none."""
        if document.value is None:
            named = header(document, FORGET)
            if named is not None or self.is_correction(document):
                return named
            return id_of_key(document.key) if document.key else None
        return ident_of(document).encode() if self.is_passed_on(document) else None

    def is_passed_on(self, document: Record) -> bool:
        """Tell whether an input is no document, but a tombstone or a delete."""
        if document.value is None:
            return not self.is_correction(document)
        return self.deletes and json.loads(document.value).get("text", "") is None

    def is_correction(self, document: Record) -> bool:
        """Tell whether an input is for the index alone: nothing is published of it."""
        request = requested(document)
        return isinstance(request, Allow | Withdraw)

    def published(self) -> Iterator[tuple[str, Record]]:
        """Give every record with the kind of its topic."""
        for kind in KINDS:
            for record in getattr(self, kind):
                yield kind, record


def sightings(records: Iterable[Record]) -> list[Sighting]:
    """Note records of one output in the order in which they arrived."""
    return [Sighting(record.partition, record.offset, _digest(record)) for record in records]


def frame_ranges(fingerprints: Iterable[Record], layout: str) -> list[FrameRange]:
    """Note what the records of ``fingerprints`` cover."""
    frames = ((r.offset, envelope(r.value)) for r in fingerprints)
    return [
        FrameRange(offset, f.partition, f.start, f.end)
        for offset, f in frames
        if f is not None and f.layout == layout
    ]


def verdicts(history: History) -> dict[Source, Verdict]:
    """Give every decision by document."""
    return {
        source(record): verdict_of(record)
        for record in (*history.unique, *history.duplicate)
        if not is_tombstone(record)
    }


def is_tombstone(record: Record) -> bool:
    """Tell a record that was passed on, such as a tombstone, from one that has a verdict."""
    return not any(name.startswith(OWN) for name, _ in record.headers)


def requested(record: Record) -> Request | None:
    """Give what an input corrects; None if it is something else."""
    value = None if record.value is not None else header(record, CORRECTION)
    return None if value is None else decoded(value)


def ident_of(record: Record) -> str:
    """Give the id of a published document: its own, else its key's, else its position."""
    found = json.loads(record.value or b"{}").get("id")
    if found is not None:
        return str(found)
    return (
        id_of_key(record.key) if record.key else header(record, "neardup-source") or b""
    ).decode()


def source(record: Record) -> Source:
    """Give where a published document came from."""
    if (found := header(record, "neardup-source")) is not None:
        _, partition, offset = found.rsplit(b"-", 2)
        return int(partition), int(offset)
    partition = header(record, "neardup-error-partition") or b"-1"
    return int(partition), int(header(record, "neardup-error-offset") or b"-1")


def verdict_of(record: Record) -> Verdict:
    """Give the decision that a record's headers tell."""
    matches = json.loads(header(record, "neardup-matches") or b"[]")
    first = json.loads(header(record, "neardup-first") or b"null")
    containments = tuple(match.get("containment") for match in matches)
    allowed = header(record, ALLOWED_BY)
    return Verdict(
        int(header(record, "neardup-sequence") or b"-1"),
        tuple((match["id"], match["similarity"]) for match in matches),
        None if first is None else (first["id"], first["sequence"]),
        containments if any(one is not None for one in containments) else (),
        None if allowed is None else allowed.decode(),
    )


def reason(record: Record) -> str:
    """Give the code that a rejected record names."""
    return (header(record, "neardup-error-reason") or b"").decode().partition(":")[0]


def header(record: Record, name: str) -> bytes | None:
    """Give the last header of a name, which is ours if there are several."""
    return next((value for key, value in reversed(record.headers) if key == name), None)


def _digest(record: Record) -> bytes:
    carried = (record.key, record.value, record.headers, record.timestamp)
    return blake2b(repr(carried).encode(), digest_size=16).digest()
