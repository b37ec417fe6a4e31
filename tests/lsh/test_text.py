from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsh import Parameters, normalise
from lsh.text import normalise_ascii, normalise_wide

SWITCHES = [
    Parameters(nfkc=nfkc, casefold=casefold, collapse_whitespace=collapse)
    for nfkc in (True, False)
    for casefold in (True, False)
    for collapse in (True, False)
]
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=40)
SPACED = st.text(
    st.sampled_from(" \t\n\x0b\x1c\x1f\x85\xa0\u2003\u3000aB\u0301\u200b"), max_size=12
)
ASCII = st.text(st.characters(max_codepoint=127), max_size=40)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" \t\r\n\x0b\x0c\x1c\x1d\x1e\x1f", ""),
        ("\x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000", ""),
        ("  Hello\n\n WORLD  ", "hello world"),
        ("Stra\u00dfe", "strasse"),
        ("\ufb01ne \u2460 \uff21\uff22", "fine 1 ab"),
        ("e\u0301", "\u00e9"),
        ("\u0130", "i\u0307"),
        ("a\u200bb", "a\u200bb"),
        ("\ud800A", "\ud800a"),
        ("@[`{AZaz", "@[`{azaz"),
    ],
)
def test_normal_forms(text: str, expected: str) -> None:
    assert normalise(text, Parameters()) == expected


@pytest.mark.parametrize(
    ("switch", "text", "expected"),
    [
        ("nfkc", "\uff21 B", "\uff41 b"),
        ("casefold", "A  \uff22", "A B"),
        ("collapse_whitespace", " A\n B\u3000", " a\n b "),
    ],
)
def test_each_step_can_be_switched_off(switch: str, text: str, expected: str) -> None:
    off: dict[str, Any] = {switch: False}
    assert normalise(text, Parameters(**off)) == expected


@given(st.lists(st.one_of(ANY_TEXT, SPACED, ASCII), max_size=8), st.sampled_from(SWITCHES))
@example(["", "a  ", "  b", " ", "c"], SWITCHES[0])
def test_a_batch_gives_the_reference_form(texts: list[str], switches: Parameters) -> None:
    expected = [normalise(text, switches) for text in texts]
    assert normalise_wide(texts, switches).texts() == expected


@given(
    st.lists(st.one_of(ASCII, SPACED.filter(str.isascii)), max_size=8), st.sampled_from(SWITCHES)
)
@example(["", "a  ", "  b", " ", "c"], SWITCHES[0])
def test_a_batch_of_ascii_gives_the_reference_form(texts: list[str], switches: Parameters) -> None:
    expected = [normalise(text, switches) for text in texts]
    assert normalise_ascii(texts, switches).texts() == expected
    assert normalise_ascii(texts, switches).encoded() == [text.encode() for text in expected]


@given(st.one_of(ANY_TEXT, SPACED), st.sampled_from(SWITCHES))
def test_a_normal_form_is_its_own_normal_form(text: str, switches: Parameters) -> None:
    once = normalise(text, switches)
    assert normalise(once, switches) == once


@pytest.mark.exhaustive
def test_every_code_point_in_a_batch_as_by_itself() -> None:
    points = [f"x{chr(point)}Y" for point in range(sys.maxunicode + 1)]
    switches = Parameters()
    expected = [normalise(point, switches) for point in points]
    assert normalise_wide(points, switches).texts() == expected
    assert [normalise(point, switches) for point in expected] == expected


def test_only_ascii_is_taken_as_ascii() -> None:
    with pytest.raises(UnicodeEncodeError):
        normalise_ascii(["\u00e9"], Parameters())
