from __future__ import annotations

import gzip
import json
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import worker
from lsh import (
    ContainmentIndex,
    Fingerprinter,
    Parameters,
    exact_containment,
    fingerprint_tokens,
    forest,
    shingle_set,
    sized,
)
from lsh.containment import containment_error
from lsh.tokens import token_hashes
from tests.support.corpus import examples

PARAMETERS = Parameters(shingle="word", shingle_size=2, slots=256, bands=32, rows=8)
SAMPLES = Path(worker.__file__).parent / "samples"
words = st.sampled_from([f"word {number}" for number in range(24)])


@pytest.fixture(autouse=True)
def _nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest, "_WAITING", 0)


@cache
def stories() -> tuple[str, ...]:
    with gzip.open(SAMPLES / "onestop.jsonl.gz", "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line)["text"] for line in islice(lines, 240))


@cache
def filled() -> ContainmentIndex:
    index = ContainmentIndex(PARAMETERS)
    index.add_many(enumerate(stories()))
    return index


def quotes(count: int, seed: int) -> list[tuple[int, str]]:
    """Return stories' numbers, and parts of them among words of other stories."""
    rng = np.random.default_rng(seed)
    found = []
    for number in rng.integers(0, len(stories()), count).tolist():
        story = stories()[number].split()
        length = int(len(story) * rng.uniform(0.3, 1.0))
        begin = int(rng.integers(0, len(story) - length + 1))
        foreign = stories()[int(rng.integers(0, len(stories())))].split()[: length // 8]
        found.append((number, " ".join(story[begin : begin + length] + foreign)))
    return found


def test_most_documents_that_hold_a_text_are_found_and_few_others() -> None:
    wanted = missed = returned = wrong = 0
    sets = [shingle_set(story, PARAMETERS) for story in stories()]
    sizes = np.array([len(one) for one in sets])
    for _, quote in quotes(25, seed=1):
        query = shingle_set(quote, PARAMETERS)
        exact = np.array([len(query & one) / len(query) for one in sets])
        found = filled().query(quote, 0.8)
        rows = [int(str(one.id)) for one in found]
        holding = set(np.flatnonzero(exact >= 0.8).tolist())
        wanted += len(holding)
        missed += len(holding - set(rows))
        returned += len(rows)
        errors = containment_error(0.8, sizes / len(query), PARAMETERS.slots)
        wrong += sum(exact[row] < 0.8 - 4 * errors[row] for row in rows)
    assert wanted >= 25
    assert missed / wanted <= 0.03
    assert wrong / returned <= 0.05


def test_estimates_are_those_that_theory_expects() -> None:
    scores = []
    for _, quote in quotes(25, seed=2):
        for one in filled().query(quote, 0.5):
            exact = exact_containment(quote, stories()[int(str(one.id))], PARAMETERS)
            held = shingle_set(stories()[int(str(one.id))], PARAMETERS)
            ratio = len(held) / len(shingle_set(quote, PARAMETERS))
            scores.append((one.containment - exact) / containment_error(exact, ratio, 256))
    assert len(scores) > 25
    assert abs(float(np.mean(scores))) < 0.5  # Only those estimated high enough are here.
    assert float(np.std(scores)) < 1.2


def test_documents_within_a_text_are_found() -> None:
    index = ContainmentIndex(PARAMETERS)
    mails = [story[:600] for story in stories()[:200]]
    index.add_many(enumerate(mails))
    for number in (3, 50, 150):
        reply = "Thank you for this. " + mails[number] + " I can't agree with a word of it."
        found = index.query(reply, 0.9, of="document")
        assert number in [one.id for one in found]
        assert found[0].containment > 0.95
        assert index.query("Nothing of the kind.", 0.9, of="document") == []


Of = Literal["query", "document"]
OF: tuple[Of, ...] = ("query", "document")


@settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(st.frozensets(words, max_size=30), min_size=1, max_size=12),
    st.frozensets(words, min_size=1, max_size=30),
    st.sampled_from([0.2, 0.5, 0.9, 1.0]),
    st.sampled_from(["query", "document"]),
)
def test_with_much_slack_nothing_is_missed_and_what_sizes_forbid_is_left_out(
    sets: list[frozenset[str]], query: frozenset[str], threshold: float, of: Of
) -> None:
    index = ContainmentIndex(PARAMETERS, recall=1 - 1e-7)
    prints = fingerprint_tokens(sets, PARAMETERS)
    index.add_sketches(range(len(sets)), prints.sketches, prints.shingle_counts.astype(np.int64))
    sketch = fingerprint_tokens([query], PARAMETERS).sketches[0]
    found = index.query_sketch(sketch, len(query), threshold, of=of, slack=6)
    ids = {int(str(one.id)) for one in found}
    for number, one in enumerate(sets):
        pair = (query, one) if of == "query" else (one, query)
        if pair[0] and exact_containment(*pair) >= threshold:
            assert number in ids
        if pair[0] and len(pair[1]) < threshold * len(pair[0]) - 1e-3:
            assert number not in ids
    assert [one.containment for one in found] == sorted(
        (one.containment for one in found), reverse=True
    )


@settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(st.frozensets(words, max_size=30), min_size=1, max_size=12),
    st.frozensets(words, max_size=30),
    st.sampled_from([0.2, 0.5, 0.9, 1.0]),
    st.sampled_from(["query", "document"]),
)
def test_an_exact_index_returns_what_counting_returns(
    sets: list[frozenset[str]], query: frozenset[str], threshold: float, of: Of
) -> None:
    index = ContainmentIndex(PARAMETERS, recall=1 - 1e-7, exact=True)
    index.add_shingles(range(len(sets)), token_hashes(sets, PARAMETERS))
    asked = token_hashes([query], PARAMETERS)
    found = index.query_shingles(asked, threshold, of=of, slack=6)
    pairs = [(query, one) if of == "query" else (one, query) for one in sets]
    shares = [exact_containment(*pair) for pair in pairs]
    expected = {n: share for n, share in enumerate(shares) if share >= threshold}
    assert {one.id: one.containment for one in found} == expected
    assert all(one.error == 0 for one in found)


