from __future__ import annotations

import doctest
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lsh
from lsh import (
    Fingerprinter,
    Fingerprints,
    Parameters,
    compact,
    shingle_set,
    signatures,
    similarity,
)
from tests.support.breadth import slow
from tests.support.corpus import examples

CHARS = Parameters()
WORDS = Parameters(shingle="word", shingle_size=2)
LONG = {
    "ascii": "The quick brown fox. " * 100_000,
    "wide": "\u4e2d\u6587 \u00e9 " * 300_000,
    "tiny words": "a b " * 500_000,
}
TEXTS = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.text(st.sampled_from("aB \n\u00e9"), max_size=12),
        st.builds(lambda text, times: text * times, st.text(max_size=9), st.integers(0, 200)),
    ),
    max_size=10,
)


def assert_same(a: Fingerprints, b: Fingerprints) -> None:
    np.testing.assert_array_equal(a.keys, b.keys)
    np.testing.assert_array_equal(a.sketches, b.sketches)
    np.testing.assert_array_equal(a.shingle_counts, b.shingle_counts)
    np.testing.assert_array_equal(a.blank, b.blank)


def rows(prints: Fingerprints, order: list[int]) -> Fingerprints:
    return Fingerprints(
        prints.keys[order],
        prints.sketches[order],
        prints.shingle_counts[order],
        prints.blank[order],
    )


@given(TEXTS, st.sampled_from([CHARS, WORDS]))
def test_a_batch_is_its_texts_one_by_one(texts: list[str], parameters: Parameters) -> None:
    prints = Fingerprinter(parameters).fingerprint(texts)
    for row, text in enumerate(texts):
        assert_same(Fingerprinter(parameters).fingerprint([text]), rows(prints, [row]))


@given(TEXTS.flatmap(lambda texts: st.tuples(st.just(texts), st.permutations(range(len(texts))))))
def test_the_order_of_a_batch_changes_nothing(drawn: tuple[list[str], list[int]]) -> None:
    texts, order = drawn
    fingerprinter = Fingerprinter(CHARS)
    prints = fingerprinter.fingerprint(texts)
    assert_same(fingerprinter.fingerprint([texts[row] for row in order]), rows(prints, order))


@given(TEXTS)
def test_a_text_and_its_normal_form_are_one(texts: list[str]) -> None:
    fingerprinter = Fingerprinter(CHARS)
    normal = [fingerprinter.normalise(text) for text in texts]
    assert_same(fingerprinter.fingerprint(texts), fingerprinter.fingerprint(normal))


@settings(max_examples=examples(10))
@given(st.integers(1, 70_000), st.integers(1, 9))
def test_blocks_and_chunks_leave_no_seam(length: int, copies: int) -> None:
    text = "".join(chr(97 + at * at % 26) for at in range(length))
    prints = Fingerprinter(CHARS).fingerprint([text] * copies + [text + "\u00e9"])
    assert (prints.keys[:copies] == prints.keys[0]).all()
    if length > 1000:
        assert similarity(prints.sketches[0], prints.sketches[-1:])[0] > 0.5


def test_shapes_and_types() -> None:
    prints = Fingerprinter(CHARS).fingerprint(["a text", "another"])
    for array, shape, dtype in (
        (prints.keys, (2, 19), "uint64"),
        (prints.sketches, (2, 128), "uint8"),
        (prints.shingle_counts, (2,), "uint32"),
        (prints.blank, (2,), "bool"),
    ):
        assert array.shape == shape
        assert array.dtype == dtype
    assert Fingerprinter(CHARS).fingerprint([]).keys.shape == (0, 19)


@pytest.mark.parametrize("parameters", [CHARS, WORDS])
def test_a_blank_text_is_marked_and_its_row_is_zeros(parameters: Parameters) -> None:
    prints = Fingerprinter(parameters).fingerprint(["", "text", " \n\t", "\u3000"])
    assert prints.blank.tolist() == [True, False, True, True]
    for array in (prints.keys, prints.sketches, prints.shingle_counts):
        assert not array[prints.blank].any()
        assert array[~prints.blank].any()


