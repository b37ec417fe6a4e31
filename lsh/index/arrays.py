"""An index in arrays, for many documents in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.index.batch import DocumentBatch
from lsh.index.clock import Clock
from lsh.index.decide import decide
from lsh.index.documents import Documents
from lsh.index.finer import LEVELS, finer_keys
from lsh.index.layout import BEYOND, pack_records
from lsh.index.query import match
from lsh.index.records import Records
from lsh.index.shares import sufficient
from lsh.index.table import ENTRY, BucketTable
from lsh.ordered import without_repeats
from lsh.sketch import pairwise_similarity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from lsh.index.batch import Match
    from lsh.index.decision import Decision
    from lsh.index.layout import Bucket, BucketKeys, Renewals
    from lsh.index.rules import BucketRules
    from lsh.index.verdicts import Verdict

__all__ = ["ArrayIndex", "Matches"]

_COMPARED = 1 << 15  # pairs of sketches at a time
_BEYOND = np.array([BEYOND], ENTRY).tobytes()


class Matches(NamedTuple):
    """The matches of n queries: query by query, best first, of equals the first one first.

    queries: int64[m], ascending. rows: int64[m], the documents. similarity: float64[m].
    containment: float64[m], that of the query in the document; 0 where it isn't enough.
    """

    queries: NDArray[np.int64]
    rows: NDArray[np.int64]
    similarity: NDArray[np.float64]
    containment: NDArray[np.float64]


_NONE = Matches(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))


class _Pairs(NamedTuple):
    """Queries and the documents in their buckets, with repeats.

    queries, rows: int64[p]. full: bool[n], the queries that come to a crowded bucket, or one
    that has finer ones.
    """

    queries: NDArray[np.int64]
    rows: NDArray[np.int64]
    full: NDArray[np.bool_]


class ArrayIndex:
    """All columns of an index without a window. Numbers of documents are rows of `documents`.

    It has all documents that were judged, also those that no bucket names because an
    entry stands for them. So it can also remove one: see `remove`.
    """

    def __init__(self, columns: int, slots: int, rules: BucketRules) -> None:
        """Begin empty. Raises ValueError for rules with a window, or more than 256 columns."""
        if rules.window_ms is not None:
            raise ValueError(f"window_ms: got {rules.window_ms}, an index in arrays takes None")
        if columns > 1 << 8:
            raise ValueError(f"columns: got {columns}, an index takes at most 256")
        self._rules = rules
        self._documents = Documents(columns, slots)
        self._table = BucketTable(self._documents)
        self.clock = Clock()  # Without a window, it decides nothing.
        self.moved_below = 0
        self.all_kept = True  # No bucket names a document that was removed.

    @property
    def rules(self) -> BucketRules:
        """Return the rules of the buckets."""
        return self._rules

    @property
    def documents(self) -> Documents:
        """Return all documents; change nothing in them."""
        return self._documents

    @property
    def inserted(self) -> int:
        """Return the number of rows; see `BucketReader`."""
        return len(self._documents)

    def buckets(self, keys: BucketKeys) -> dict[int, Bucket]:
        """Return the buckets that exist; see `BucketReader`."""
        found = self._table.find(keys.columns.astype(np.int64), keys.hashes)
        pairs = zip(found.places.tolist(), found.values.tolist(), strict=True)
        return {place: self._table.bucket(value) for place, value in pairs}

    def may_exist(self, keys: BucketKeys) -> NDArray[np.bool_]:
        """Return all: reading a bucket costs nothing here; see `BucketReader`."""
        return np.ones(len(keys.hashes), bool)

    def sole(self, keys: BucketKeys) -> NDArray[np.bool_]:
        """Return none: reading a bucket costs nothing here; see `BucketReader`."""
        return np.zeros(len(keys.hashes), bool)

    def records(self, numbers: Sequence[int]) -> list[bytes | None]:
        """Return the records of these documents, without ids; see `BucketReader`."""
        rows = np.asarray(numbers, np.int64)
        sequences, times = rows.astype(np.uint64), np.zeros(len(rows), np.int64)
        kept = self._documents
        sketches, shingles = kept.sketches[rows], kept.shingles[rows]
        return [*pack_records(sequences, times, shingles, sketches, [b""] * len(rows))]

    def recorded(self, numbers: NDArray[np.int64], slots: int) -> Records:
        """Return the records of these documents in arrays, without ids; see `BucketReader`."""
        kept = self._documents
        found = Records.blank(len(numbers), slots)
        found.exist[:] = found.kept[:] = True
        return found._replace(
            sequences=numbers.astype(np.uint64),
            shingles=kept.shingles[numbers],
            sketches=kept.sketches[numbers],
        )

    def identified(self, ids: Iterable[bytes]) -> dict[bytes, list[int]]:  # noqa: ARG002 -- no ids
        """Return no documents; see `BucketReader`."""
        return {}

    def verdicts(self, numbers: Sequence[int]) -> dict[int, Verdict]:  # noqa: ARG002 -- none is kept
        """Return no verdicts; see `BucketReader`."""
        return {}

    def renewals(self, numbers: Sequence[int]) -> dict[int, Renewals]:  # noqa: ARG002 -- no window
        """Return no renewals; see `BucketReader`."""
        return {}

    def judge(
        self,
        keys: NDArray[np.uint64],
        sketches: NDArray[np.uint8],
        shingles: NDArray[np.uint32],
        blank: NDArray[np.bool_],
    ) -> dict[int, list[Match]]:
        """Add n documents in order, each as if it came alone.

        keys: uint64[columns, n]. sketches: uint8[n, slots]. shingles: uint32[n].
        blank: bool[n], the documents that have no fingerprint. They come to no bucket.

        Returns the matches of each document that has any, best first, by its row. The sequence
        numbers of matches are rows; they have no ids.
        """
        if len(blank) == 1 and not blank[0] and self._is_new(keys):
            self._insert_new(keys, sketches, shingles)
            return {}
        first = len(self._documents)
        rows = np.flatnonzero(~blank)
        batch = _batch(
            rows + first, range(len(keys)), keys[:, rows], sketches[rows], shingles[rows]
        )
        decision = decide(self, batch, self._rules)
        self._documents.append(keys, sketches, shingles)
        self._apply(decision, first)
        numbers = (rows + first).tolist()
        return {numbers[place]: found for place, found in decision.matches.items()}

    def _is_new(self, keys: NDArray[np.uint64]) -> bool:
        """Return whether none of a document's buckets exists. Its keys are uint64[columns, 1]."""
        return not len(self._table.find(np.arange(len(keys)), keys[:, 0]).places)

    def _insert_new(
        self,
        keys: NDArray[np.uint64],
        sketches: NDArray[np.uint8],
        shingles: NDArray[np.uint32],
    ) -> None:
        """Insert one document into its buckets, none of which exists.

        That is what `decide` would decide. For a single document it takes longer than all else.
        """
        rows = np.full(len(keys), len(self._documents))
        self._documents.append(keys, sketches, shingles)
        self._table.insert(np.arange(len(keys)), keys[:, 0], rows)

    def _apply(self, decision: Decision, first: int) -> None:
        """Apply a decision.

        first: the number that it gave to the first document that it inserted.
        """
        inserted = _sequences(decision.records)
        cells = decision.cells
        self._table.insert(
            cells.keys.columns.astype(np.int64),
            cells.keys.hashes,
            inserted[cells.documents - first],
        )
        rows = inserted.tolist()
        buckets = [
            [number if number < first else rows[number - first] for number in bucket]
            for bucket in decision.buckets.lists()
        ]
        changed = decision.changed
        self._table.put(changed.columns.astype(np.int64), changed.hashes, buckets)

    def remove(self, row: int, others: NDArray[np.int64]) -> None:
        """Remove a document that isn't blank: the buckets become as if it had never been added.

        Each bucket depends on the documents that have its key alone. So those are judged again
        in the buckets that the document was in.

        others: int64[m], the rows of all other documents that have a fingerprint, ascending.
        """
        keys = self._documents.keys
        for column in range(len(keys)):
            alike = others[keys[column, others] == keys[column, row]]
            self._refill(column, row, alike)

    def _refill(self, column: int, gone: int, rows: NDArray[np.int64]) -> None:
        """Make a bucket, and its finer ones, those of these documents.

        gone: a document that was in it.
        """
        key = self._documents.keys[column, gone : gone + 1]
        place = np.array([column])
        bucket = self._bucket(column, int(key[0]))
        finer = bucket[-1:] == [BEYOND]
        if not finer and gone not in bucket:
            return  # An entry stood for it.
        left = [row for row in bucket if row != gone]
        if left == rows.tolist():  # It stood for nothing.
            self._table.put(place, key, [left])
            return
        emptied = [key]
        if finer:
            sketches = self._documents.sketches[np.append(rows, gone)]
            columns = np.full(len(sketches), column, np.uint8)
            emptied += [
                finer_keys(columns, key.repeat(len(sketches)), level, sketches)
                for level in range(1, LEVELS + 1)
            ]
        hashes = without_repeats(np.concatenate(emptied))
        self._table.put(np.full(len(hashes), column), hashes, [[] for _ in hashes])
        kept, keys = self._documents, key.repeat(len(rows))[None]
        batch = _batch(rows, [column], keys, kept.sketches[rows], kept.shingles[rows])
        self._apply(decide(self, batch, self._rules), len(self._documents))

    def _bucket(self, column: int, key: int) -> Bucket:
        found = self._table.find(np.array([column]), np.array([key], np.uint64))
        return self._table.bucket(int(found.values[0])) if len(found.values) else []

    def matches(
        self,
        keys: NDArray[np.uint64],
        sketches: NDArray[np.uint8],
        shingles: NDArray[np.uint32],
    ) -> Matches:
        """Return what n queries match, and change nothing.

        keys: uint64[columns, n]. sketches: uint8[n, slots]. shingles: uint32[n].
        """
        pairs = self._met(keys)
        if not len(pairs.queries) and not pairs.full.any():
            return _NONE
        found = _best(self._similar(pairs, sketches, shingles), self._rules)
        full = np.flatnonzero(pairs.full)
        if not len(full):
            return found
        # `match` knows which entries of these they meet, and finds the finer buckets.
        columns, some = range(len(keys)), keys[:, full]
        others = match(self, columns, some, sketches[full], self._rules, sizes=shingles[full])
        each = [(full[place], one) for place, best in others.items() for one in best]
        joined = Matches(
            np.append(found.queries, np.array([query for query, _ in each], np.int64)),
            np.append(found.rows, np.array([one.sequence for _, one in each], np.int64)),
            np.append(found.similarity, np.array([one.similarity for _, one in each])),
            np.append(found.containment, np.array([one.containment or 0.0 for _, one in each])),
        )
        return _best(joined, self._rules)

    def _met(self, keys: NDArray[np.uint64]) -> _Pairs:
        """Return the documents in the buckets of each query, unless one of these is crowded."""
        columns, count = keys.shape
        found = self._table.find(np.repeat(np.arange(columns), count), keys.reshape(-1))
        queries, several = found.places % max(count, 1), found.values < 0
        packed = self._table.several(found.values[several])
        sizes = np.array([len(bucket) for bucket in packed], np.int64) // ENTRY.itemsize
        full = np.zeros(count, np.bool_)
        ends = np.array([bucket[-ENTRY.itemsize :] == _BEYOND for bucket in packed], np.bool_)
        full[queries[several][ends | (sizes >= self._rules.heads)]] = True
        entries = np.frombuffer(b"".join(packed), ENTRY)
        one = np.append(queries[~several], np.repeat(queries[several], sizes))
        other = np.append(found.values[~several], entries).astype(np.int64)
        plain = ~full[one]
        return _Pairs(one[plain], other[plain], full)

    def _similar(
        self, pairs: _Pairs, sketches: NDArray[np.uint8], shingles: NDArray[np.uint32]
    ) -> Matches:
        """Return the estimated similarity of each query to each document that it meets."""
        rows = max(len(self._documents), 1)
        met = without_repeats((pairs.queries * rows + pairs.rows).view(np.uint64))
        queries, others = np.divmod(met.view(np.int64), rows)
        similarity = np.empty(len(queries))
        for low in range(0, len(queries), _COMPARED):
            part = slice(low, low + _COMPARED)
            own = self._documents.sketches[others[part]]
            similarity[part] = pairwise_similarity(sketches[queries[part]], own)
        containment = np.zeros(len(queries))
        if self._rules.containment is not None:
            sizes, slots = self._documents.shingles[others], sketches.shape[1]
            containment = sufficient(similarity, shingles[queries], sizes, slots, self._rules)
        return Matches(queries, others, similarity, containment)


