"""A file of text is a document, whose id is its path."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.support.breadth import slow
from tests.worker.files.parts import TEXTS, documents_of, lines_of
from worker.files.errors import FileError
from worker.files.inputs import Inputs
from worker.files.reading import Reading
from worker.settings.documents import DocumentsSection

WORDS = "one\ntwo\n\nthree"


@pytest.mark.parametrize(
    "name", ["a.txt", "a.TXT", "a.md", slow("a.rst"), "a.html", slow("a.htm"), "a.txt.gz"]
)
def test_a_file_is_a_document(name: str, tmp_path: Path) -> None:
    file = tmp_path / "in" / name
    file.parent.mkdir()
    data = WORDS.encode()
    file.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    for argument in (file, file.parent):
        ((key, value),) = documents_of(argument)
        assert key == name
        assert json.loads(value) == {"id": name, "text": WORDS}


def test_with_format_text_any_file_is(tmp_path: Path) -> None:
    for name in ("a.py", "b.jsonl", "c.csv"):
        (tmp_path / name).write_text('{"text": "x"}\n')
    found = documents_of(*sorted(tmp_path.iterdir()), reading=TEXTS)
    assert [json.loads(value) for _, value in found] == [
        {"id": name, "text": '{"text": "x"}\n'} for name in ("a.py", "b.jsonl", "c.csv")
    ]


def test_the_members_have_the_names_of_the_fields(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(WORDS)
    ((_, value),) = documents_of(tmp_path, id_field="key", text_fields="head,body")
    assert json.loads(value) == {"key": "a.txt", "head": WORDS}
    ((_, value),) = documents_of(tmp_path, text_fields="head,text")
    assert json.loads(value) == {"id": "a.txt", "text": WORDS}


def test_plain_text_for_an_application_that_reads_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(WORDS)
    (line,) = lines_of(tmp_path, reading=TEXTS, format="text")
    assert (line.key, line.value, line.named) == (b"a.txt", WORDS.encode(), True)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "not-text: the file has NUL bytes"),
        (b"a" * 1_001, "too-large: the file has 1001 bytes, above limits.record_bytes"),
        (b"a" * 3_000_000, "too-large: the file has 3000000 bytes, above limits.record_bytes"),
        ("schön".encode("latin-1"), "invalid-utf8: the text is not UTF-8"),
        ("schön".encode("utf-16-le"), "not-text: it looks like --encoding utf-16-le"),
    ],
)
def test_a_file_that_is_no_text_costs_itself(data: bytes, fault: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    (tmp_path / "b.txt").write_text("fine")
    bad, good = lines_of(tmp_path, most=1_000)
    assert (bad.key, bad.raw, bad.fault) == (b"a.txt", b"", fault)
    assert good.complete


def test_an_empty_file_is_an_empty_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    ((_, value),) = documents_of(tmp_path)
    assert json.loads(value) == {"id": "a.txt", "text": ""}


def test_lines_of_json_are_not_taken_for_a_text(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text('{"text": "x"}\n{"text": "y"}\n')
    with pytest.raises(FileError, match=r"a\.txt: has JSON in its first line, despite its name"):
        lines_of(file)
    assert len(lines_of(file, reading=Reading("json"))) == 2
    assert len(lines_of(file, reading=TEXTS)) == 1
    file.write_text("{x} is a set\n")
    assert len(lines_of(file)) == 1


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("über".encode("latin-1"), "latin-1"),
        ("über".encode("utf-16"), None),
        ('<meta charset="cp1252"> “über”'.encode("cp1252"), None),
        ('<META http-equiv=x content="text/html; charset=Latin-1">“über”'.encode("cp1252"), None),
        ("<meta charset='gb2312'> über 镕".encode("gb18030"), None),
        ('<meta charset="latin-1"> über'.encode("utf-16"), None),
        ('<meta charset="nonsense"> über'.encode(), None),
    ],
)
def test_encodings_of_pages(data: bytes, encoding: str | None, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(data)
    (line,) = lines_of(tmp_path, reading=Reading(None, encoding))
    assert "über" in json.loads(line.value)["text"], line.fault


def test_many_small_files_are_held_one_at_a_time(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number}.txt").write_text(f"text {number}")
    with Inputs([tmp_path], DocumentsSection()) as inputs:
        chunks = list(inputs.chunks(1_000, lines=100))
        assert inputs.position == inputs.total
    assert [len(chunk) for chunk in chunks] == [100] * 3
    assert [line.key.decode() for chunk in chunks for line in chunk] == [
        f"{number}.txt" for number in range(300)
    ]
