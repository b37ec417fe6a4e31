"""What isn't JSON Lines is refused, and the message names the way to make it so."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from tests.worker.files.parts import LINES, documents_of, lines_of
from worker.files.errors import FileError


def tar() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("docs.jsonl"))
    return made.getvalue()


JSONL = '{"id": 1, "text": "a"}\n'


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'[\n{"id": 1},\n', "is a JSON array; write one document per line: jq -c '.[]' 'a b'"),
        (b'[{"id": 1},' * 200_000, "is a JSON array; write one document per line: jq -c '.[]' 'a "),
        (b'{\n  "id": 1', "has documents of several lines; write one document per line: jq -c . "),
        (JSONL.encode("utf-16-le"), "is not UTF-8; it looks like --encoding utf-16-le"),
        (JSONL.encode("utf-16-be"), "is not UTF-8; it looks like --encoding utf-16-be"),
        (JSONL.encode("utf-32-le"), "is not UTF-8; it looks like --encoding utf-32-le"),
        (b"PK\x03\x04", "is a zip archive; pipe it in: unzip -p 'a b' | neardup"),
        (b"\x04\x22\x4d\x18", "is an lz4 file; pipe it in: lz4 -dc"),
        (b"\x50\x2a\x4d\x18\x01\0\0\0a\x04\x22\x4d\x18", "is an lz4 file; pipe it in: lz4 -dc"),
        (b"\x1f\x9d\x90", "is a file of compress; pipe it in: gzip -dc"),
        (tar(), "is a tar archive; pipe it in: tar -xOf 'a b' | neardup"),
        (
            gzip.compress(tar(), mtime=0),
            "is a tar archive; pipe it in: gzip -dc 'a b' | tar -xOf - | near",
        ),
        (
            gzip.compress(b"[\n", mtime=0),
            "write one document per line: gzip -dc 'a b' | jq -c '.[]' | nea",
        ),
        (gzip.compress(b"PAR1\x15", mtime=0), "is Parquet, which can't be read from a pipe"),
    ],
)
def test_the_message_says_what_it_is_and_what_to_do(
    content: bytes, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "a b"
    file.write_bytes(content)
    with pytest.raises(FileError) as caught:
        lines_of(file)
    assert str(caught.value).replace(f"{tmp_path}/", "").startswith("a b: ")
    assert says in str(caught.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize("content", [b"[\n", b"{\n", b"BZh9 is a line\n", b"PAR1 is one, too\n"])
def test_texts_may_begin_like_json(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "texts"
    file.write_bytes(content)
    found = documents_of(file, reading=LINES, format="text")
    assert found == [("texts:1", content.decode().rstrip())]
