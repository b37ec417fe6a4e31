"""Strokes over letters are dropped, and at a switch look-alikes are folded; nothing else is."""

from __future__ import annotations

from unicodedata import normalize

import pytest

from lsh import Fingerprinter, Parameters, normalise
from tests.oracle.normal_form import is_overlay
from tests.oracle.texts import SOME
from tests.support.languages import LANGUAGES

LOOKS = Parameters(fold_confusables=True)


@pytest.mark.parametrize("mark", "\u0335\u0336\u0337\u0338\u20dd\u20e0\u20e3")
def test_strokes_and_enclosures_are_dropped(mark: str) -> None:
    assert normalise(f"x{mark}y", Parameters()) == "xy"


@pytest.mark.parametrize(
    "mark",
    [
        "\u0301",  # acute
        "\u0332",  # low line, which phonetics has
        "\U00016af0",  # a tone of Bassa Vah, an overlay by class
        "\u1ce2",  # a Vedic sign, an overlay by class
    ],
)
def test_marks_that_a_script_needs_are_not(mark: str) -> None:
    assert normalise(f"x{mark}y", Parameters()) == f"x{mark}y"


def test_a_stroke_is_dropped_from_whatever_it_composes_with() -> None:
    normal = Fingerprinter(Parameters()).normalise
    with_strokes = [char for char in SOME if any(map(is_overlay, normalize("NFD", char)[1:]))]
    assert len(with_strokes) > 40
    for char in with_strokes:
        left = "".join(part for part in normalize("NFD", char) if not is_overlay(part))
        assert normal(char) == normal(left)
    assert normal("\u2260\u2209") == "=\u2208"


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_language_but_those_like_latin_has_look_alikes(language: str) -> None:
    text = LANGUAGES[language]
    assert (normalise(text, LOOKS) == normalise(text, Parameters())) == (language != "Greek")


def test_what_looks_like_ascii_becomes_ascii() -> None:
    plain, looks = (Fingerprinter(switches).normalise for switches in (Parameters(), LOOKS))
    changed = {char: looks(char) for char in SOME if looks(char) != plain(char)}
    assert len(changed) > 1_000
    for char, form in changed.items():
        assert "".join({*normalize("NFD", form)} - {*normalize("NFD", plain(char))}).isascii()
        assert form == form.lower()


@pytest.mark.parametrize(
    "capital", "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425"
)
def test_both_cases_of_cyrillic_look_alike(capital: str) -> None:
    form = normalise(capital, LOOKS)
    assert form == normalise(capital.lower(), LOOKS)
    assert form.isascii()
