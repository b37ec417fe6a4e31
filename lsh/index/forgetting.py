"""The ids that are forgotten while a batch is judged."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lsh.index.batch import DocumentBatch
    from lsh.index.buckets import BucketReader
    from lsh.index.known import Known

__all__ = ["forgotten_rows"]


def forgotten_rows(reader: BucketReader, batch: DocumentBatch, known: Known) -> list[int]:
    """Note from which rows on documents are forgotten; return those of earlier batches, ascending.

    An id that is forgotten concerns the documents of the index and of the batch before it.
    """
    ids = {one.id for one in batch.forgotten}
    stored = reader.identified(ids) if ids else {}
    rows: dict[bytes, deque[int]] = {ident: deque() for ident in ids}
    for row, ident in enumerate(batch.ids if ids else ()):
        if ident in ids:
            rows[ident].append(row)
    gone: list[int] = []
    for before, ident in batch.forgotten:
        earlier, own = stored.pop(ident, []), rows[ident]
        gone += earlier
        known.forget(earlier, before)
        while own and own[0] < before:
            known.forget([known.first + own.popleft()], before)
    return sorted(gone)