def test_windows_are_counted_and_not_distinct_shingles() -> None:
    counts = Fingerprinter(CHARS).fingerprint(["ab", "abcde", "aaaaaaaaa"]).shingle_counts
    assert counts.tolist() == [1, 1, 5]
    counts = Fingerprinter(WORDS).fingerprint(["one", "one two", "a a a a"]).shingle_counts
    assert counts.tolist() == [1, 1, 3]


def test_another_seed_changes_every_key_and_the_sketch() -> None:
    text = "The quick brown fox jumps over the lazy dog."
    ours = Fingerprinter(CHARS).fingerprint([text])
    theirs = Fingerprinter(Parameters(seed=b"another")).fingerprint([text])
    assert not (ours.keys == theirs.keys).any()
    assert similarity(ours.sketches[0], theirs.sketches)[0] < 0.1


def test_short_texts_match_only_themselves() -> None:
    texts = [chr(code) for code in range(97, 123)] + ["ab", "ba", "abc"]
    prints = Fingerprinter(CHARS).fingerprint(texts)
    for row in range(len(texts)):
        estimates = similarity(prints.sketches[row], prints.sketches)
        assert estimates[row] == 1.0
        assert np.delete(estimates, row).max() < 0.1


def test_the_ascii_path_and_the_other_agree() -> None:
    # One text comes as ASCII, the other with full-width forms that NFKC makes ASCII.
    plain = "Breaking News: 42 dogs, one cat!"
    wide = "".join(chr(ord(char) + 0xFEE0) if char != " " else "\u3000" for char in plain)
    prints = Fingerprinter(CHARS).fingerprint([plain, wide])
    assert_same(rows(prints, [0]), rows(prints, [1]))


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        slow(CHARS, LONG["ascii"]),
        (CHARS, LONG["wide"]),
        slow(CHARS, LONG["tiny words"]),
        (WORDS, LONG["ascii"]),
        slow(WORDS, LONG["wide"]),
        slow(WORDS, LONG["tiny words"]),
    ],
    ids=[f"{kind}-{text}" for kind in ("char", "word") for text in LONG],
)
def test_a_long_text_takes_at_most_forty_bytes_for_each_character(
    text: str, parameters: Parameters
) -> None:
    fingerprinter = Fingerprinter(parameters)
    tracemalloc.start()
    try:
        fingerprinter.fingerprint([text])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(text) + (1 << 22)


def test_the_example_in_the_package_runs() -> None:
    assert doctest.testmod(lsh) == doctest.TestResults(failed=0, attempted=3)


def test_text_without_words_is_blank_where_shingles_are_words() -> None:
    kept = Parameters(shingle="word", collapse_whitespace=False)
    assert Fingerprinter(kept).fingerprint([" \n", " a"]).blank.tolist() == [True, False]


def test_degenerate_long_texts_match_by_what_they_repeat() -> None:
    prints = Fingerprinter(CHARS).fingerprint(["ab" * 100_000, "ab" * 5, "cd" * 100_000])
    assert similarity(prints.sketches[0], prints.sketches[1:])[0] == 1.0
    assert similarity(prints.sketches[0], prints.sketches[1:])[1] < 0.1


def test_shingles_are_those_of_the_fingerprints_in_the_order_of_the_texts() -> None:
    texts = ["Über den Fluss", "a ferry", "", "日本語のテキスト", "the old ferry line"]
    fingerprinter = Fingerprinter(Parameters())
    shingles = fingerprinter.shingles(texts)
    expected = fingerprinter.fingerprint(texts)
    assert np.diff(shingles.starts).tolist() == expected.shingle_counts.tolist()
    signed = signatures(shingles.hashes, shingles.starts, Parameters().slots)
    assert np.array_equal(compact(signed), expected.sketches)
    assert fingerprinter.shingles([]).starts.tolist() == [0]


@given(TEXTS, st.sampled_from([CHARS, WORDS]))
def test_the_size_of_a_text_is_that_of_its_set_of_shingles(
    texts: list[str], parameters: Parameters
) -> None:
    sizes = Fingerprinter(parameters).sizes(texts)
    assert sizes.tolist() == [len(shingle_set(text, parameters)) for text in texts]
    assert sizes.dtype == np.int64
