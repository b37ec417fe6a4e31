"""The file of a saved index: what it has comes back, and anything else is refused."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
from numpy.lib.format import (
    read_array_header_1_0,
    read_magic,
    write_array,
    write_array_header_1_0,
)

from lsh import Index, Parameters
from lsh.saved import Saved, read, write

DOCUMENTS: list[tuple[str | int, str]] = [
    ("a", "A ship in harbour is safe, but that is not what ships are built for."),
    (7, "A ship in harbour is safe, but that isn't what ships are built for."),
    ("7", "  "),
    ("ü\ud800", "Lone surrogates \ud800 are code points like any other."),
]


def index_of(documents: list[tuple[str | int, str]], **options: Any) -> Index:  # noqa: ANN401
    index = Index(**options)
    index.add_many(documents)
    return index


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "saved"
    index_of(DOCUMENTS, keep_texts=True).save(path)
    return path


def changed(path: Path, **parts: Any) -> None:  # noqa: ANN401
    """Replace arrays of a file, or values of its header."""
    with np.load(path) as arrays:
        kept = dict(arrays)
    header = json.loads(kept["header"].tobytes())
    for name, value in parts.items():
        if name in kept:
            kept[name] = value
        else:
            header[name] = value
    kept["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, **kept)


def test_what_was_written_is_read(path: Path) -> None:
    saved = read(path)
    again = path.with_name("again")
    write(again, saved)
    other = read(again)
    for name in Saved.__slots__:
        assert np.array_equal(getattr(saved, name), getattr(other, name))
    assert list(saved.ids) == [ident for ident, _ in DOCUMENTS]
    assert list(saved.texts or []) == [text for _, text in DOCUMENTS]
    assert saved.blank.tolist() == [False, False, True, False]


def test_a_file_that_can_not_be_written_leaves_the_old_one(path: Path) -> None:
    before = path.read_bytes()
    broken = replace(read(path), ids=[b"not for JSON"])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        write(path, broken)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_who_reads_a_file_while_it_is_replaced_reads_the_old_one(path: Path) -> None:
    before = path.read_bytes()
    with path.open("rb") as reader:
        index_of(DOCUMENTS[:1]).save(path)
        assert reader.read() == before
    assert len(Index.load(path)) == 1


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "version": ({"version": 3}, "has version 3 of the format, not 2"),
    "format": ({"format": "other"}, "is not a saved index, or is damaged: its format is 'other'"),
    "rows": ({"blank": np.zeros(3, np.bool_)}, "its parts have different numbers of documents"),
    "sizes": ({"sizes": np.zeros(3, np.int64)}, "its parts have different numbers of documents"),
    "type": ({"shingles": np.zeros(4)}, "an array of float64 is where <u4 should be"),
    "pickle": ({"ids": np.array([{}], object)}, "is not a saved index, or is damaged"),
    "columns": ({"keys": np.zeros((3, 4), np.uint64)}, r"got arrays of \[\(4, 3\), \(4, 128\)\]"),
    "rules": ({"rules": {"capacity": 0}}, "capacity: got 0, takes an integer from 1"),
    "other rules": ({"rules": {"colour": 1}}, "colour"),
    "no parameters": ({"parameters": {}}, "threshold"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_of_another_kind_is_refused_in_one_line(name: str, path: Path) -> None:
    parts, message = REFUSED[name]
    changed(path, **parts)
    with pytest.raises(ValueError, match=message) as refused:
        Index.load(path)
    assert "\n" not in str(refused.value)
    assert str(path) in str(refused.value)


def test_an_index_with_a_list_of_lines_needs_that_list_again(path: Path) -> None:
    listed = Parameters(boilerplate=frozenset(["Share this"]))
    index = Index(listed)
    index.add("a", f"{DOCUMENTS[0][1]}\nSHARE this")
    index.save(path)
    with pytest.raises(ValueError, match="boilerplate: the index was made with a list"):
        Index.load(path)
    for wrong in (Parameters(), Parameters(boilerplate=frozenset(["More"]))):
        with pytest.raises(ValueError, match="boilerplate: the index was made with another list"):
            Index.load(path, wrong)
    again = Index.load(path, Parameters(boilerplate=frozenset(["share  this"])))
    assert again.query(DOCUMENTS[0][1])[0].similarity == 1.0
    with pytest.raises(ValueError, match="boilerplate: the two indexes have different ones"):
        Index().merge(again)


class Touching:
    """What touches a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._path,)


