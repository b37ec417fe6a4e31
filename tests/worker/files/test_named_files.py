"""Which files arguments stand for, in which order, and what is left out."""

from __future__ import annotations

import os
import re
from pathlib import Path
from random import Random

import pytest

from tests.worker.files.parts import documents_of, lines_of
from worker.files.errors import FileError
from worker.files.inputs import Inputs
from worker.files.named_files import named_files, natural
from worker.files.reading import Reading
from worker.settings.documents import DocumentsSection

MONTHS = ["news-1.txt", "news-2.txt", "news-10.txt", "news-11.txt", "news-12.txt"]


def made(folder: Path, *names: str) -> Path:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return folder


def bases(*arguments: Path, reading: Reading = Reading()) -> list[str]:  # noqa: B008 -- frozen
    return [named.base for named in named_files(arguments, reading).files]


def test_numbers_in_names_count_as_numbers(tmp_path: Path) -> None:
    made(tmp_path, *sorted(MONTHS), "2/a.txt", "10/a.txt", "b/x01.txt", "b/x1.txt", "b/x.txt")
    listed = ["2/a.txt", "10/a.txt", "b/x.txt", "b/x01.txt", "b/x1.txt", *MONTHS]
    assert bases(tmp_path) == listed
    assert bases(tmp_path / "**" / "*.txt") == bases(tmp_path / "**") == listed
    assert bases(tmp_path / "news-*.txt") == MONTHS


@pytest.mark.parametrize(
    "names",
    [
        ["a", "a1", "a2", "a10", "a10b", "b"],
        ["2023-12-31", "2024-1-2", "2024-1-10", "2024-02-01", "2024-10-01"],
        ["part-00002", "part-3", "part-00010", "part-99999999999999999999", "part-x"],
        ["x/9/z", "x/10/a", "x-1"],
    ],
)
def test_the_natural_order(names: list[str]) -> None:
    shuffled = Random(1).sample(names, len(names))
    assert sorted(shuffled, key=natural) == names


def test_arguments_keep_their_order_and_the_shells_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path, *MONTHS)
    given = [tmp_path / name for name in sorted(MONTHS)]
    assert [key for key, _ in documents_of(*given)] == sorted(MONTHS)
    said = capsys.readouterr().err
    assert said.startswith("neardup: files are read in the order given, ")
    assert f"{tmp_path}/news-12.txt before {tmp_path}/news-2.txt; a directory, or a" in said
    documents_of(*reversed(given))
    documents_of(*(tmp_path / name for name in MONTHS))
    assert capsys.readouterr().err == ""


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    folder = made(tmp_path / "folder", "a.txt", "b.md", ".h.txt", "_x/c.txt", "p.png", "none")
    (folder / "up").symlink_to("..")
    (folder / "gone.txt").symlink_to("nowhere")
    (folder / "link.txt").symlink_to("a.txt")
    os.mkfifo(folder / "pipe.txt")
    found = named_files([folder], Reading())
    assert [named.base for named in found.files] == ["a.txt", "b.md"]
    assert +found.left_out == {
        "hidden": 2,
        ".png": 1,
        "without a suffix": 1,
        "links to directories": 1,
        "files named again": 1,
        "broken links": 1,
        "pipes and devices": 1,
    }
    with Inputs([folder], DocumentsSection()) as inputs:
        summary = inputs.summary()
    assert summary is not None
    assert summary.startswith("left out: hidden 2, ")
    assert summary.count(", ") == 6


def linked(tmp_path: Path) -> Path:
    """Return a folder with three files, many names of them, and links out of it and to itself."""
    folder = made(tmp_path / "folder", "b.txt", "a/x.txt", "a/y.txt")
    made(tmp_path, "elsewhere/z.txt", "elsewhere/deep/w.txt")
    (folder / "a.txt").symlink_to("b.txt")
    (folder / "last.txt").symlink_to("a/x.txt")
    (folder / "hard.txt").hardlink_to(folder / "b.txt")
    (folder / "out.txt").symlink_to(tmp_path / "elsewhere" / "z.txt")
    (folder / "a" / "out").symlink_to(tmp_path / "elsewhere")
    for number in range(3):
        (folder / "a" / f"loop{number}").symlink_to("..")
    return folder


