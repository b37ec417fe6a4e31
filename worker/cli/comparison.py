"""Two texts side by side, with their differences marked."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from rich import box
from rich.table import Table
from rich.text import Text

from worker.cli.screen import shown
from worker.visible import visible

__all__ = ["compared"]

_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
_CONTEXT = 12
"""How many tokens (words and spaces) to keep on each side of a difference."""
_ALIGNED = 1_500
"""The most tokens of a text to align with those of another."""
_ELLIPSIS = " … "
_LEFT, _RIGHT = "bold red", "bold green"


def compared(
    left: tuple[str, str], right: tuple[str, str], *, marked: bool, budget: int = 420
) -> Table:
    """Return a table of two documents, each an id and a text, trimmed around their differences.

    ``marked``: use brackets, for terminals without colours. Each side has at most about
    ``budget`` characters.
    """
    table = Table(box=box.ROUNDED if not marked else box.ASCII2, expand=True, padding=(0, 1))
    for name, style in ((left[0], _LEFT), (right[0], _RIGHT)):
        table.add_column(shown(name, style), ratio=1, overflow="fold")
    words = _window(_words(left[1]), _words(right[1]))
    table.add_row(*_sides(*words, budget, marked=marked))
    return table


def _words(text: str) -> list[str]:
    """Split a text into words and separators; each run of white space becomes one space."""
    shown_text = visible(" ".join(text.split()))
    return [" " if token.isspace() else token for token in _TOKEN.findall(shown_text)]


def _window(left: list[str], right: list[str]) -> tuple[list[str], list[str]]:
    """Return the parts of long texts from just before their first difference on.

    To align two texts takes time that grows with the product of their lengths.
    """
    if max(len(left), len(right)) <= _ALIGNED:
        return left, right
    pairs = zip(left, right, strict=False)
    first = next((n for n, (one, other) in enumerate(pairs) if one != other), None)
    if first is None:
        first = min(len(left), len(right))
    begin = max(0, first - 3 * _CONTEXT)
    parts = left[begin : begin + _ALIGNED], right[begin : begin + _ALIGNED]
    return (["…", *parts[0]], ["…", *parts[1]]) if begin else parts


def _sides(left: list[str], right: list[str], budget: int, *, marked: bool) -> tuple[Text, Text]:
    one, other = Text(), Text()
    blocks = _blocks(left, right)
    for number, (equal, a, b, c, d) in enumerate(blocks):
        if equal:
            first, last = number == 0, number == len(blocks) - 1
            kept = _trimmed(left[a:b], at_start=first, at_end=last)
            one.append(kept)
            other.append(kept)
        else:
            _add(one, "".join(left[a:b]), _LEFT, "[-{}-]" if marked else "{}")
            _add(other, "".join(right[c:d]), _RIGHT, "{{+{}+}}" if marked else "{}")
        if max(len(one), len(other)) > budget and number < len(blocks) - 1:
            one.append("…")
            other.append("…")
            break
    for side in (one, other):
        side.truncate(budget * 3 // 2, overflow="ellipsis")
    return one, other


def _blocks(left: list[str], right: list[str]) -> list[tuple[bool, int, int, int, int]]:
    """Align the words; return blocks of (equal?, left start, end, right start, end), half-open.

    A lone space between two differences joins them, so that phrases are marked, not words.
    """
    blocks: list[tuple[bool, int, int, int, int]] = []
    for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        equal = kind == "equal" and ("".join(left[a:b]).strip() != "" or b == len(left))
        if blocks and not equal and not blocks[-1][0]:
            blocks[-1] = (False, blocks[-1][1], b, blocks[-1][3], d)
        else:
            blocks.append((equal, a, b, c, d))
    return blocks


def _add(side: Text, words: str, style: str, form: str) -> None:
    if words:
        side.append(form.format(words), style=style)


def _trimmed(words: list[str], *, at_start: bool, at_end: bool) -> str:
    """Keep the words next to a difference; the ends of a text have one on one side only."""
    before = 0 if at_start else _CONTEXT
    after = 0 if at_end else _CONTEXT
    if len(words) <= before + after + _CONTEXT // 2:
        return "".join(words)
    head, tail = "".join(words[:before]), "".join(words[len(words) - after :])
    return head.rstrip() + (_ELLIPSIS if head else _ELLIPSIS.lstrip()) + tail.lstrip()
