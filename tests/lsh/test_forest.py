from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lsh import Forest, forest, similarity
from lsh.forest import LONGEST_RUN, run_chance, run_for
from tests.support.corpus import examples


@pytest.fixture(autouse=True)
def _nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest, "_WAITING", 0)


def longest_run(one: NDArray[np.uint8], other: NDArray[np.uint8], trees: int) -> int:
    """Return the longest run of equal slots that begins in one of the first `trees`."""
    equal = (one == other).tolist()
    longest = 0
    for begin in range(trees):
        run = 0
        while run < LONGEST_RUN and equal[(begin + run) % len(equal)]:
            run += 1
        longest = max(longest, run)
    return longest


def few_values(count: int, slots: int, seed: int) -> NDArray[np.uint8]:
    """Return sketches of few different values, so that many slots agree; high ones, too."""
    values = np.array([0, 1, 254, 255], dtype=np.uint8)
    return values[np.random.default_rng(seed).integers(0, 4, (count, slots))]


@settings(max_examples=examples(50), deadline=None)
@given(
    st.lists(st.integers(0, 7), max_size=6),
    st.sampled_from([1, 2, 5, 8, 16, 300]),
    st.integers(1, LONGEST_RUN),
    st.integers(0, 2**32),
)
def test_what_meets_is_what_agrees_in_a_run(
    batches: list[int], slots: int, run: int, seed: int
) -> None:
    table = few_values(sum(batches) + 1, slots, seed)
    trees, added = Forest(slots), 1
    for batch in batches:
        trees.add(table[added : added + batch])
        added += batch
        # Also between insertions, which builds parts and makes one of them.
        runs = [longest_run(table[0], other, min(slots, 256)) for other in table[1:added]]
        expected = [row for row, length in enumerate(runs) if length >= run]
        assert trees.meeting(table[0], run).tolist() == expected
    assert len(trees) == sum(batches)
    assert len(trees.meeting(table[0], 0)) == sum(batches)
    np.testing.assert_array_equal(trees.sketches, table[1:])


def test_what_waits_is_met_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest, "_WAITING", 3)
    trees = Forest(8)
    zeros, ones = np.zeros((5, 8), dtype=np.uint8), np.ones((5, 8), dtype=np.uint8)
    trees.add(zeros)
    assert trees.meeting(ones[0], 1).tolist() == []
    trees.add(zeros[:3])
    assert trees.meeting(ones[0], 1).tolist() == [5, 6, 7]
    trees.add(zeros[:1])
    assert trees.meeting(ones[0], 1).tolist() == []


def by_scan(table: NDArray[np.uint8], sketch: NDArray[np.uint8], k: int) -> list[int]:
    alike = similarity(sketch, table)
    return sorted(range(len(table)), key=lambda row: (-alike[row], row))[:k]


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(0, 12), st.integers(0, 15), st.integers(0, 2**32))
def test_at_recall_one_the_nearest_are_those_of_a_scan(count: int, k: int, seed: int) -> None:
    table = few_values(count + 1, 32, seed)
    trees = Forest(32)
    trees.add(table[1:])
    found = trees.nearest(table[0], k, recall=1.0)
    assert found.rows.tolist() == by_scan(table[1:], table[0], k)
    np.testing.assert_array_equal(found.similarity, similarity(table[0], table[1:][found.rows]))


def near_copies(seed: int) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
    """Yield sketches, and tables of 300 others: 20 with more and more slots in common."""
    rng = np.random.default_rng(seed)
    for _ in range(30):
        table = rng.integers(0, 256, (301, 128), dtype=np.uint8)
        for row, share in enumerate(np.linspace(0.2, 1, 20)):
            same = rng.random(128) < share
            table[row + 1, same] = table[0, same]
        yield table[0], table[1:]


def test_the_nearest_are_found_as_often_as_was_asked_for() -> None:
    hits = wanted = compared = 0
    for sketch, table in near_copies(seed=4):
        trees = Forest(128)
        trees.add(table)
        found = trees.nearest(sketch, 10)
        hits += len(set(found.rows.tolist()) & set(by_scan(table, sketch, 10)))
        wanted += 10
        compared += found.compared
    assert hits / wanted >= 0.98
    assert compared <= 0.1 * 30 * 300


