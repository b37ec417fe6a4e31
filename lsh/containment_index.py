"""An index for containment: which documents hold a text, or are held by it, for the most part.

A short text and a long document that contains it have a small Jaccard similarity, which depends
on their sizes. So documents are divided by size. Within a partition, the least similarity that a
containment implies follows from the sizes at its edge, and with it the length of the runs of
slots by which documents are found (`lsh.forest`). Partitions are geometric, two for each
doubling: they never have to be divided again as the index grows.

Source: Zhu, Nargesian, Pu, Miller, "LSH Ensemble: Internet-scale domain search", VLDB 2016.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from lsh.columns import documents_of, is_id, is_number, text_of
from lsh.containment import containment, containment_error, jaccard_of_containment
from lsh.fingerprint import Fingerprinter, Sized, sized_sets, sizes_of
from lsh.forest import Forest, run_for
from lsh.hits import Id
from lsh.nearest_index import unknown_ids
from lsh.saved import named_damage, parameters_of, read_arrays, write_arrays
from lsh.sketch import require_sketches, require_starts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.parameters import Parameters
    from lsh.saved import FilePath
    from lsh.shingles import Shingles


_FORMAT: Final = "neardup containment index"

_PARTITIONS = 2  # for each doubling of the size
_SLACK = 1e-6  # a product in floating point may be a little off the integer that it is


class Contained(NamedTuple):
    """A document that a query found.

    containment: the estimate, in [0, 1]. error: its standard error; 0 if the index is exact.
    """

    id: Id
    containment: float
    error: float


class _Partition:
    """Documents of similar sizes. Their rows are those of the forest."""

    def __init__(self, slots: int) -> None:
        self._sizes = np.empty(16, dtype=np.int64)
        self.forest = Forest(slots)
        self.ids: list[Id] = []
        self.sets: list[NDArray[np.uint64]] = []  # none unless the index is exact

    def add(self, ids: list[Id], sets: Sized, hashes: Iterable[NDArray[np.uint64]]) -> None:
        first = len(self.ids)
        self.forest.add(sets.sketches)
        self.ids += ids
        self.sets += hashes
        if len(self.ids) > len(self._sizes):
            self._sizes = np.resize(self._sizes, 2 * len(self.ids))
        self._sizes[first : len(self.ids)] = sets.sizes

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Return the sizes of all rows. What was removed still has one."""
        return self._sizes[: len(self.ids)]

    def compacted(self) -> _Partition:
        """Return a partition of the documents that weren't removed, in their order."""
        rows = self.forest.rows
        partition = _Partition(self.forest.sketches.shape[1])
        partition.add(
            [self.ids[row] for row in rows.tolist()],
            Sized(self.forest.sketches[rows], self.sizes[rows]),
            [self.sets[row] for row in rows.tolist()] if self.sets else [],
        )
        return partition


class _Rows(NamedTuple):
    """Documents of a partition, int64[m], their containments and errors, float64[m]."""

    rows: NDArray[np.int64]
    shares: NDArray[np.float64]
    errors: NDArray[np.float64]


class _Query(NamedTuple):
    """A query. hashes: of the set, if they are known, ascending and each once."""

    sketch: NDArray[np.uint8]
    size: int
    hashes: NDArray[np.uint64] | None
    containment: float
    of: Literal["query", "document"]
    slack: float