def test_an_exact_index_returns_no_document_that_does_not_hold_a_quote() -> None:
    index = ContainmentIndex(PARAMETERS, exact=True)
    index.add_many(enumerate(stories()[:60]))
    found = wanted = 0
    for number in range(0, 60, 5):
        quote = stories()[number][500:2000]
        exact = [exact_containment(quote, story, PARAMETERS) for story in stories()[:60:5]]
        holding = {5 * place for place, share in enumerate(exact) if share >= 0.3}
        ids = {one.id for one in index.query(quote, 0.3)}
        assert not (ids & set(range(0, 60, 5))) - holding
        found += len(ids & holding)
        wanted += len(holding)
    assert wanted >= 10
    assert found / wanted >= 0.95


def test_an_exact_index_takes_no_sketches() -> None:
    index = ContainmentIndex(PARAMETERS, exact=True)
    sets = sized(Fingerprinter(PARAMETERS), ["some text"])
    with pytest.raises(ValueError, match="exact: got sketches"):
        index.add_sketches("a", *sets)
    with pytest.raises(ValueError, match="exact: got sketches"):
        index.query_sketch(sets.sketches[0], 1)


def test_a_blank_text_is_kept_but_not_found() -> None:
    index = ContainmentIndex(PARAMETERS)
    index.add_many([("a", ""), ("b", "some text")])
    assert ("a" in index, "b" in index, len(index)) == (True, True, 2)
    assert index.query(" ") == []


def test_texts_one_by_one_are_texts_at_once() -> None:
    index = ContainmentIndex(PARAMETERS)
    for number, story in enumerate(stories()[:50]):
        index.add(number, story)
    at_once = ContainmentIndex(PARAMETERS)
    at_once.add_many(enumerate(stories()[:50]))
    for _, quote in quotes(5, seed=3):
        assert index.query(quote, 0.3) == at_once.query(quote, 0.3)


def test_an_id_twice_and_other_mistakes_are_refused() -> None:
    index = ContainmentIndex(PARAMETERS)
    index.add("a", "some text")
    with pytest.raises(ValueError, match="'a' is in the index"):
        index.add("a", "another")
    with pytest.raises(ValueError, match="'b' is in the index"):
        index.add_many([("b", "one"), ("b", "two")])
    with pytest.raises(ValueError, match="got 1, takes as many as there are sets, 2"):
        index.add_shingles(["b"], token_hashes([["one"], ["two"]], PARAMETERS))
    assert len(index) == 1
    for threshold in (0.0, 1.1, float("nan")):
        with pytest.raises(ValueError, match="containment: got"):
            index.query("some text", threshold)
    with pytest.raises(ValueError, match="size: got 0"):
        index.query_sketch(np.zeros(256, dtype=np.uint8), 0)


def test_the_partition_of_a_small_set_is_found_from_a_large_one() -> None:
    sets = sized(Fingerprinter(PARAMETERS), ["a" * 5, stories()[0], stories()[0] + "a" * 9])
    index = ContainmentIndex(PARAMETERS)
    index.add_sketches("xyz", *sets)
    found = index.query_sketch(sets.sketches[0], int(sets.sizes[0]), 1.0, slack=0)
    assert "x" in [one.id for one in found]


@settings(max_examples=examples(15), deadline=None)
@given(
    count=st.integers(1, 24),
    chance=st.randoms(use_true_random=False),
    threshold=st.sampled_from([0.2, 0.9]),
    exact=st.booleans(),
)
def test_what_was_removed_was_never_there(
    count: int, chance: Random, threshold: float, *, exact: bool
) -> None:
    numbers = range(count)
    some = [f"word {number}" for number in range(30)]
    sets = [chance.sample(some, chance.randint(17, 22)) for _ in numbers]
    index = ContainmentIndex(PARAMETERS, exact=exact)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest, "_FEW_REMOVED", 1)
        index.add_shingles(numbers, token_hashes(sets, PARAMETERS))
        gone = chance.sample(numbers, chance.randint(0, len(sets)))
        for number in gone:
            index.remove(number)
        again = gone[: chance.randint(0, len(gone))]
        index.add_shingles(again, token_hashes([sets[n] for n in again], PARAMETERS))
    left = [n for n in numbers if n not in gone] + again
    without = ContainmentIndex(PARAMETERS, exact=exact)
    without.add_shingles(left, token_hashes([sets[n] for n in left], PARAMETERS))
    assert len(index) == len(left)
    for one in sets:
        asked = token_hashes([one], PARAMETERS)
        for of in OF:
            found = index.query_shingles(asked, threshold, of=of)
            assert found == without.query_shingles(asked, threshold, of=of)
    for number in set(gone) - set(again):
        assert number not in index
        with pytest.raises(KeyError):
            index.remove(number)
