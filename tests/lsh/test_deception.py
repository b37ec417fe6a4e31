"""Disguised copies of comments are found, by the preset or without it, and nothing else is."""

from __future__ import annotations

import pytest

from bench.deception import (
    NEWS,
    OF_MARKUP,
    OF_THE_WEB,
    PLAIN,
    PRESET,
    SAMPLES,
    TRICKS,
    share_found,
    wrongly_merged,
)
from lsh import Parameters, normalise

BY_DEFAULT = list(TRICKS)[:7]


@pytest.mark.parametrize("trick", TRICKS)
def test_a_disguised_copy_is_found_with_the_preset(trick: str) -> None:
    assert share_found(list(SAMPLES), TRICKS[trick], PRESET) == 1


@pytest.mark.parametrize("trick", BY_DEFAULT)
def test_what_nobody_sees_is_seen_through_by_default(trick: str) -> None:
    for text in SAMPLES:
        assert normalise(TRICKS[trick](text), PLAIN) == normalise(text, PLAIN)


@pytest.mark.parametrize("trick", [trick for trick in TRICKS if trick not in BY_DEFAULT])
def test_without_the_preset_the_others_pass(trick: str) -> None:
    assert share_found(list(SAMPLES), TRICKS[trick], PLAIN) < 0.5


def test_a_page_is_found_with_the_preset_for_news() -> None:
    page = OF_THE_WEB["the page of a text"]
    assert share_found(list(SAMPLES), page, NEWS) == 1
    assert share_found(list(SAMPLES), page, PLAIN) < 0.5


@pytest.mark.parametrize("trick", OF_MARKUP)
def test_markup_hides_no_copy_from_the_preset_for_news(trick: str) -> None:
    changed = [text for text in SAMPLES if OF_MARKUP[trick](text) != text]
    assert len(changed) > len(SAMPLES) // 2
    assert share_found(changed, OF_MARKUP[trick], NEWS) == 1


@pytest.mark.parametrize("parameters", [PLAIN, PRESET, NEWS])
def test_no_comments_are_merged(parameters: Parameters) -> None:
    assert not wrongly_merged(list(SAMPLES), parameters)
