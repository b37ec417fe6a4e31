"""Switches of the normaliser, and texts that are hard to normalise."""

from __future__ import annotations

import sys
from typing import Any
from unicodedata import category

from hypothesis import strategies as st

from lsh import Parameters
from tests.oracle.normal_form import expanded, light, visible

SWITCHES = [
    Parameters(nfkc=nfkc, casefold=casefold, collapse_whitespace=collapse)
    for nfkc in (True, False)
    for casefold in (True, False)
    for collapse in (True, False)
]
NONE: dict[str, Any] = {"drop_invisible": False, "drop_overlays": False}
EVERY_ONE: dict[str, Any] = dict.fromkeys(
    ("fold_confusables", "fold_digits", "drop_symbols", "join_letters"), True
)
ACCENTS: dict[str, Any] = {"fold_accents": True, "fold_digits": True}
TURKISH: dict[str, Any] = {"fold_turkish_i": True, "join_letters": True}
PLAIN = Parameters(**NONE)
MORE = [
    Parameters(nfkc=nfkc, casefold=casefold, **more)
    for more in (NONE, EVERY_ONE, ACCENTS, TURKISH)
    for nfkc in (True, False)
    for casefold in (True, False)
]
ALL_SWITCHES = [*SWITCHES, *MORE]
KNOWN = [char for char in map(chr, range(sys.maxunicode + 1)) if category(char) not in {"Cn", "Co"}]
"""The characters that Python's version of Unicode knows. The core knows more."""
ALL_ALIKE = [range(0x3400, 0xA000), range(0xAC80, 0xD780), range(0xDA00, 0xDF00)]
ALL_ALIKE += [range(0x12000, 0x1B000), range(0x20100, 0x2F700), range(0x30000, 0x31400)]
SOME = [char for char in KNOWN if not any(ord(char) in those for those in ALL_ALIKE)]
"""Those of them that differ: few of Chinese, Hangul, surrogates, cuneiform and Tangut."""
CHARACTERS = st.characters(exclude_categories=["Cn", "Co"])
"""The characters of `KNOWN`, to draw from."""
MIXED = st.lists(
    st.one_of(
        # One for one: quotes, no-break space, accents, Cyrillic, Greek, Chinese, full width.
        st.sampled_from("\u2019\u201c\u2014\xa0\u3000\u2028\u00c9\u0416\u03a3\u03c2\u4e2d\uff21"),
        # More than one: ellipsis, sharp s, one half, trade mark, ligature, dotted I, a phrase.
        st.sampled_from("\u2026\u00df\u1e9e\u00bd\u2122\ufb03\u0130\u01f0\u00a8\ufdfa"),
        # The neighbours matter: marks, vowel signs, jamo, sound marks, what folds to a mark.
        st.sampled_from("\u0301\u0323\u0345\u09be\u0f73\u1161\u11a8\u3099\uff9e\u0344\u094d"),
        # What these join: vowels, jamo, syllables, kana.
        st.sampled_from("\u03b1\u1fb3\u09c7\u1100\uac00\u304b\uff76\u1e69\u0915"),
        st.sampled_from("aEiS \n\x1f\x00\ud800\udc00\U0001f600\U00010400"),
        # Runs that are interrupted, and a form that is cut.
        st.sampled_from(["\u0301" * 31, "\u0345\u0323" * 20, "\u0344" * 17, "\uff9e" * 40]),
        st.sampled_from(["\ufdfa", "\ufdfb\u0654", "\u1161" * 40, "\u1100\u1161\u11a8"]),
        # What nothing shows, joiners, what they stand between, strokes, look-alikes, digits.
        st.sampled_from("\u200b\u00ad\ufe0f\u202e\u034f\U000e0100\u3164\0\x7f"),
        st.sampled_from("\u200c\u200d\u200c\u200d\u0628\u064a\u0631\u0650\u0678\ufe91\u094d\u0dda"),
        st.sampled_from(
            "\u0336\u0338\u2260\u20e3\u20dd=\u2adc\u00f8\u0430\u0391\u0451\u04c0\u0663\u2460"
        ),
        # What makes words longer, accents, letters with a stroke, the letters i of Turkish.
        st.sampled_from(
            "\u0640\u07fa\u180a\ufe71\ufcf2\ufe77\u0644\u0623\u0671\u0651\u05b8\u05e9\ufb2a"
        ),
        st.sampled_from(
            "\u0439\u0457\u0142\u00d8\u0111\u00e6\u0152\u01ff\u01fd\u01c4\u00b4\u1d65\u0488\u2de0"
        ),
        st.sampled_from("\u0130\u0131iI\u0307\u0307\u0307\u0328"),
        CHARACTERS,
    ),
    max_size=30,
).map("".join)
# Marks that sort apart, that decompose to two, that are starters but decompose to marks.
MARKS = "\u0301\u0323\u0345\u3099\u0344\u0f73\u0f75\u0f81\uff9e\U0001d165\u200c\u200d"
# No mark, marks behind it once decomposed (one, two, three), Hangul, an expansion.
LEADS = ["", "x", "\u00e9", "\u1eaf", "\u1f82", "\uac00", "\u1161", "\u034f", "\ufdfa", "\u00a8"]
RUNS = st.tuples(
    st.sampled_from(LEADS),
    st.one_of(
        st.tuples(st.sampled_from(MARKS), st.integers(0, 70)).map(lambda run: run[0] * run[1]),
        st.text(st.sampled_from(MARKS), min_size=12, max_size=70),
    ),
).map("".join)
MARKED = st.lists(RUNS, max_size=5).map("".join)


def is_bounded(text: str, parameters: Parameters) -> bool:
    """Return whether a bound that follows the size of a text could change this one.

    Then its normal form, which may be smaller, may have another one.
    """
    shown = visible(text, parameters)
    return expanded(text, 0, parameters) != text or light(shown, 0) != shown