class ContainmentIndex:
    """Documents in memory, to be queried for containment.

    Ids are str or int. The index can be pickled; see `Fingerprinter`.
    """

    def __init__(
        self, parameters: Parameters, *, recall: float = 0.98, exact: bool = False
    ) -> None:
        """Begin without documents.

        parameters: of the fingerprints. Bands, rows and threshold play no part.
        recall: the least probability that a document exactly at the containment asked for is
            compared. An estimate decides then, so see `query` for what is found.
        exact: keep the shingles of documents, 8 bytes each. What an estimate lets through is
            then compared in full, so that all that is returned reaches the containment.
        """
        if not is_number(recall) or not 0 < recall <= 1:
            raise ValueError(f"recall: got {recall!r}, takes a number in (0, 1]")
        self._fingerprinter = Fingerprinter(parameters)
        self._recall = recall
        self._exact = exact
        self._partitions: dict[int, _Partition] = {}
        self._ids: dict[Id, tuple[int, int] | None] = {}  # partitions and rows; None: blank

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, id: object) -> bool:  # noqa: A002 -- what it is
        return is_id(id) and id in self._ids

    def add(self, id: Id, text: str) -> None:  # noqa: A002 -- what it is
        """Add one document. Many at once are much faster: see `add_many`."""
        self.add_many([(id, text)])

    def add_many(self, documents: Iterable[tuple[Id, str]]) -> None:
        """Add documents: ids and texts. A blank text is in the index, but is never found.

        Raises ValueError, and adds nothing, if an id is known already or occurs twice, and
        TypeError if a row isn't an id and a text.
        """
        listed = list(documents_of(documents))
        shingles = self._fingerprinter.shingles([text for _, text in listed])
        self.add_shingles([id_ for id_, _ in listed], shingles)

    def add_shingles(self, ids: Iterable[Id], shingles: Shingles) -> None:
        """Add n sets by the hashes of their elements, such as `lsh.tokens.token_hashes` returns.

        Raises ValueError as `add_many` does, and if there are not as many ids.
        """
        require_starts(shingles.hashes, shingles.starts)
        sets = shingles.distinct()
        hashes = np.split(sets.hashes, sets.starts[1:-1]) if self._exact else []
        self._add(ids, sized_sets(sets, self._fingerprinter.parameters.slots), hashes)

    def add_sketches(
        self, ids: Iterable[Id], sketches: NDArray[np.uint8], sizes: NDArray[np.int64]
    ) -> None:
        """Add n sets of anything, by their sketches.

        sketches: uint8[n, slots]. sizes: int64[n], the number of elements of each set. An empty
            set is never found. See `lsh.tokens`, whose `shingle_counts` are sizes.

        Raises ValueError as `add_shingles` does, if the arrays have another type or shape, and if
        the index is exact: it needs shingles.
        """
        self._need_no_hashes()
        require_sketches(sketches, self._fingerprinter.parameters.slots)
        self._add(ids, Sized(sketches, sizes_of(sizes, len(sketches))), [])

    def _need_no_hashes(self) -> None:
        if self._exact:
            raise ValueError("exact: got sketches, takes texts or shingles")

    def _add(self, ids: Iterable[Id], sets: Sized, hashes: Sequence[NDArray[np.uint64]]) -> None:
        known = unknown_ids(ids, len(sets.sizes), self._ids)
        self._ids.update(dict.fromkeys(known))
        numbers = np.floor(_PARTITIONS * np.log2(np.maximum(sets.sizes, 1))).astype(np.int64)
        numbers[sets.sizes == 0] = -1
        for number in np.unique(numbers[sets.sizes > 0]).tolist():
            rows = np.flatnonzero(numbers == number)
            partition = self._partitions.get(number)
            if partition is None:
                partition = self._partitions[number] = _Partition(sets.sketches.shape[1])
            first = len(partition.ids)
            partition.add(
                [known[row] for row in rows.tolist()],
                Sized(sets.sketches[rows], sets.sizes[rows]),
                [hashes[row] for row in rows.tolist()] if hashes else [],
            )
            self._place(number, first)

    def _place(self, number: int, first: int) -> None:
        """Note where the documents of a partition are, from a row on."""
        for row, ident in enumerate(self._partitions[number].ids[first:], first):
            self._ids[ident] = number, row

    def remove(self, id: Id) -> None:  # noqa: A002 -- what it is
        """Remove one document. Raises KeyError if the index doesn't have the id."""
        place = self._ids.pop(id)
        if place is None:
            return
        number, row = place
        partition = self._partitions[number]
        partition.forest.remove(row)
        if not len(partition.forest):
            del self._partitions[number]
        elif partition.forest.sparse:
            self._partitions[number] = partition.compacted()
            self._place(number, 0)

    def query(
        self,
        text: str,
        containment: float = 0.9,
        *,
        of: Literal["query", "document"] = "query",
        slack: float = 2.0,
    ) -> list[Contained]:
        """Return the documents with a containment that may reach `containment`, best first.

        containment: the least containment, in (0, 1].
        of: whose containment. "query": how much of the text is in a document, as with a quote
            that is looked for. "document": how much of a document is in the text, as with a
            reply that quotes mails.
        slack: documents are returned whose estimate is at least `containment` minus this many
            standard errors. With 2, one in 40 of those exactly at `containment` is estimated too
            low. With 0, it is every other one. The more slack, the more must be looked at.

        Equal estimates are in the order of their sizes, then in that of their insertion. A
        blank text finds nothing.

        Raises ValueError if `containment` is out of range.
        """
        shingles = self._fingerprinter.shingles([text_of(text)])
        return self.query_shingles(shingles, containment, of=of, slack=slack)

    def query_shingles(
        self,
        shingles: Shingles,
        containment: float = 0.9,
        *,
        of: Literal["query", "document"] = "query",
        slack: float = 2.0,
    ) -> list[Contained]:
        """Return what `query` returns, for one set by the hashes of its elements."""
        one = shingles.distinct()
        sets = sized_sets(one, self._fingerprinter.parameters.slots)
        size = int(sets.sizes[0]) if len(sets.sizes) == 1 else -1
        if size < 0:
            raise ValueError(f"shingles: got those of {len(sets.sizes)} sets, takes those of one")
        if not size:
            return []
        return self._found(_Query(sets.sketches[0], size, one.hashes, containment, of, slack))

    def query_sketch(
        self,
        sketch: NDArray[np.uint8],
        size: int,
        containment: float = 0.9,
        *,
        of: Literal["query", "document"] = "query",
        slack: float = 2.0,
    ) -> list[Contained]:
        """Return what `query` returns, for a set of anything by its sketch and its size.

        sketch: uint8[slots]. size: the number of elements, at least 1.

        Raises ValueError if `containment` or `size` is out of range, or if the index is exact.
        """
        self._need_no_hashes()
        require_sketches(sketch[None], self._fingerprinter.parameters.slots)
        if size < 1:
            message = f"size: got {size!r}, takes an integer of at least 1"
            raise ValueError(message)
        return self._found(_Query(sketch, size, None, containment, of, slack))

    def save(self, path: FilePath) -> None:
        """Write the index to a file, in numpy's .npz format. The seed isn't in it.

        Until the file is complete, one of that name stays as it was.

        Raises OSError if it can't be written.
        """
        slots = self._fingerprinter.parameters.slots
        sketches = np.zeros((len(self._ids), slots), np.uint8)
        sizes = np.zeros(len(self._ids), np.int64)
        hashes: list[NDArray[np.uint64]] = []
        for at, place in enumerate(self._ids.values()):
            if place is not None:
                partition, row = self._partitions[place[0]], place[1]
                sketches[at], sizes[at] = partition.forest.sketches[row], partition.sizes[row]
                hashes += partition.sets[row : row + 1]
        header = {
            "parameters": self._fingerprinter.parameters.describe(),
            "recall": self._recall,
            "exact": self._exact,
        }
        together = np.concatenate(hashes) if hashes else np.empty(0, np.uint64)
        arrays: dict[str, NDArray[Any]] = {"sketches": sketches, "sizes": sizes, "hashes": together}
        write_arrays(path, _FORMAT, header, self._ids, arrays)

    @classmethod
    def load(cls, path: FilePath, parameters: Parameters | None = None) -> ContainmentIndex:
        """Return the index that was saved to a file.

        parameters: what it must have been made with; None: whatever that is, but with the public
            default seed and without a list of boilerplate, as these aren't in the file.

        Raises OSError if the file can't be opened, and ValueError with one line if it isn't such
        a file, has another version of the format, is damaged, or has other parameters.
        """
        kinds = {"sketches": "|u1", "sizes": "<i8", "hashes": "<u8"}
        header, ids, arrays = read_arrays(path, _FORMAT, kinds)
        found = parameters_of(path, header, parameters)
        with named_damage(path):
            index = cls(found, recall=header["recall"], exact=header["exact"])
            require_sketches(arrays["sketches"], found.slots)
            sets = Sized(arrays["sketches"], sizes_of(arrays["sizes"], len(ids)))
            starts = np.append(0, np.cumsum(sets.sizes if index._exact else 0 * sets.sizes))
            require_starts(arrays["hashes"], starts)
            hashes = np.split(arrays["hashes"], starts[1:-1]) if index._exact else []
            index._add(ids, sets, hashes)
        return index

    def _found(self, query: _Query) -> list[Contained]:
        if not is_number(query.containment) or not 0 < query.containment <= 1:
            message = f"containment: got {query.containment!r}, takes a number in (0, 1]"
            raise ValueError(message)
        if query.of not in {"query", "document"}:
            raise ValueError(f"of: got {query.of!r}, takes 'query' or 'document'")
        if not is_number(query.slack) or not query.slack >= 0:
            raise ValueError(f"slack: got {query.slack!r}, takes a number of at least 0")
        found: list[Contained] = []
        for number in sorted(self._partitions):
            partition = self._partitions[number]
            rows = _estimated(partition, self._candidates(partition, query), query)
            if query.hashes is not None and self._exact:
                rows = _compared(partition, rows, query.hashes, query)
            columns = (column.tolist() for column in rows)
            found += [
                Contained(partition.ids[row], share, error)
                for row, share, error in zip(*columns, strict=True)
            ]
        return sorted(found, key=lambda one: -one.containment)

    def _candidates(self, partition: _Partition, query: _Query) -> NDArray[np.int64]:
        """Return the rows of a partition that may reach the containment."""
        sizes, wanted = partition.sizes, query.containment
        kept = sizes[partition.forest.rows]
        if query.of == "query":
            able = sizes >= wanted * query.size - _SLACK
            ratio = kept.max() / query.size
        else:
            able = wanted * sizes <= query.size + _SLACK
            ratio = query.size / kept.min()
        if not able.any():
            return np.empty(0, dtype=np.int64)
        # For a given containment, the similarity is the less, the larger the ratio.
        least = float(jaccard_of_containment(wanted, max(ratio, wanted)))
        run = run_for(least, len(query.sketch), self._recall)
        rows = partition.forest.meeting(query.sketch, run)
        return rows[able[rows]]