def test_no_memory_is_taken_for_lengths_that_a_file_only_claims(path: Path) -> None:
    """Each array in turn says that it is longer, or is a bomb; each length field of the archive."""
    whole = path.read_bytes()
    with np.load(path) as arrays:
        kept = dict(arrays)
    for name in kept:
        for count in (1 << 33, 1 << 62, -1):
            forged = {**kept}
            with path.open("wb") as file:
                np.savez(file, **forged)
            _claim(path, f"{name}.npy", count)
            _refused_in_little_memory(path)
        with ZipFile(path, "w", ZIP_DEFLATED) as archive:
            for other, array in kept.items():
                with archive.open(f"{other}.npy", "w") as part:
                    write_array(part, np.zeros(1 << 24, "|u1") if other == name else array)
        _refused_in_little_memory(path)
    directory = whole.index(b"PK\x01\x02")
    for field in range(directory + 8, len(whole) - 4):
        path.write_bytes(whole[:field] + b"\xf0\xff\xff\x7f" + whole[field + 4 :])
        with suppress(ValueError):
            tracemalloc.start()
            read(path)
        assert _peak() < _LITTLE


_LITTLE = 4 << 20


def _peak() -> int:
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def _claim(path: Path, name: str, count: int) -> None:
    """Write in the header of an array that it has so many rows."""
    with ZipFile(path) as archive:
        parts = {part.filename: archive.read(part) for part in archive.infolist()}
    with BytesIO(parts[name]) as array:
        read_magic(array)
        shape, fortran, kind = read_array_header_1_0(array)
        rest = array.read()
    forged = BytesIO()
    described = {"descr": kind.str, "fortran_order": fortran, "shape": (count, *shape[1:])}
    write_array_header_1_0(forged, described)
    with ZipFile(path, "w") as archive:
        for other, part in {**parts, name: forged.getvalue() + rest}.items():
            archive.writestr(other, part)


def _refused_in_little_memory(path: Path) -> None:
    tracemalloc.start()
    with pytest.raises(ValueError, match="is not a saved index, or is damaged"):
        read(path)
    assert _peak() < _LITTLE


def test_nothing_is_unpickled(path: Path) -> None:
    touched = path.with_name("touched")
    changed(path, ids=np.array([Touching(touched)], object))
    with pytest.raises(ValueError, match="is not a saved index, or is damaged"):
        read(path)
    assert not touched.exists()


PARAMETERS = {
    "bands": (Parameters(bands=17), "bands: the file has 18, not 17"),
    "switch": (Parameters(fold_digits=True), "fold_digits: the file has False, not True"),
    "threshold": (Parameters(threshold=0.9), "threshold: the file has 0.8, not 0.9"),
    "containment": (Parameters(containment=0.9), "containment: the file has None, not 0.9"),
    "seed": (Parameters(seed=b"secret"), "seed: the index was made with another one"),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_other_parameters_are_refused_by_their_name(name: str, path: Path) -> None:
    other, message = PARAMETERS[name]
    with pytest.raises(ValueError, match=message) as refused:
        Index.load(path, other)
    assert "secret" not in str(refused.value)


def test_an_index_keeps_its_containment(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    index_of(DOCUMENTS, parameters=Parameters(containment=0.9)).save(path)
    assert Index.load(path).parameters == Parameters(containment=0.9)
    with pytest.raises(ValueError, match=r"containment: the file has 0\.9, not None"):
        Index.load(path, Parameters())


def test_an_index_with_a_secret_seed_needs_it_to_be_loaded(tmp_path: Path) -> None:
    path, secret = tmp_path / "saved", Parameters(seed=b"secret")
    index_of(DOCUMENTS, parameters=secret).save(path)
    assert b"secret" not in path.read_bytes()
    with pytest.raises(ValueError, match="seed: the index was made with another one"):
        Index.load(path)
    assert list(Index.load(path, secret)) == [ident for ident, _ in DOCUMENTS]


def test_other_files_are_refused_and_missing_ones_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(FileNotFoundError):
        Index.load(path)
    for content in (b"", b"text", b"PK\x03\x04 and no more"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is not a saved index, or is damaged"):
            Index.load(path)
    with path.open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(ValueError, match="is not a saved index, or is damaged"):
        Index.load(path)


def test_a_damaged_file_is_refused_or_means_the_same(path: Path) -> None:
    whole, before = path.read_bytes(), read(path)
    chance = Random(1)
    refused = 0
    for _ in range(300):
        place = chance.randrange(len(whole))
        path.write_bytes(
            whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1 :]
        )
        try:
            saved = read(path)
        except ValueError:
            refused += 1
            continue
        for name in Saved.__slots__:
            assert np.array_equal(getattr(saved, name), getattr(before, name))
    assert refused > 200
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="is not a saved index, or is damaged"):
            read(path)
