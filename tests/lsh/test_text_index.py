"""`Index`: what each of its operations answers."""

from __future__ import annotations

import doctest
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh import Fingerprinter, Fingerprints, Group, Hit, Index, Parameters, compare, text_index
from tests.support.corpus import examples
from tests.support.texts import near_copies

SHIP = "A ship in harbour is safe, but that is not what ships are built for, they say. " * 3
FOX = "The quick brown fox jumps over the lazy dog, and then it does so again and again."
CORPUS = near_copies(300, seed=3)
SMALL: dict[str, Any] = {"capacity": 3, "max_matches": 4}
"""Rules under which buckets of few documents are full."""


def filled(documents: Sequence[tuple[str, str]] = CORPUS, **options: Any) -> Index:  # noqa: ANN401
    index = Index(**options)
    index.add_many(documents)
    return index


def prints_of(*texts: str) -> Fingerprints:
    return Fingerprinter(Parameters()).fingerprint(texts)


def test_the_example_in_the_docstring_runs() -> None:
    assert doctest.testmod(text_index) == doctest.TestResults(failed=0, attempted=5)


def test_add_returns_the_earlier_documents_and_query_the_same_without_adding() -> None:
    index = Index()
    assert index.query(SHIP) == []
    assert index.add("a", SHIP) == []
    similarity = compare(Fingerprinter(Parameters()), SHIP, SHIP + FOX[:9]).estimate
    assert 0.8 <= similarity < 0.95
    assert index.query(SHIP + FOX[:9]) == [Hit("a", similarity)]
    assert len(index) == 1
    assert index.add("b", SHIP + FOX[:9]) == [Hit("a", similarity)]
    assert index.query(SHIP) == [Hit("a", 1.0), Hit("b", similarity)]
    assert index.is_duplicate(SHIP)
    assert not index.is_duplicate(FOX)


def test_many_at_once_are_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    one_by_one = Index(**SMALL)
    expected = {ident: hits for ident, text in CORPUS if (hits := one_by_one.add(ident, text))}
    assert len(expected) > 100
    monkeypatch.setattr(text_index, "_BATCH", 37)
    index = Index(**SMALL)
    assert index.add_many(iter(CORPUS)) == expected
    texts = [text for _, text in CORPUS]
    assert index.query_many(texts) == [one_by_one.query(text) for text in texts]
    by_prints = Index(**SMALL)
    ids = [ident for ident, _ in CORPUS]
    assert by_prints.add_fingerprints(ids, prints_of(*texts)) == expected
    assert by_prints.query_fingerprints(prints_of(*texts)) == index.query_many(texts)


def test_a_fingerprint_is_added_like_its_text() -> None:
    index = Index()
    assert index.add_fingerprint("a", prints_of(SHIP)) == []
    assert index.add_fingerprint("b", prints_of(SHIP)) == [Hit("a", 1.0)]
    assert index.query(SHIP) == [Hit("a", 1.0)]


def test_a_document_that_an_earlier_one_stands_for_is_in_the_index_but_not_named() -> None:
    index = Index()
    index.add_many([("a", SHIP), ("b", SHIP), ("c", SHIP)])
    assert index.query(SHIP) == [Hit("a", 1.0)]
    assert [ident in index for ident in "abcd"] == [True, True, True, False]
    assert index.groups() == [Group("a", ("a", "b", "c"))]
    index.remove("a")
    assert index.query(SHIP) == [Hit("b", 1.0)]


def test_ids_are_str_or_int_and_keep_their_order() -> None:
    index = Index()
    index.add_many([("1", SHIP), (1, FOX), (-3, "third"), ("", "fourth")])
    assert list(index) == ["1", 1, -3, ""]
    assert index.query(FOX) == [Hit(1, 1.0)]
    assert 1 in index
    assert True not in index  # True equals 1, but is no id, and neither is 1.0.
    assert 1.0 not in index
    assert [] not in index
    with pytest.raises(KeyError):
        index.remove(True)
    for wrong in (1.5, None, b"a", True):
        with pytest.raises(TypeError, match="takes str or int"):
            index.add(wrong, FOX)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="text: got b'bytes' of type bytes"):
        index.add("x", b"bytes")  # type: ignore[arg-type]
    assert len(index) == 4


def test_an_id_that_is_there_is_refused_and_nothing_is_added() -> None:
    index = Index()
    index.add("a", SHIP)
    with pytest.raises(ValueError, match="id 'a': the index has it; remove it first to replace it"):
        index.add("a", FOX)
    assert index.query(FOX) == []
    with pytest.raises(ValueError, match="id 'b': the index has it"):
        index.add_many([("b", FOX), ("b", SHIP), ("c", SHIP)])
    assert list(index) == ["a"]
    index.add("b", FOX)
    with pytest.raises(ValueError, match="id 'a'"):
        index.add_fingerprints(["d", "a"], prints_of(SHIP, FOX))
    assert list(index) == ["a", "b"]
    index.remove("a")
    assert index.add("a", FOX) == [Hit("b", 1.0)]


