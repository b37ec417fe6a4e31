"""Texts that are nothing but characters that cost more than their size."""

from __future__ import annotations

import sys
from unicodedata import combining, normalize

import pytest

from lsh import Parameters, normalise
from lsh.code_points import code_points
from lsh.neighbours import WITH_IOTA, kind_of
from lsh.stream_safe import marks_of_runs, size_of
from lsh.text import normalise_wide
from lsh.weight import beyond_the_second, without_iota
from tests.oracle import normal_form
from tests.support.breadth import mostly_broad
from tests.support.languages import LANGUAGES

HEAVY = ["\u01ed\u0323", "\u1f82", "\u1f82\u0323\u0301", "x" + "\u0344" * 15, "\u0345\u0301"]
GENESIS = (  # 1:1, with points and accents
    "\u05d1\u05b0\u05bc\u05e8\u05b5\u05d0\u05e9\u05b4\u05c1\u0596\u05d9\u05ea"
    " \u05d1\u05b8\u05bc\u05e8\u05b8\u05a3\u05d0"
    " \u05d0\u05b1\u05dc\u05b9\u05d4\u05b4\u0591\u05d9\u05dd"
    " \u05d0\u05b5\u05a5\u05ea"
    " \u05d4\u05b7\u05e9\u05b8\u05bc\u05c1\u05de\u05b7\u0596\u05d9\u05b4\u05dd"
    " \u05d5\u05b0\u05d0\u05b5\u05a5\u05ea \u05d4\u05b8\u05d0\u05b8\u05bd\u05e8\u05b6\u05e5\u05c3"
)
EXPANDING = ["\ufdfa", "\u3316", "\u3316\u0301", "\u00bd", "\u3316\u3099"]


@pytest.mark.parametrize("pattern", HEAVY + EXPANDING)
@pytest.mark.parametrize("times", mostly_broad([1, 10, 25, 33, 40, 100, 400], 10, 33, 400))
@pytest.mark.parametrize("filler", mostly_broad([0, 100, 2_000], 0, 100))
def test_they_are_bounded_as_by_the_definition(pattern: str, times: int, filler: int) -> None:
    text = pattern * times + "\u00e9a" * filler
    for switches in (Parameters(), Parameters(casefold=False)):
        expected = normal_form.normalise(text, switches)
        assert normalise(text, switches) == expected
        found = normalise_wide(["\u00e9\u0323", text, "b\u0301"], switches).texts()
        assert found == ["\u1eb9\u0301", expected, "b\u0301"]
        assert normalise(expected, switches) == expected


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_language_is_near_the_bounds(language: str) -> None:
    text = LANGUAGES[language] * 1_000
    expected = normalize("NFKC", normalize("NFKC", text).casefold())
    assert normalise(text, Parameters()) == expected
    assert normalise(normalize("NFD", text), Parameters()) == expected


def test_a_text_with_some_such_characters_is_left_alone() -> None:
    text = "distance: 5 \u3316; " * 50 + "\u3316" * 8
    assert normalise(text, Parameters()) == normalize("NFKC", text)


def test_a_verse_with_vowels_and_accents_has_a_third_of_the_marks_that_it_may_have() -> None:
    codes = code_points(GENESIS)
    beyond = int(beyond_the_second(codes, marks_of_runs(codes)).sum())
    assert 0 < 3 * beyond < size_of(GENESIS) / 16
    expected = normalize("NFKC", f"{GENESIS} " * 500).strip()
    assert normalise(GENESIS * 500, Parameters()) == normalize("NFKC", GENESIS * 500)
    assert normalise(f"{GENESIS} " * 500, Parameters()) == expected


@pytest.mark.broad
def test_letters_that_stay_have_at_most_two_marks() -> None:
    for point in range(sys.maxunicode + 1):
        char = without_iota().get(point, chr(point))
        if kind_of(chr(point)) in (0, WITH_IOTA):
            apart = normalize("NFKD", char)
            marks = len(apart) - len(apart.rstrip("".join(filter(combining, apart))))
            assert marks <= 2
