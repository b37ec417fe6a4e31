"""Removes from a store's files what was forgotten.

RocksDB keeps the former bytes of a key in its files until these are compacted, which may take
months. So the pages that had such records are noted, and their ranges are compacted in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rocksdict import Rdict, WriteBatch

from worker.index.keyspace import FORGOTTEN, RECORDS, number_in, number_key
from worker.index.rocksdb import span

_SHARE = 0.5
"""Of the time that is allowed, how much passes before the files are compacted."""
_NEAR = 256
"""Pages that are no further apart are compacted together."""
_MOST = 1 << 15
"""The most pages that are compacted together: about 80 MB."""


class Purge:
    """The pages of records whose former bytes are still in files."""

    def __init__(self, db: Rdict, seconds: float, clock: Callable[[], float]) -> None:
        """Read the notes of a store; ``seconds`` is how long bytes may stay.

        Raises:
            ReadingEnded: not everything can be read.
            ValueError: a note isn't as it was written.
        """
        self._db = db
        self._wait = seconds * _SHARE
        self._clock = clock
        self._pages = {number_in(key) for key, _ in span(db, FORGOTTEN)}
        # It isn't known for how long they have waited.
        self._due_at = clock() if self._pages else None

    @property
    def due(self) -> bool:
        """Return whether it is time to compact."""
        return self._due_at is not None and self._clock() >= self._due_at

    def note(self, batch: WriteBatch, pages: Iterable[int]) -> None:
        """Note pages in a write."""
        for page in pages:
            batch.put(number_key(FORGOTTEN, page), b"")
            self._pages.add(page)
            if self._due_at is None:
                self._due_at = self._clock() + self._wait

    def step(self) -> WriteBatch:
        """Compact one range of pages; return the write that removes their notes.

        Everything must be flushed.
        """
        ordered = sorted(self._pages)
        last = first = ordered[0]
        for page in ordered:
            if page - last > _NEAR or page - first >= _MOST:
                break
            last = page
        self._db.compact_range(number_key(RECORDS, first), number_key(RECORDS, last + 1))
        done = [page for page in ordered if page <= last]
        self._pages.difference_update(done)
        if not self._pages:
            self._due_at = None
        batch = WriteBatch(raw_mode=True)
        for page in done:
            batch.delete(number_key(FORGOTTEN, page))
        return batch
