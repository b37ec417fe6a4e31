"""Lines that stand in many documents: which are learnt, and how they are written."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from lsh import (
    Index,
    Parameters,
    RepeatedLine,
    format_lines,
    normalise,
    parse_lines,
    repeated_lines,
)
from tests.support.corpus import examples
from tests.support.texts import near_copies

FOOTER = ["\u00a9 2024 Example Ltd.", "Share THIS", "# Top", "5\t000 readers"]
STORIES = [text for _, text in near_copies(60, seed=11)]
PARAMETERS = Parameters()


def page(text: str, *lines: str) -> str:
    return "\n".join([text, *lines])


def unlike(count: int, seed: int = 1) -> list[str]:
    """Return texts of which no two are alike."""
    random = Random(seed)
    return [" ".join(str(random.randrange(10**6)) for _ in range(60)) for _ in range(count)]


@settings(max_examples=examples(6), deadline=None)
@given(st.integers(2, 9), st.sampled_from([0.0, 0.1, 0.4]), st.randoms(use_true_random=False))
def test_a_line_counts_once_in_each_document_that_repeats_no_earlier_one(
    least: int, share: float, chance: Random
) -> None:
    texts = [page(text, *chance.choices(FOOTER, k=chance.randint(0, 5))) for text in STORIES]
    learnt = repeated_lines(iter(texts), PARAMETERS, share=share, least=least)
    index = Index(PARAMETERS)
    new = [text for number, text in enumerate(texts) if not index.add(number, text)]
    counts = Counter(
        form for text in new for form in {normalise(line, PARAMETERS) for line in text.split("\n")}
    )
    expected = {
        form: count
        for form, count in counts.items()
        if count >= max(least, share * len(new)) and len(form) >= 4
    }
    assert {normalise(one.line, PARAMETERS): one.documents for one in learnt.lines} == expected
    assert [one.documents for one in learnt.lines] == sorted(expected.values(), reverse=True)
    assert (learnt.documents, learnt.different) == (len(texts), len(new))
    assert 10 < len(new) < len(texts)


def test_a_story_that_many_print_is_no_boilerplate_and_their_footers_are() -> None:
    story = "\n".join(f"Sentence {number} of a long story that all have." for number in range(30))
    printed = [page(story, f"Printed by paper {number}", *FOOTER[:1]) for number in range(50)]
    others = [page(text, FOOTER[0]) for text in unlike(20)]
    learnt = repeated_lines([*printed, *others], PARAMETERS, least=5)
    assert learnt.lines == [RepeatedLine(FOOTER[0], 21)]
    assert (learnt.documents, learnt.different) == (70, 21)


def test_lines_of_pages_are_those_between_blocks() -> None:
    pages = [f"<p>{text}</p><div>{FOOTER[0]}</div><b>News</b>" for text in unlike(6)]
    learnt = repeated_lines(pages, Parameters(strip_html=True), least=5)
    assert learnt.lines == [RepeatedLine("News", 6), RepeatedLine(FOOTER[0], 6)]


def test_blank_texts_long_lines_and_what_nothing_shows_are_no_lines() -> None:
    lines = ["x" * 1_001, "abc", " ", "\u200b", "\u0301", ""]
    learnt = repeated_lines([page(text, *lines) for text in [*unlike(6), "", " "]], PARAMETERS)
    assert (learnt.lines, learnt.documents) == ([], 8)
    none = repeated_lines(["", "\n"], PARAMETERS)
    assert (none.lines, none.documents, none.different) == ([], 0, 0)


def test_what_a_terminal_obeys_is_not_written() -> None:
    lines = ["a\x1b[2J line \u202ebelow\u2069", "no\ud800 surrogate", "\uff21  wide\tone"]
    texts = [page(text, *lines) for text in unlike(6)]
    learnt = repeated_lines(texts, PARAMETERS)
    assert [one.line for one in learnt.lines] == ["a[2J line below", "\uff21 wide one"]
    visible = repeated_lines(texts, Parameters(drop_invisible=False))
    assert [one.line for one in visible.lines] == ["\uff21 wide one"]


@given(st.lists(st.text(st.sampled_from("ab #\t12\u00e9"), max_size=6)))
def test_what_was_learnt_is_read_as_it_was_written(lines: list[str]) -> None:
    numbered = [RepeatedLine(line, number) for number, line in enumerate(lines)]
    assert parse_lines(format_lines(numbered)) == {line for line in lines if line.strip()}


def test_a_list_may_be_edited() -> None:
    written = (
        "# footers\n12\tShare this\r\n\nAll rights reserved.\n\t# Top\n3\t#1 choice\na\tb\n7\t\n"
    )
    expected = {"Share this", "All rights reserved.", "# Top", "#1 choice", "a\tb"}
    assert parse_lines(written) == expected
    assert parse_lines("") == frozenset()
