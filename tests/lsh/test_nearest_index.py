from __future__ import annotations

import numpy as np
import pytest

from lsh import Fingerprinter, NearestIndex, Parameters, fingerprint_tokens, forest, similarity

PARAMETERS = Parameters()


@pytest.fixture(autouse=True)
def _nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest, "_WAITING", 0)


TEXTS = [f"{animal} ran over the {place}" for animal in ("a fox", "a dog") for place in "abcdef"]


def test_neighbours_are_ranked_by_their_estimates_then_by_insertion() -> None:
    index = NearestIndex(PARAMETERS)
    index.add_many(enumerate(TEXTS))
    for k in (0, 1, 5, 12, 30):
        found = index.nearest("a fox ran over the hill", k)
        prints = Fingerprinter(PARAMETERS).fingerprint(["a fox ran over the hill", *TEXTS])
        alike = similarity(prints.sketches[0], prints.sketches[1:]).tolist()
        ranked = sorted(range(12), key=lambda row: (-alike[row], row))[:k]
        assert [(one.id, one.similarity) for one in found] == [(row, alike[row]) for row in ranked]


def test_a_copy_comes_first() -> None:
    index = NearestIndex(PARAMETERS)
    index.add_many(zip("abcdefghijkl", TEXTS, strict=True))
    assert index.nearest(TEXTS[7].upper(), 1) == [("h", 1.0)]
    assert [one.id for one in index.nearest(TEXTS[7], 12, least=0.9)][:1] == ["h"]


def test_a_blank_text_is_kept_but_not_found() -> None:
    index = NearestIndex(PARAMETERS)
    index.add_many([("a", ""), ("b", "some text")])
    assert ("a" in index, "b" in index, len(index)) == (True, True, 2)
    assert index.nearest(" ", 3) == []
    assert [one.id for one in index.nearest("some text", 3)] == ["b"]


def test_sets_have_neighbours_too() -> None:
    index = NearestIndex(PARAMETERS)
    prints = fingerprint_tokens([["a", "b"], ["c"]], PARAMETERS)
    index.add_sketches("xy", prints.sketches)
    assert index.nearest_sketch(prints.sketches[1], 1) == [("y", 1.0)]


def test_an_id_twice_is_refused() -> None:
    index = NearestIndex(PARAMETERS)
    index.add("a", "some text")
    with pytest.raises(ValueError, match="'a' is in the index"):
        index.add_many([("b", "one"), ("a", "two")])
    with pytest.raises(ValueError, match="got 1, takes as many as there are sets, 2"):
        index.add_sketches(["b"], np.zeros((2, 128), dtype=np.uint8))
    assert len(index) == 1


def test_a_document_that_was_removed_is_not_found_and_may_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forest, "_FEW_REMOVED", 1)
    index = NearestIndex(PARAMETERS)
    index.add_many([("blank", ""), *enumerate(TEXTS)])
    for gone in ("blank", 0, 7, 3, 4, 11, 5, 8):
        index.remove(gone)
        assert gone not in index
        with pytest.raises(KeyError):
            index.remove(gone)
    index.add(7, TEXTS[7])
    index.add("blank", " ")
    without = NearestIndex(PARAMETERS)
    without.add_many([(row, TEXTS[row]) for row in (1, 2, 6, 9, 10, 7)])
    for text in TEXTS:
        assert index.nearest(text, 9) == without.nearest(text, 9)
    assert len(index) == 7
