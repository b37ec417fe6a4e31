"""`Index`: finds near duplicates among texts in memory, by the rules of the filter on Kafka."""

from __future__ import annotations

from dataclasses import fields
from itertools import islice
from typing import TYPE_CHECKING, Literal, overload

import numpy as np

from lsh._core import MemoryIndex
from lsh.columns import documents_of, id_of, ids_of, is_integer, is_number, shown, text_of
from lsh.fingerprint import (
    Fingerprinter,
    Fingerprints,
    require_fingerprints,
    require_parameters,
    sizes_of,
)
from lsh.groups import ExactJaccard, candidate_pairs, groups_of, largest_bucket
from lsh.hits import Group, Hit, SimilarPair
from lsh.index import BucketRules
from lsh.kept_documents import UNKNOWN, KeptDocuments, SideIndexes, Sketched
from lsh.parameters import DERIVED, Parameters
from lsh.saved import Saved, named_damage, parameters_of, read, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from lsh.containment_index import Contained
    from lsh.groups import Similar
    from lsh.hits import Id
    from lsh.nearest_index import Neighbour
    from lsh.saved import FilePath


_BATCH = 8_192  # documents judged at a time
_ABSORB = 0.95
_MOST_BANDS = 255
_FEW_REMOVED = 1_000  # rows that are left in memory without a document


