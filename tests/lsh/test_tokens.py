from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh import (
    Fingerprinter,
    Parameters,
    exact_jaccard,
    fingerprint_counts,
    fingerprint_tokens,
    pairwise_similarity,
)
from lsh.tokens import MOST_COUNT
from tests.support.corpus import examples

WORDS = Parameters(shingle="word", shingle_size=1)
FINGERPRINTER = Fingerprinter(WORDS)
tokens = st.text(st.sampled_from("ab\u00e9"), min_size=1, max_size=3)
bags = st.dictionaries(tokens, st.integers(0, 5), max_size=6)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.lists(tokens, max_size=8), max_size=5))
def test_words_have_the_fingerprint_of_their_text(sets: list[list[str]]) -> None:
    found = fingerprint_tokens(sets, WORDS)
    expected = FINGERPRINTER.fingerprint([" ".join(words) for words in sets])
    np.testing.assert_array_equal(found.keys[:, :-1], expected.keys[:, :-1])
    np.testing.assert_array_equal(found.sketches, expected.sketches)
    np.testing.assert_array_equal(found.blank, expected.blank)
    assert found.shingle_counts.tolist() == [len(set(words)) for words in sets]
    # A set never has the key of a text.
    assert not (found.keys[~found.blank, -1] == expected.keys[~found.blank, -1]).any()


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(tokens, max_size=8), st.lists(tokens, max_size=8), st.sampled_from([3, 5, 64]))
def test_order_repeats_and_encoding_change_nothing(
    one: list[str], other: list[str], size: int
) -> None:
    parameters = Parameters(shingle_size=size)
    sets: list[Any] = [one, [*one[::-1], *one], {token.encode() for token in one}, other]
    keys = fingerprint_tokens(sets, parameters).keys
    np.testing.assert_array_equal(keys[0], keys[1])
    np.testing.assert_array_equal(keys[0], keys[2])
    assert (keys[0, -1] == keys[3, -1]) == (set(one) == set(other))


@settings(max_examples=examples(40), deadline=None)
@given(bags, bags)
def test_counts_stand_for_as_many_elements(a: dict[str, int], b: dict[str, int]) -> None:
    counted = fingerprint_counts([a, b], WORDS)
    elements = [[(token, n) for token in bag for n in range(bag[token])] for bag in (a, b)]
    assert counted.shingle_counts.tolist() == [len(one) for one in elements]
    same = set(elements[0]) == set(elements[1])
    assert (counted.keys[0, -1] == counted.keys[1, -1]) == same
    assert (counted.sketches[0] == counted.sketches[1]).all() == same


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.frozensets(tokens, max_size=6), max_size=5))
def test_counts_of_one_are_a_set(sets: list[frozenset[str]]) -> None:
    one = fingerprint_tokens(sets, WORDS)
    other = fingerprint_counts([dict.fromkeys(tokens, 1) for tokens in sets], WORDS)
    np.testing.assert_array_equal(one.keys, other.keys)
    np.testing.assert_array_equal(one.sketches, other.sketches)


def test_estimates_are_those_of_the_counts() -> None:
    rng = np.random.default_rng(3)
    pairs = [
        ({f"{pair} {n}": count for n, count in enumerate(counts)}, dict[str, int]())
        for pair, counts in enumerate(rng.integers(1, 9, (400, 20)).tolist())
    ]
    for one, other in pairs:
        other.update({token: int(rng.integers(0, 2 * n + 1)) for token, n in one.items()})
    sketches = fingerprint_counts([bag for pair in pairs for bag in pair], WORDS).sketches
    estimates = pairwise_similarity(sketches[0::2], sketches[1::2])
    true = np.array([exact_jaccard(one, other) for one, other in pairs])
    error = np.sqrt((true * (1 - true) / WORDS.slots).mean())
    assert abs((estimates - true).mean()) <= 4.5 * error / len(pairs) ** 0.5
    assert (estimates - true).std() <= error * 1.2


@pytest.mark.parametrize("wrong", ["text", b"bytes", [1, 2], [None]])
def test_what_is_no_set_of_tokens_is_refused(wrong: Any) -> None:  # noqa: ANN401 -- wrong types
    with pytest.raises(TypeError, match="tokens: got"):
        fingerprint_tokens([["fine"], wrong], WORDS)


@pytest.mark.parametrize("count", [-1, 1.5, MOST_COUNT + 1])
def test_what_is_no_count_is_refused(count: Any) -> None:  # noqa: ANN401 -- wrong types
    with pytest.raises(ValueError, match=rf"count: got {count}"):
        fingerprint_counts([{"a": count}], WORDS)


def test_no_sets_have_no_fingerprints() -> None:
    assert fingerprint_tokens([], WORDS).keys.shape == (0, 19)
    assert fingerprint_counts([], WORDS).sketches.shape == (0, 128)
