"""The errors of a shard's store, and of everything it could be rebuilt from."""

from __future__ import annotations


class HeaderMismatch(Exception):
    """The store was made with other parameters, for another topic, or by another version."""


class StoreDamaged(Exception):
    """RocksDB reads something other than what was written; the store must be rebuilt."""


class Unrecoverable(Exception):
    """Neither the store, nor a snapshot, nor the log has what the shard needs."""