class Index:
    """Texts by their ids, in memory.

    It judges as `neardup dedupe` and the workers do: what `add` returns for a text is what
    they publish about it. So two of their rules hold here, too. A document that is all but
    identical to an earlier one (`absorb`) is in the index, but the earlier one stands for it
    in buckets. `add` and `query` name the earlier one alone; `pairs` and `groups` name both.
    And a bucket has at most `capacity` entries; later ones go to overflow buckets.

    Ids are str or int; anything else raises TypeError. To add an id that the index has raises
    ValueError: remove it first. A text of which nothing is left once it is normalised is
    blank. It is in the index, and matches nothing. A text shorter than a shingle matches
    only texts with the same normal form.

    An index isn't safe to use from several threads at a time. It can be pickled.

    >>> from lsh import Index
    >>> index = Index()
    >>> index.add("a", "The quick brown fox jumps over the lazy dog.")
    []
    >>> index.add("b", "The quick brown fox jumps over the lazy dog!")
    [Hit(id='a', similarity=0.9686274509803922)]
    >>> len(index), "b" in index
    (2, True)
    """

    def __init__(  # noqa: PLR0913 -- each is an option of the index
        self,
        parameters: Parameters | None = None,
        *,
        absorb: float | None = None,
        capacity: int = 32,
        max_matches: int = 64,
        keep_texts: bool = False,
        keep_sizes: bool = False,
    ) -> None:
        """Begin empty.

        parameters: how texts become fingerprints, with at most 255 bands; None: `Parameters()`.
        absorb: the least similarity at which an earlier document stands for a later one, from the
            threshold to 1; None: 0.95, or the threshold if that is higher.
        capacity: most entries in a bucket, at least 1.
        max_matches: most hits for a document, at least 1.
        keep_texts: whether to keep the texts, which `pairs` and `groups` need for exact
            similarities. Sizes are counted from them when they are needed.
        keep_sizes: whether to count the different shingles of each text as it is added, which
            `query` needs for containment. To add texts then takes one and a half times as long.

        Raises ValueError with one line that names the argument and what it takes.
        """
        self._parameters = require_parameters(Parameters() if parameters is None else parameters)
        for name, value in (("keep_texts", keep_texts), ("keep_sizes", keep_sizes)):
            if not isinstance(value, bool):
                raise TypeError(f"{name}: got {value!r}, takes True or False")
        self._rules = _rules(self._parameters, absorb, capacity, max_matches)
        self._fingerprinter = Fingerprinter(self._parameters)
        self._kept = KeptDocuments(self._fingerprinter, texts=keep_texts, sizes=keep_sizes)
        self.clear()

    @property
    def parameters(self) -> Parameters:
        """Return the parameters of the fingerprints."""
        return self._parameters

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._kept)

    def __contains__(self, ident: object) -> bool:
        """Return whether there is a document with this id."""
        return ident in self._kept

    def __iter__(self) -> Iterator[Id]:
        """Yield the ids in the order in which they were added."""
        return iter(self._kept)

    def __repr__(self) -> str:
        p = self._parameters
        return (
            f"<Index of {len(self):,} documents, threshold {p.threshold},"
            f" {p.bands} bands of {p.rows} rows>"
        )

    def add(self, ident: Id, text: str) -> list[Hit]:
        """Add a text, and return the earlier documents that it nearly repeats, best first.

        Raises ValueError if the index has the id, and TypeError if it is neither str nor int, or
        the text is none.
        """
        return self.add_many([(id_of(ident), text_of(text))]).get(ident, [])

    def add_many(self, documents: Iterable[tuple[Id, str]]) -> dict[Id, list[Hit]]:
        """Add texts in order, each as if by `add`, but many times faster.

        documents: pairs of an id and a text; may be a generator, which is read in batches.

        Returns the hits of each document that has any, by id.

        Raises ValueError if the index has an id, or an id comes twice, and TypeError if a row isn't
        an id and a text; the row is named. After any error, also of a generator, the index is as
        it was before.
        """
        found: dict[Id, list[Hit]] = {}
        before = len(self)
        remaining = documents_of(documents)
        try:
            while batch := list(islice(remaining, _BATCH)):
                ids, texts = [ident for ident, _ in batch], [text for _, text in batch]
                self._kept.require_new(ids)
                found |= self._insert(ids, self._fingerprints(texts), texts)
        except BaseException:
            self._keep_the_first(before)
            raise
        return found

    def add_fingerprint(self, ident: Id, fingerprints: Fingerprints) -> list[Hit]:
        """Add the fingerprint of one text; see `add_fingerprints`."""
        return self.add_fingerprints([ident], fingerprints).get(ident, [])

    def add_fingerprints(
        self,
        ids: Sequence[Id],
        fingerprints: Fingerprints,
        sizes: NDArray[np.int64] | None = None,
    ) -> dict[Id, list[Hit]]:
        """Add fingerprints that were made with the parameters of the index.

        ids: n ids. fingerprints: of n texts. No text is kept.
        sizes: int64[n], how many different shingles or tokens each has; `query` needs them for
            containment. See `Fingerprinter.sizes`; of sets, they are the `shingle_counts`.

        Returns the hits of each document that has any, by id.

        Raises ValueError, and adds nothing, if the index has an id, an id comes twice, or the
        fingerprints or sizes have another number, shape or type; TypeError for an id that is
        neither str nor int.
        """
        ids = ids_of(ids)
        require_fingerprints(fingerprints)
        self._check_shape(fingerprints, len(ids))
        sizes = None if sizes is None else sizes_of(sizes, len(ids))
        self._kept.require_new(ids)
        return self._insert(ids, fingerprints, [None] * len(ids), sizes)

    @overload
    def query(self, text: str) -> list[Hit]: ...
    @overload
    def query(
        self,
        text: str,
        *,
        containment: float,
        of: Literal["query", "document"] = "query",
        slack: float = 2.0,
    ) -> list[Contained]: ...
    def query(
        self,
        text: str,
        *,
        containment: float | None = None,
        of: Literal["query", "document"] = "query",
        slack: float = 2.0,
    ) -> list[Hit] | list[Contained]:
        """Return the documents that a text nearly repeats, best first, and add nothing.

        It returns what `add` would. So the text of a document in the index finds that document, or
        the one that stands for it.

        containment: if it is given, return instead the documents that hold so much of the text,
            or with of="document" are held by it to that share: in (0, 1]. The answer is that of a
            `ContainmentIndex` of all documents; its `query` says what `of` and `slack` mean. The
            first such query makes that index in some 5 µs a document, and some 10 µs more if
            sizes are to be counted from texts. It takes 13 bytes for each slot of a document,
            and follows this one from then on.

        Raises ValueError if `containment` is out of range, or if the index doesn't have the sizes
        of all documents.
        """
        if containment is None:
            return self.query_many([text_of(text)])[0]
        index = self._side.containment(self._counted)
        return index.query(text, containment, of=of, slack=slack)

    def nearest(
        self, text: str, k: int, *, recall: float = 0.98, least: float = 0.0
    ) -> list[Neighbour]:
        """Return the k documents that are most similar to a text, however similar, best first.

        Copies count: no document stands for another here. The answer is that of a `NearestIndex`
        of all documents; its `nearest` says what `recall` and `least` mean. The first such query
        makes that index in some 5 µs a document. It takes 13 bytes for each slot of a document,
        and follows this one from then on.
        """
        return self._side.nearest(self._sketched).nearest(text, k, recall=recall, least=least)

    def query_many(self, texts: Sequence[str]) -> list[list[Hit]]:
        """Return the hits of each of n texts; see `query`."""
        return self.query_fingerprints(self._fingerprints(texts))

    def query_fingerprints(self, fingerprints: Fingerprints) -> list[list[Hit]]:
        """Return the hits of each of n fingerprints; see `query`.

        Raises ValueError if the fingerprints have another shape than those of the index.
        """
        require_fingerprints(fingerprints)
        self._check_shape(fingerprints, len(fingerprints.blank))
        places = np.flatnonzero(~fingerprints.blank)
        hits: list[list[Hit]] = [[] for _ in fingerprints.blank]
        for low in range(0, len(places), _BATCH):
            part = places[low : low + _BATCH]
            queries, rows, similarity, containment = self._judged.matches(
                fingerprints.keys[part],
                fingerprints.sketches[part],
                fingerprints.shingle_counts[part],
            )
            for place, hit in self._hits(part[queries], rows, similarity, containment):
                hits[place].append(hit)
        return hits

    def is_duplicate(self, text: str) -> bool:
        """Return whether a text nearly repeats a document of the index."""
        return bool(self.query(text))

    def remove(self, ident: Id) -> None:
        """Remove a document: from then on the index is as if it had never been added.

        A document that it stood for takes its place. The time grows with the size of the index:
        milliseconds for 100,000 documents. To remove one that stands for many takes as long
        as to add these.

        Raises KeyError if the index doesn't have the id.
        """
        self._remove([ident])

    def _remove(self, idents: Sequence[Id]) -> None:
        rows = {ident: self._kept.remove(ident) for ident in idents}
        there = {ident: row for ident, row in rows.items() if not self._kept.is_blank(row)}
        if there:
            gone = np.array(list(there.values()), np.int64)
            self._judged.remove(gone, self._kept.fingerprinted())
        for ident in there:
            self._side.remove(ident)
        if self._kept.rows > _FEW_REMOVED + 2 * len(self._kept):
            self._rebuild()

    def remove_text(self, text: str) -> list[Id]:
        """Remove all documents whose normal form is that of a text, and return their ids.

        None has the normal form of a blank text, so nothing is removed for one.
        """
        prints = self._fingerprints([text_of(text)])
        if prints.blank[0]:
            return []
        alike = self._judged.with_key(self._parameters.bands, int(prints.keys[0, -1]))
        same = np.intersect1d(alike, self._kept.fingerprinted(), assume_unique=True)
        removed = [self._kept.named(row) for row in same.tolist()]
        self._remove(removed)
        return removed

    def clear(self) -> None:
        """Remove all documents."""
        self._judged = MemoryIndex(self._rules, self._parameters.bands + 1, self._parameters.slots)
        self._kept = self._kept.emptied()
        self._side = SideIndexes(self._parameters)

    def pairs(
        self,
        min_similarity: float | None = None,
        *,
        exact: bool = False,
        bucket_limit: int = 1_000,
    ) -> Iterator[SimilarPair]:
        """Yield all pairs of documents that share a bucket and are similar enough, in no order.

        This is every pair that `add` would have compared if buckets were unlimited and no document
        stood for another. k documents in one bucket are k (k - 1) / 2 pairs. `groups` does
        without these.

        min_similarity: the least similarity of a pair, in [0, 1]; None: the threshold.
        exact: whether similarities are exact Jaccard similarities of the shingles, rather than
            estimates from sketches. This reads the texts again.
        bucket_limit: the most documents in one bucket.

        Raises ValueError, before the first pair, if a bucket has more documents than that, if
        `min_similarity` is out of range, or if `exact` needs texts that the index doesn't have.
        """
        least = self._least(min_similarity)
        rows, keys = self._kept.fingerprinted(), self._keys()
        largest = largest_bucket(keys, rows)
        if largest > bucket_limit:
            raise ValueError(
                f"bucket_limit: got {bucket_limit}, but {largest:,} documents share a bucket, which"
                f" makes {largest * (largest - 1) // 2:,} pairs; groups() doesn't list them"
            )
        return self._pairs(keys, rows, least, self._similar(rows, exact=exact))

    def groups(self, min_similarity: float | None = None, *, exact: bool = False) -> list[Group]:
        """Return the groups of two and more documents, the largest first, of equals the earliest.

        A group is a connected component: each member is similar to another one, not to each. Copies
        of a text cost nothing. In a large bucket, documents of different groups are
        compared with each other, which is quadratic in their number.

        min_similarity: the least similarity that connects two documents that share a bucket, in
            [0, 1]; None: the threshold.
        exact: whether similarities are exact, as in `pairs`, rather than estimates. Documents are
            then connected if and only if `pairs` would connect them.

        Raises ValueError if `min_similarity` is out of range, or if `exact` needs texts that the
        index doesn't have.
        """
        least = self._least(min_similarity)
        rows = self._kept.fingerprinted()
        labels = groups_of(self._keys(), self._similar(rows, exact=exact), rows, least)[rows]
        order = np.argsort(labels, kind="stable")
        cuts = np.flatnonzero(np.diff(labels[order])) + 1
        groups = [part for part in np.split(rows[order], cuts) if len(part) > 1]
        groups.sort(key=len, reverse=True)
        named = [tuple(map(self._kept.named, part.tolist())) for part in groups]
        return [Group(members[0], members) for members in named]

    def merge(self, other: Index) -> dict[Id, list[Hit]]:
        """Add the documents of another index, in their order, after those of this one.

        Returns the hits of each document that has any, by id.

        Raises ValueError, and adds nothing, if the other one has other parameters (the difference
        is named), has an id that this one has, or lacks texts or sizes that this one keeps.
        """
        if not isinstance(other, Index):
            raise TypeError(f"other: got {shown(other)}, takes an Index")
        _require_same(self._parameters, other.parameters)
        for ident in other:
            if ident in self:
                raise ValueError(f"id {ident!r}: both indexes have it")
        saved = other._saved()
        if self._kept.keep_texts and (saved.texts is None or None in saved.texts):
            raise ValueError("keep_texts: this index keeps texts, and the other one lacks some")
        if self._kept.keep_sizes and not saved.countable():
            raise ValueError("keep_sizes: this index keeps sizes, and the other one lacks some")
        return self._restore(saved)

    def save(self, path: FilePath) -> None:
        """Write the index to a file, in numpy's .npz format. The seed isn't in it.

        Until the file is complete, one of that name stays as it was.

        Raises OSError if it can't be written.
        """
        write(path, self._saved())

    @classmethod
    def load(cls, path: FilePath, parameters: Parameters | None = None) -> Index:
        """Return the index that was saved to a file.

        It judges its documents again, which takes as long as adding their fingerprints.

        parameters: what the index must have been made with; None: whatever that is, but with the
            public default seed and without a list of boilerplate, as these aren't in the file.

        Raises OSError if the file can't be opened, and ValueError with one line if it isn't a
        saved index, has another version of the format, is damaged, or has other parameters.
        """
        saved = read(path)
        found = parameters_of(path, saved.header, parameters)
        with named_damage(path):
            return cls._made_of(saved, found)

    def __reduce__(self) -> tuple[Callable[..., Index], tuple[Saved, Parameters]]:
        """Return how to make it anew, for pickle: as `load` does, from what `save` writes.

        With the parameters, a pickle holds the seed and the list of boilerplate.
        """
        return self._made_of, (self._saved(), self._parameters)

    @classmethod
    def _made_of(cls, saved: Saved, parameters: Parameters) -> Index:
        keep_sizes = bool(saved.header.get("keep_sizes"))
        keeps = {"keep_texts": saved.texts is not None, "keep_sizes": keep_sizes}
        index = cls(parameters, **keeps, **saved.header["rules"])
        index._check_shape(saved.fingerprints(), len(saved.ids))
        index._restore(saved)
        return index

    def _fingerprints(self, texts: Sequence[str]) -> Fingerprints:
        return self._fingerprinter.fingerprint(texts)

    def _check_shape(self, fingerprints: Fingerprints, count: int) -> None:
        columns, slots = self._parameters.bands + 1, self._parameters.slots
        shapes = [part.shape for part in (fingerprints.keys, fingerprints.sketches)]
        expected = [(count, columns), (count, slots)]
        if shapes != expected:
            raise ValueError(f"fingerprints: got arrays of {shapes}, takes {expected}")
        for name, kind in (("keys", "uint64"), ("sketches", "uint8")):
            if (found := getattr(fingerprints, name).dtype) != kind:
                raise ValueError(f"fingerprints: got {name} of {found}, takes {kind}")
        for name, kind in (("shingle_counts", "uint32"), ("blank", "bool")):
            part = getattr(fingerprints, name)
            if (part.dtype, part.shape) != (kind, (count,)):
                found = f"{part.dtype}{list(part.shape)}"
                raise ValueError(f"fingerprints: got {name} of {found}, takes {kind}[{count}]")

    def _insert(
        self,
        ids: Sequence[Id],
        fingerprints: Fingerprints,
        texts: Sequence[str | None],
        sizes: NDArray[np.int64] | None = None,
    ) -> dict[Id, list[Hit]]:
        """Add documents that were checked, and return the hits of each that has any."""
        hits: dict[Id, list[Hit]] = {}
        sizes = np.full(len(ids), UNKNOWN) if sizes is None else sizes
        for low in range(0, len(ids), _BATCH):
            part = slice(low, low + _BATCH)
            blank = fingerprints.blank[part]
            found = self._judged.judge(
                fingerprints.keys[part],
                fingerprints.sketches[part],
                fingerprints.shingle_counts[part],
                blank,
            )
            own = self._kept.add(
                ids[part], texts[part], blank, sizes[part], count=self._side.need_sizes
            )
            there = np.flatnonzero(~blank)
            added = [ids[low + place] for place in there.tolist()]
            self._side.add(Sketched(added, fingerprints.sketches[part][there], own[there]))
            for row, hit in self._hits(*found):
                hits.setdefault(self._kept.named(row), []).append(hit)
        return hits

    def _hits(
        self,
        documents: NDArray[np.int64],
        rows: NDArray[np.int64],
        similarity: NDArray[np.float64],
        containment: NDArray[np.float64],
    ) -> Iterator[tuple[int, Hit]]:
        """Yield documents, as they are given, with their hits."""
        named = self._kept.named
        parts = (part.tolist() for part in (documents, rows, similarity, containment))
        for document, row, alike, share in zip(*parts, strict=True):
            yield document, Hit(named(row), alike, share or None)

    def _keys(self) -> NDArray[np.uint64]:
        """Return all keys of all rows: uint64[columns, n]."""
        return self._judged.keys(np.arange(len(self._judged)))

    def _least(self, min_similarity: float | None) -> float:
        """Return the least similarity of what is asked for. Raises ValueError if it can't be."""
        least = self._parameters.threshold if min_similarity is None else min_similarity
        if not is_number(least) or not 0 <= least <= 1:
            raise ValueError(f"min_similarity: got {least!r}, takes a number from 0 to 1")
        return least

    def _similar(self, rows: NDArray[np.int64], *, exact: bool) -> Similar:
        """Return what tells the similarities of these rows. Raises ValueError if texts lack."""
        if exact:
            if not self._kept.have_texts(rows):
                raise ValueError(
                    "exact: the index doesn't have all texts; Index(keep_texts=True) does"
                )
            return ExactJaccard(self._kept.shingles)
        return self._judged.similarity

    def _pairs(
        self,
        keys: NDArray[np.uint64],
        rows: NDArray[np.int64],
        least: float,
        similar: Similar,
    ) -> Iterator[SimilarPair]:
        for left, right in candidate_pairs(keys, rows):
            similarity = similar(left, right)
            good = np.flatnonzero(similarity >= least)
            columns = left[good].tolist(), right[good].tolist(), similarity[good].tolist()
            for one, other, alike in zip(*columns, strict=True):
                yield SimilarPair(self._kept.named(one), self._kept.named(other), alike)

    def _sketched(self) -> Sketched:
        """Return all documents, for an index beside this one."""
        kept, rows = self._kept, self._kept.fingerprinted()
        ids = [kept.named(row) for row in rows.tolist()]
        return Sketched(ids, self._judged.sketches(rows), kept.sizes(rows))

    def _counted(self) -> Sketched:
        """Return all documents, with their sizes. Raises ValueError if some can't be counted."""
        if not self._kept.count_sizes(self._kept.fingerprinted()):
            raise ValueError(
                "containment: the index doesn't have the sizes of all documents;"
                " Index(keep_sizes=True) does, and Index(keep_texts=True)"
            )
        return self._sketched()

    def _keep_the_first(self, count: int) -> None:
        """Make the index what it was with the first of its documents alone."""
        if len(self) > count:
            saved = self._saved().first(count)
            self.clear()
            self._restore(saved)

    def _rebuild(self) -> None:
        """Give back the memory of the documents that were removed."""
        saved, side = self._saved(), self._side
        self.clear()
        self._restore(saved)
        self._side = side  # It goes by ids.

    def _restore(self, saved: Saved) -> dict[Id, list[Hit]]:
        texts = [None] * len(saved.ids) if saved.texts is None else saved.texts
        return self._insert(saved.ids, saved.fingerprints(), texts, saved.sizes)

    def _saved(self) -> Saved:
        documents, judged = self._kept, self._judged
        rows = np.array(documents.all_rows(), np.int64)
        rules = self._rules
        return Saved(
            header={
                "parameters": self._parameters.describe(),
                "rules": {
                    "absorb": rules.absorb,
                    "capacity": rules.capacity,
                    "max_matches": rules.max_matches,
                },
                "keep_sizes": documents.keep_sizes,
            },
            ids=list(documents),
            texts=documents.texts(),
            keys=judged.keys(rows),
            sketches=judged.sketches(rows),
            shingles=judged.shingles(rows),
            blank=np.array([documents.is_blank(row) for row in rows.tolist()], np.bool_),
            sizes=documents.sizes(rows),
        )


