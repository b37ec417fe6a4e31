"""What differs between two texts, and whether it counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsh import Fingerprinter, Parameters
from worker.comparing import aligned

NORMALISE = Fingerprinter(Parameters(nfkc=True, casefold=True)).normalise


def kinds(left: str, right: str, left_out: tuple[list[str], list[str]] = ([], [])) -> list[str]:
    found = aligned(left, right, NORMALISE, left_out)
    return [f"{one.kind}:{one.left}|{one.right}" for one in found.pieces]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("same text", "same text", ["same:same text|same text"]),
        ("A word", "a word", ["uncounted:A|a", "same: word| word"]),
        ("one two", "one three", ["same:one | ", "different:two|three"]),
        ("", "all", ["different:|all"]),
        ("a  b", "a\nb", ["same:a  b|a\nb"]),
    ],
)
def test_differences_are_marked_by_whether_they_count(
    left: str, right: str, expected: list[str]
) -> None:
    found = kinds(left, right)
    assert [one.partition(":")[0] for one in found] == [one.partition(":")[0] for one in expected]


def test_a_listed_line_is_left_out() -> None:
    found = kinds("a text\nAll rights reserved", "a text", (["All rights reserved"], []))
    assert "left_out:All rights reserved|" in found
    assert not any(one.startswith("different") for one in found)


@given(st.text(max_size=200), st.text(max_size=200))
def test_the_pieces_of_short_texts_make_the_texts(left: str, right: str) -> None:
    found = aligned(left, right, NORMALISE)
    assert not found.cut
    assert "".join(p.left for p in found.pieces) == left
    assert "".join(p.right for p in found.pieces) == right


def test_long_texts_are_shown_from_just_before_their_first_difference() -> None:
    common = "word " * 200_000
    found = aligned(common + "one", common + "other", NORMALISE)
    assert found.cut
    assert [(p.left, p.right) for p in found.pieces if p.kind == "different"] == [("one", "other")]
    assert sum(len(p.left) for p in found.pieces) < 40_000
