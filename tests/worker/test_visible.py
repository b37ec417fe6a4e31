"""Text from outside can't command a terminal, nor break a line."""

from __future__ import annotations

import io
import json
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from worker.cli.comparison import compared
from worker.cli.screen import line, shown
from worker.visible import counted, excerpt, json_text, visible

UNSAFE = ["\x00", "\x1b", "\r", "\n", "\t", "\x7f", "\x85", "\x9b", "\u202e", "\u2066", "\u200f",
          "\u2028", "\u2029", "\ufeff", "\ud800", "\U000e0041"]  # fmt: skip
pieces = st.one_of(st.text(), st.sampled_from([*UNSAFE, "[/b]", "[link=x]", "[", "\\", ":smile:"]))
texts = st.lists(pieces).map("".join)


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 documents"), (1, "1 document"), (2, "2 documents"), (1_000, "1,000 documents")],
)
def test_a_number_has_its_noun(number: int, said: str) -> None:
    assert counted(number, "document") == said


def test_a_noun_may_have_another_plural() -> None:
    assert counted(1, "entry is", "entries are") == "1 entry is"
    assert counted(3, "entry is", "entries are") == "3 entries are"


def is_inert(text: str) -> bool:
    kinds = {category(c) for c in text.replace("\u200c", "").replace("\u200d", "")}
    return not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def printed(renderable: object, width: int = 10_000) -> str:
    """Print in colour, as a terminal gets it."""
    console = Console(
        file=io.StringIO(), width=width, markup=False, emoji=False, highlight=False,
        soft_wrap=True, force_terminal=False,
    )  # fmt: skip
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@given(texts)
def test_nothing_that_is_shown_can_command_a_terminal(text: str) -> None:
    assert is_inert(visible(text))
    assert is_inert(excerpt(text, 50))
    assert is_inert(json_text(text))
    visible(text).encode()


@given(texts)
def test_through_rich_it_is_what_was_meant(text: str) -> None:
    assert printed(shown(text)) == visible(text) + "\n"
    assert printed(line((text, "bold red"), text)) == visible(text) * 2 + "\n"


@given(texts, texts, st.integers(20, 200))
def test_tables_hold_texts_as_they_are(one: str, other: str, width: int) -> None:
    table = Table("a", "b", box=None)
    table.add_row(shown(one), shown(other))
    for kind in (table, compared((one, other), (other, one), str.casefold, marked=True)):
        lines = printed(kind, width).split("\n")
        assert all(map(is_inert, lines))


@given(texts)
def test_json_is_read_back_as_it_was(text: str) -> None:
    assert json.loads(json_text({text: [text]}, indent=2)) == {text: [text]}


@given(st.text())
def test_most_texts_stay_as_they_are(text: str) -> None:
    if is_inert(text):
        assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("naïve 漢字 👩‍👩‍👧 می‌خواهم a\xa0b", "naïve 漢字 👩‍👩‍👧 می‌خواهم a\xa0b"),
        ("a\x1b[2J", "a\\x1b[2J"),
        ("\x9b1m\u202e\x7f", "\\x9b1m\\u202e\\x7f"),
        ("file\nneardup: ok", "file\\nneardup: ok"),
        ("[/b][link=http://x]y", "[/b][link=http://x]y"),
    ],
)
def test_what_is_seen(text: str, seen: str) -> None:
    assert visible(text) == seen


def test_an_excerpt_is_one_line_of_bounded_length() -> None:
    assert excerpt(" a\n\n b\t\x1bc", 100) == "a b \\x1bc"
    assert excerpt("x" * 500, 100) == "x" * 100
