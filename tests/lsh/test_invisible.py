"""What nothing shows is dropped; joiners stay where a script needs them."""

from __future__ import annotations

import sys
from unicodedata import category, name, normalize

import pytest
from hypothesis import example, given

from lsh import Parameters, normalise
from lsh.invisible import JOINERS, ignorable, points, without_joiners
from lsh.unicode_tables import ELONGATIONS
from tests.oracle import normal_form
from tests.support.languages import LANGUAGES, OF_JOINERS

NON_JOINER, JOINER = JOINERS[0], JOINERS[1]


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
    assert without_joiners(text) == normal_form.without_joiners(text)


@given(OF_JOINERS)
def test_no_number_of_joiners_makes_another_text(text: str) -> None:
    doubled = text.replace(NON_JOINER, NON_JOINER * 3).replace(JOINER, JOINER * 2)
    assert normalise(doubled, Parameters()) == normalise(text, Parameters())


def test_every_control_is_ignorable_or_white_space() -> None:
    elongations = set(points(ELONGATIONS))
    assert elongations < ignorable()
    for point in sorted({*range(sys.maxunicode + 1)} - elongations):
        char = chr(point)
        if category(char) == "Cc":
            assert char.isspace() != (point in ignorable())
        elif category(char) not in ("Cf", "Cn", "Mn", "Lo"):
            assert point not in ignorable()


def test_the_only_letters_among_them_are_fillers_and_elongations() -> None:
    letters = [chr(point) for point in ignorable() if category(chr(point)) == "Lo"]
    assert letters
    for letter in letters:
        assert "FILLER" in name(letter) or "\u0640" in normalize("NFKD", letter)


@pytest.mark.exhaustive
def test_nothing_ignorable_comes_of_what_is_not() -> None:
    for point in range(sys.maxunicode + 1):
        form = normalize("NFKC", chr(point)).casefold()
        if point not in ignorable() and chr(point) not in JOINERS:
            assert ignorable().isdisjoint(map(ord, form))
