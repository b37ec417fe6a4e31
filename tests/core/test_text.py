"""Normal forms of the compiled core, compared with the oracle's.

The core has its own Unicode data. So only characters that Python's version of Unicode knows are
compared. Unicode never changes their normal forms.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from functools import cache
from typing import Any
from unicodedata import combining, decomposition, normalize

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lsh import PRESETS, Parameters
from lsh._core import UNICODE_VERSION, Normaliser
from lsh.text import BREAKS
from tests.oracle.markup import with_hosts, without_html
from tests.oracle.normal_form import (
    BREAK,
    begins_afresh,
    form_of,
    listed_forms,
    normalise,
    seconds,
    without_listed_lines,
)
from tests.oracle.texts import EVERY_ONE, KNOWN, MARKED, MIXED, MORE, SOME, SWITCHES
from tests.support.corpus import examples
from tests.support.languages import LANGUAGES, OF_JOINERS

DEFAULT = Parameters()
NAMES = [field.name for field in fields(Parameters) if isinstance(field.default, bool)]


def _flipped(name: str) -> Parameters:
    flipped: dict[str, Any] = {name: not getattr(DEFAULT, name)}
    return replace(DEFAULT, **flipped)


FLIPPED = [
    DEFAULT,
    *(_flipped(name) for name in NAMES),
    *(
        Parameters(**{**EVERY_ONE, "fold_accents": True, "fold_turkish_i": True}, nfkc=nfkc)
        for nfkc in (True, False)
    ),
]
HTML = Parameters(strip_html=True)
URLS = Parameters(reduce_urls=True)
PAGES = Parameters(strip_html=True, reduce_urls=True, collapse_whitespace=False)
LISTED = frozenset({"Share this", "\u00e9t\u00e9 \uac00", "---", "5", "a b", "\u1fb3 \ufb03", ""})
TAGS = st.lists(
    st.sampled_from(
        [
            *("<", ">", "</", "/>", "<a", "<b", "<p", "<A>", "<B>", "</A>", "<my-tag>"),
            *("</my-tag", "<x-y", "a=", '="', "='", '"', "'", "checked", "data-x", "class=x"),
            *(">", "<Object>", "Set", "\u00e9", "\u898b", "_", "</x-y>", "<!--", "-->", "--!>"),
            *("<script>", "</script>", "<svg/>", "<svg", "</svg>", "<style", "x>", "</style>"),
            *("<![CDATA[", "]]>", "<!doctype", "<![if", "<![endif]>", "<?xml", "<?php", "?>"),
            *("<o:p>", "st1:", "&lt;", "&#x41;", "&#0;", "&amp", "&notit;", "&NotEqualTilde;"),
            *("<svg>", "<text>", "<b hidden>", "<p style=display:none>", "</b>", "</p>", "<li>"),
            *("<table>", "<td>", "</table>", "<title>", "</title>", "<ruby>", "<rt>", "<!-->"),
            *("&#1234567;", "http://", "https://u@", "www.", "Www.", "a.b", "/c(d)", "(", ")"),
            *(":", "@", "#", "\xa0", "\u0e01", "\n", "word", "1", "\t", "h", "w"),
        ]
    ),
    max_size=25,
).map("".join)
SIGNS = st.text(st.sampled_from("<>/=\"' -!?ab:pBAo&;#x1\n.@(h"), max_size=40)
LINES = st.lists(
    st.tuples(
        st.one_of(
            st.sampled_from(["SHARE\tthis", "e\u0301te\u0301 \u1100\u1161", "- - -", "5.", "x"]),
            st.sampled_from(sorted(LISTED)),
            MIXED,
        ),
        st.sampled_from(sorted(BREAKS)),
    ),
    max_size=8,
).map(lambda lines: "".join(line + end for line, end in lines))
TEXTS = st.one_of(
    MIXED,
    MARKED,
    OF_JOINERS,
    st.lists(st.sampled_from(sorted(LANGUAGES.values())), max_size=4).map(" ".join),
    st.text(st.characters(max_codepoint=127), max_size=120),
    st.tuples(MIXED, st.integers(1, 80)).map(lambda repeated: repeated[0] * repeated[1]),
)


@cache
def joins() -> list[str]:
    """Return what composes with or is ordered among what is before it."""
    return [char for char in KNOWN if not begins_afresh(char)]


@cache
def marks() -> list[str]:
    """Return a mark of each class of these, and what ends compositions, decomposes or is none."""
    special = {c for c in joins() if c in seconds() or decomposition(c) or not combining(c)}
    return sorted({*{combining(char): char for char in joins()}.values()} | special)


@cache
def leads() -> list[str]:
    """Return what begins compositions, by itself or once decomposed, and what else is special."""
    composed = [c for c in KNOWN if normalize("NFD", c) != c and begins_afresh(c)]
    return sorted(
        {normalize("NFD", char)[0] for char in composed}
        | {char for char in composed if not "\uac02" < char < "\ud7a4"}
        | set("\u0130\u00df\u1e9e\ufb03\u3316\ufdfa\u00a8\u034f\x00 x")
    )


def core(switches: Parameters) -> Normaliser:
    named = {name: getattr(switches, name) for name in NAMES}
    return Normaliser(boilerplate=sorted(switches.boilerplate), **named)


BOTH = [(switches, core(switches)) for switches in [*SWITCHES, *MORE, *FLIPPED]]


def differences(chars: list[str], switches: Parameters) -> list[str]:
    normaliser = core(switches)
    return [
        f"{ord(char):X}"
        for char in chars
        for text in (char, f"x{char}\u0301y")
        if normaliser.normalise(text) != normalise(text, switches)
    ]


@pytest.mark.parametrize("switches", FLIPPED)
def test_a_sample_of_all_characters(switches: Parameters) -> None:
    assert not differences(SOME[FLIPPED.index(switches) :: 41], switches)


@pytest.mark.slow(ci=False)
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("switches", FLIPPED)
def test_every_character(switches: Parameters) -> None:
    assert not differences(SOME, switches)


@pytest.mark.slow(ci=False)
@pytest.mark.timeout(1_800)
def test_every_character_also_of_the_large_scripts() -> None:
    assert not differences(KNOWN, DEFAULT)


@settings(max_examples=examples(100), deadline=None)
@given(TEXTS)
@example("\u0386\u0345\u0301 \u1fbb\u0345\u0301")
@example("\u3316" * 200 + "\u0301\u200d")
@example("\u1f82\u0301" * 100)
@example("a\u0301\u0323" * 100)
@example("\u0301" * 300 + "\u0915\u094d\u200d" * 40)
@example("A\x00 \x1f\ud800 b")
@example("\u0345\u0301\u1fb3\u0334\u0345\u0301")
@example("\u0cc6\u0cc2\u0cd5\u0dd9\u0dcf\u0dca\u1100\u1161\u11a8\u11a8")
@example("\u1fbc\u0342\u0301 \u1fbc\u0301\u0342 \u1f88\u0342\u0345\u0323\u0345")
@example("\u03b1\u0334\u0345\u0301\u0390\u0345\u0323\u1fbe\u0301")
@example("\u0345\u094d\u200c")
def test_texts_of_what_is_hard(text: str) -> None:
    for switches, normaliser in BOTH:
        assert normaliser.normalise(text) == normalise(text, switches)


def texts_of(lead: list[str], behind: Iterable[str]) -> Iterable[str]:
    """Yield texts of each lead with what is behind it, so few that no mark is dropped."""
    for second in behind:
        for begin in range(0, len(lead), 12):
            yield "\n".join(f"{one}{second}" for one in lead[begin : begin + 12])


def test_a_sample_of_what_joins_joins_every_lead() -> None:
    normaliser = core(DEFAULT)
    for text in texts_of(leads(), marks()[::12]):
        assert normaliser.normalise(text) == normalise(text, DEFAULT)


@pytest.mark.slow(ci=False)
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("switches", [DEFAULT, Parameters(casefold=False)])
def test_whatever_joins_joins_every_lead(switches: Parameters) -> None:
    normaliser = core(switches)
    for text in texts_of(leads(), marks()):
        assert normaliser.normalise(text) == normalise(text, switches)


@pytest.mark.slow(ci=False)
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("lead", ["", "\u03b1", "\u1fbc", "E", "\u0dd9", "\u1100"])
def test_every_two_join(lead: str) -> None:
    normaliser = core(DEFAULT)
    for text in texts_of([f"{lead}{first}" for first in marks()], joins()):
        assert normaliser.normalise(text) == normalise(text, DEFAULT)


@given(st.one_of(TAGS, SIGNS))
@example("<a x='<b y=\"'><c z='\"'>")
@example("a<![CDATA[<p>b</p>]]>c]]>")
@example("http://me@ http://a.b/(c)d(e http://a.b/c(d)e")
@example("<script>a</script")
@example("<<p>b>c<<b>p>d")
@example("a<!>b<?>c")
def test_markup(text: str) -> None:
    for switches in (HTML, URLS, PAGES, replace(PAGES, boilerplate=LISTED)):
        assert core(switches).normalise(text) == normalise(text, switches)
    unwrapped = with_hosts(without_html(text, "\n"))
    assert core(PAGES).lines(text) == BREAK.split(unwrapped)[::2]


@settings(max_examples=examples(100), deadline=None)
@given(LINES)
def test_listed_lines(text: str) -> None:
    for more in ({}, EVERY_ONE, {"nfkc": False}, {"collapse_whitespace": False}):
        switches = replace(DEFAULT, boilerplate=LISTED, **more)
        normaliser = core(switches)
        form, listed = normalise(text, switches), listed_forms(switches)
        assert normaliser.normalise(text) == form
        assert normaliser.listed() == sorted(listed)
        lines = BREAK.split(text)[::2]
        gone = [line for line in lines if form_of(line, switches) in listed]
        left = without_listed_lines(text, switches)
        assert normaliser.left_out(text) == ([] if left == text else gone)


def test_forms_of_lines() -> None:
    lines = ["<b>A", "", "\ud800 \u0130"]
    assert core(HTML).forms(lines) == [form_of(line, HTML) for line in lines]


def test_presets() -> None:
    for name, preset in PRESETS.items():
        switches = Parameters(**preset)
        for text in LANGUAGES.values():
            assert core(switches).normalise(text) == normalise(text, switches), name


def test_the_version_of_unicode_is_named() -> None:
    assert [part.isdecimal() for part in UNICODE_VERSION.split(".")] == [True] * 3


def test_what_is_no_switch_is_refused() -> None:
    with pytest.raises(TypeError, match="no such switch: nfc"):
        Normaliser(nfc=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Normaliser(nfkc="yes")  # type: ignore[arg-type]
