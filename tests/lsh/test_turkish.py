"""The letters i of Turkish are one at a switch, and every other letter stays what it is."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsh import Fingerprinter, Parameters, normalise
from tests.oracle import normal_form

TURKISH = Parameters(fold_turkish_i=True)
SMALL = "\u0131\u015f\u0131k i\u00e7inde iyi g\u00fcnler, \u0131l\u0131k bir izmir sabah\u0131"
CAPITAL = (
    "I\u015eIK \u0130\u00c7\u0130NDE \u0130Y\u0130 G\u00dcNLER,"
    " ILIK B\u0130R \u0130ZM\u0130R SABAHI"
)
LETTERS = st.text(st.sampled_from("iI\u0130\u0131\u0307\u0301\u0323\u017c\u1ecb x"), max_size=10)


@pytest.mark.parametrize("copy", [CAPITAL, CAPITAL.lower(), SMALL.upper()])
def test_a_text_in_capitals_is_the_same(copy: str) -> None:
    assert normalise(copy, TURKISH) == normalise(SMALL, TURKISH)
    assert normalise(copy, Parameters()) != normalise(SMALL, Parameters())


def test_english_and_other_dots_are_left_alone() -> None:
    text = "IT IS what it is: \u017c\u00f3\u0142ty, \u0117, z\u0307"
    assert normalise(text, TURKISH) == normalise(text, Parameters())


@pytest.mark.parametrize("nfkc", [True, False])
@pytest.mark.parametrize("casefold", [True, False])
@given(texts=st.lists(LETTERS, max_size=4))
@example(texts=["i", "\u0307", "i\u0307"])
@example(texts=["\u0130", "", "\u0131"])
def test_a_batch_has_the_forms_of_the_definition(
    texts: list[str], *, nfkc: bool, casefold: bool
) -> None:
    switches = Parameters(fold_turkish_i=True, nfkc=nfkc, casefold=casefold)
    forms = [normalise(text, switches) for text in texts]
    assert forms == [normal_form.normalise(text, switches) for text in texts]
    assert [normalise(form, switches) for form in forms] == forms
    batch = Fingerprinter(switches).fingerprint(texts)
    single = [Fingerprinter(switches).fingerprint([text]).keys[0].tolist() for text in texts]
    assert batch.keys.tolist() == single
