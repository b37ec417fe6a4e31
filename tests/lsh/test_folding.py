from __future__ import annotations

import sys
from functools import cache
from unicodedata import category, combining, normalize

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsh import Parameters, folding, normalise
from lsh import joining as joining_module
from lsh.code_points import code_points
from lsh.folding import Folding, fold
from lsh.invisible import JOINERS
from lsh.neighbours import seconds
from lsh.text import normalise_wide
from tests.oracle.texts import ALL_SWITCHES, MIXED, PLAIN, SWITCHES

EVERY = range(sys.maxunicode + 1)
ASSIGNED = [point for point in EVERY if category(chr(point)) not in ("Cn", "Co")]
NO_ENDS = np.empty(0, dtype=np.int64)
KEPT = [(switches, Folding(switches)) for switches in ALL_SWITCHES]


@cache
def joining(switches: Parameters) -> set[int]:
    codes = np.arange(len(EVERY), dtype=np.uint32)
    folded = Folding(switches).fold(codes, NO_ENDS, [])
    return set(folded.codes[folded.joining].tolist())


@cache
def alone(switches: Parameters) -> dict[str, str]:
    """Return what each assigned character is folded to, of those folded by themselves."""
    apart = sorted(set(ASSIGNED) - joining(switches))
    return {chr(point): fold(chr(point), switches) for point in apart}


@pytest.mark.exhaustive
def test_what_is_folded_by_itself_neither_reorders_nor_composes() -> None:
    assert len(joining(Parameters())) < 0.01 * len(EVERY)
    for char, folded in alone(PLAIN).items():
        for form in {char, normalize("NFKC", char).casefold(), folded}:
            for part in {form[0], normalize("NFD", form)[0], normalize("NFKD", form)[0]}:
                assert combining(part) == 0
                assert part not in seconds()


@pytest.mark.exhaustive
@pytest.mark.parametrize("switches", [switch for switch in SWITCHES if not switch.nfkc])
def test_without_nfkc_no_neighbour_matters(switches: Parameters) -> None:
    assert joining(switches) == set(map(ord, JOINERS))


@pytest.mark.exhaustive
@pytest.mark.parametrize("switches", SWITCHES)
def test_every_code_point_by_itself_gives_the_reference_form(switches: Parameters) -> None:
    every = np.arange(len(ASSIGNED))
    folded = Folding(switches).fold(
        np.array(ASSIGNED, dtype=np.uint32), every, [""] * len(ASSIGNED)
    )
    ends = [*folded.ends[1:].tolist(), len(folded.codes)]
    text = str(folded.codes.data, "utf-32-le", "surrogatepass")
    assert len(text) == ends[-1]
    forms = alone(switches)
    for point, begin, end in zip(ASSIGNED, [0, *ends], ends, strict=False):
        expected = forms.get(chr(point), chr(point))
        if switches.collapse_whitespace:
            expected = "".join(" " if char.isspace() else char for char in expected)
        assert text[begin:end] == expected


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "lead", ["A", "e\u0323\u0301", "\u09c7", "\u1100", "\uac00", "\u1b05", "\uff76", "\u03b1\u0345"]
)
def test_what_is_folded_by_itself_is_the_same_behind_any_lead(lead: str) -> None:
    switches = PLAIN
    forms = {char: form for char, form in alone(switches).items() if char > "\x7f"}
    together = fold("\n".join(lead + char for char in forms), switches).split("\n")
    assert together == [fold(lead, switches) + form for form in forms.values()]


@given(st.lists(MIXED, max_size=8), st.sampled_from(KEPT), st.integers(1, 9))
@example(["a\u2026", "", "\u2026", "e\u0301\u2026", "\u00df"], KEPT[0], 2)
@example(["\u0301", "a", "\u0301\u2028\x85\u1680 x", "\u2028"], KEPT[0], 1)
def test_a_batch_gives_the_reference_form_wherever_it_is_cut(
    texts: list[str], kept: tuple[Parameters, Folding], chunk: int
) -> None:
    switches, known = kept
    expected = [normalise(text, switches) for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "_CHUNK", chunk)
        patch.setattr(joining_module, "_CHUNK", chunk)
        batch = normalise_wide(texts, switches, known)
    assert batch.encoded() == [text.encode("utf-8", "surrogatepass") for text in expected]
    assert normalise_wide(texts, switches).texts() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
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
    ],
)
def test_normal_forms(text: str, expected: str) -> None:
    assert normalise(text, Parameters()) == expected
    assert normalise_wide(["x", text, "y"], Parameters()).texts() == ["x", expected, "y"]


def test_stretches_that_are_folded_as_a_whole_lie_between_what_is_folded_by_itself() -> None:
    apart = "\u00c9\u2026\u2028\u4e2d" * 50
    texts = [f"{apart}E\u0323{apart}\uff76\uff9e", "\u0301", apart, f"{apart}\u0301 \u0345x"]
    expected = [normalise(one, Parameters()) for one in texts]
    assert normalise_wide(texts, Parameters()).texts() == expected


def test_the_table_is_in_place_where_the_length_stays() -> None:
    codes = code_points("\u00c9A\u2019")
    folded = Folding(Parameters()).fold(codes, NO_ENDS, [])
    assert folded.codes is codes
    assert codes.tolist() == [0xE9, ord("a"), 0x2019]
