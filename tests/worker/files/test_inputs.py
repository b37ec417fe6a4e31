"""Directories and patterns stand for files; names are those that `FILE:LINE` shows."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.worker.files.parts import LINES, TEXTS, documents_of, lines_of
from worker.files.errors import FileError
from worker.files.inputs import Inputs
from worker.files.reading import Reading
from worker.settings.documents import DocumentsSection


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    for name in ("b.jsonl", "a/part.jsonl.gz", "c/part.CSV", "c/notes.txt", ".hidden.jsonl"):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        content = b"text\nx\n" if name.endswith("CSV") else b'{"text":"x"}\n'
        file.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    for name in ("_SUCCESS", "_temporary/part.jsonl", ".state/x.jsonl", "README.md"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"nonsense")
    return folder


def keys(*files: Path, **documents: object) -> list[str]:
    return [key for key, _ in documents_of(*files, **documents)]


def test_a_directory_stands_for_known_files_below_it(corpus: Path) -> None:
    assert keys(corpus, reading=Reading("json")) == [
        "a/part.jsonl.gz:1",
        "b.jsonl:1",
        "c/part.CSV:2",
    ]
    assert keys(corpus, reading=TEXTS) == ["README.md", "c/notes.txt"]
    assert keys(corpus, reading=LINES) == ["README.md:1", "c/notes.txt:1"]


def test_a_pattern_stands_for_the_files_that_match(corpus: Path) -> None:
    (corpus / "c" / "notes.txt").write_text("a note")
    found = keys(corpus / "*.jsonl", corpus / "**" / "*.txt")
    assert found == ["b.jsonl:1", "c/notes.txt"]


def test_a_file_named_like_a_pattern_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "docs[1].jsonl"
    file.write_bytes(b'{"text":"x"}\n')
    assert keys(file) == ["docs[1].jsonl:1"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("*.parquet", "no file matches this pattern"),
        ("_temporary", "a known suffix (.csv, .eml, .htm"),
    ],
)
def test_no_file_is_an_error(name: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "_temporary").mkdir()
    with pytest.raises(FileError) as caught:
        lines_of(tmp_path / name)
    assert f"{tmp_path / name}: " in str(caught.value)
    assert says in str(caught.value)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_directory_may_have_more_files_than_may_be_open(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02}.jsonl").write_bytes(b'{"text":"x"}\n')
    held = open_files()
    with Inputs([tmp_path], DocumentsSection()) as inputs:
        assert open_files() == held
        assert inputs.has(tmp_path / "07.jsonl")
        assert not inputs.has(tmp_path / "missing")
        assert inputs.total == 20 * 13
        assert [line.key for chunk in inputs.chunks(100) for line in chunk][-1] == b"19.jsonl:1"
        assert inputs.position == inputs.total
