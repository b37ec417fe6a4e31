"""Pairs and groups, against what all comparisons find."""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh import groups, pairwise_similarity
from lsh.groups import Similar, candidate_pairs, groups_of, largest_bucket
from tests.support.corpus import examples

SLOTS = 16
LEAST = 0.8


def documents(count: int, values: int, chance: Random) -> npt.NDArray[np.uint64]:
    """Return keys in 4 columns that have so many values each; equal texts have equal keys."""
    of_columns = values, values, values, chance.choice([values, 2 * count])
    rows = [[chance.randrange(most) for _ in range(count)] for most in of_columns]
    return of_texts(np.array(rows, np.uint64).reshape(4, count))


def of_texts(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    _, firsts, inverse = np.unique(keys[-1], return_index=True, return_inverse=True)
    return keys[:, firsts[inverse]]


def sketches(keys: npt.NDArray[np.uint64], chance: Random) -> npt.NDArray[np.uint8]:
    """Return sketches that are alike if their levels are near; those of one text are equal."""
    levels = np.array([chance.randint(0, SLOTS) for _ in range(keys.shape[1])], np.int64)
    _, firsts, inverse = np.unique(keys[-1], return_index=True, return_inverse=True)
    return (np.arange(SLOTS) < levels[firsts[inverse]][:, None]).astype(np.uint8)


def similar(of_rows: npt.NDArray[np.uint8], compared: list[int] | None = None) -> Similar:
    """Return what compares sketches, and notes how many each comparison takes."""

    def compare(
        left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        if compared is not None:
            compared.append(len(right))
        return pairwise_similarity(of_rows[left], of_rows[right])

    return compare


def all_pairs(keys: npt.NDArray[np.uint64], rows: list[int]) -> set[tuple[int, int]]:
    return {
        (one, other)
        for one, other in combinations(rows, 2)
        if (keys[:, one] == keys[:, other]).any()
    }


@settings(max_examples=examples(40), deadline=None)
@given(
    count=st.integers(0, 60),
    values=st.integers(1, 40),
    block=st.integers(1, 50),
    chance=st.randoms(use_true_random=False),
)
def test_every_pair_that_shares_a_key_comes_once(
    count: int, values: int, block: int, chance: Random
) -> None:
    keys = documents(count, values, chance)
    rows = sorted(chance.sample(range(count), chance.randint(0, count)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "_PAIRS", block)
        blocks = list(candidate_pairs(keys, np.array(rows, np.int64)))
    found = [
        pair for left, right in blocks for pair in zip(left.tolist(), right.tolist(), strict=True)
    ]
    assert len(found) == len(set(found))
    assert set(found) == all_pairs(keys, rows)
    most = max(
        (np.unique(one[rows], return_counts=True)[1].max() for one in keys if rows), default=0
    )
    assert largest_bucket(keys, np.array(rows, np.int64)) == most


@settings(max_examples=examples(60), deadline=None)
@given(
    count=st.integers(0, 60),
    values=st.integers(1, 40),
    small=st.integers(1, 10),
    chance=st.randoms(use_true_random=False),
)
def test_groups_are_the_connected_components_of_similar_pairs(
    count: int, values: int, small: int, chance: Random
) -> None:
    keys = documents(count, values, chance)
    of_rows = sketches(keys, chance)
    rows = sorted(chance.sample(range(count), chance.randint(0, count)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "_SMALL", small)
        labels = groups_of(keys, similar(of_rows), np.array(rows, np.int64), LEAST)
    expected = list(range(count))
    for one, other in sorted(all_pairs(keys, rows)):
        if pairwise_similarity(of_rows[[one]], of_rows[[other]])[0] >= LEAST:
            first, second = sorted((expected[one], expected[other]))
            expected = [first if label == second else label for label in expected]
    assert labels.tolist() == expected


def test_groups_of_many_near_copies_compare_few_pairs() -> None:
    """Each of 3,000 documents in one bucket is near each other, and no two are equal."""
    count = 3_000
    keys = np.stack([np.zeros(count), np.zeros(count), np.arange(count)]).astype(np.uint64)
    near = np.zeros((count, 128), np.uint8)
    near[np.arange(count), np.arange(count) % 128] = np.arange(count) // 128 + 1
    compared: list[int] = []
    labels = groups_of(keys, similar(near, compared), np.arange(count), 0.8)
    assert not labels.any()
    assert 0 < sum(compared) < count


def test_what_other_bands_connected_is_not_compared() -> None:
    keys = np.array([[1, 1, 2], [3, 4, 4], [5, 6, 5], [7, 8, 9]], np.uint64)
    near = np.zeros((3, 128), np.uint8)
    near[1, 0] = near[2, 1] = 1
    compared: list[int] = []
    assert not groups_of(keys, similar(near, compared), np.arange(3), 0.8).any()
    assert sum(compared) == 2


def test_groups_of_copies_compare_none() -> None:
    count = 3_000
    keys, same = np.zeros((3, count), np.uint64), np.zeros((count, 128), np.uint8)
    compared: list[int] = []
    assert not groups_of(keys, similar(same, compared), np.arange(count), 0.8).any()
    assert sum(compared) == 0
