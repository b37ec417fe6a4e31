"""What other processes are given is pickled, and what is compared is equal by its values."""

from __future__ import annotations

import pickle
from copy import deepcopy
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lsh import (
    ContainmentIndex,
    Fingerprinter,
    Index,
    NearestIndex,
    Parameters,
    Shingler,
    sized,
)

PARAMETERS = Parameters(shingle_size=3, seed=b"a secret of ours", fold_accents=True)
TEXTS = [
    "A ship in harbour is safe, but that is not what ships are built for.",
    "A ship in harbour is safe, but that isn't what ships are built for.",
    "\u00c9tude \u1f82 i\u0307 of another kind, e\u0323\u0301",
    "  ",
    "",
]
SECONDS = 120
IDS: list[str | int] = ["a", "b", 0, "blank", "d"]
DOCUMENTS = list(zip(IDS, TEXTS, strict=True))


def again(one: Any) -> Any:  # noqa: ANN401 -- of any kind
    return pickle.loads(pickle.dumps(one))  # noqa: S301 -- it was pickled here


def nearest_index(*, removed: bool = False) -> NearestIndex:
    index = NearestIndex(PARAMETERS)
    index.add_many(DOCUMENTS)
    if removed:
        index.remove("b")
        index.add("b", TEXTS[1])
    return index


def containment_index(*, exact: bool = False, removed: bool = False) -> ContainmentIndex:
    index = ContainmentIndex(PARAMETERS, exact=exact, recall=0.9)
    index.add_many(DOCUMENTS)
    if removed:
        index.remove("b")
        index.add("b", TEXTS[1])
    return index


def answers(index: Any) -> list[object]:  # noqa: ANN401 -- of any kind
    """Return what an index answers, before and after one more document."""
    found: list[object] = [len(index), [name in index for name in ("a", "b", 0, "0", "blank")]]
    for turn in range(2):
        if not isinstance(index, ContainmentIndex):
            found.append([index.nearest(text, 3) for text in TEXTS])
        if isinstance(index, Index):
            found.append([index.query_many(TEXTS), list(index), index.groups()])
        if isinstance(index, ContainmentIndex):
            found += [index.query(text, 0.3) for text in TEXTS]
            found += [index.query(text, 0.3, of="document") for text in TEXTS]
        index.add(f"more {turn}", f"{TEXTS[turn]} And more.")
        if turn in index:
            index.remove(turn)
    return found


def indexes() -> list[Any]:
    index = Index(PARAMETERS, keep_texts=True, capacity=5)
    index.add_many(DOCUMENTS)
    index.remove("b")
    index.add("b", TEXTS[1])
    return [
        index,
        nearest_index(),
        nearest_index(removed=True),
        *(containment_index(exact=exact, removed=True) for exact in (False, True)),
        Index(PARAMETERS),
        NearestIndex(PARAMETERS),
        ContainmentIndex(PARAMETERS, exact=True),
    ]


@pytest.mark.parametrize("at", range(len(indexes())))
@pytest.mark.parametrize("copied", [again, deepcopy])
def test_an_index_answers_the_same_once_it_was_pickled(at: int, copied: Any) -> None:  # noqa: ANN401
    index = indexes()[at]
    assert answers(copied(index)) == answers(index)


@pytest.mark.parametrize("at", range(len(indexes())))
def test_an_index_answers_the_same_once_it_was_saved(at: int, tmp_path: Path) -> None:
    index, path = indexes()[at], tmp_path / "saved.npz"
    index.save(path)
    assert b"a secret of ours" not in path.read_bytes()
    loaded = type(index).load(path, PARAMETERS)
    with pytest.raises(ValueError, match=f"{path}: seed: the index was made with another one"):
        type(index).load(path)
    assert answers(loaded) == answers(index)


