"""An index for the most similar documents, however similar they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from lsh.columns import documents_of, ids_of, is_id, text_of
from lsh.fingerprint import Fingerprinter
from lsh.forest import Forest
from lsh.hits import Id
from lsh.saved import named_damage, parameters_of, read_arrays, write_arrays
from lsh.sketch import require_sketches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.parameters import Parameters
    from lsh.saved import FilePath


_FORMAT: Final = "neardup nearest index"


class Neighbour(NamedTuple):
    """A document, and its estimated Jaccard similarity."""

    id: Id
    similarity: float


class NearestIndex:
    """Documents in memory, ranked by their similarity to a text.

    Ids are str or int. The index can be pickled; see `Fingerprinter`.
    """

    def __init__(self, parameters: Parameters) -> None:
        """Begin without documents.

        parameters: of the fingerprints. Bands, rows and threshold play no part.
        """
        self._fingerprinter = Fingerprinter(parameters)
        self._forest = Forest(parameters.slots)
        self._ids: list[Id] = []  # of the forest's rows
        self._known: dict[Id, int | None] = {}  # rows; None for what is blank

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, id: object) -> bool:  # noqa: A002 -- what it is
        return is_id(id) and id in self._known

    def add(self, id: Id, text: str) -> None:  # noqa: A002 -- what it is
        """Add one document. Many at once are much faster: see `add_many`."""
        self.add_many([(id, text)])

    def add_many(self, documents: Iterable[tuple[Id, str]]) -> None:
        """Add documents: ids and texts. A blank text is in the index, and is like no other.

        Raises ValueError, and adds nothing, if an id is known already or occurs twice, and
        TypeError if a row isn't an id and a text.
        """
        listed = list(documents_of(documents))
        prints = self._fingerprinter.fingerprint([text for _, text in listed])
        self.add_sketches([id_ for id_, _ in listed], prints.sketches, prints.blank)

    def add_sketches(
        self,
        ids: Iterable[Id],
        sketches: NDArray[np.uint8],
        blank: NDArray[np.bool_] | None = None,
    ) -> None:
        """Add n sets of anything, by their sketches.

        sketches: uint8[n, slots]. blank: bool[n], which ones are of nothing; None means none.

        Raises ValueError as `add_many` does, and if there are not as many ids, or the arrays have
        another type or shape.
        """
        slots = self._fingerprinter.parameters.slots
        require_sketches(sketches, slots)
        if blank is not None and (blank.dtype != np.bool_ or blank.shape != sketches.shape[:1]):
            raise ValueError(f"blank: takes bool[{len(sketches)}]")
        known = unknown_ids(ids, len(sketches), self._known)
        self._known.update(dict.fromkeys(known))
        if blank is not None:
            known = [id_ for id_, nothing in zip(known, blank.tolist(), strict=True) if not nothing]
            sketches = sketches[~blank]
        self._known.update({ident: row for row, ident in enumerate(known, len(self._ids))})
        self._forest.add(sketches)
        self._ids += known

    def remove(self, id: Id) -> None:  # noqa: A002 -- what it is
        """Remove one document. Raises KeyError if the index doesn't have the id."""
        row = self._known.pop(id)
        if row is None:
            return
        self._forest.remove(row)
        if self._forest.sparse:
            self._ids = [self._ids[kept] for kept in self._forest.rows.tolist()]
            self._known.update({ident: place for place, ident in enumerate(self._ids)})
            self._forest = self._forest.compacted()

    def nearest(
        self, text: str, k: int, *, recall: float = 0.98, least: float = 0.0
    ) -> list[Neighbour]:
        """Return the k documents that are most similar to a text, best first.

        recall: the least probability that a document as similar as the k-th is compared. At
            1.0, the text is compared with all documents.
        least: what is less similar isn't looked for, and isn't returned. If there are fewer
            than k such documents, 0.2 saves comparing all.

        Equally similar documents are in the order in which they were added. A blank text has
        no neighbour.
        """
        prints = self._fingerprinter.fingerprint([text_of(text)])
        if prints.blank[0]:
            return []
        return self.nearest_sketch(prints.sketches[0], k, recall=recall, least=least)

    def nearest_sketch(
        self, sketch: NDArray[np.uint8], k: int, *, recall: float = 0.98, least: float = 0.0
    ) -> list[Neighbour]:
        """Return what `nearest` returns, for a set of anything by its sketch, uint8[slots]."""
        found = self._forest.nearest(sketch, k, recall=recall, least=least)
        pairs = zip(found.rows.tolist(), found.similarity.tolist(), strict=True)
        return [Neighbour(self._ids[row], similarity) for row, similarity in pairs]

    def save(self, path: FilePath) -> None:
        """Write the index to a file, in numpy's .npz format. The seed isn't in it.

        Until the file is complete, one of that name stays as it was.

        Raises OSError if it can't be written.
        """
        rows = [row for row in self._known.values() if row is not None]
        blank = np.array([row is None for row in self._known.values()], np.bool_)
        header = {"parameters": self._fingerprinter.parameters.describe()}
        arrays = {"sketches": self._forest.sketches[rows], "blank": blank}
        write_arrays(path, _FORMAT, header, self._known, arrays)

    @classmethod
    def load(cls, path: FilePath, parameters: Parameters | None = None) -> NearestIndex:
        """Return the index that was saved to a file.

        parameters: what it must have been made with; None: whatever that is, but with the public
            default seed and without a list of boilerplate, as these aren't in the file.

        Raises OSError if the file can't be opened, and ValueError with one line if it isn't such
        a file, has another version of the format, is damaged, or has other parameters.
        """
        header, ids, arrays = read_arrays(path, _FORMAT, {"sketches": "|u1", "blank": "|b1"})
        index = cls(parameters_of(path, header, parameters))
        with named_damage(path):
            blank = arrays["blank"]
            known = [ident for ident, nothing in zip(ids, blank, strict=True) if not nothing]
            index.add_sketches(known, arrays["sketches"])
            index._known = {
                ident: index._known.get(ident) for ident in unknown_ids(ids, len(ids), ())
            }
        return index


def unknown_ids(ids: Iterable[Id], count: int, known: Collection[Id]) -> list[Id]:
    """Return `count` ids, after a look at them.

    Raises ValueError if there are more or fewer, or if one is known or occurs twice, and
    TypeError for an id that is neither str nor int.
    """
    listed = ids_of(ids)
    if len(listed) != count:
        message = f"ids: got {len(listed)}, takes as many as there are sets, {count}"
        raise ValueError(message)
    seen: set[Id] = set()
    for id_ in listed:
        if id_ in known or id_ in seen:
            message = f"ids: {id_!r} is in the index already"
            raise ValueError(message)
        seen.add(id_)
    return listed
