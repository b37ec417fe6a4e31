from __future__ import annotations

import sys
from unicodedata import normalize

import pytest

from lsh import PRESETS, Parameters
from lsh.folding import Folding, fold
from lsh.overlays import overlays, without_overlays
from lsh.replacing import Replacements
from lsh.stream_safe import expanding, size_of
from lsh.unicode_tables import CONFUSABLE
from tests.support.languages import LANGUAGES

EVERY = range(sys.maxunicode + 1)
COMMENTS = Parameters(**PRESETS["comments"])


def test_strokes_and_enclosures_are_those_that_all_scripts_share() -> None:
    marks = {point for point, base in overlays().items() if not base}
    assert {0x335, 0x336, 0x337, 0x338, 0x20DD, 0x20E0, 0x20E3} <= marks
    assert 0x301 not in marks  # acute
    assert 0x332 not in marks  # low line, which phonetics has
    assert 0x16AF0 not in marks  # a tone of Bassa Vah, an overlay by class
    assert 0x1CE2 not in marks  # a Vedic sign, an overlay by class


def test_a_stroke_is_dropped_from_whatever_it_composes_with() -> None:
    for point, base in overlays().items():
        apart = normalize("NFD", chr(point))
        assert without_overlays(apart) == normalize("NFD", base)
    assert without_overlays("\u2260\u2209") == "=\u2208"


@pytest.mark.parametrize("switches", [Parameters(), COMMENTS])
def test_what_is_replaced_stays(switches: Parameters) -> None:
    replacements = Replacements(switches)
    for point in [*range(0x3000), *map(ord, "\u2260\ufb01\uff21\U0001d400\U0001f1e6\u3316")]:
        once = replacements[point]
        assert once.translate(replacements) == once


def test_look_alikes_are_letters_or_signs_and_never_of_other_scripts() -> None:
    for shown in CONFUSABLE:
        assert shown.isascii()
        assert shown == shown.casefold()
    for language in ("Arabic with vowels", "Persian", "Hebrew with points", "Thai", "Hindi"):
        text = LANGUAGES[language]
        assert text.translate(Replacements(Parameters(fold_confusables=True))) == text


@pytest.mark.parametrize(
    "capital", "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425"
)
def test_both_cases_of_cyrillic_look_alike(capital: str) -> None:
    switches = Parameters(fold_confusables=True)
    assert fold(capital, switches) == fold(capital.lower(), switches)
    assert fold(capital, switches).isascii()


@pytest.mark.exhaustive
def test_what_can_expand_beyond_its_size_is_known() -> None:
    for switches in (Parameters(), Parameters(nfkc=False), Parameters(casefold=False)):
        folding = Folding(switches)
        for point in EVERY:
            form = folding._form(point)
            if form is not None and len(form) > size_of(chr(point)):
                assert expanding().fullmatch(chr(point))
