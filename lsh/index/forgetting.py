"""The ids that are forgotten while a batch is judged."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lsh.index.batch import DocumentBatch
    from lsh.index.buckets import BucketReader
    from lsh.index.match import Known

__all__ = ["Forgetting"]


class Forgetting:
    """Forgets ids at their places in a batch.

    stored: the documents of earlier batches that were forgotten so far.
    """

    def __init__(self, reader: BucketReader, batch: DocumentBatch, known: Known) -> None:
        """Find the documents that have an id that is forgotten; they will be noted in ``known``."""
        self._first = reader.inserted
        self._known = known
        self._left = deque(batch.forgotten)
        ids = {one.id for one in batch.forgotten}
        self._stored = reader.identified(ids) if ids else {}
        self._rows: dict[bytes, deque[int]] = {ident: deque() for ident in ids}
        for row, ident in enumerate(batch.ids if ids else ()):
            if ident in ids:
                self._rows[ident].append(row)
        self.stored: list[int] = []

    def before(self, row: int) -> None:
        """Forget the ids that are forgotten before a row.

        They leave a bucket when it is next looked at, or written.
        """
        while self._left and self._left[0].row <= row:
            before, ident = self._left.popleft()
            stored, rows = self._stored.pop(ident, []), self._rows[ident]
            self.stored += stored
            self._known.forgotten.update(stored)
            while rows and rows[0] < before:
                self._known.forgotten.add(self._first + rows.popleft())

    def rows(self) -> list[int]:
        """Return the rows of the batch's documents that were forgotten."""
        return [number - self._first for number in self._known.forgotten if number >= self._first]