def test_a_file_of_another_kind_or_a_damaged_one_is_refused_in_one_line(tmp_path: Path) -> None:
    path, other = tmp_path / "nearest", tmp_path / "other"
    nearest_index().save(path)
    with pytest.raises(ValueError, match="its format is 'neardup nearest index', not"):
        ContainmentIndex.load(path, PARAMETERS)
    with pytest.raises(ValueError, match="its format is 'neardup nearest index', not"):
        Index.load(path, PARAMETERS)
    with pytest.raises(ValueError, match="shingle_size: the file has 3, not 4"):
        NearestIndex.load(path, Parameters(shingle_size=4, seed=PARAMETERS.seed))
    whole = path.read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 1):
        other.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="is not a saved index, or is damaged") as refused:
            NearestIndex.load(other, PARAMETERS)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (NearestIndex, "sketches", np.zeros((3, 7), np.uint8)),
        (NearestIndex, "blank", np.zeros(9, np.bool_)),
        (NearestIndex, "ids", np.frombuffer(b'["a", "a", 1, 2, 3]', np.uint8)),
        (NearestIndex, "ids", np.frombuffer(b'["a", null, 1, 2, 3]', np.uint8)),
        (ContainmentIndex, "sizes", np.zeros(9, np.int64)),
        (ContainmentIndex, "hashes", np.zeros(9, np.uint64)),
    ],
)
def test_parts_that_do_not_fit_are_damage(
    kind: Any,  # noqa: ANN401 -- a class of an index
    name: str,
    value: Any,  # noqa: ANN401 -- an array
    tmp_path: Path,
) -> None:
    path = tmp_path / "saved"
    (nearest_index() if kind is NearestIndex else containment_index(exact=True)).save(path)
    with np.load(path) as arrays:
        parts = {**arrays, name: value}
    with path.open("wb") as file:
        np.savez(file, **parts)
    with pytest.raises(ValueError, match="is not a saved index, or is damaged"):
        kind.load(path, PARAMETERS)


def test_a_pickle_is_small_and_says_all() -> None:
    assert len(pickle.dumps(Fingerprinter(PARAMETERS))) < 1_000
    assert again(Fingerprinter(PARAMETERS)).fingerprint(TEXTS) == Fingerprinter(
        PARAMETERS
    ).fingerprint(TEXTS)
    shingler = again(Shingler("word", 2, b"seed"))
    assert shingler.tokens([["a", "b"]]) == Shingler("word", 2, b"seed").tokens([["a", "b"]])


def test_another_process_makes_the_same_fingerprints() -> None:
    fingerprinter = Fingerprinter(PARAMETERS)
    fingerprinter.fingerprint(TEXTS)  # fills its tables
    with get_context("spawn").Pool(1) as pool:
        [prints] = pool.map_async(fingerprinter.fingerprint, [TEXTS]).get(SECONDS)
    assert prints == fingerprinter.fingerprint(TEXTS)


def test_fingerprints_are_equal_by_their_values_and_have_no_hash() -> None:
    prints = Fingerprinter(PARAMETERS).fingerprint(TEXTS)
    assert prints == Fingerprinter(PARAMETERS).fingerprint(list(TEXTS))
    assert prints != Fingerprinter(PARAMETERS).fingerprint(TEXTS[:3])
    assert prints != Fingerprinter(PARAMETERS).fingerprint(TEXTS[::-1])
    assert prints != "prints"
    wider = replace(prints, shingle_counts=prints.shingle_counts.astype(np.uint64))
    assert prints != wider
    shingles = Fingerprinter(PARAMETERS).shingles(TEXTS)
    assert shingles == Fingerprinter(PARAMETERS).shingles(TEXTS)
    assert shingles != Fingerprinter(PARAMETERS).shingles(TEXTS[1:])
    assert sized(Fingerprinter(PARAMETERS), TEXTS) == sized(Fingerprinter(PARAMETERS), TEXTS)
    assert sized(Fingerprinter(PARAMETERS), TEXTS) != sized(Fingerprinter(PARAMETERS), TEXTS[1:])
    for one in (prints, shingles):
        with pytest.raises(TypeError, match="unhashable"):
            hash(one)
