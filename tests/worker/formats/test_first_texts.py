"""The first texts are looked at, and what the settings don't suit is said once."""

from __future__ import annotations

from random import Random

import pytest

from lsh import Parameters
from worker.formats.first_documents import TextWatch

CHANCE = Random(7)
SEQUENCES = ["".join(CHANCE.choices("ACGT", k=3_000)) for _ in range(30)]
NUMBERS = [" ".join(f"{CHANCE.randrange(50)}" for _ in range(3_000)) for _ in range(30)]
WORDS = ["".join(CHANCE.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(2_000)]
PROSE = [" ".join(CHANCE.choices(WORDS, k=200)) for _ in range(30)]
PAGES = [f"<html><body><p>{text}</p></body></html>" for text in PROSE]
VARIANTS = [f"{PROSE[0]} {number}" for number in range(30)]
EDITED = [" ".join(w for w in PROSE[0].split() if CHANCE.random() > 0.05) for _ in range(30)]


def warnings(texts: list[str], parameters: Parameters, enough: int = 25) -> list[str]:
    watch = TextWatch(parameters, enough=enough)
    said = [warning for text in texts for warning in watch.add(text)]
    return said + watch.warnings()


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (SEQUENCES, "0.00 with similarity.shingle_size = 12"),
        (NUMBERS, 'with similarity.shingle = "word"'),
    ],
)
def test_texts_of_few_characters_are_told_with_what_helps(texts: list[str], expected: str) -> None:
    [said] = warnings(texts, Parameters())
    assert said.startswith("two of the first 25 documents have a similarity of 0.")
    assert "shingles of 5 characters are too short" in said
    assert expected in said
    assert ("word" in said) == (texts is NUMBERS)
    assert not warnings(texts, Parameters(shingle_size=12))


@pytest.mark.parametrize("parameters", [Parameters(), Parameters(threshold=0.5)])
@pytest.mark.parametrize(
    "texts", [PROSE, VARIANTS, EDITED, PROSE[:1] * 30, [""] * 30, SEQUENCES[:3], []]
)
def test_of_other_texts_nothing_is_said(texts: list[str], parameters: Parameters) -> None:
    assert warnings(texts, parameters) == []


def test_pages_are_told_unless_html_is_taken_off() -> None:
    [said] = warnings(PAGES, Parameters())
    assert said.startswith("25 of the first 25 documents look like HTML")
    assert 'similarity.preset = "news"' in said
    assert warnings(PAGES, Parameters(strip_html=True)) == []
    assert warnings([*PAGES[:2], *PROSE], Parameters()) == []
    [said] = warnings(PAGES[:1], Parameters())
    assert said.startswith("1 of the first 1 document looks like HTML, and its tags")


CHINESE = [
    "".join(CHANCE.choices("的一是在不了有和人这中大为上个国我以要他时来用们", k=80))
    for _ in range(30)
]
THAI = ["".join(CHANCE.choices("กขคงจฉชซญฎฏฐ", k=80)) for _ in range(30)]
KOREAN = [" ".join(CHANCE.choices(["안녕", "세상", "사람", "나라"], k=40)) for _ in range(30)]


@pytest.mark.parametrize("texts", [CHINESE, THAI, CHINESE[:1], CHINESE[:10] + PROSE[:15]])
def test_words_of_a_script_without_spaces_are_told_once(texts: list[str]) -> None:
    words = Parameters(shingle="word", shingle_size=3)
    [said] = warnings(texts, words)
    assert "in a script that has no spaces between words" in said
    assert 'similarity.shingle = "char"' in said
    assert warnings(texts, Parameters()) == []


@pytest.mark.parametrize("texts", [PROSE, KOREAN, [*PROSE[:24], CHINESE[0]], ["12 34"], [""]])
def test_words_of_other_texts_are_fine(texts: list[str]) -> None:
    assert not any("spaces" in one for one in warnings(texts, Parameters(shingle="word")))


def test_it_ends_with_the_last_text_that_it_looks_at() -> None:
    watch = TextWatch(Parameters(), enough=3)
    assert [len(watch.add(text)) for text in PAGES[:5]] == [0, 0, 1, 0, 0]
    assert watch.done
    assert watch.warnings() == []


def test_a_few_long_texts_are_enough() -> None:
    watch = TextWatch(Parameters())
    long = "x" * 1_000_000
    assert sum(not watch.done for _ in range(100) if watch.add(long) == []) == 39
