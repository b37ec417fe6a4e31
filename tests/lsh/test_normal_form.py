"""The normal form by its definition, by the reference in `lsh`, and of a batch."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lsh import Parameters, normalise
from lsh.folding import Folding
from lsh.text import normalise_wide
from tests.oracle import normal_form
from tests.oracle.texts import ALL_SWITCHES, MARKED, MIXED, is_bounded
from tests.support.corpus import examples
from tests.support.languages import OF_JOINERS

KEPT = [(switches, Folding(switches)) for switches in ALL_SWITCHES]
REPEATED = st.tuples(MARKED, st.integers(1, 40)).map(lambda text: text[0] * text[1])
TEXTS = st.lists(st.one_of(MIXED, MARKED, OF_JOINERS, REPEATED), max_size=4)


@pytest.mark.broad
@settings(deadline=None, max_examples=examples(400))
@example(["\u0345\u094d\u200c"], KEPT[4])
@given(TEXTS, st.sampled_from(KEPT))
def test_all_three_are_one(texts: list[str], kept: tuple[Parameters, Folding]) -> None:
    switches, folding = kept
    expected = [normal_form.normalise(text, switches) for text in texts]
    assert [normalise(text, switches) for text in texts] == expected
    assert normalise_wide(texts, switches, folding).texts() == expected
    for text, form in zip(texts, expected, strict=True):
        assert normalise(form, switches) == form or is_bounded(text, switches)
