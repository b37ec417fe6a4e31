from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lsh import exact
from lsh.exact import ShingleSets, copies, jaccard, join, shingle_sets

Documents = list[list[int]]
Found = dict[tuple[int, int], float]

# Few different numbers, so that sets overlap; the hashes spread over the whole range.
numbers = st.integers(0, 40).map(lambda number: number * 0x9E3779B97F4A7C15 % 2**64)
documents = st.lists(st.lists(numbers, max_size=30), min_size=1, max_size=25)
thresholds = st.sampled_from([0.05, 0.3, 0.5, 0.55, 2 / 3, 0.8, 0.9, 1.0])


def sets_of(given: Sequence[Sequence[int]]) -> ShingleSets:
    starts = np.cumsum([0, *map(len, given)])
    flat = [number for document in given for number in document]
    return shingle_sets(np.array(flat, dtype=np.uint64), starts)


def by_hand(given: Documents, threshold: float) -> Found:
    """Compare every document with every later one, unless one repeats the set of another."""
    sets = [frozenset(document) for document in given]
    firsts = [number for number, one in enumerate(sets) if one and sets.index(one) == number]
    alike = {
        (left, right): len(sets[left] & sets[right]) / len(sets[left] | sets[right])
        for left in firsts
        for right in firsts
        if left < right
    }
    return {pair: similarity for pair, similarity in alike.items() if similarity >= threshold}


def joined(sets: ShingleSets, threshold: float) -> Found:
    found: Found = {}
    for block in join(sets, threshold):
        pairs = zip(block.left.tolist(), block.right.tolist(), strict=True)
        for pair, similarity in zip(pairs, block.similarity.tolist(), strict=True):
            assert pair not in found
            found[pair] = similarity
    return found


@given(documents, thresholds)
def test_the_join_finds_what_comparing_all_pairs_finds(given: Documents, threshold: float) -> None:
    assert joined(sets_of(given), threshold) == by_hand(given, threshold)


@given(documents, thresholds, st.sampled_from([1, 8, 64]), st.sampled_from([0, 4]))
def test_neither_the_size_of_a_step_nor_the_way_of_counting_matters(
    given: Documents, threshold: float, budget: int, dense: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "_BUDGET", budget)
        patch.setattr(exact, "_DENSE", dense)
        patch.setattr(exact, "_SHARED", 2)
        assert joined(sets_of(given), threshold) == by_hand(given, threshold)


@given(documents)
def test_sets_have_each_shingle_once_and_rare_ones_first(given: Documents) -> None:
    sets = sets_of(given)
    frequency: dict[int, int] = {}
    for document in given:
        for number in document:
            frequency[number] = frequency.get(number, 0) + 1
    names: dict[int, int] = {}
    assert sets.distinct == len(frequency)
    assert sets.sizes.tolist() == [len(set(document)) for document in given]
    for document, low, high in zip(given, sets.starts[:-1], sets.starts[1:], strict=True):
        tokens = sets.tokens[low:high].tolist()
        assert tokens == sorted(set(tokens))
        own = sorted(set(document), key=frequency.__getitem__)
        for token, count in zip(tokens, map(frequency.__getitem__, own), strict=True):
            assert names.setdefault(token, count) == count
    ordered = [names[token] for token in sorted(names)]
    assert ordered == sorted(ordered)


@given(documents)
def test_a_copy_is_named_by_the_first_document_with_its_set(given: Documents) -> None:
    sets = [frozenset(document) for document in given]
    expected = [sets.index(one) if one else number for number, one in enumerate(sets)]
    assert copies(sets_of(given)).tolist() == expected


@given(documents, st.data())
def test_given_pairs_are_compared_as_they_come(given: Documents, data: st.DataObject) -> None:
    number = st.integers(0, len(given) - 1)
    pairs = data.draw(st.lists(st.tuples(number, number), max_size=30))
    left: NDArray[np.int64] = np.array([pair[0] for pair in pairs], dtype=np.int64)
    right: NDArray[np.int64] = np.array([pair[1] for pair in pairs], dtype=np.int64)
    expected = []
    for one, other in pairs:
        a, b = set(given[one]), set(given[other])
        expected.append(len(a & b) / len(a | b) if a | b else 0.0)
    assert jaccard(sets_of(given), left, right).tolist() == expected


def test_the_share_that_is_done_ends_at_one_and_copies_take_no_time() -> None:
    sets = sets_of([[1, 2, 3], [1, 2, 4], *([[7, 8, 9]] * 1000)])
    blocks = list(join(sets, 0.5))
    assert [block.done for block in blocks] == [1.0]
    assert joined(sets, 0.5) == {(0, 1): 0.5}


def test_nothing_is_found_among_nothing() -> None:
    assert joined(sets_of([[], []]), 0.5) == {}
