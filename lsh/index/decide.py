"""Decides verdicts: matches a batch against the buckets and, in order, against itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.index.cells import cells_of
from lsh.index.layout import BucketKeys, pack_records
from lsh.index.match import Known, best_matches
from lsh.index.update import update

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.index.batch import DocumentBatch, Match
    from lsh.index.buckets import BucketReader
    from lsh.index.cells import Cells
    from lsh.index.layout import Bucket
    from lsh.index.rules import BucketRules

__all__ = ["Decision", "NewCells", "decide"]


class NewCells(NamedTuple):
    """The cells of c buckets that didn't exist: each is one document's key in a column.

    keys: the keys of the buckets, sorted by column in the order of the batch, then ascending.
    documents: uint32[c], the number of the first document in each bucket.
    """

    keys: BucketKeys
    documents: NDArray[np.uint32]


@dataclass(slots=True)
class Decision:
    """The result of judging a batch: its matches, and the changes to the index.

    matches: the matches of each document that has any, best first, by row of the batch.
    cells: the new buckets.
    grown: the keys of the buckets whose content isn't one new cell. They replace earlier ones.
    buckets: the content of each grown bucket.
    newly: bool[b], whether each grown bucket had at most one document before.
    records: the records of the documents that a bucket now names, in the order of their numbers,
        which follow those in the index.
    candidates: how many comparisons with candidates were made.
    absorbed: how many cells were not inserted because an entry stands for them.
    dropped: how many entries were removed from full buckets.
    late: how many documents were judged and not inserted, because they are older than the window.
    """

    matches: dict[int, list[Match]]
    cells: NewCells
    grown: BucketKeys
    buckets: list[Bucket]
    newly: NDArray[np.bool_]
    records: list[bytes]
    candidates: int = 0
    absorbed: int = 0
    dropped: int = 0
    late: int = 0

    @classmethod
    def nothing(cls) -> Decision:
        """Return the decision about no documents."""
        cells = NewCells(BucketKeys.none(), np.empty(0, np.uint32))
        return cls({}, cells, BucketKeys.none(), [], np.empty(0, bool), [])


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
    new = np.ones(len(cells.sizes), bool)
    new[list(found)] = False
    contested = {
        run: found.get(run, []) for run in np.flatnonzero(~new | (cells.sizes > 1)).tolist()
    }
    # Until it is known which documents are inserted, each one's number is that of its row.
    first = reader.inserted
    holders = first + cells.rows[cells.starts]
    inserted = np.zeros(len(batch.ids), bool)
    inserted[cells.rows[cells.starts[new & (cells.sizes == 1)]]] = True
    grown: list[int] = []
    small = {run for run, bucket in contested.items() if len(bucket) <= 1}
    if contested:
        known = Known.of(reader, contested.values())
        changed = _one_by_one(batch, cells, contested, known, rules, inserted, decision, first)
        for run in changed:
            if new[run]:
                holders[run] = contested[run][0]
            if not new[run] or len(contested[run]) > 1:
                grown.append(run)
    numbers = first + np.cumsum(inserted) - inserted
    decision.cells = NewCells(cells.keys.take(new), numbers[holders[new] - first].astype(np.uint32))
    decision.grown = cells.keys.take(np.array(grown, np.int64))
    decision.newly = np.array([run in small for run in grown], bool)
    final = numbers.tolist()
    decision.buckets = [
        [number if number < first else final[number - first] for number in contested[run]]
        for run in grown
    ]
    rows = np.flatnonzero(inserted)
    decision.records = pack_records(
        batch.sequences[rows],
        batch.times[rows],
        batch.shingles[rows],
        batch.sketches[rows],
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
    first: int,
) -> list[int]:
    """Match each document that has contested cells, then update their buckets.

    contested: buckets by run, changed in place.
    inserted: bool[n], the documents that a bucket names, changed in place.
    first: the number of the batch's first document.

    Returns the runs whose buckets have changed, ascending.
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
        grown, absorbed, dropped = update(buckets, first + row, similar, rules)
        decision.absorbed += absorbed
        decision.dropped += dropped
        if grown:
            sequence = int(batch.sequences[row])
            known.add(first + row, sketch.tobytes(), sequence, batch.ids[row])
            inserted[row] = True
            changed.update(grown)
    return sorted(changed)
