from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsh import (
    Fingerprinter,
    Parameters,
    band_keys,
    compact,
    compare,
    exact_containment,
    exact_jaccard,
    is_candidate,
    shared_bands,
    shingle_set,
)

sets = st.frozensets(st.integers(0, 12), max_size=10)
bags = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 4), max_size=4)


@given(sets, sets)
def test_the_measures_of_sets_are_their_definitions(a: frozenset[int], b: frozenset[int]) -> None:
    assert exact_jaccard(a, b) == (len(a & b) / len(a | b) if a | b else 0)
    assert exact_containment(a, b) == (len(a & b) / len(a) if a else 0)


@given(bags, bags)
def test_whole_weights_count_repeats(a: dict[str, int], b: dict[str, int]) -> None:
    one, other = Counter(a), Counter(b)
    common, union = (one & other).total(), (one | other).total()
    assert exact_jaccard(a, b) == (common / union if union else 0)
    assert exact_containment(a, b) == (common / one.total() if one.total() else 0)


def test_weights_need_not_be_whole() -> None:
    assert exact_jaccard({"a": 0.5, "b": 1.5}, {"b": 0.5, "c": 1}) == pytest.approx(0.5 / 3)
    assert exact_containment({"a": 0.5, "b": 1.5}, {"b": 0.5, "c": 1}) == pytest.approx(0.25)


@given(sets)
def test_repeats_in_a_set_change_nothing(a: frozenset[int]) -> None:
    assert exact_jaccard([*a, *a], a) == (1 if a else 0)


@pytest.mark.parametrize("parameters", [None, Parameters(shingle="word", shingle_size=2)])
def test_texts_are_sets_of_shingles(parameters: Parameters | None) -> None:
    left, right = "The quick brown fox  jumps", "the quick brown DOG jumps"
    pair = compare(Fingerprinter(parameters or Parameters()), left, right)
    one, other = shingle_set(left, parameters), shingle_set(right, parameters)
    assert exact_jaccard(left, right, parameters) == exact_jaccard(one, other) == pair.similarity
    assert exact_containment(left, right, parameters) == len(one & other) / len(one)


@pytest.mark.parametrize("kind", ["char", "word"])
def test_a_short_text_is_one_shingle_and_a_blank_one_has_none(kind: Any) -> None:  # noqa: ANN401 -- a literal
    parameters = Parameters(shingle=kind)
    assert len(shingle_set("abc", parameters)) == 1
    assert shingle_set(" \n", parameters) == frozenset()
    assert exact_jaccard(" ", "", parameters) == 0


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ("text", {"t"}, "a set and a text"),
        ({"t": 1}, {"t"}, "a set and weights"),
        (b"text", b"text", "got bytes"),
    ],
)
def test_things_of_different_kinds_are_not_compared(a: Any, b: Any, message: str) -> None:  # noqa: ANN401 -- wrong types
    with pytest.raises(TypeError, match=message):
        exact_jaccard(a, b)


@pytest.mark.parametrize("weight", [-1, float("nan")])
def test_a_weight_that_is_none_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="weight of 't'"):
        exact_jaccard({"t": weight}, {"t": 1})


@given(st.sets(st.integers(0, 127)), st.sampled_from([(18, 7), (128, 1), (1, 128), (3, 5)]))
def test_a_band_is_shared_if_its_keys_are_equal(
    changed: set[int], division: tuple[int, int]
) -> None:
    bands, rows = division
    table = np.random.default_rng(1).integers(0, 2**64, (2, 128), dtype=np.uint64)
    table[1] = table[0] ^ np.uint64(1 << 8)  # which no sketch keeps
    table[1, list(changed)] ^= np.uint64(1)
    sketches = compact(table)
    keys = band_keys(sketches, bands, rows)
    expected = tuple(np.flatnonzero(keys[0] == keys[1]).tolist())
    assert shared_bands(table[0], table[1], bands, rows) == expected
    assert shared_bands(sketches[0], sketches[1], bands, rows) == expected
    assert is_candidate(table[0], table[1], bands, rows) == bool(expected)


def test_shared_bands_refuse_more_slots_than_there_are() -> None:
    slots = np.zeros(16, dtype=np.uint64)
    with pytest.raises(ValueError, match=r"got 10 \* 2, .* 16"):
        is_candidate(slots, slots, 10, 2)
