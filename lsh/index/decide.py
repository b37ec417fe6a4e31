"""Decides verdicts: matches a batch against the buckets and, in order, against itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lsh.index.cells import cells_of
from lsh.index.layout import pack_bucket, pack_entries, pack_records, unpack_bucket
from lsh.index.match import Known, best_matches
from lsh.index.update import update

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.index.batch import DocumentBatch, Match
    from lsh.index.buckets import BucketReader
    from lsh.index.cells import Cells
    from lsh.index.layout import Bucket
    from lsh.index.rules import BucketRules

__all__ = ["Decision", "decide"]


@dataclass(slots=True)
class Decision:
    """The result of judging a batch: its matches, and the changes to the index.

    matches: the matches of each document that has any, best first, by row of the batch.
    keys: V9[b], the keys of the buckets that change.
    buckets: the new content of each of them.
    sequences: uint64[d], the documents that a bucket now names.
    records: the records of these documents.
    candidates: how many comparisons with candidates were made.
    absorbed: how many cells were not inserted because an entry stands for them.
    dropped: how many entries were removed from full buckets.
    """

    matches: dict[int, list[Match]]
    keys: NDArray[np.void]
    buckets: list[bytes]
    sequences: NDArray[np.uint64]
    records: list[bytes]
    candidates: int = 0
    absorbed: int = 0
    dropped: int = 0

    @classmethod
    def nothing(cls) -> Decision:
        """Return the decision about no documents."""
        return cls({}, np.empty(0, "V9"), [], np.empty(0, np.uint64), [])


def decide(reader: BucketReader, batch: DocumentBatch, rules: BucketRules) -> Decision:
    """Judge a batch of documents in order, as if each came alone; write nothing.

    A cell is a document's key in a column. Cells whose bucket is new, and that no other
    document of the batch shares, are inserted all at once: on a feed of mostly new
    documents, these are nearly all cells.

    Raises RecordMissing if a bucket names a document that has no record.
    """
    decision = Decision.nothing()
    if not len(batch.ids):
        return decision
    cells = cells_of(batch.columns, batch.keys)
    found = reader.buckets(cells.keys)
    plain = np.array([value is None for value in found], bool) & (cells.sizes == 1)
    rows = cells.rows[cells.starts[plain]]
    inserted = np.zeros(len(batch.ids), bool)
    inserted[rows] = True
    packed = pack_entries(batch.sequences, batch.times)
    decision.keys = cells.keys[plain]
    decision.buckets = [packed[row] for row in rows.tolist()]
    contested = {run: unpack_bucket(found[run] or b"") for run in np.flatnonzero(~plain).tolist()}
    if contested:
        known = Known.of(reader, contested.values())
        grown = _one_by_one(batch, cells, contested, known, rules, inserted, decision)
        decision.keys = np.concatenate((decision.keys, cells.keys[grown]))
        decision.buckets += [pack_bucket(contested[run]) for run in grown]
    rows = np.flatnonzero(inserted)
    decision.sequences = batch.sequences[rows]
    decision.records = pack_records(
        batch.sketches[rows],
        batch.shingles[rows],
        batch.times[rows],
        [batch.ids[row] for row in rows.tolist()],
    )
    return decision


def _one_by_one(  # noqa: PLR0913, PLR0917 -- the loop of `decide`, separate for readability
    batch: DocumentBatch,
    cells: Cells,
    contested: dict[int, Bucket],
    known: Known,
    rules: BucketRules,
    inserted: NDArray[np.bool_],
    decision: Decision,
) -> list[int]:
    """Match each document that has contested cells, then update their buckets.

    contested: buckets by run, changed in place.
    inserted: bool[n], the documents that a bucket names, changed in place.

    Returns the runs whose buckets have grown, ascending.
    """
    changed: set[int] = set()
    for row, runs in cells.by_row(np.array(list(contested), np.int64)):
        buckets = {run: contested[run] for run in runs}
        sketch = batch.sketches[row]
        similar = known.similar(sketch, buckets.values())
        decision.candidates += len(similar)
        best = best_matches(similar, known, rules)
        if best:
            decision.matches[row] = best
        entry = (int(batch.sequences[row]), int(batch.times[row]))
        grown, absorbed, dropped = update(buckets, entry, similar, rules)
        decision.absorbed += absorbed
        decision.dropped += dropped
        if grown:
            known.add(entry[0], sketch.tobytes(), batch.ids[row])
            inserted[row] = True
            changed.update(grown)
    return sorted(changed)
