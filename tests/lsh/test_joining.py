"""Sequences of what joins, normalised in arrays: equal to the reference for every text."""

from __future__ import annotations

from unicodedata import combining, decomposition

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsh import Parameters, joining, normalise
from lsh.folding import Folding
from lsh.neighbours import AFRESH, compositions, kinds
from lsh.text import normalise_wide
from tests.support.breadth import mostly_broad

SWITCHES = [Parameters(), Parameters(casefold=False)]
KEPT = [(switches, Folding(switches)) for switches in SWITCHES]
JOINING = "".join(map(chr, np.flatnonzero(kinds())))
# Those that end compositions, decompose, or aren't marks; and a mark of each class.
SECONDS = set({combining(char): char for char in JOINING}.values()) | {
    char
    for char in JOINING
    if compositions().seconds[ord(char)] or decomposition(char) or not combining(char)
}
# Those that begin compositions, by themselves, decomposed, or once their case is folded.
LEADING = "".join(map(chr, np.flatnonzero((compositions().firsts > 0) & (kinds() == AFRESH))))
MORE = "\u0130\u00df\u1e9e\ufb03\u3316\u212b\u2126\ufdfa\u00a8\u0958\ufb2c\uac01\u034f\x00\x01 x"
MARKED = st.lists(
    st.one_of(st.sampled_from(JOINING), st.sampled_from(LEADING), st.sampled_from(MORE)),
    max_size=40,
).map("".join)


@given(MARKED, st.sampled_from(KEPT), st.sampled_from([1, 7, 1 << 15]))
@example("\u0345\u0301\u1fb3\u0334\u0345\u0301", KEPT[0], 1)
@example("\u0cc6\u0cc2\u0cd5\u0dd9\u0dcf\u0dca\u1100\u1161\u11a8\u11a8", KEPT[0], 1)
@example("\u1fbc\u0342\u0301 \u1fbc\u0301\u0342 \u1f88\u0342\u0345\u0323\u0345", KEPT[0], 7)
@example("\u03b1\u0334\u0345\u0301\u0390\u0345\u0323\u1fbe\u0301", KEPT[0], 1)
def test_sequences_give_the_reference_form(
    text: str, kept: tuple[Parameters, Folding], chunk: int
) -> None:
    switches, folding = kept
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joining, "_CHUNK", chunk)
        patch.setattr(joining, "_ROWS", chunk)
        assert (
            normalise_wide(["a", text, text], switches, folding).texts()[1:]
            == [normalise(text, switches)] * 2
        )


@pytest.mark.parametrize("switches", mostly_broad(SWITCHES, SWITCHES[0]))
def test_whatever_joins_joins_every_lead_as_in_the_reference(switches: Parameters) -> None:
    for second in SECONDS:
        text = "\n".join(f"{lead}{second}" for lead in LEADING + MORE)
        assert normalise_wide([text], switches).texts() == [normalise(text, switches)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("switches", SWITCHES)
@pytest.mark.parametrize("lead", ["", "\u03b1", "\u1fbc", "E", "\u0dd9", "\u1100"])
def test_every_two_join_as_in_the_reference(lead: str, switches: Parameters) -> None:
    for first in SECONDS:
        text = "\n".join(f"{lead}{first}{second}" for second in JOINING)
        assert normalise_wide([text], switches).texts() == [normalise(text, switches)]


@pytest.mark.parametrize("pattern", ["\u1fb7\u0301", "\u1161", "\u0f73\u0345", "E\u0323\u0301"])
def test_no_number_of_sequences_is_too_large(pattern: str) -> None:
    text = pattern * 70_000
    assert normalise_wide([text], Parameters()).texts() == [normalise(text, Parameters())]
