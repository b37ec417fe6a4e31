"""What bounds normalisation: runs of combining marks, and forms that expand far."""

from __future__ import annotations

import sys
from unicodedata import combining, normalize

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsh import Parameters, normalise
from lsh.invisible import JOINERS
from lsh.stream_safe import _marks, bounded, nfkc
from tests.oracle.normal_form import cut
from tests.oracle.texts import MARKED, is_bounded

EVERY = range(sys.maxunicode + 1)


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
def test_runs_are_cut_as_by_the_definition(text: str) -> None:
    short = bounded(text.replace("\ufdfa", ""))
    assert short == cut(text.replace("\ufdfa", ""))


@given(MARKED)
def test_no_run_is_longer_than_thirty_before_and_after(text: str) -> None:
    safe = bounded(text)
    assert longest_run(safe) <= 30
    assert longest_run(nfkc(text)) <= 30
    assert bounded(safe) == safe
    assert nfkc(nfkc(text)) == nfkc(text)
    if longest_run(text) <= 30 and "\ufdfa" not in text:
        assert nfkc(text) == normalize("NFKC", text)


@given(MARKED, st.sampled_from([Parameters(), Parameters(casefold=False)]))
def test_a_normal_form_with_runs_is_its_own_normal_form(text: str, switches: Parameters) -> None:
    once = normalise(text, switches)
    assert normalise(once, switches) == once or is_bounded(text, switches)


def test_thirty_marks_stay() -> None:
    assert bounded("x" + "\u0301" * 30) == "x" + "\u0301" * 30
    assert bounded("x" + "\u0301" * 31 + "y") == "x" + "\u0301" * 30 + "y"
    assert bounded("\u1eaf" + "\u0301" * 29) == "\u1eaf" + "\u0301" * 28


def test_the_forms_that_expand_furthest_are_cut() -> None:
    assert nfkc("\ufdfa") == normalize("NFKC", "\ufdfa")[:6]
    assert nfkc("a\ufdfb\u0654") == "a" + normalize("NFKC", "\ufdfb")[:5] + "\u0623"
    assert normalise("\ufdfa", Parameters(nfkc=False)) == "\ufdfa"


@pytest.mark.exhaustive
@pytest.mark.parametrize("compatible", [True, False])
def test_a_normal_form_has_at_most_two_code_points_for_each_byte(*, compatible: bool) -> None:
    switches = Parameters(nfkc=compatible)
    for point in EVERY:
        char = chr(point)
        size = len(char.encode("utf-8", "surrogatepass"))
        assert len(normalise(char, switches)) <= 2 * size
        assert len(normalize("NFKD", bounded(char))) <= 4 * size


@pytest.mark.exhaustive
def test_the_tables_hold_every_code_point() -> None:
    marks = _marks()
    for point in EVERY:
        classes = [combining(part) for part in normalize("NFKD", chr(point))]
        initial = next((at for at, number in enumerate(classes) if not number), len(classes))
        trailing = next((at for at, number in enumerate(classes[::-1]) if not number), 0)
        # No decomposition begins with a mark and has a starter.
        assert initial in {0, len(classes)}
        assert marks.initial[point] == initial
        assert marks.trailing[point] == trailing * (initial == 0)
