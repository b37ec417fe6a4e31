"""Accents, points and vowel signs are dropped at a switch, and marks that make words are not."""

from __future__ import annotations

from unicodedata import category, normalize

import pytest

from lsh import PRESETS, Fingerprinter, Parameters, normalise, similarity
from tests.oracle import normal_form
from tests.oracle.texts import KNOWN
from tests.support.languages import LANGUAGES

PLAIN = Parameters()
FOLDED = Parameters(fold_accents=True)
FRENCH = (
    "Le conseil municipal a d\u00e9cid\u00e9 apr\u00e8s de longs d\u00e9bats de faire passer la"
    " deuxi\u00e8me ligne de tramway \u00e0 travers la vieille ville, au c\u0153ur du Ch\u00e2teau."
)
WITHOUT = (
    "Le conseil municipal a decide apres de longs debats de faire passer la"
    " deuxieme ligne de tramway a travers la vieille ville, au coeur du Chateau."
)


@pytest.mark.parametrize("text", [WITHOUT, FRENCH.upper(), WITHOUT.upper()])
def test_a_copy_without_accents_is_the_same_text(text: str) -> None:
    assert normalise(text, FOLDED) == normalise(FRENCH, FOLDED) == WITHOUT.lower()


def test_such_a_copy_is_a_duplicate_by_the_preset_for_comments_and_not_by_default() -> None:
    for parameters, least, most in (
        (Parameters(**PRESETS["comments"]), 1.0, 1.0),
        (PLAIN, 0.4, 0.7),
    ):
        sketches = Fingerprinter(parameters).fingerprint([FRENCH, WITHOUT]).sketches
        assert least <= similarity(sketches[0], sketches[1:])[0] <= most


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "\u0141\u00f3d\u017a, K\u00f8ge, \u0110\u00e0 N\u1eb5ng, stra\u00dfe, \u00c6r\u00f8",
            "lodz, koge, da nang, strasse, aero",
        ),
        (
            "\u0415\u0301\u043b\u043a\u0430, \u0451\u043b\u043a\u0430, \u0439\u043e\u0433",
            "\u0435\u043b\u043a\u0430, \u0435\u043b\u043a\u0430, \u0438\u043e\u0433",
        ),
        (
            "\u1f00\u03c1\u03c7\u1fc7, \u03bb\u03cc\u03b3\u03bf\u03c2",
            "\u03b1\u03c1\u03c7\u03b7, \u03bb\u03bf\u03b3\u03bf\u03c3",
        ),
        ("\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd \ufb2a", "\u05e9\u05dc\u05d5\u05dd \u05e9"),
        (
            "\u0645\u064f\u062d\u064e\u0645\u0651\u064e\u062f \u0622\u0623\u0625\u0671",
            "\u0645\u062d\u0645\u062f \u0627\u0627\u0627\u0627",
        ),
        ("\u0130stanbul, I\u015f\u0131k, \u01fd\u01ff\u01c4", "istanbul, isik, aeodz"),
        (
            "\u0f55 \u304c\u30d1\u30b2 \ud55c\uae00 \u0915\u093c\u093e \u0e19\u0e49\u0e33",
            "\u0f55 \u304c\u30d1\u30b2 \ud55c\uae00 \u0915\u093c\u093e \u0e19\u0e49\u0e4d\u0e32",
        ),
        ("x\u20d7 \u2260 \u00f1 \u00e5", "x\u20d7 = n a"),
    ],
)
def test_what_is_dropped(text: str, expected: str) -> None:
    assert normalise(text, FOLDED) == expected


@pytest.mark.parametrize(
    "language", ["Thai", "Hindi", "Malayalam", "Sinhala", "Chinese", "Japanese", "Korean"]
)
def test_marks_that_make_words_stay(language: str) -> None:
    assert normalise(LANGUAGES[language], FOLDED) == normalise(LANGUAGES[language], PLAIN)


@pytest.mark.parametrize("nfkc", [True, False])
def test_the_marks_are_those_that_unicode_names_so(*, nfkc: bool) -> None:
    switches = Parameters(fold_accents=True, nfkc=nfkc)
    normal = Fingerprinter(switches).normalise
    marked = [char for char in KNOWN if category(char) == "Mn" or normalize("NFD", char) != char]
    for char in marked:
        if not "\uac02" < char < "\ud7a4":  # syllables of Hangul
            assert normal(char) == normal_form.normalise(char, switches)