def _best(found: Matches, rules: BucketRules) -> Matches:
    """Return what matches by the rules, in its order, and as many for a query as they allow."""
    enough = (found.similarity >= rules.threshold) | (found.containment > 0.0)
    good = np.flatnonzero(enough)
    keys = found.rows[good], -found.similarity[good], found.queries[good]
    order = good[np.lexsort(keys)]
    queries = found.queries[order]
    first = order[np.arange(len(order)) - np.searchsorted(queries, queries) < rules.max_matches]
    return Matches(
        found.queries[first], found.rows[first], found.similarity[first], found.containment[first]
    )


def _batch(
    rows: NDArray[np.int64],
    columns: Sequence[int],
    keys: NDArray[np.uint64],
    sketches: NDArray[np.uint8],
    shingles: NDArray[np.uint32],
) -> DocumentBatch:
    """Return documents to judge, whose sequence numbers are rows; without ids and times."""
    count = len(rows)
    return DocumentBatch(
        sequences=rows.astype(np.uint64),
        times=np.zeros(count, np.int64),
        ids=[b""] * count,
        shingles=shingles,
        columns=columns,
        keys=keys,
        sketches=sketches,
    )


def _sequences(records: Sequence[bytes]) -> NDArray[np.int64]:
    """Return int64[n], the sequence numbers that records begin with."""
    return np.frombuffer(b"".join(record[:8] for record in records), "<i8").astype(np.int64)