def test_what_is_less_similar_than_asked_for_is_left_out() -> None:
    sketch, table = next(near_copies(seed=5))
    trees = Forest(128)
    trees.add(table)
    found = trees.nearest(sketch, 300, least=0.5)
    assert 5 < len(found.rows) < 20
    assert found.similarity.min() >= 0.5


@pytest.mark.parametrize("run", [1, 2, 3, 7])
@pytest.mark.parametrize("similarity", [0.0, 0.3, 0.9, 1.0])
def test_the_chance_of_a_run_is_that_of_all_outcomes(similarity: float, run: int) -> None:
    agree = similarity + (1 - similarity) / 256
    for slots in (1, 5, 9):
        outcomes = product("01", repeat=slots)
        chances = (
            agree ** one.count("1") * (1 - agree) ** one.count("0")
            for one in outcomes
            if "1" * run in "".join(one)
        )
        assert run_chance(similarity, slots, run) == pytest.approx(sum(chances), abs=1e-12)


def test_a_run_is_the_longest_that_is_likely_enough() -> None:
    assert run_for(1.0, 128, 0.98) == LONGEST_RUN
    assert run_for(0.0, 128, 0.98) == 0
    for alike in (0.05, 0.2, 0.5, 0.7):
        run = run_for(alike, 128, 0.98)
        assert run == 0 or run_chance(alike, 128, run) >= 0.98
        assert run_chance(alike, 128, run + 1) < 0.98


def test_sketches_meet_as_often_as_the_chance_says() -> None:
    rng = np.random.default_rng(8)
    table = rng.integers(0, 256, (4000, 128), dtype=np.uint8)
    sketch = rng.integers(0, 256, 128, dtype=np.uint8)
    same = rng.random(table.shape) < 0.5
    table[same] = np.broadcast_to(sketch, table.shape)[same]
    trees = Forest(128)
    trees.add(table)
    for run in range(3, LONGEST_RUN + 1):
        # The runs across the end add a little.
        met, chance = len(trees.meeting(sketch, run)) / 4000, run_chance(0.5, 128, run)
        assert chance - 0.03 <= met <= chance + 0.05


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), max_size=4),
    st.integers(0, LONGEST_RUN),
    st.sampled_from([0, 256]),
    st.integers(0, 2**32),
)
def test_what_was_removed_was_never_there(
    batches: list[tuple[int, int]], run: int, waiting: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    trees, table = Forest(8), few_values(1, 8, seed)
    left: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest, "_WAITING", waiting)
        for added, removed in batches:
            left += range(len(table) - 1, len(table) - 1 + added)
            table = np.concatenate((table, few_values(added, 8, seed + len(table))))
            trees.add(table[len(table) - added :])
            for row in rng.permutation(left)[:removed].tolist():
                trees.remove(row)
                left.remove(row)
            without = Forest(8)
            without.add(table[1:][left])
            for one in (without, trees.compacted()):
                assert [left[row] for row in one.meeting(table[0], run).tolist()] == (
                    trees.meeting(table[0], run).tolist()
                )
                for k in (1, 4):
                    expected, found = one.nearest(table[0], k), trees.nearest(table[0], k)
                    assert [left[row] for row in expected.rows.tolist()] == found.rows.tolist()
                    assert expected.similarity.tolist() == found.similarity.tolist()
                    assert expected.compared == found.compared
            assert len(trees) == len(left) == len(trees.compacted())
            assert trees.rows.tolist() == left


def test_only_a_sketch_that_is_there_is_removed() -> None:
    trees = Forest(8)
    trees.add(few_values(3, 8, 1))
    trees.remove(1)
    for row in (1, 3, -1):
        with pytest.raises(IndexError, match=f"row: got {row}, which has no sketch"):
            trees.remove(row)
    assert len(trees) == 2
