"""Where bytes are flipped: in a document's text, in a frame, in a table's data; one bit each."""

import json
import struct
from pathlib import Path
from random import Random

from tests.faults.flipping import Batch, batches, flip_in_table, flip_text


def batch(offset: int, payload: bytes) -> bytes:
    """Give a record batch, as far as its length and first offset go."""
    rest = bytes(49) + payload
    return struct.pack(">qi", offset, len(rest)) + rest


def differing(before: bytes, after: bytes) -> list[int]:
    """Give the places where two differ."""
    return [n for n, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]


def test_batches_are_found_until_what_was_set_aside(tmp_path: Path) -> None:
    first, second = batch(0, b"a" * 10), batch(7, b"b" * 30)
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(first + second + bytes(100))
    assert list(batches(tmp_path)) == [
        Batch(path, 0, len(first), 0),
        Batch(path, len(first), len(second), 7),
    ]


def test_a_document_stays_json_and_says_something_else(tmp_path: Path) -> None:
    document = json.dumps({"id": "doc", "text": "12 near copies"}).encode()
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(batch(0, b"....") + batch(1, b"...." + document))
    before = path.read_bytes()
    flip_text(list(batches(tmp_path))[1])
    after = path.read_bytes()
    assert len(differing(before, after)) == 1
    assert json.loads(after[-len(document) :])["text"] == "12 oear copies"


def test_in_a_frame_it_is_behind_the_header_of_its_batch(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(batch(0, bytes(200)))
    before = path.read_bytes()
    flip_text(next(batches(tmp_path)))
    (place,) = differing(before, path.read_bytes())
    assert place > 61


def test_in_a_table_it_is_among_its_data(tmp_path: Path) -> None:
    path = tmp_path / "000012.sst"
    path.write_bytes(bytes(1_000))
    flip_in_table(path, Random(1))
    (place,) = differing(bytes(1_000), path.read_bytes())
    assert place < 700
