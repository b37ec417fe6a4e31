"""Bytes that flip on a disk, where a checksum has to find them."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from struct import Struct
from typing import Final, NamedTuple

_BATCH: Final = Struct(">qi")
"""How a record batch begins: its first offset, and the length of what follows."""
_HEADER_BYTES: Final = 61
_TEXT: Final = b'"text": "'
_DATA_SHARE: Final = 0.7
"""Of a RocksDB table: buckets, then records of documents. Behind are its filter and its index."""


class Batch(NamedTuple):
    """A record batch in a segment's file."""

    path: Path
    position: int
    size: int
    offset: int
    """Of its first record."""


def batches(directory: Path) -> Iterator[Batch]:
    """Return the batches of a partition, from the files of a broker that is down."""
    for path in sorted(directory.glob("*.log")):
        size, position = path.stat().st_size, 0
        with path.open("rb") as file:
            while position + _BATCH.size <= size:
                file.seek(position)
                offset, length = _BATCH.unpack(file.read(_BATCH.size))
                if length <= 0:  # What follows was set aside, and not written.
                    break
                yield Batch(path, position, _BATCH.size + length, offset)
                position += _BATCH.size + length


def flip(path: Path, position: int) -> None:
    """Flip one bit of a file, in place."""
    with path.open("r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 1]))


def flip_in_table(path: Path, random: Random) -> None:
    """Flip a bit in a data block of a RocksDB table."""
    flip(path, random.randrange(int(path.stat().st_size * _DATA_SHARE)))


def flip_text(batch: Batch) -> None:
    """Flip a bit of a letter in a batch: in a document's text, or in the middle of a frame."""
    with batch.path.open("rb") as file:
        file.seek(batch.position)
        found = file.read(batch.size)
    start = found.find(_TEXT, _HEADER_BYTES)
    if start < 0:
        flip(batch.path, batch.position + (_HEADER_BYTES + batch.size) // 2)
        return
    place = next(n for n in range(start + len(_TEXT), len(found)) if found[n : n + 1].isalpha())
    flip(batch.path, batch.position + place)
