"""What nothing shows is dropped; joiners stay where a script needs them."""

from __future__ import annotations

from functools import cache
from unicodedata import category, name, normalize

import pytest
from hypothesis import example, given

from lsh import Fingerprinter, Parameters, normalise
from tests.oracle import normal_form
from tests.oracle.texts import KNOWN
from tests.oracle.unicode_tables import ELONGATIONS
from tests.support.languages import LANGUAGES, OF_JOINERS

NON_JOINER, JOINER = JOINERS = "\u200c\u200d"


@cache
def dropped() -> set[str]:
    """Return the characters that nothing shows, wherever they stand."""
    normal = Fingerprinter(Parameters(drop_overlays=False)).normalise
    return {char for char in KNOWN if normal(f"x{char}y") == "xy"} - {*JOINERS}


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
    assert normalise(text, Parameters()) == normal_form.normalise(text, Parameters())


@given(OF_JOINERS)
def test_no_number_of_joiners_makes_another_text(text: str) -> None:
    doubled = text.replace(NON_JOINER, NON_JOINER * 3).replace(JOINER, JOINER * 2)
    assert normalise(doubled, Parameters()) == normalise(text, Parameters())


def test_every_control_is_dropped_or_white_space() -> None:
    elongations = normal_form.points(ELONGATIONS)
    assert elongations < dropped()
    for char in {*KNOWN} - elongations:
        if category(char) == "Cc":
            assert char.isspace() != (char in dropped())
        elif category(char) not in ("Cf", "Mn", "Lo"):
            assert char not in dropped()


def test_the_only_letters_among_them_are_fillers_and_elongations() -> None:
    letters = [char for char in dropped() if category(char) == "Lo"]
    assert letters
    for letter in letters:
        assert "FILLER" in name(letter) or "\u0640" in normalize("NFKD", letter)


def test_nothing_that_is_dropped_comes_of_what_is_not() -> None:
    normal = Fingerprinter(Parameters()).normalise
    for char in KNOWN:
        assert dropped().isdisjoint(normal(char))


def test_what_unicode_will_ignore_is_dropped_before_it_has_a_name() -> None:
    assert normalise("a\u2065\ufff0b\U000e0fffc", Parameters()) == "abc"
