from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh import Fingerprinter, Parameters, compare
from lsh.exact import Nearest, SetsOfTexts, nearest_earlier
from tests.support.corpus import examples

words = st.sampled_from(["", "a", "ferry", "ferry line", "old ferry line", "Old FERRY  lines", "Ö"])
texts = st.lists(st.lists(words, max_size=4).map(" ".join), min_size=1, max_size=12)


def nearest_of(
    texts: list[str], floor: float, parameters: Parameters, ratio: float = np.inf
) -> Nearest:
    collected = SetsOfTexts()
    fingerprinter = Fingerprinter(parameters)
    half = len(texts) // 2
    collected.add(fingerprinter.shingles(texts[:half]))
    collected.add(fingerprinter.shingles(texts[half:]))
    return nearest_earlier(collected.finish(), floor, ratio=ratio)


@given(texts, st.sampled_from([0.2, 0.5, 0.8, 1.0]), st.sampled_from(["char", "word"]))
def test_the_nearest_earlier_text_is_the_one_that_shingles_themselves_name(
    texts: list[str], floor: float, kind: str
) -> None:
    parameters = Parameters(shingle="char" if kind == "char" else "word", shingle_size=3)
    fingerprinter = Fingerprinter(parameters)
    found = nearest_of(texts, floor, parameters)
    assert found.floor == floor
    for number, text in enumerate(texts):
        best, earlier = 0.0, -1
        for other in range(number):
            if text.split() and texts[other].split():
                similarity = compare(fingerprinter, texts[other], text).similarity
                if similarity >= floor and similarity > best:
                    best, earlier = similarity, other
        assert found.similarity[number] == best
        assert found.document[number] == earlier


@settings(max_examples=examples(40), deadline=None)
@given(texts, st.sampled_from([0.2, 0.5]), st.sampled_from([1.0, 1.5, 3.0]))
def test_the_largest_containment_in_an_earlier_text_is_that_of_the_shingles(
    texts: list[str], floor: float, ratio: float
) -> None:
    parameters = Parameters(shingle_size=3)
    fingerprinter = Fingerprinter(parameters)
    found = nearest_of(texts, floor, parameters, ratio)
    for number, text in enumerate(texts):
        most = 0.0
        for other in range(number):
            if text.split() and texts[other].split():
                pair = compare(fingerprinter, texts[other], text)
                longer, own = pair.distinct
                if pair.similarity >= floor and longer <= ratio * own:
                    most = max(most, pair.contained[1])
        assert found.containment[number] == most


def test_progress_ends_at_one() -> None:
    collected = SetsOfTexts()
    collected.add(Fingerprinter(Parameters()).shingles(["one text", "another text", "one text"]))
    seen: list[float] = []
    found = nearest_earlier(collected.finish(), 0.5, seen.append)
    assert seen[-1] == 1.0
    np.testing.assert_array_equal(found.document, [-1, -1, 0])
