from __future__ import annotations

import pytest
from rich.cells import cell_len
from rich.console import Console

from tests.support.command_line import neardup
from worker.cli.comparison import compared


def test_the_demo_shows_counts_and_pairs_in_plain_text() -> None:
    done = neardup("demo")
    assert done.returncode == 0
    assert done.stderr == b""
    text = done.stdout.decode()
    assert "5,184" in text
    assert text.count(" is a duplicate of ") == 3
    assert "neardup dedupe FILE" in text
    assert "\x1b" not in text


def rendered(width: int, left: str, right: str) -> str:
    console = Console(width=width, color_system=None, record=True, quiet=False, file=None)
    with console.capture() as capture:
        console.print(compared(("one", left), ("two", right), marked=True))
    return capture.get()


@pytest.mark.parametrize("width", [40, 80, 100, 160])
def test_comparisons_fit_their_width(width: int) -> None:
    text = rendered(width, "a b c " * 60 + "x" * 500, "a b d 界 " * 60)
    assert max(cell_len(line) for line in text.splitlines()) <= width


def test_differences_are_marked_as_phrases_and_the_rest_is_trimmed() -> None:
    same = "the same words again " * 20
    text = rendered(200, f"{same}one two three {same}", f"{same}four five {same}")
    assert "[-one two three-]" in text
    assert "{+four five+}" in text
    assert "…" in text
    assert len(text) < 1500
