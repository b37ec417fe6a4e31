"""Decides verdicts: matches a batch against the buckets and, in order, against itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lsh.index.cells import cells_of
from lsh.index.clock import dated
from lsh.index.decision import Decision
from lsh.index.judging import Judging
from lsh.index.same_id import Repeats, replacing

if TYPE_CHECKING:
    from lsh.index.batch import DocumentBatch
    from lsh.index.buckets import BucketReader
    from lsh.index.clock import Dated
    from lsh.index.rules import BucketRules

__all__ = ["decide"]


def decide(reader: BucketReader, batch: DocumentBatch, rules: BucketRules) -> Decision:
    """Judge a batch of documents in order, as if each came alone; write nothing.

    A document whose id is forgotten is as if it had never been inserted, from there on. The rules
    say what a document is whose id the index already has; see `lsh.index.same_id`.

    A cell is a document's key in a column. Cells whose bucket is new, and that no other
    document of the batch shares, are inserted all at once: on a feed of mostly new
    documents, these are nearly all cells.

    Raises RecordMissing if a bucket names a document that has no record.
    """
    if rules.same_id == "replace":
        batch = replacing(reader, batch)
    dates = dated(reader.clock, batch.times, rules)
    batch = replace(batch, times=dates.times)
    if rules.same_id != "ignore":
        return _judged(reader, batch, rules, dates)
    repeats = Repeats.of(reader, batch, dates)
    decision = _judged(reader, repeats.others(), rules, dates.of(repeats.rows))
    decision.matches = repeats.matches(reader, decision.matches)
    decision.repeated = len(repeats.firsts)
    return decision


def _judged(
    reader: BucketReader, batch: DocumentBatch, rules: BucketRules, dates: Dated
) -> Decision:
    """Judge documents of which none was sent again; their times are as of when they count."""
    if not len(batch.ids):
        nothing = Decision.nothing()
        nothing.dates = dates
        found = reader.identified({one.id for one in batch.forgotten})
        nothing.forgotten = sorted(number for numbers in found.values() for number in numbers)
        return nothing
    cells = cells_of(batch.columns, batch.keys)
    return Judging(reader, batch, rules, cells, dates).decision()
