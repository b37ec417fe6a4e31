"""What nothing shows is dropped; joiners stay where a script needs them."""

from __future__ import annotations

import sys
from unicodedata import category, name, normalize

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsh import Parameters, normalise
from lsh.invisible import JOINERS, ignorable, without_joiners
from tests.support import reference

NON_JOINER, JOINER = JOINERS[0], JOINERS[1]
# Of Wikipedia's kind: sentences with marks, joiners and signs that a language needs.
LANGUAGES = {
    "Arabic with vowels": "\u0627\u0644\u0633\u0651\u064e\u0644\u0627\u0645\u064f"
    " \u0639\u064e\u0644\u064e\u064a\u0652\u0643\u064f\u0645\u0652\u060c \u0664\u0662",
    "Persian": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    " \u06a9\u062a\u0627\u0628\u200c\u0647\u0627",
    "Hebrew with points": "\u05d1\u05b0\u05bc\u05e8\u05b5\u05d0\u05e9\u05b4\u05c1\u05d9\u05ea"
    " \u05d1\u05b8\u05bc\u05e8\u05b8\u05d0",
    "Thai": "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u0e40\u0e1b\u0e47\u0e19\u0e2d\u0e22\u0e48\u0e32"
    "\u0e07\u0e44\u0e23\u0e1a\u0e49\u0e32\u0e07",
    "Hindi": "\u0915\u094d\u200d\u0937\u092e\u093e \u0930\u093e\u0937\u094d\u200c\u091f\u094d\u0930"
    " \u0939\u093f\u0928\u094d\u0926\u0940",
    "Malayalam": "\u0d05\u0d35\u0d28\u0d4d\u200d \u0d0e\u0d28\u0d4d\u200c\u0d31\u0d46",
    "Sinhala": "\u0dc1\u0dca\u200d\u0dbb\u0dd3 \u0dbd\u0d82\u0d9a\u0dcf\u0dc0",
    "Chinese": "\u4eba\u4eba\u751f\u800c\u81ea\u7531,\u5728\u5c0a\u4e25\u548c\u6743\u5229\u4e0a",
    "Japanese": "\u3059\u3079\u3066\u306e\u4eba\u9593\u306f\u3001\u751f\u307e\u308c\u306a\u304c"
    "\u3089\u306b\u3057\u3066\u30ce\u30fc\u30c8",
    "Korean": "\ubaa8\ub4e0 \uc778\uac04\uc740 \ud0dc\uc5b4\ub0a0 \ub54c\ubd80\ud130",
    "Vietnamese": "T\u1ea5t c\u1ea3 m\u1ecdi ng\u01b0\u1eddi",
    "Greek": "\u1f10\u03bd \u1f00\u03c1\u03c7\u1fc7"
    " \u1f26\u03bd \u1f41 \u03bb\u03cc\u03b3\u03bf\u03c2",
}
OF_JOINERS = st.text(
    st.sampled_from(
        "\u200c\u200d\u200c\u200d"
        "\u0628\u0631\u0627\u0650\u0915\u094d\u093f\u0ddc\u0dca\u0dda\u0345\u0301 x"
    ),
    max_size=24,
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_language_loses_anything(language: str) -> None:
    text = LANGUAGES[language]
    assert normalise(text, Parameters()) == normalize("NFKC", normalize("NFKC", text).casefold())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "hidden", ["\u200b", "\u00ad", "\ufe0f", "\u202e", "\0", "\x1b", "\U000e0041"]
)
def test_what_nothing_shows_changes_nothing(language: str, hidden: str) -> None:
    text = LANGUAGES[language]
    filled = hidden + hidden.join(text) + hidden
    assert normalise(filled, Parameters()) == normalise(text, Parameters())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # RFC 5892, appendix A.1 and A.2: behind a virama.
        ("\u0915\u094d\u200c\u0937", True),
        ("\u0915\u094d\u200d\u0937", True),
        ("\u0915\u200d\u0937", False),
        ("\u094d\u200d", True),
        # A.1: between a letter that joins the next one and a letter that joins the last one.
        ("\u0628\u200c\u0628", True),
        ("\u0628\u0650\u200c\u0650\u0628", True),
        ("\u0628\u200d\u0628", False),
        ("\u0627\u200c\u0628", False),
        ("\u0628\u200c\u0621", False),
        ("\u0628\u200c", False),
        ("\u200c\u0628", False),
        # Nothing to join: Latin letters, emoji.
        ("f\u200cr", False),
        ("\U0001f469\u200d\U0001f680", False),
    ],
)
def test_joiners_stay_where_they_are_seen(text: str, *, shown: bool) -> None:
    kept = any(joiner in normalise(text, Parameters()) for joiner in JOINERS)
    assert kept == shown


def test_of_joiners_in_a_row_one_stays() -> None:
    assert normalise("\u0628\u200c\u200d\u200c\u0628", Parameters()) == "\u0628\u200c\u0628"


@given(OF_JOINERS)
@example("\u0628\u0650\u200c\u0650\u200c\u0628")
@example("\u0dda\u200d\u0301\u200d")
def test_joiners_follow_the_definition(text: str) -> None:
    assert without_joiners(text) == reference.without_joiners(text)


@given(OF_JOINERS)
def test_no_number_of_joiners_makes_another_text(text: str) -> None:
    doubled = text.replace(NON_JOINER, NON_JOINER * 3).replace(JOINER, JOINER * 2)
    assert normalise(doubled, Parameters()) == normalise(text, Parameters())


def test_every_control_is_ignorable_or_white_space() -> None:
    for point in range(sys.maxunicode + 1):
        char = chr(point)
        if category(char) == "Cc":
            assert char.isspace() != (point in ignorable())
        elif category(char) not in ("Cf", "Cn", "Mn", "Lo"):
            assert point not in ignorable()


def test_the_only_letters_among_them_are_fillers() -> None:
    letters = [chr(point) for point in ignorable() if category(chr(point)) == "Lo"]
    assert letters
    assert all("FILLER" in name(letter) for letter in letters)


@pytest.mark.exhaustive
def test_nothing_ignorable_comes_of_what_is_not() -> None:
    for point in range(sys.maxunicode + 1):
        form = normalize("NFKC", chr(point)).casefold()
        if point not in ignorable() and chr(point) not in JOINERS:
            assert ignorable().isdisjoint(map(ord, form))
