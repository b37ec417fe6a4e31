"""Reads ranges of a store's keys completely, or says that it can't."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from rocksdict import Rdict

from worker.index.keyspace import Range


class ReadingEnded(Exception):
    """A range of a store can't be read to its end."""


def span(db: Rdict, keys: Range) -> Iterator[tuple[bytes, bytes]]:
    """Return the keys and values in a range of keys, in order.

    rocksdict's iterator silently ends at a block that it can't read. The range was read
    completely only if a key past it follows. Every store has one: its header.

    Raises:
        ReadingEnded: no key past the range follows.
    """
    low, high = keys
    pairs = db.items(from_key=low) if low else db.items()
    for key, value in cast("Iterator[tuple[bytes, bytes]]", pairs):
        if key >= high:
            return
        yield key, value
    raise ReadingEnded(f"a block past {low.hex() or 'the start'} can't be read")
