"""Normal forms of the compiled core, compared with those of `lsh.text`.

The core has its own Unicode data. So only characters that this Python's version knows are
compared. Their forms are the same in both: see `DIFFERENT` for those that aren't.
"""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from typing import Any
from unicodedata import category

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsh import PRESETS, Parameters
from lsh._core import UNICODE_VERSION, Normaliser
from lsh.listed_lines import BREAKS, lines_of, listed_forms
from lsh.markup import unwrapped_lines
from lsh.text import form_of, left_out_of, normalise
from tests.support.languages import LANGUAGES, OF_JOINERS
from tests.support.normal_forms import EVERY_ONE, MARKED, MIXED, MORE, SWITCHES

DEFAULT = Parameters()
NAMES = [field.name for field in fields(Parameters) if isinstance(field.default, bool)]
DIFFERENT: frozenset[int] = frozenset()
"""Code points with other forms in the core's version of Unicode than in Python's."""
KNOWN = [
    point
    for point in range(sys.maxunicode + 1)
    if category(chr(point)) not in {"Cn", "Co"} and point not in DIFFERENT
]
ALL_ALIKE = [range(0x3400, 0xA000), range(0xAC80, 0xD780), range(0xDA00, 0xDF00)]
ALL_ALIKE += [range(0x12000, 0x1B000), range(0x20100, 0x2F700), range(0x30000, 0x31400)]
"""Chinese, Hangul, surrogates, cuneiform and Tangut: code points that are much like the next."""
SOME = [point for point in KNOWN if not any(point in those for those in ALL_ALIKE)]


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


def core(switches: Parameters) -> Normaliser:
    named = {name: getattr(switches, name) for name in NAMES}
    return Normaliser(boilerplate=sorted(switches.boilerplate), **named)


BOTH = [(switches, core(switches)) for switches in [*SWITCHES, *MORE, *FLIPPED]]


def differences(points: list[int], switches: Parameters) -> list[str]:
    normaliser = core(switches)
    return [
        f"{point:X}"
        for point in points
        for text in (chr(point), f"x{chr(point)}\u0301y")
        if normaliser.normalise(text) != normalise(text, switches)
    ]


@pytest.mark.parametrize("switches", FLIPPED)
def test_a_sample_of_all_characters(switches: Parameters) -> None:
    assert not differences(SOME[hash(switches) % 41 :: 41], switches)


@pytest.mark.exhaustive
@pytest.mark.parametrize("switches", FLIPPED)
def test_every_character(switches: Parameters) -> None:
    assert not differences(SOME, switches)


@pytest.mark.exhaustive
def test_every_character_also_of_the_large_scripts() -> None:
    assert not differences(KNOWN, DEFAULT)


@given(TEXTS)
@example("\u0386\u0345\u0301 \u1fbb\u0345\u0301")
@example("\u3316" * 200 + "\u0301\u200d")
@example("\u1f82\u0301" * 100)
@example("a\u0301\u0323" * 100)
@example("\u0301" * 300 + "\u0915\u094d\u200d" * 40)
@example("A\x00 \x1f\ud800 b")
def test_texts_of_what_is_hard(text: str) -> None:
    for switches, normaliser in BOTH:
        assert normaliser.normalise(text) == normalise(text, switches)


@given(TEXTS)
def test_a_normal_form_is_its_own(text: str) -> None:
    normaliser = core(DEFAULT)
    form = normaliser.normalise(text)
    assert normaliser.normalise(form) == form


@given(st.one_of(TAGS, SIGNS))
@example("<a x='<b y=\"'><c z='\"'>")
@example("a<![CDATA[<p>b</p>]]>c]]>")
@example("http://me@ http://a.b/(c)d(e http://a.b/c(d)e")
def test_markup(text: str) -> None:
    for switches in (HTML, URLS, PAGES, replace(PAGES, boilerplate=LISTED)):
        normaliser = core(switches)
        assert normaliser.normalise(text) == normalise(text, switches)
    assert core(PAGES).lines(text) == lines_of(unwrapped_lines(text, PAGES))


@given(LINES)
def test_listed_lines(text: str) -> None:
    for more in ({}, EVERY_ONE, {"nfkc": False}, {"collapse_whitespace": False}):
        switches = replace(DEFAULT, boilerplate=LISTED, **more)
        normaliser = core(switches)
        assert normaliser.normalise(text) == normalise(text, switches)
        assert normaliser.left_out(text) == left_out_of(text, switches)
        assert normaliser.listed() == sorted(listed_forms(switches, form_of))


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
