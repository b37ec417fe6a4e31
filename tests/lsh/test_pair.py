from __future__ import annotations

import pytest

from lsh import Fingerprinter, Parameters, compare

FINGERPRINTER = Fingerprinter(Parameters())
WORDS = Fingerprinter(Parameters(shingle="word", shingle_size=2))


def test_the_exact_similarity_is_that_of_the_sets_of_shingles() -> None:
    pair = compare(FINGERPRINTER, "abcdefg", "abcdefX")
    assert (pair.shingles, pair.distinct, pair.common) == ((3, 3), (3, 3), 2)
    assert pair.similarity == 2 / 4


def test_words_are_shingles_too() -> None:
    pair = compare(WORDS, "one two three", "One  two four")
    assert (pair.distinct, pair.common, pair.similarity) == ((2, 2), 1, 1 / 3)


def test_texts_that_are_equal_once_normalised_are_candidates_and_duplicates() -> None:
    pair = compare(FINGERPRINTER, "Hello,  world!", "hello, WORLD!")
    assert pair.same_text
    assert pair.candidates
    assert pair.duplicates
    assert (pair.similarity, pair.estimate, pair.error) == (1.0, 1.0, 0.0)
    assert pair.bands == tuple(range(18))


def test_a_pair_that_shares_no_band_is_no_duplicate_whatever_the_estimate() -> None:
    few = Fingerprinter(Parameters(threshold=0.4, bands=1, rows=64))
    pair = compare(few, "the quick brown fox jumps over it", "the quick brown fox jumped over it")
    assert pair.estimate > pair.threshold
    assert (pair.bands, pair.candidates, pair.duplicates) == ((), False, False)


def test_a_blank_text_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing is left"):
        compare(FINGERPRINTER, "a", " \n ")


@pytest.mark.parametrize("changed", [1, 10, 40, 100])
def test_the_estimate_is_near_the_exact_similarity(changed: int) -> None:
    words = [f"word{number}" for number in range(200)]
    others = [*(f"other{number}" for number in range(changed)), *words[changed:]]
    pair = compare(FINGERPRINTER, " ".join(words), " ".join(others))
    assert 0 < pair.error < 0.05
    assert abs(pair.estimate - pair.similarity) < 4 * pair.error


def test_the_lines_that_are_left_out_are_told_apart_from_the_text() -> None:
    listed = Parameters(boilerplate=frozenset({"Accept all", "Imprint"}), strip_html=True)
    left = "<p>ACCEPT  all</p><p>One report.</p><p>imprint</p>"
    pair = compare(Fingerprinter(listed), left, "One report.")
    assert pair.left_out == (("ACCEPT  all", "imprint"), ())
    assert pair.same_text
    # Where nothing would be left, all stays.
    assert compare(Fingerprinter(listed), "Imprint", "Imprint").left_out == ((), ())
    assert compare(FINGERPRINTER, "Imprint", "One report.").left_out == ((), ())
