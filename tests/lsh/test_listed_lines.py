"""Lines that are left out of texts because they are listed."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from time import process_time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lsh import SWITCHES as NAMES
from lsh import Fingerprinter, Parameters, normalise
from lsh.parameters import normaliser
from lsh.text import BREAKS, digest, lines_of
from tests.oracle.texts import ALL_SWITCHES, EVERY_ONE, MARKED, MIXED
from tests.support.corpus import examples

FOOTER = "\u00a9 2024 Example Ltd. All rights reserved."
HEAPED = "\u3316" * 9
"""Of so many, or more, characters can be cut."""
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


def left(text: str, parameters: Parameters = PARAMETERS) -> str:
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
    rest = "".join(kept)
    return rest if normalise(rest, plain).split() else text.replace("\r", "\n")


@settings(max_examples=examples(80), deadline=None)
@given(TEXTS, st.sampled_from(SWITCHES))
@example(["\u0345 \u03b9\n5", "\ufdfa\n5\n\u3316", f"{HEAPED * 9}\n5"], SWITCHES[-1])
def test_a_text_has_the_fingerprint_of_what_is_left(
    texts: list[str], parameters: Parameters
) -> None:
    plain = replace(parameters, boilerplate=frozenset())
    rest = [left(text, parameters) for text in texts]
    texts = [text.replace("\r", "\n") for text in texts]
    forms = [normalise(text, plain) for text in rest]
    fingerprinter = Fingerprinter(parameters)
    assert [normalise(text, parameters) for text in texts] == forms
    assert list(map(fingerprinter.normalise, texts)) == forms
    assert fingerprinter.fingerprint(texts) == Fingerprinter(plain).fingerprint(rest)


@settings(max_examples=examples(30), deadline=None)
@given(TEXTS, st.sampled_from(SWITCHES))
def test_the_lines_that_are_left_out_are_those_that_are_missing(
    texts: list[str], parameters: Parameters
) -> None:
    for text in texts:
        rest, gone = left(text, parameters), normaliser(parameters).left_out(text)
        lines = lines_of(text)
        assert bool(gone) == (rest != text.replace("\r", "\n"))
        assert gone == [line for line in lines if line in gone]
        kept = [line for line in lines if line not in gone]
        assert list(filter(None, lines_of(rest))) == list(filter(None, kept))


def remains(text: str, **switches: Any) -> str:  # noqa: ANN401
    """Return the normal form of a text with listed lines, by no step but these."""
    none = dict.fromkeys(NAMES, False)
    return normalise(text, replace(PARAMETERS, **{**none, **switches}))


def test_a_line_ends_where_str_splitlines_ends_it() -> None:
    for end in BREAKS:
        assert remains(f"A report.{end}5{end}It ends.{end}") == f"A report.{end}It ends.{end}"
    assert remains("A report.\r\n5\r\nIt ends.") == "A report.\r\n\nIt ends."
    assert remains("A report.\n5") == "A report.\n"


def test_lines_are_compared_in_their_normal_form() -> None:
    for text, expected in (
        ("\n".join(["A report.", *COMPOSED]), "a report."),
        (f"A report.\n{FOOTER.upper()}\n SHARE  this\r\nIts end.", "a report. its end."),
        ("A report, share this\n", "a report, share this"),
    ):
        assert normalise(text, PARAMETERS) == expected
    same_case = replace(PARAMETERS, casefold=False)
    assert normalise("A report.\nShare this\n", same_case) == "A report."
    assert normalise("A report.\nshare this\n", same_case) == "A report. share this"
    numbers = replace(PARAMETERS, fold_digits=True)
    assert normalise("A report. 5\n6\n7", numbers) == "a report. 0"


def test_a_text_of_listed_lines_alone_stays() -> None:
    for text in (FOOTER, f"{FOOTER}\n\u200b\n Share this\u2028", f"\n{FOOTER}\n \n"):
        assert normalise(text, PARAMETERS) == normalise(text, Parameters())
        assert normaliser(PARAMETERS).left_out(text) == []
    assert normalise(f"{FOOTER}\n.", PARAMETERS) == "."
    assert normaliser(PARAMETERS).left_out(f"{FOOTER}\n.") == [FOOTER]
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
    assert normaliser(parameters).listed() == ["share this"]
    same = Parameters(boilerplate=frozenset(["SHARE this"]))
    assert digest(normaliser(parameters)) == digest(normaliser(same))
    assert parameters.describe() == same.describe()
    assert parameters.describe() != PARAMETERS.describe()
    assert "boilerplate" not in Parameters().describe()
    drops = Parameters(boilerplate=frozenset(["---"]), drop_symbols=True)
    assert normaliser(drops).listed() == []


@pytest.mark.parametrize("wrong", ["a\nb", "a\u2028", b"a", 5])
def test_what_is_no_line_is_refused(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match=r"boilerplate: got .*, takes lines of text, without"):
        Parameters(boilerplate=frozenset([wrong]))


SIZE = 200_000
HOSTILE = {
    "line breaks": "\n" * SIZE,
    "spaces and breaks": " \n" * (SIZE // 2),
    "listed lines": "5\n" * (SIZE // 2),
    "a listed line and a short one": "5\nx\n" * (SIZE // 4),
    "numbers": "\n".join(map(str, range(SIZE // 6))),
    "one line": "a" * SIZE,
    "wide": "\u00e9\n" * (SIZE // 2),
    "anagrams": "\n".join("".join(Random(at).sample(FOOTER, len(FOOTER))) for at in range(4_000)),
    "characters that may be cut": "\n".join(f"{HEAPED} {number}" for number in range(9_000)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_lines_of_a_hostile_text_take_no_more_than_linear_time(name: str) -> None:
    fingerprinter = Fingerprinter(PARAMETERS)

    def seconds(text: str) -> float:
        begun = process_time()
        fingerprinter.normalise(text)
        return process_time() - begun

    # Quadratic work would take thousands of times as long as lines of a page.
    page = "A line of a page.\n" * (SIZE // 18)
    assert seconds(HOSTILE[name]) < 20 * min(seconds(page) for _ in range(3)) + 0.01


def test_of_hostile_texts_the_listed_lines_alone_are_missing() -> None:
    for name, text in HOSTILE.items():
        gone = normaliser(PARAMETERS).left_out(text)
        if name == "a listed line and a short one":
            assert gone == ["5"] * (SIZE // 4)
        else:
            assert gone == (["5"] if name == "numbers" else [])


def test_a_line_that_is_cut_is_found() -> None:
    long = HEAPED * 40
    parameters = replace(PARAMETERS, boilerplate=frozenset([long]))
    assert len(normalise(long, Parameters())) < 40 * len(normalise(HEAPED, Parameters()))
    assert normaliser(parameters).left_out(f"A report.\n{long}") == [long]


def test_switches_of_every_kind_are_in_the_property() -> None:
    assert any(all(getattr(one, name) for name in EVERY_ONE) for one in SWITCHES)
