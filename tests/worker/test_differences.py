"""What differs between two texts, and what of that counts."""

from functools import partial
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsh import PRESETS, Parameters, normalise
from worker.differences import Normalise, Span, differences

PLAIN = partial(normalise, parameters=Parameters())
NEWS = partial(normalise, parameters=Parameters(**PRESETS["news"]))
COMMENTS = partial(normalise, parameters=Parameters(**PRESETS["comments"]))
FRAMED = partial(normalise, parameters=Parameters(boilerplate=frozenset({"Accept all cookies"})))

pieces = st.sampled_from(
    ["The", "the", "THE", "cat", "dog", " ", "  ", "\n", ".", "★", "<b>", "</b>", "\u200b", "é",
     "e\u0301", "http://a.com/x?q=1", "f r e e", "Accept all cookies", "猫", "犬", "\ud800"]
)  # fmt: skip
texts = st.lists(pieces, max_size=30).map("".join)


def counting(left: str, right: str, normalise: Normalise) -> list[tuple[str, str]]:
    spans = differences(left, right, normalise).spans
    return [(span.left, span.right) for span in spans if span.kind == "counts"]


@pytest.mark.parametrize("form", [PLAIN, NEWS, COMMENTS, FRAMED])
@given(left=texts, right=texts)
def test_something_counts_if_and_only_if_the_normal_forms_differ(
    form: Normalise, left: str, right: str
) -> None:
    found = differences(left, right, form)
    assert "".join(span.left for span in found.spans) == left
    assert "".join(span.right for span in found.spans) == right
    assert all((span.kind == "same") == (span.left == span.right) for span in found.spans)
    assert any(span.kind == "counts" for span in found.spans) == (form(left) != form(right))


@pytest.mark.parametrize(
    ("form", "left", "right", "counts"),
    [
        (PLAIN, "The CAT sat", "the dog sat", [("CAT", "dog")]),
        (PLAIN, "a cafe\u0301  in\nRome", "A café in Rome", []),
        (PLAIN, "fr\u200bee now", "free NOW", []),
        (PLAIN, "one two three", "one four five three", [("two", "four five")]),
        (PLAIN, "我家有一只猫在睡觉", "我家有一只犬在睡觉", [("猫", "犬")]),
        (PLAIN, "<b>bold</b> words", "bold words", [("<b>", ""), ("</b>", "")]),
        (NEWS, "<b>bold</b> words", "Bold words", []),
        (NEWS, "see http://a.com/x?utm=1 now", "see http://a.com/x now", []),
        (COMMENTS, "f r e e money", "FREE money", []),
        (FRAMED, "A text.\nAccept all cookies", "A text, changed.", [("", ", changed")]),
    ],
)
def test_what_is_normalised_away_does_not_count(
    form: Normalise, left: str, right: str, counts: list[tuple[str, str]]
) -> None:
    assert counting(left, right, form) == counts


def test_a_difference_that_does_not_count_is_told_apart_from_what_is_equal() -> None:
    spans = differences("The cat sat", "the cat stood", PLAIN).spans
    assert spans == (
        Span("aside", "The", "the"), Span("same", " cat ", " cat "), Span("counts", "sat", "stood"),
    )  # fmt: skip


def test_long_texts_are_compared_from_their_first_difference_that_counts() -> None:
    same = "the same words again " * 40_000
    found = differences(f"The {same}one {same}", f"the {same}two {same}", PLAIN)
    assert (found.begins_later, found.ends_earlier) == (True, True)
    assert [span.kind for span in found.spans] == ["same", "counts", "same"]
    assert sum(len(span.left) for span in found.spans) < 10_000


def test_a_text_without_a_space_is_no_single_word() -> None:
    found = differences("x" * 2_000_000, "x" * 2_000_000 + "y", PLAIN)
    assert sum(len(span.left) for span in found.spans) < 200_000


TAIL = " and then the same words again" * 500
HOSTILE = {
    "dots between different words": ("".join(f".{{}}{at}" for at in range(750)), "u", "v"),
    "long words": ("".join(f".{{}}{at}{'x' * 70}" for at in range(750)), "u", "v"),
    "marks": ("".join(f".{{}}{at}\u1f82\u0301\u0301" for at in range(750)), "u", "v"),
    "signs": ("." * 700 + "{}" * 700, ".", ","),
    "the same word": ("a {} " * 700, "b", "c"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_work_is_bounded_whatever_the_texts_are(name: str) -> None:
    pattern, one, other = HOSTILE[name]
    left, right = (pattern.replace("{}", sign) + TAIL for sign in (one, other))
    normalised = 0

    def form(text: str) -> str:
        nonlocal normalised
        normalised += len(text)
        return PLAIN(text)

    began = process_time()
    found = differences(left, right, form)
    assert process_time() - began < 10.0  # It took minutes once.
    assert normalised < 33_000_000
    assert any(span.kind == "counts" for span in found.spans)
    assert all((span.kind == "same") == (span.left == span.right) for span in found.spans)


def test_of_very_many_differences_neighbours_are_judged_together() -> None:
    left = "".join(f".U{at}{'x' * 75}" for at in range(750))
    found = differences(left, left.replace("U", "v", 700).replace("U", "u"), PLAIN)
    assert found.coarse
    assert {span.kind for span in found.spans} == {"same", "counts", "aside"}
    assert not differences("The CAT sat", "the dog sat", PLAIN).coarse