def _estimated(partition: _Partition, rows: NDArray[np.int64], query: _Query) -> _Rows:
    """Return those candidates whose estimates are high enough."""
    sizes, slots = partition.sizes[rows], len(query.sketch)
    found = containment(query.sketch, query.size, partition.forest.sketches[rows], sizes)
    ratio = sizes / np.float64(query.size)
    if query.of == "document":
        # The intersection is the same: a share of the other set.
        found, ratio = np.minimum(found / ratio, 1.0), 1.0 / ratio
    least = query.containment - query.slack * containment_error(query.containment, ratio, slots)
    enough = found >= least
    return _Rows(rows[enough], found[enough], containment_error(found, ratio, slots)[enough])


def _compared(
    partition: _Partition, found: _Rows, hashes: NDArray[np.uint64], query: _Query
) -> _Rows:
    """Return those whose containment, counted in full, is high enough."""
    sets = (partition.sets[row] for row in found.rows.tolist())
    common = np.array([_common(hashes, one) for one in sets], dtype=np.int64)
    wholes = partition.sizes[found.rows] if query.of == "document" else query.size
    share = common / np.float64(wholes)
    enough = share >= query.containment
    return _Rows(found.rows[enough], share[enough], np.zeros(int(enough.sum())))


def _common(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> int:
    """Return how many hashes two ascending arrays have in common."""
    if len(b) < len(a):
        a, b = b, a
    places = np.minimum(np.searchsorted(b, a), len(b) - 1)
    return int((b[places] == a).sum())
