from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsh import candidate_chance, detection
from lsh.exact import ShingleSets, shingle_sets
from lsh.spectrum import Spectrum, spectrum

numbers = st.integers(0, 30).map(lambda number: number * 0x9E3779B97F4A7C15 % 2**64)
documents = st.lists(st.lists(numbers, max_size=12), min_size=2, max_size=15)


def sets_of(given: list[list[int]]) -> ShingleSets:
    flat = [number for document in given for number in document]
    return shingle_sets(np.array(flat, dtype=np.uint64), np.cumsum([0, *map(len, given)]))


def compared(given: list[list[int]], least: float) -> tuple[float, list[float]]:
    """Compare each document with the earlier ones that are the first of their kind."""
    sets = [frozenset(document) for document in given]
    total, nearest = 0.0, []
    for number, one in enumerate(sets):
        earlier = [other for at, other in enumerate(sets[:number]) if other not in sets[:at]]
        alike = [len(one & other) / len(one | other) for other in earlier if one and other]
        total += sum(
            float(candidate_chance(similarity, 4, 2)) for similarity in alike if similarity >= least
        )
        nearest += [max(alike)] if alike and max(alike) >= least else []
    return total, nearest


@given(documents)
def test_pairs_above_the_floor_are_those_of_comparing_all(given: list[list[int]]) -> None:
    found = spectrum(sets_of(given), 0.3)
    kept = sum(bool(document) for document in given)
    total, nearest = compared(given, 0.3)
    assert found.documents == kept
    assert sorted(found.nearest.tolist()) == sorted(nearest)
    high = found.similarity >= 0.3
    assert float(
        candidate_chance(found.similarity[high], 4, 2) @ found.weight[high]
    ) == pytest.approx(total)


def test_pairs_below_the_floor_stand_for_all_that_were_not_drawn() -> None:
    random = np.random.default_rng(3)
    given = [random.integers(0, 300, 60).tolist() for _ in range(200)]
    found = spectrum(sets_of(given), 0.5)
    assert found.weight.sum() == pytest.approx(200 * 199 / 2)
    total, _ = compared(given, 0.0)
    assert found.candidates(4, 2) * 200 == pytest.approx(total, rel=0.01)


def test_what_is_found_follows_the_model() -> None:
    nearest = np.array([0.5, 0.7, 0.9])
    seen = Spectrum(3, nearest, np.ones(1), np.zeros(1), 0.5)
    count, expected = seen.found(0.6, 0.8, 128, 18, 7)
    assert count == 2
    assert expected == pytest.approx(float(detection([0.7, 0.9], 0.8, 128, 18, 7).sum()), abs=1e-4)


def test_published_pairs_are_those_that_the_model_detects_by_their_weights() -> None:
    similarity, weight = np.array([0.3, 0.7, 0.8, 1.0]), np.array([900.0, 10.0, 3.0, 2.0])
    seen = Spectrum(40, np.ones(1), similarity, weight, 0.2)
    each = detection(similarity, 0.8, 128, 18, 7) * weight
    assert seen.published(0.0, 0.8, 128, 18, 7) == pytest.approx(each.sum(), abs=1e-3)
    assert seen.published(0.8, 0.8, 128, 18, 7) == pytest.approx(each[2:].sum(), abs=1e-3)


def test_one_document_has_no_pair() -> None:
    found = spectrum(sets_of([[1, 2, 3], []]), 0.5)
    assert (found.documents, len(found.nearest), found.candidates(18, 7)) == (1, 0, 0.0)
