"""What bounds normalisation: runs of marks, and characters that cost more than their size."""

from __future__ import annotations

from unicodedata import combining, normalize

import pytest
from hypothesis import example, given

from lsh import Fingerprinter, Parameters, normalise
from tests.oracle import normal_form
from tests.oracle.normal_form import JOINERS, classes, runs
from tests.oracle.texts import MARKED, SOME, is_bounded
from tests.support.breadth import mostly_slow
from tests.support.languages import LANGUAGES

COMPATIBLE = Parameters(
    casefold=False, collapse_whitespace=False, drop_invisible=False, drop_overlays=False
)
HEAVY = ["\u01ed\u0323", "\u1f82", "\u1f82\u0323\u0301", "x" + "\u0344" * 15, "\u0345\u0301"]
EXPANDING = ["\ufdfa", "\u3316", "\u3316\u0301", "\u00bd", "\u3316\u3099"]
GENESIS = (  # 1:1, with points and accents
    "\u05d1\u05b0\u05bc\u05e8\u05b5\u05d0\u05e9\u05b4\u05c1\u0596\u05d9\u05ea"
    " \u05d1\u05b8\u05bc\u05e8\u05b8\u05a3\u05d0"
    " \u05d0\u05b1\u05dc\u05b9\u05d4\u05b4\u0591\u05d9\u05dd"
    " \u05d0\u05b5\u05a5\u05ea"
    " \u05d4\u05b7\u05e9\u05b8\u05bc\u05c1\u05de\u05b7\u0596\u05d9\u05b4\u05dd"
    " \u05d5\u05b0\u05d0\u05b5\u05a5\u05ea \u05d4\u05b8\u05d0\u05b8\u05bd\u05e8\u05b6\u05e5\u05c3"
)


def longest_run(text: str) -> int:
    """Return the most non-starters in a row, counted in NFKD without its reordering."""
    longest = run = 0
    for char in text:
        for part in normalize("NFKD", char):
            # A joiner doesn't end a run: it may be dropped.
            run = run + (combining(part) > 0) if combining(part) or char in JOINERS else 0
            longest = max(longest, run)
    return longest


@given(MARKED)
@example("\u0301" * 200)
@example("x" * 31 + "\u0344" * 40)
@example("x" + "\u0301" * 20 + "\u200d" + "\u0301" * 20)
def test_no_run_of_marks_is_longer_than_thirty(text: str) -> None:
    form = normalise(text, COMPATIBLE)
    assert longest_run(form) <= 30
    assert normalise(form, COMPATIBLE) == form or is_bounded(text, COMPATIBLE)
    if longest_run(text) <= 30 and not is_bounded(text, COMPATIBLE) and "\ufdfa" not in text:
        assert form == normalize("NFKC", text)


def test_thirty_marks_stay() -> None:
    for text, expected in (
        ("x" + "\u0301" * 30, "x" + "\u0301" * 30),
        ("x" + "\u0301" * 31 + "y", "x" + "\u0301" * 30 + "y"),
        ("\u1eaf" + "\u0301" * 29, "\u1eaf" + "\u0301" * 28),
    ):
        assert normalise(text, COMPATIBLE) == expected


def test_the_forms_that_expand_furthest_are_cut() -> None:
    assert normalise("\ufdfa", COMPATIBLE) == normalize("NFKC", "\ufdfa")[:6]
    cut = normalize("NFKC", "\ufdfb")[:5] + "\u0623"
    assert normalise("a\ufdfb\u0654", COMPATIBLE) == f"a{cut}"
    assert normalise("\ufdfa", Parameters(nfkc=False)) == "\ufdfa"


@pytest.mark.parametrize("pattern", HEAVY + EXPANDING)
@pytest.mark.parametrize("times", mostly_slow([1, 10, 25, 33, 40, 100, 400], 10, 33, 400))
@pytest.mark.parametrize("filler", mostly_slow([0, 100, 2_000], 0, 100))
def test_costly_characters_are_bounded_as_by_the_definition(
    pattern: str, times: int, filler: int
) -> None:
    text = pattern * times + "\u00e9a" * filler
    for switches in (Parameters(), Parameters(casefold=False)):
        expected = normal_form.normalise(text, switches)
        assert normalise(text, switches) == expected
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
    beyond = sum(max(run - 2, 0) - max(before - 2, 0) for _, before, run in runs(GENESIS))
    assert 0 < 3 * beyond < len(GENESIS.encode()) / 16
    assert normalise(GENESIS * 500, Parameters()) == normalize("NFKC", GENESIS * 500)


def test_letters_of_a_text_that_loses_its_marks_have_at_most_two() -> None:
    heavy = "\u0301" * 200
    normal = Fingerprinter(COMPATIBLE).normalise
    assert normal(f"{heavy}x\u0301") == "x"
    for char in SOME:
        numbers = [number for one in normal(heavy + char) for number in classes(one)]
        behind = next((at for at, number in enumerate(numbers[::-1]) if not number), len(numbers))
        assert behind <= 2


@pytest.mark.parametrize("compatible", [True, False])
def test_a_normal_form_has_at_most_two_code_points_for_each_byte(*, compatible: bool) -> None:
    normal = Fingerprinter(Parameters(nfkc=compatible)).normalise
    for char in map(chr, range(0x20000)):
        assert len(normal(char)) <= 2 * len(char.encode("utf-8", "surrogatepass"))