def test_a_blank_text_is_in_the_index_and_matches_nothing() -> None:
    index = Index(keep_texts=True)
    index.add_many([("a", ""), ("b", " \u200b\n"), ("c", SHIP), ("d", "")])
    assert len(index) == 4
    assert index.query_many(["", SHIP]) == [[], [Hit("c", 1.0)]]
    assert list(index.pairs(0.0, exact=True)) == []
    assert index.groups(0.0) == []
    assert index.remove_text("") == []
    index.remove("a")
    assert list(index) == ["b", "c", "d"]


def test_short_texts_match_their_own_normal_form_alone() -> None:
    index = Index()
    index.add_many([(text, text) for text in ("a", "b", "ab", "abcd", "abce")])
    assert index.add("x", "  ABCD ") == [Hit("abcd", 1.0)]
    assert index.query("abc") == []
    assert index.groups() == [Group("abcd", ("abcd", "x"))]


@settings(max_examples=examples(8), deadline=None)
@given(chance=st.randoms(use_true_random=False))
def test_removed_documents_were_never_there(chance: Random) -> None:
    documents = chance.sample(CORPUS[:90], 50)
    index = filled(documents, **SMALL)
    gone = chance.sample(documents, chance.randint(1, 49))
    for ident, _ in gone:
        index.remove(ident)
    left = [one for one in documents if one not in gone]
    without = filled(left, **SMALL)
    assert list(index) == list(without)
    texts = [text for _, text in documents]
    assert index.query_many(texts) == without.query_many(texts)
    assert index.groups() == without.groups()
    assert index.add_many((f"again {ident}", text) for ident, text in gone) == without.add_many(
        (f"again {ident}", text) for ident, text in gone
    )


def test_space_of_removed_documents_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(text_index, "_FEW_REMOVED", 10)
    documents = CORPUS[:80]
    index = filled(documents, keep_texts=True)
    for ident, _ in documents[:-20]:
        index.remove(ident)
    without = filled(documents[-20:])
    texts = [text for _, text in documents]
    assert index.query_many(texts) == without.query_many(texts)
    assert list(index) == list(without)


def test_a_text_is_removed_in_every_copy_of_its_normal_form() -> None:
    index = Index()
    index.add_many([("a", SHIP), ("b", FOX), ("c", SHIP.upper()), ("d", SHIP + "!")])
    assert index.remove_text(SHIP.replace(" ", "  ")) == ["a", "c"]
    assert list(index) == ["b", "d"]
    assert [hit.id for hit in index.query(SHIP)] == ["d"]
    assert index.remove_text(SHIP) == []
    with pytest.raises(KeyError, match="'a'"):
        index.remove("a")


def test_thousands_of_copies_are_removed_at_once() -> None:
    """One by one, each would have those judged again that it stands for: a minute."""
    index, without = Index(), Index()
    others = [(f"o{number}", f"{SHIP} {number % 7} {FOX}") for number in range(60)]
    index.add_many([(number, SHIP) for number in range(4_000)])
    index.add_many([*others, *((number, SHIP.upper()) for number in range(4_000, 5_000))])
    without.add_many(others)
    assert index.remove_text(SHIP) == list(range(5_000))
    assert list(index) == list(without)
    asked = [SHIP, FOX, *(text for _, text in others)]
    assert index.query_many(asked) == without.query_many(asked)


def test_cleared_it_is_as_new() -> None:
    index = filled(keep_texts=True)
    index.clear()
    assert len(index) == 0
    assert list(index) == []
    assert index.query_many([text for _, text in CORPUS]) == [[]] * len(CORPUS)
    assert index.add_many(CORPUS) == Index().add_many(CORPUS)


def test_pairs_are_all_that_share_a_key_and_are_similar() -> None:
    index = filled(keep_texts=True)
    prints = prints_of(*(text for _, text in CORPUS))
    fingerprinter = Fingerprinter(Parameters())
    expected, exactly = {}, {}
    for row, (ident, text) in enumerate(CORPUS):
        for other in np.flatnonzero((prints.keys[:row] == prints.keys[row]).any(axis=1)).tolist():
            pair = compare(fingerprinter, CORPUS[other][1], text)
            expected[CORPUS[other][0], ident] = pair.estimate
            exactly[CORPUS[other][0], ident] = pair.similarity
    assert len(expected) > 250
    assert {(p.first, p.second): p.similarity for p in index.pairs(0.0)} == expected
    near = {pair: alike for pair, alike in expected.items() if alike >= 0.8}
    assert 0 < len(near) < len(expected)
    assert {(p.first, p.second): p.similarity for p in index.pairs()} == near
    exact = {(p.first, p.second): p.similarity for p in index.pairs(0.9, exact=True)}
    assert exact == pytest.approx({pair: j for pair, j in exactly.items() if j >= 0.9})


def test_a_large_bucket_is_not_paired_unasked() -> None:
    index = filled([(f"copy {number}", SHIP) for number in range(40)])
    message = "bucket_limit: got 30, but 40 documents share a bucket, which makes 780 pairs"
    with pytest.raises(ValueError, match=message):
        index.pairs(bucket_limit=30)
    assert len(list(index.pairs(bucket_limit=40))) == 780


