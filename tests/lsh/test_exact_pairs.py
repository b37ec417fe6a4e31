"""Exact similarities of pairs, however many are kept."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh import Fingerprinter, Parameters, Shingles, exact_jaccard, groups
from lsh.groups import ExactJaccard
from tests.support.corpus import examples
from tests.support.texts import near_copies

TEXTS = ["", "abc", *(text for _, text in near_copies(18, seed=4))]
FINGERPRINTER = Fingerprinter(Parameters())


@settings(max_examples=examples(20), deadline=None)
@given(
    st.integers(0, 60), st.integers(1, 9), st.integers(0, 900), st.randoms(use_true_random=False)
)
def test_they_are_those_of_the_sets(count: int, at_a_time: int, kept: int, chance: Random) -> None:
    left = np.array([chance.randrange(len(TEXTS)) for _ in range(count)], np.int64)
    right = np.array([chance.randrange(len(TEXTS)) for _ in range(count)], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "_COMPARED", at_a_time)
        patch.setattr(groups, "_KEPT", kept)
        compare = ExactJaccard(lambda rows: FINGERPRINTER.shingles([TEXTS[row] for row in rows]))
        found = compare(left, right).tolist()
        first = compare(np.array([3]), right).tolist()
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    assert found == [exact_jaccard(TEXTS[one], TEXTS[other]) for one, other in pairs]
    assert first == [exact_jaccard(TEXTS[3], TEXTS[other]) for other in right.tolist()]


def test_a_text_is_read_once_while_it_is_kept_and_few_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[int] = []

    def shingles(rows: Sequence[int]) -> Shingles:
        read.extend(rows)
        return FINGERPRINTER.shingles([TEXTS[row] for row in rows])

    compare = ExactJaccard(shingles)
    others = np.arange(1, len(TEXTS))
    for row in range(3):
        compare(np.array([row]), others)
    assert sorted(read) == list(range(len(TEXTS)))
    monkeypatch.setattr(groups, "_KEPT", 0)
    compare(others[:1], others[:1])
    assert len(compare._sets) == 1
