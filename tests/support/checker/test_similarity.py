"""Matches that aren't similar are found, by sets of strings and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lsh import Parameters
from tests.support.checker import check
from tests.support.checker.examples import document, published
from tests.support.checker.history import History
from tests.support.checker.similarity import jaccard, shingles, similarity
from worker.bus import Record

LETTERS = "".join(chr(0x4E00 + place) for place in range(1_000))
"""No shingle occurs twice in it: windows of texts cut from it are easily counted."""


def texts(*pairs: tuple[str, str]) -> History:
    """Give a history of pairs of texts, the second of each matching the first."""
    inputs: list[Record] = []
    unique, duplicate = [], []
    for number, pair in enumerate(pairs):
        for copy, text in enumerate(pair):
            offset = 2 * number + copy
            given = document(offset, f"{number}-{copy}", text)
            inputs.append(given)
            if copy:
                match = f"{number}-0"
                first = match, offset - 1
                duplicate.append(published(given, number, offset, match, first=first))
            else:
                unique.append(published(given, number, offset))
    return History(inputs, unique, duplicate)


def overlapping(share: float) -> tuple[str, str]:
    """Give two texts of 104 shingles or fewer, of which they share this part."""
    moved = round(100 * (1 - share) / (1 + share))
    return LETTERS[:104], LETTERS[moved : 104 + moved]


def test_exact_similarity() -> None:
    parameters = Parameters()
    one, two = (shingles(text, parameters) for text in ("abcdefg", "ABCDEF\t\n"))
    assert one == {"abcde", "bcdef", "cdefg"}
    assert two == {"abcde", "bcdef"}
    assert jaccard(one, two) == pytest.approx(2 / 3)
    assert shingles("abcd", parameters) == frozenset()
    words = replace(parameters, shingle="word", shingle_size=2)
    assert shingles("The  cat\nsat", words) == {("the", "cat"), ("cat", "sat")}


def test_pairs_that_are_similar_are_no_problem() -> None:
    history = texts(*[overlapping(share) for share in (1, 0.95, 0.8, 0.72)])
    assert check(history) == []


def test_an_excerpt_is_no_problem_with_a_containment() -> None:
    whole, half = LETTERS[:104], LETTERS[30:84]
    for pair, parameters, problems in (
        ((whole, half), Parameters(containment=0.9), 0),
        ((half, whole), Parameters(containment=0.9), 1),
        ((whole, half), Parameters(), 1),
    ):
        assert len(list(similarity(replace(texts(pair), parameters=parameters)))) == problems


@pytest.mark.parametrize(
    "pair",
    [
        overlapping(0.5),
        (LETTERS[:100], LETTERS[500:600]),
        (LETTERS[:100], LETTERS[500:506]),
    ],
)
def test_a_pair_that_no_estimate_could_have_taken_for_similar(pair: tuple[str, str]) -> None:
    good = [overlapping(0.9)] * 20
    assert check(texts(*good)) == []
    (problem,) = check(texts(*good, pair))
    assert "(0, 41) matches 20-0, and their similarity is 0." in problem


def test_of_a_thousand_matches_one_may_lie_below_the_tolerance() -> None:
    low = overlapping(0.65)
    assert check(texts(overlapping(0.9), low)) == []
    assert len(check(texts(overlapping(0.9), low, low))) == 2
    many = [overlapping(0.9)] * 1_998
    assert check(texts(*many, low, low)) == []
    assert len(list(similarity(texts(*many, low, low, low)))) == 3


def test_a_match_is_compared_with_all_that_have_its_id() -> None:
    """Ids may be used twice; what counts is that one of the earlier ones is similar."""
    one, two, other = LETTERS[:100], LETTERS[:99], LETTERS[500:600]

    def history(*ordered: str) -> History:
        inputs = [document(at, f"id-{at // 2}", text) for at, text in enumerate(ordered)]
        unique = [published(given, at, at) for at, given in enumerate(inputs[:2])]
        return History(inputs, unique, [published(inputs[2], 0, 2, "id-0")])

    assert list(similarity(history(one, other, two))) == []
    assert list(similarity(history(other, one, two))) == []
    assert len(list(similarity(history(other, other, two)))) == 1


def test_texts_shorter_than_a_shingle_are_left_out() -> None:
    assert check(texts(("abcd", "abcx"), ("abcd", LETTERS[:100]))) == []