def test_pairs_and_groups_refuse_what_they_can_not_do() -> None:
    index = filled(CORPUS[:10])
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"min_similarity: got .*, takes a number from 0 to 1"):
            index.pairs(wrong)
        with pytest.raises(ValueError, match=r"min_similarity: got .*, takes a number from 0 to 1"):
            index.groups(wrong)
    with pytest.raises(ValueError, match="exact: the index doesn't have all texts"):
        index.pairs(exact=True)
    keeping = filled(CORPUS[:10], keep_texts=True)
    keeping.add_fingerprint("x", prints_of(SHIP))
    with pytest.raises(ValueError, match="exact: the index doesn't have all texts"):
        keeping.pairs(exact=True)


def test_groups_are_the_components_of_the_pairs_the_largest_first() -> None:
    index = filled()
    component = {ident: ident for ident in index}
    for pair in index.pairs():
        first, other = component[pair.first], component[pair.second]
        component = {i: first if c == other else c for i, c in component.items()}
    members: dict[Any, list[Any]] = {}
    for ident, name in component.items():
        members.setdefault(name, []).append(ident)
    expected = sorted((m for m in members.values() if len(m) > 1), key=len, reverse=True)
    found = index.groups()
    assert [list(group.members) for group in found] == expected
    assert [group.representative for group in found] == [group[0] for group in expected]
    assert [group.size for group in found] == [len(group) for group in expected]
    assert index.groups(1.0) != found


def test_a_saved_index_goes_on_where_it_was(tmp_path: Path) -> None:
    index = filled(CORPUS[:220], parameters=Parameters(bands=20, rows=6), **SMALL, keep_texts=True)
    for ident, _ in CORPUS[:100:3]:
        index.remove(ident)
    index.save(tmp_path / "index.npz")
    again = Index.load(tmp_path / "index.npz")
    assert again.parameters == index.parameters
    assert list(again) == list(index)
    assert list(again.pairs(exact=True)) == list(index.pairs(exact=True))
    assert again.add_many(CORPUS[220:]) == index.add_many(CORPUS[220:])


def test_an_empty_index_is_saved_and_loaded(tmp_path: Path) -> None:
    Index().save(tmp_path / "index.npz")
    index = Index.load(tmp_path / "index.npz")
    assert len(index) == 0
    assert index.groups() == []
    assert list(index.pairs()) == []
    assert index.add("a", SHIP) == []


def test_a_merged_index_is_one_to_which_all_were_added() -> None:
    whole = Index(**SMALL)
    whole.add_many(CORPUS[:200])
    expected = whole.add_many(CORPUS[200:])
    index = filled(CORPUS[:200], **SMALL)
    assert index.merge(filled(CORPUS[200:], capacity=9)) == expected
    texts = [text for _, text in CORPUS]
    assert index.query_many(texts) == whole.query_many(texts)
    assert list(index) == list(whole)


def test_merge_names_why_two_indexes_do_not_fit() -> None:
    index = filled(CORPUS[:10], keep_texts=True)
    other = [("x", SHIP), ("d3", FOX)]
    reasons = {
        "id 'd3': both indexes have it": Index(),
        "bands: this index has 18, the other one has 17": Index(Parameters(bands=17)),
        "seed: the two indexes have different ones": Index(Parameters(seed=b"secret")),
    }
    for reason, wrong in reasons.items():
        wrong.add_many(other)
        with pytest.raises(ValueError, match=reason):
            index.merge(wrong)
    with pytest.raises(ValueError, match="keep_texts: this index keeps texts"):
        index.merge(filled(other[:1]))
    assert list(index) == [ident for ident, _ in CORPUS[:10]]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"absorb": 0.79}, "absorb: got 0.79, takes a number from the threshold, 0.8, to 1"),
    ({"absorb": 1.1}, "absorb: got 1.1"),
    ({"capacity": 0}, "capacity: got 0, takes an integer from 1"),
    ({"max_matches": 1.5}, "max_matches: got 1.5, takes an integer from 1"),
    ({"parameters": Parameters(slots=300, bands=256, rows=1)}, "bands: got 256"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_rules_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Index(**options)


def test_fingerprints_of_another_shape_are_refused() -> None:
    other = Fingerprinter(Parameters(bands=9)).fingerprint([SHIP])
    index = Index()
    with pytest.raises(ValueError, match=r"got arrays of \[\(1, 10\), \(1, 128\)\], takes"):
        index.add_fingerprint("a", other)
    with pytest.raises(ValueError, match="takes"):
        index.query_fingerprints(other)
    with pytest.raises(ValueError, match="takes"):
        index.add_fingerprints(["a", "b"], prints_of(SHIP))
    assert len(index) == 0


def test_it_says_what_it_is() -> None:
    assert repr(filled(CORPUS[:5])) == ("<Index of 5 documents, threshold 0.8, 18 bands of 7 rows>")