@pytest.mark.parametrize(
    "names", [[""], ["**/*.txt"], ["*.txt", "a", "*/*.txt"], ["", "a", "**/*.txt"]]
)
def test_each_file_is_read_once_whatever_links_to_it(names: list[str], tmp_path: Path) -> None:
    folder = linked(tmp_path)
    given = [folder / name for name in names]
    found = named_files(given, Reading())
    assert sorted(os.path.realpath(named.path) for named in found.files) == [
        str(folder / name) for name in ("a/x.txt", "a/y.txt", "b.txt")
    ]
    assert found.left_out["files named again"] >= 2
    assert found.left_out["links out of the folder"] >= 1

    followed = named_files(given, Reading(follow_links=True))
    more = {os.path.realpath(named.path) for named in followed.files}
    assert more >= {str(folder / "b.txt"), str(tmp_path / "elsewhere" / "z.txt")}
    assert len(more) == len(followed.files)
    deep = str(tmp_path / "elsewhere" / "deep" / "w.txt")
    assert (deep in more) is ("" in names or "a" in names)


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    folder = linked(tmp_path)
    given = [folder / "out.txt", folder / "b.txt", folder / "b.txt", folder / "hard.txt"]
    found = named_files(given, Reading())
    assert [named.base for named in found.files] == ["out.txt", "b.txt"]
    assert +found.left_out == {"files named again": 2}


def test_a_folder_of_links_out_of_it_is_an_error_that_says_so(tmp_path: Path) -> None:
    folder = made(tmp_path / "folder", "none")
    (folder / "a.txt").symlink_to(made(tmp_path / "other", "b.txt") / "b.txt")
    for given in (folder, folder / "*.txt"):
        with pytest.raises(FileError, match="; there are links, and --follow-links follows"):
            named_files([given], Reading())
        assert [one.base for one in named_files([given], Reading(follow_links=True)).files] == [
            "a.txt"
        ]


def test_an_index_in_the_folder_is_not_read(tmp_path: Path) -> None:
    made(tmp_path, "a.jsonl", "state/b.jsonl", "state/c/d.json", "states/e.jsonl")
    for given in (tmp_path, tmp_path / "**" / "*.json*"):
        found = named_files([given], Reading(state=tmp_path / "state"))
        assert [named.base for named in found.files] == ["a.jsonl", "states/e.jsonl"]
        assert +found.left_out == {"files of --state": 2}


def test_a_pattern_that_is_none_is_an_error(tmp_path: Path) -> None:
    made(tmp_path, "a/x.txt", "b.txt")
    assert bases(tmp_path / "a" / ".." / "*.txt") == ["b.txt"]
    for pattern in ("[a-", "***/x/*.md"):
        with pytest.raises(FileError, match=re.escape(f"{tmp_path}/{pattern}: ")):
            named_files([tmp_path / pattern], Reading())


def test_names_begin_below_what_is_fixed_in_a_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, "in/a/x.txt", "in/b/x.txt")
    assert bases(tmp_path / "in" / "*" / "x.txt") == ["a/x.txt", "b/x.txt"]
    monkeypatch.chdir(tmp_path / "in")
    assert bases(Path("*/x.txt")) == ["a/x.txt", "b/x.txt"]
    assert bases(Path()) == ["a/x.txt", "b/x.txt"]


def test_files_of_one_name_are_told_apart_by_their_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, "a/x.txt", "b/x.txt", "c/y.txt")
    monkeypatch.chdir(tmp_path)
    assert bases(Path("a"), Path("b"), Path("c/y.txt")) == ["a/x.txt", "b/x.txt", "c/y.txt"]
    assert bases(Path("a/x.txt"), Path("c/y.txt")) == ["x.txt", "y.txt"]


def test_texts_beside_data_are_unclear(tmp_path: Path) -> None:
    made(tmp_path, "a.jsonl", "b.csv", "c.jsonl", "README.md")
    with pytest.raises(FileError) as caught:
        lines_of(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: has files of documents (2 .jsonl, 1 .csv) beside texts (1 .md); --format json"
        " reads the former, --format text the latter, each as a document"
    )
    assert bases(tmp_path, reading=Reading("json")) == ["a.jsonl", "b.csv", "c.jsonl"]
    assert bases(tmp_path, reading=Reading("text")) == ["README.md"]


def test_names_that_are_no_text_stay_different(tmp_path: Path) -> None:
    for number in (0xFE, 0xFF):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/%c.txt" % number)).write_text("a text")
    keys = [key for key, _ in documents_of(tmp_path)]
    assert len(set(keys)) == 2
    assert all(key.isascii() for key in keys)