def _rules(
    parameters: Parameters, absorb: float | None, capacity: int, max_matches: int
) -> BucketRules:
    """Return the rules of an index. Raises ValueError if an argument is out of range."""
    least = parameters.threshold
    if parameters.bands > _MOST_BANDS:
        raise ValueError(f"bands: got {parameters.bands}, an index takes at most {_MOST_BANDS}")
    absorb = max(_ABSORB, least) if absorb is None else absorb
    if not is_number(absorb) or not least <= absorb <= 1:
        raise ValueError(
            f"absorb: got {absorb!r}, takes a number from the threshold, {least}, to 1"
        )
    for name, value in (("capacity", capacity), ("max_matches", max_matches)):
        if not is_integer(value) or value < 1:
            raise ValueError(f"{name}: got {value!r}, takes an integer from 1")
    return BucketRules(
        least, float(absorb), int(capacity), int(max_matches), containment=parameters.containment
    )


def _require_same(ours: Parameters, theirs: Parameters) -> None:
    """Check that two indexes have equal parameters. The message doesn't repeat a seed."""
    for field in sorted(fields(Parameters), key=lambda field: field.name in DERIVED):
        one, other = getattr(ours, field.name), getattr(theirs, field.name)
        if one != other:
            if field.name in {"seed", "boilerplate"}:
                raise ValueError(f"{field.name}: the two indexes have different ones")
            raise ValueError(f"{field.name}: this index has {one!r}, the other one has {other!r}")
