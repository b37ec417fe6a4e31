"""Lines that are left out: by their definition, by the reference, and of a batch."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lsh import Fingerprinter, Fingerprints, Parameters, listed_lines, normalise
from lsh.folding import fold
from lsh.listed_lines import (
    BREAKS,
    LineFilter,
    digest,
    left_out,
    left_over,
    lines_of,
    listed_forms,
)
from lsh.stream_safe import expanding, size_of, too_far
from lsh.text import form_of
from tests.oracle.texts import ALL_SWITCHES, EVERY_ONE, MARKED, MIXED
from tests.support.corpus import examples

FOOTER = "\u00a9 2024 Example Ltd. All rights reserved."
HEAPED = "\u3316" * (listed_lines.UNCUT + 1)
HEAVY = "\u03b1" + "\u0301" * 35 + "\u0345"
LISTED = (
    *(FOOTER, "Share this", "cookies?", "\u30c6\u30b9\u30c8 \uff21\uff22\uff23", "---", "5"),
    *("\u00e9t\u00e9 \uac00 \u1e69", HEAVY, "\u1fb3 \ufb03"),
)
PARAMETERS = Parameters(boilerplate=frozenset(LISTED))
COMPOSED = ["e\u0301te\u0301 \u1100\u1161 s\u0307\u0323", "\u03b1\u0345 FFI", "\u0391\u0399 ffi"]
ALSO = [
    *COMPOSED,
    FOOTER.upper(),
    " share\tTHIS ",
    "Share\u200b this",
    "ABC",
    "- - -",
    "5.",
    "6",
    "",
    " ",
]
LINES = st.one_of(
    st.sampled_from([*LISTED, *ALSO, "eikooc", "sharing this"]),
    MIXED.filter(BREAKS.isdisjoint),
    MARKED,
)
TEXTS = st.lists(
    st.lists(st.tuples(LINES, st.sampled_from(sorted(BREAKS))), max_size=8).map(
        lambda lines: "".join(line + end for line, end in lines)
    ),
    max_size=5,
)
SWITCHES = [replace(switches, boilerplate=frozenset(LISTED)) for switches in ALL_SWITCHES]


def filter_of(parameters: Parameters) -> LineFilter:
    fingerprinter = Fingerprinter(parameters)
    return LineFilter(parameters, form_of, fingerprinter.forms)


def defined(text: str, parameters: Parameters) -> str:
    """Return what should be left of a text, by the definition."""
    plain = replace(parameters, boilerplate=frozenset())
    listed = {normalise(line, plain) for line in parameters.boilerplate}
    if parameters.drop_symbols:
        listed.discard("---")
    kept = []
    for line in text.replace("\r", "\n").splitlines(keepends=True):
        bare = line if line[-1] not in BREAKS else line[:-1]
        if normalise(bare, plain) not in listed:
            kept.append(line)
    left = "".join(kept)
    return left if normalise(left, plain).split() else text.replace("\r", "\n")


@settings(max_examples=examples(40), deadline=None)
@given(TEXTS, st.sampled_from(SWITCHES), st.sampled_from([1, 9, 16]), st.sampled_from([3, 1_000]))
@example(["\u0345 \u03b9\n5", "\ufdfa\n5\n\u3316", f"{HEAPED * 9}\n5"], SWITCHES[-1], 16, 2)
def test_a_batch_the_reference_and_the_definition_are_one(
    texts: list[str], parameters: Parameters, bits: int, together: int
) -> None:
    expected = [left_over(text, parameters, form_of) for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listed_lines, "_BITS", bits)
        patch.setattr(listed_lines, "_REMEMBERED", 4)
        patch.setattr(listed_lines, "_TOGETHER", together)
        patch.setattr(listed_lines, "_SHORT", together % 5)
        lines = filter_of(parameters)
        assert list(lines.left_over(texts)) == expected
        assert list(lines.left_over(texts)) == expected  # Now it remembers some lines,
        assert len(lines._known) <= 4  # but not many.
    wanted = [defined(text, parameters) for text in texts]
    assert [text.replace("\r", "\n") for text in expected] == wanted


@settings(max_examples=examples(30), deadline=None)
@given(TEXTS, st.sampled_from(SWITCHES))
def test_the_lines_that_are_left_out_are_those_that_are_missing(
    texts: list[str], parameters: Parameters
) -> None:
    for text in texts:
        rest, gone = left_over(text, parameters, form_of), left_out(text, parameters, form_of)
        lines = lines_of(text)
        assert gone == ([] if rest == text else [line for line in lines if line in gone])
        assert bool(gone) == (rest != text)
        kept = [line for line in lines if line not in gone]
        assert list(filter(None, lines_of(rest))) == list(filter(None, kept))


def assert_same(one: Fingerprints, other: Fingerprints) -> None:
    np.testing.assert_array_equal(one.keys, other.keys)
    np.testing.assert_array_equal(one.sketches, other.sketches)
    np.testing.assert_array_equal(one.shingle_counts, other.shingle_counts)


@settings(max_examples=examples(12), deadline=None)
@given(TEXTS, st.sampled_from(SWITCHES))
def test_fingerprints_are_those_of_what_is_left(texts: list[str], parameters: Parameters) -> None:
    plain = replace(parameters, boilerplate=frozenset())
    left = [left_over(text, parameters, form_of) for text in texts]
    fingerprinter = Fingerprinter(parameters)
    assert_same(fingerprinter.fingerprint(texts), Fingerprinter(plain).fingerprint(left))
    for text, rest in zip(texts, left, strict=True):
        assert fingerprinter.normalise(text) == normalise(rest, plain)


def left(text: str, **switches: Any) -> str:  # noqa: ANN401
    parameters = replace(PARAMETERS, **switches)
    rest = left_over(text, parameters, form_of)
    assert list(filter_of(parameters).left_over([text])) == [rest]
    return rest


def test_lines_are_compared_in_their_normal_form() -> None:
    assert left("\n".join(["A report.", *COMPOSED])) == "A report.\n"
    assert left(f"A report.\n{FOOTER.upper()}\n SHARE  this\r\nIts end.") == (
        "A report.\n\nIts end."
    )
    assert left("A report.\nShare this\n", casefold=False) == "A report.\n"
    assert left("A report.\nshare this\n", casefold=False) == "A report.\nshare this\n"
    assert left("A report, share this\n") == "A report, share this\n"
    assert left("A report. 5\n6\n7", fold_digits=True) == "A report. 5\n"


def test_a_text_of_listed_lines_alone_stays() -> None:
    for text in (FOOTER, f"{FOOTER}\n\u200b\n Share this\u2028", f"\n{FOOTER}\n \n"):
        assert left(text) == text
        assert list(filter_of(PARAMETERS).left_over([text, "x"])) == [text, "x"]
    assert left(f"{FOOTER}\n.") == "."
    assert not Fingerprinter(PARAMETERS).fingerprint([FOOTER]).blank[0]


def test_pages_find_each_other_in_spite_of_their_footers() -> None:
    story = "The council met on Tuesday and agreed on a bridge over the river."
    pages = [f"{story}\n{FOOTER}\nShare this\n{end}" for end in ("", "5", "---\ncookies?")]
    prints = Fingerprinter(PARAMETERS).fingerprint([*pages, story])
    assert (prints.keys == prints.keys[0]).all()


def test_markup_and_addresses_are_reduced_before_lines_are_compared() -> None:
    page = f"<p>A <b>report</b>.</p><div>{FOOTER}</div><ul><li>Share this<li>News</ul>"
    parameters = replace(PARAMETERS, strip_html=True, reduce_urls=True)
    assert normalise(page, parameters) == "a report. news"
    linked = replace(parameters, boilerplate=frozenset(["More on www.example.org"]))
    assert normalise("A report.\nmore on www.example.org/a/1", linked) == "a report."


def test_a_list_means_the_normal_forms_of_its_lines() -> None:
    parameters = Parameters(boilerplate=frozenset(["Share  THIS", "share this", " ", "\u0301"]))
    assert listed_forms(parameters, form_of) == {"share this"}
    same = Parameters(boilerplate=frozenset(["SHARE this"]))
    assert digest(parameters, form_of) == digest(same, form_of)
    assert parameters.describe() == same.describe()
    assert parameters.describe() != PARAMETERS.describe()
    assert "boilerplate" not in Parameters().describe()
    drops = Parameters(boilerplate=frozenset(["---"]), drop_symbols=True)
    assert listed_forms(drops, form_of) == frozenset()


@pytest.mark.parametrize("wrong", ["a\nb", "a\u2028", b"a", 5])
def test_what_is_no_line_is_refused(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match=r"boilerplate: got .*, takes lines of text, without"):
        Parameters(boilerplate=frozenset([wrong]))


class Counting:
    """Counts the lines of which a normal form is made."""

    def __init__(self, parameters: Parameters) -> None:
        self.lines = 0
        self.characters = 0
        self._forms = Fingerprinter(parameters).forms
        self.filter = LineFilter(parameters, form_of, self.forms_of)

    def forms_of(self, lines: Sequence[str]) -> list[str]:
        self.lines += len(lines)
        self.characters += sum(map(len, lines))
        return self._forms(lines)


SIZE = 200_000
HOSTILE = {
    "line breaks": "\n" * SIZE,
    "spaces and breaks": " \n" * (SIZE // 2),
    "listed lines": "5\n" * (SIZE // 2),
    "a listed line and a short one": "5\nx\n" * (SIZE // 4),
    "numbers": "\n".join(map(str, range(SIZE // 6))),
    "one line": "a" * SIZE,
    "wide": "\u00e9\n" * (SIZE // 2),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_few_lines_of_a_hostile_text_are_looked_at(name: str) -> None:
    counting = Counting(PARAMETERS)
    text = HOSTILE[name]
    rest = counting.filter.left_over([text])[0]
    assert counting.lines <= 20
    assert (len(rest) < len(text)) == (name in {"a listed line and a short one", "numbers"})


@pytest.mark.parametrize("name", HOSTILE)
def test_the_lines_of_a_hostile_text_take_bounded_memory(name: str) -> None:
    fingerprinter = Fingerprinter(PARAMETERS)
    fingerprinter.fingerprint([HOSTILE[name][:100]])
    tracemalloc.start()
    try:
        fingerprinter.fingerprint([HOSTILE[name]])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 48 * SIZE


@pytest.mark.parametrize("name", ["anagrams", "characters that may be cut"])
def test_each_line_is_looked_at_once_at_most(name: str) -> None:
    random = Random(5)
    if name == "anagrams":
        letters = [*FOOTER]
        lines = ["".join(random.sample(letters, len(letters))) for _ in range(2_000)]
    else:
        lines = [f"{HEAPED} {number}" for number in range(2_000)]
    text = "\n".join(lines)
    counting = Counting(PARAMETERS)
    assert counting.filter.left_over([text]) == [text]
    assert 2_000 <= counting.lines <= 2_001
    assert counting.characters <= len(text)


def test_only_lines_of_which_characters_may_be_cut_are_looked_at_for_that() -> None:
    counting = Counting(PARAMETERS)
    few = HEAPED[: listed_lines.UNCUT]
    counting.filter.left_over(["a\nb", f"c\n{HEAPED}\n{few}\nd", f"{few}\nf"])
    assert counting.lines == 1


def test_so_few_characters_are_never_cut() -> None:
    for switches in ALL_SWITCHES:
        for char in map(chr, range(0x20000)):
            if expanding().match(char):
                excess = len(fold(char, switches)) - size_of(char)
                assert not too_far(listed_lines.UNCUT * excess, 0)


def test_a_line_that_is_cut_is_found() -> None:
    parameters = replace(PARAMETERS, boilerplate=frozenset([HEAPED * 40]))
    numbers = [listed_lines._number(form_of(HEAPED * n, parameters), parameters) for n in (1, 40)]
    assert numbers[1] != 40 * numbers[0] & 0xFFFFFFFF
    texts = ["A report.\n" + HEAPED * 40]
    assert list(filter_of(parameters).left_over(texts)) == ["A report.\n"]


def test_switches_of_every_kind_are_in_the_property() -> None:
    assert any(all(getattr(one, name) for name in EVERY_ONE) for one in SWITCHES)
