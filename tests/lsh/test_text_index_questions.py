"""`Index`: the most similar documents, containment, and groups by exact similarity."""

from __future__ import annotations

from random import Random
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh import (
    ContainmentIndex,
    Fingerprinter,
    Index,
    NearestIndex,
    Parameters,
    fingerprint_tokens,
    forest,
    text_index,
)
from tests.support.corpus import examples
from tests.support.texts import near_copies

CORPUS = [("blank", " "), *near_copies(60, seed=8), ("short", "ab")]
TEXTS = [text for _, text in CORPUS]
PARAMETERS = Parameters()
OF: tuple[Literal["query", "document"], ...] = ("query", "document")


def filled(documents: Any = CORPUS, **options: Any) -> Index:  # noqa: ANN401
    index = Index(**options)
    index.add_many(documents)
    return index


def excerpt(text: str) -> str:
    """Return the greater part of a text."""
    words = text.split()
    return " ".join(words[len(words) // 4 :])


def assert_answers(index: Index, *texts: str) -> None:
    """Check that an index answers as others do that have the same documents."""
    documents = dict(CORPUS)
    kept = [(ident, documents[str(ident)]) for ident in index]
    nearest, containment = NearestIndex(PARAMETERS), ContainmentIndex(PARAMETERS)
    nearest.add_many(kept)
    containment.add_many(kept)
    for text in texts:
        for k, recall in ((3, 0.98), (100, 1.0)):
            assert index.nearest(text, k, recall=recall) == nearest.nearest(text, k, recall=recall)
        for of in OF:
            expected = containment.query(text, 0.6, of=of)
            assert index.query(text, containment=0.6, of=of) == expected


KEEPS = st.sampled_from([{"keep_texts": True}, {"keep_sizes": True}])
STEPS = st.lists(
    st.sampled_from(["add", "add", "remove", "merge", "save", "clear"]), min_size=4, max_size=7
)


@settings(max_examples=examples(10), deadline=None)
@given(keeps=KEEPS, steps=STEPS, chance=st.randoms(use_true_random=False))
def test_answers_are_those_of_the_other_indexes_whatever_came_before(
    tmp_path_factory: pytest.TempPathFactory,
    keeps: dict[str, bool],
    steps: list[str],
    chance: Random,
) -> None:
    path = tmp_path_factory.mktemp("saved") / "index.npz"
    index = filled([], **keeps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest, "_WAITING", 0)
        patch.setattr(forest, "_FEW_REMOVED", 3)
        patch.setattr(text_index, "_FEW_REMOVED", 5)
        for step in steps:
            absent = [one for one in CORPUS if one[0] not in index]
            some = chance.sample(absent, chance.randint(0, len(absent)))
            if step == "add":
                index.add_many(some)
            elif step == "merge":
                index.merge(filled(some, **keeps))
            elif step == "remove":
                for ident in chance.sample(list(index), chance.randint(0, len(index))):
                    index.remove(ident)
            elif step == "save":
                index.save(path)
                index = Index.load(path)
            else:
                index.clear()
            assert_answers(index, excerpt(TEXTS[5]))  # From now on, there is something to follow.
        assert_answers(index, *TEXTS[:6], "something else")


def test_nearest_also_names_copies_and_what_is_below_the_threshold() -> None:
    index = filled([("a", TEXTS[5]), ("b", TEXTS[5]), ("c", excerpt(TEXTS[5])), ("d", "")])
    assert [hit.id for hit in index.query(TEXTS[5])] == ["a"]
    found = index.nearest(TEXTS[5], 3)
    assert [one.id for one in found] == ["a", "b", "c"]
    assert 0 < found[-1].similarity < 0.8
    assert index.nearest(" ", 3) == []


def test_containment_finds_what_holds_a_text_and_what_it_holds() -> None:
    whole, part = TEXTS[5], excerpt(TEXTS[5])
    index = filled([("whole", whole), ("part", part), ("other", TEXTS[2])], keep_sizes=True)
    found = {one.id: one for one in index.query(part, containment=0.95)}
    assert set(found) == {"whole", "part"}
    assert found["part"].containment == 1.0
    assert found["whole"].error > 0
    assert [one.id for one in index.query(whole, containment=0.95)] == ["whole"]
    held = index.query(whole, containment=0.95, of="document")
    assert {one.id for one in held} == {"whole", "part"}
    few = index.query(whole[: len(whole) // 2] + TEXTS[2], containment=0.9, slack=0)
    assert few == []


NO_SIZES = r"containment: the index doesn't have the sizes of all documents; Index\(keep_sizes=True"


def test_containment_needs_the_sizes_of_all_documents() -> None:
    index = filled()
    with pytest.raises(ValueError, match=NO_SIZES):
        index.query(TEXTS[1], containment=0.9)
    assert index.nearest(TEXTS[1], 1)[0].similarity == 1.0
    with pytest.raises(ValueError, match="containment: got 0"):
        filled(keep_sizes=True).query(TEXTS[1], containment=0)
    assert Index().query(TEXTS[1], containment=0.9) == []


def test_an_index_without_sizes_counts_what_comes_while_it_can() -> None:
    index = Index()
    assert index.query(TEXTS[1], containment=0.9) == []
    index.add("a", TEXTS[1])
    assert [one.id for one in index.query(TEXTS[1], containment=0.9)] == ["a"]
    index.add_fingerprint("b", Fingerprinter(PARAMETERS).fingerprint([TEXTS[2]]))
    with pytest.raises(ValueError, match=NO_SIZES):
        index.query(TEXTS[1], containment=0.9)
    index.remove("b")
    assert [one.id for one in index.query(TEXTS[1], containment=0.9)] == ["a"]


def test_fingerprints_are_added_with_their_sizes() -> None:
    prints = fingerprint_tokens([["a", "b", "c"], ["c"], []], PARAMETERS)
    index = Index()
    index.add_fingerprints("xyz", prints, prints.shingle_counts.astype(np.int64))
    one = ContainmentIndex(PARAMETERS)
    one.add_sketches("xyz", prints.sketches, prints.shingle_counts.astype(np.int64))
    for text in ("some text", "other"):
        assert index.query(text, containment=0.1) == one.query(text, 0.1)
    assert [ident for ident in index if ident == "z"] == ["z"]
    for wrong in (np.array([1, 1]), np.array([1, 1, -1])):
        with pytest.raises(ValueError, match="sizes: takes 3 integers of at least 0"):
            index.add_fingerprints(["u", "v", "w"], prints, wrong)
    assert len(index) == 3


def test_an_index_that_keeps_sizes_is_not_merged_with_one_that_can_not_tell_them() -> None:
    index = filled(CORPUS[:9], keep_sizes=True)
    other = filled(CORPUS[9:30])
    with pytest.raises(ValueError, match="keep_sizes: this index keeps sizes, and the other"):
        index.merge(other)
    assert len(index) == 9
    index.merge(filled(CORPUS[9:30], keep_texts=True))
    whole = filled(CORPUS[:30], keep_sizes=True)
    part = excerpt(TEXTS[5])
    assert index.query(part, containment=0.6) == whole.query(part, containment=0.6) != []
    blank = Index()
    blank.add("nothing", "")
    index.merge(blank)
    assert "nothing" in index


def components(index: Index, least: float) -> list[tuple[Any, ...]]:
    """Return the connected components of exactly similar pairs, the largest first."""
    component = {ident: ident for ident in index}
    for pair in index.pairs(least, exact=True):
        first, other = component[pair.first], component[pair.second]
        component = {i: first if name == other else name for i, name in component.items()}
    members: dict[Any, list[Any]] = {}
    for ident, name in component.items():
        members.setdefault(name, []).append(ident)
    groups = [tuple(some) for some in members.values() if len(some) > 1]
    return sorted(groups, key=len, reverse=True)


@settings(max_examples=examples(12), deadline=None)
@given(
    st.sampled_from([0.0, 0.5, 0.8, 0.87, 0.92, 1.0]),
    st.integers(1, 40),
    st.randoms(use_true_random=False),
)
def test_exact_groups_are_the_components_of_exact_pairs(
    least: float, small: int, chance: Random
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lsh.groups._SMALL", small)
        index = filled(chance.sample(CORPUS, 45), keep_texts=True)
        for ident in chance.sample(list(index), 5):
            index.remove(ident)
        groups = index.groups(least, exact=True)
    assert [group.members for group in groups] == components(index, least)


def test_groups_by_estimates_are_others() -> None:
    index = filled(keep_texts=True)
    levels = [percent / 100 for percent in range(80, 100)]
    assert [index.groups(x) for x in levels] != [index.groups(x, exact=True) for x in levels]


def test_exact_groups_need_texts() -> None:
    with pytest.raises(ValueError, match="exact: the index doesn't have all texts"):
        filled().groups(exact=True)
