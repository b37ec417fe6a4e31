from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsh import Parameters, normalise
from lsh.text import normalise_ascii, normalise_wide

NONE: dict[str, Any] = {"drop_invisible": False, "drop_overlays": False}
MORE = ("fold_confusables", "fold_digits", "drop_symbols", "join_letters")
EVERY_ONE: dict[str, Any] = dict.fromkeys(MORE, True)
SWITCHES = [
    Parameters(nfkc=nfkc, casefold=casefold, collapse_whitespace=collapse, **more)
    for more in (NONE, {}, EVERY_ONE, {"fold_accents": True}, {"fold_turkish_i": True})
    for nfkc in (True, False)
    for casefold in (True, False)
    for collapse in (True, False)
]
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=40)
SPACED = st.text(
    st.sampled_from(" \t\n\x0b\x1c\x1f\x85\xa0\u2003\u3000aB7\u0301\u200b\0!\U0001f600"),
    max_size=12,
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
        ("a\u200bb", "ab"),
        ("a\0b\x1b\x7f\x80", "ab"),
        ("\u0645\u0640\u0640\u062d, \u07caI\u07fa, \ufe77\u062d", "\u0645\u062d, \u07cai, \u062d"),
        ("a\u0336b\u20e3\u2260", "ab="),
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
        ("drop_invisible", "a\0\u200db\u00ad", "a\0\u200db\u00ad"),
        ("drop_overlays", "a\u0336\u2260", "a\u0336\u2260"),
    ],
)
def test_each_step_can_be_switched_off(switch: str, text: str, expected: str) -> None:
    off: dict[str, Any] = {switch: False}
    assert normalise(text, Parameters(**off)) == expected


@pytest.mark.parametrize(
    ("switch", "text", "expected"),
    [
        (
            "fold_confusables",
            "Fr\u0435\u0435 \u0395\u0410\u0405\u03a5 \u00f8\u0451",
            "free easy o\xeb",
        ),
        ("fold_digits", "July 4, \u0661\u0662 \u00bd", "july 0, 00 0\u20440"),
        ("drop_symbols", "f.r\U0001f600e\u20ace, now!", "free, now!"),
        ("join_letters", " f r e e  gift, ok ", "freegift,ok"),
        ("fold_accents", "D\u00c9J\u00c0 vu, Stra\u00dfe, sm\u00f8r", "deja vu, strasse, smor"),
        ("fold_turkish_i", "I\u015eIK, \u0130Y\u0130, i\u0307yi", "i\u015fik, iyi, iyi"),
    ],
)
def test_more_steps_can_be_switched_on(switch: str, text: str, expected: str) -> None:
    on: dict[str, Any] = {switch: True}
    assert normalise(text, Parameters(**on)) == expected


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
@pytest.mark.parametrize(
    "switches",
    [Parameters(), Parameters(fold_accents=True), Parameters(fold_turkish_i=True, casefold=False)],
)
def test_every_code_point_in_a_batch_as_by_itself(switches: Parameters) -> None:
    points = [f"x{chr(point)}Y" for point in range(sys.maxunicode + 1)]
    expected = [normalise(point, switches) for point in points]
    assert normalise_wide(points, switches).texts() == expected
    assert [normalise(point, switches) for point in expected] == expected


def test_only_ascii_is_taken_as_ascii() -> None:
    with pytest.raises(UnicodeEncodeError):
        normalise_ascii(["\u00e9"], Parameters())
