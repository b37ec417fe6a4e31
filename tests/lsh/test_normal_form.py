"""Normal forms, step by step. `tests/core/test_text.py` compares them with the definition."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lsh import SWITCHES as SWITCH_NAMES
from lsh import Fingerprinter, Parameters, normalise
from tests.oracle.texts import ALL_SWITCHES, EVERY_ONE, MARKED, MIXED, SOME, is_bounded
from tests.support.corpus import examples
from tests.support.languages import OF_JOINERS

SWITCHES = [
    *ALL_SWITCHES,
    Parameters(fold_accents=True),
    Parameters(fold_turkish_i=True, casefold=False),
    Parameters(**EVERY_ONE),
]
RAW: dict[str, Any] = dict.fromkeys(SWITCH_NAMES, False)
SPACED = st.text(
    st.sampled_from(" \t\n\x0b\x1c\x1f\x85\xa0\u2003\u3000aB7\u0301\u200b\0!\U0001f600"),
    max_size=12,
)
ASCII = st.text(st.characters(max_codepoint=127), max_size=40)
TEXTS = st.one_of(SPACED, ASCII, MIXED, MARKED, OF_JOINERS)


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
        ("\u039f\u0394\u039f\u03a3 \u03c3\u03c2", "\u03bf\u03b4\u03bf\u03c3 \u03c3\u03c3"),
        (
            "Wait\u2026 \u00bd\u2122\xa0\u201cStra\u00dfe\u201d",
            "wait... 1\u20442tm \u201cstrasse\u201d",
        ),
        ("\u1100\u1161\u11a8 \uac00\u11a8", "\uac01 \uac01"),
        ("\uff76\uff9e \u304b\u3099", "\u30ac \u304c"),
        ("\u09c7\u09be", "\u09cb"),
        ("\u00c9\u0323", "\u1eb9\u0301"),
        ("\u1fb3 \u03b1\u0345\u0301", "\u03b1\u03b9 \u03ac\u03b9"),
        # Whatever Python's version: a letter of Unicode 16, and code points that have no character.
        ("\ua7cb", "\u0264"),
        ("\uffff\U000effff\U0003ffff", "\uffff\U000effff\U0003ffff"),
    ],
)
def test_normal_forms(text: str, expected: str) -> None:
    assert normalise(text, Parameters()) == expected
    assert Fingerprinter(Parameters()).forms(["x", text, "y"]) == ["x", expected, "y"]


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
    assert normalise(text, Parameters()) != expected


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
    assert normalise(text, Parameters()) != expected


@settings(max_examples=examples(200), deadline=None)
@given(TEXTS, st.sampled_from(SWITCHES))
def test_a_normal_form_is_its_own_normal_form(text: str, switches: Parameters) -> None:
    once = normalise(text, switches)
    assert normalise(once, switches) == once or is_bounded(text, switches)


@given(st.lists(TEXTS, max_size=8), st.sampled_from(SWITCHES))
@example(["", "a  ", "  b", " ", "c"], SWITCHES[0])
@example(["a\u2026", "", "\u2026", "e\u0301\u2026", "\u00df"], SWITCHES[0])
@example(["\u0301", "a", "\u0301\u2028\x85\u1680 x", "\u2028"], SWITCHES[0])
def test_each_text_of_a_batch_has_the_form_that_it_has_alone(
    texts: list[str], switches: Parameters
) -> None:
    fingerprinter = Fingerprinter(switches)
    forms = [normalise(text, switches) for text in texts]
    assert fingerprinter.forms(texts) == forms
    assert list(map(fingerprinter.normalise, texts)) == forms
    raw = Fingerprinter(Parameters(**RAW)).fingerprint(forms)
    assert fingerprinter.fingerprint(texts) == raw


@pytest.mark.parametrize("switches", SWITCHES)
def test_the_form_of_a_character_is_its_own_normal_form(switches: Parameters) -> None:
    normal = Fingerprinter(switches).normalise
    for char in SOME:
        form = normal(f"x{char}Y")
        assert normal(form) == form


def test_a_stretch_that_joins_lies_between_others() -> None:
    apart = "\u00c9\u2026\u2028\u4e2d" * 50
    form = "\u00e9... \u4e2d" * 50
    texts = [f"{apart}E\u0323{apart}\uff76\uff9e", f"{apart}\u0301 \u0345x"]
    assert Fingerprinter(Parameters()).forms(texts) == [
        f"{form}\u1eb9{form}\u30ac",
        f"{form}\u0301 \u03b9x",
    ]
