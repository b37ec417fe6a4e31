"""The records of documents, in arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.index.layout import PARTS, shape_of, sketch_and_new

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["NO_SEQUENCE", "Records"]

NO_SEQUENCE = np.iinfo(np.uint64).max
"""No document's sequence number. Zero is that of the first one of a log."""


class Records(NamedTuple):
    """The records of n documents.

    One that there isn't, or that was forgotten, is all zeros, but for its number, `NO_SEQUENCE`.

    exist: bool[n]. kept: bool[n], which of those were not forgotten. sequences: uint64[n]. times:
    int64[n], ms. shingles: uint32[n]. sketches: uint8[n, slots]. new: uint8[n, b], which of its
    buckets were new, as in `lsh.index.layout.Record`; zeros if that isn't known. ids: object[n].
    """

    exist: NDArray[np.bool_]
    kept: NDArray[np.bool_]
    sequences: NDArray[np.uint64]
    times: NDArray[np.int64]
    shingles: NDArray[np.uint32]
    sketches: NDArray[np.uint8]
    new: NDArray[np.uint8]
    ids: NDArray[np.object_]

    @classmethod
    def blank(cls, count: int, slots: int, bits: int = 0) -> Records:
        """Return as many records that there aren't; ``bits`` is how many bytes ``new`` has."""
        return cls(
            np.zeros(count, np.bool_),
            np.zeros(count, np.bool_),
            np.full(count, NO_SEQUENCE, np.uint64),
            np.zeros(count, np.int64),
            np.zeros(count, np.uint32),
            np.zeros((count, slots), np.uint8),
            np.zeros((count, bits), np.uint8),
            np.full(count, b"", np.object_),
        )

    @classmethod
    def unpacked(cls, packed: Sequence[bytes | None], slots: int) -> Records:
        """Return the records of these bytes: None where there is none, no bytes if forgotten.

        The arrays may not be changed. Raises ValueError if some are not those of a record, or its
        sketch isn't of ``slots``.
        """
        whole = [one for one in packed if one]
        parts = (_alike(whole, slots) or _each(whole, slots)) if whole else None
        if parts is not None and len(whole) == len(packed):
            return parts
        found = cls.blank(len(packed), slots)
        found.exist[:] = [one is not None for one in packed]
        found.kept[:] = [bool(one) for one in packed]
        return found if parts is None else found.put(found.kept, parts)

    def take(self, places: NDArray[np.int64]) -> Records:
        """Return some of the records."""
        return Records._make(part.take(places, axis=0) for part in self)

    def put(
        self, places: NDArray[np.int64] | NDArray[np.bool_] | slice, others: Records
    ) -> Records:
        """Put other records in the places of some, and return all; arrays may change."""
        both = self._replace(new=_wider(self.new, others.new.shape[1]))
        for name in ("exist", "kept", "sequences", "times", "shingles", "sketches", "ids"):
            getattr(both, name)[places] = getattr(others, name)
        bits = others.new.shape[1]
        both.new[places, :bits] = others.new
        if bits < both.new.shape[1]:
            both.new[places, bits:] = 0
        return both


def _wider(new: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Return bytes for each record, with zeros behind them if there are fewer than so many."""
    if new.shape[1] >= bits:
        return new
    wider = np.zeros((len(new), bits), np.uint8)
    wider[:, : new.shape[1]] = new
    return wider


def _alike(packed: list[bytes], slots: int) -> Records | None:
    """Return the records of these bytes, if all have as many slots and bits; nearly always."""
    _, first = sketch_and_new(packed[0])
    kind = np.dtype(
        [
            *PARTS,
            ("slots", "<u2"),
            ("bits", "u1"),
            ("sketch", "u1", slots),
            ("new", "u1", len(first)),
        ]
    )
    size = kind.itemsize
    if min(map(len, packed)) < size:
        return None
    fixed = np.frombuffer(b"".join([one[:size] for one in packed]), kind)
    if (fixed["slots"] != slots).any() or (fixed["bits"] != len(first)).any():
        return None
    ids = np.fromiter([one[size:] for one in packed], np.object_, len(packed))
    return _records(fixed, fixed["sketch"], fixed["new"], ids)


def _each(packed: list[bytes], slots: int) -> Records:
    """Return the records of these bytes, which have different numbers of slots and bits."""
    alike: dict[bytes, list[int]] = {}
    for place, one in enumerate(packed):
        alike.setdefault(shape_of(one), []).append(place)
    found = Records.blank(len(packed), slots)
    for places in alike.values():
        own = len(sketch_and_new(packed[places[0]])[0])
        parts = _alike([packed[place] for place in places], own)
        if own not in {0, slots} or parts is None:
            message = f"a record's sketch hasn't {slots} slots"
            raise ValueError(message)
        if not own:
            parts = parts._replace(sketches=np.zeros((len(places), slots), np.uint8))
        found = found.put(np.array(places), parts)
    return found


def _records(
    fixed: NDArray[np.void],
    sketches: NDArray[np.uint8],
    new: NDArray[np.uint8],
    ids: NDArray[np.object_],
) -> Records:
    there = np.ones(len(ids), np.bool_)
    parts = fixed["sequences"], fixed["times"], fixed["shingles"]
    return Records(there, there, *parts, sketches, new, ids)
