"""Two texts side by side, with the words in which they differ marked."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from rich import box
from rich.table import Table
from rich.text import Text

__all__ = ["compared"]

_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
_CONTEXT = 12
"""Tokens, words and spaces, that are kept on each side of a difference."""
_ELLIPSIS = " … "
_LEFT, _RIGHT = "bold red", "bold green"


def compared(
    left: tuple[str, str], right: tuple[str, str], *, marked: bool, budget: int = 420
) -> Table:
    """Show two documents, each an id and a text, trimmed around their differences.

    ``marked``: with brackets, where there are no colours. At most about ``budget``
    characters a side.
    """
    table = Table(box=box.ROUNDED if not marked else box.ASCII2, expand=True, padding=(0, 1))
    for name, style in ((left[0], _LEFT), (right[0], _RIGHT)):
        table.add_column(Text(name, style=style), ratio=1, overflow="fold")
    table.add_row(*_sides(_words(left[1]), _words(right[1]), budget, marked=marked))
    return table


def _words(text: str) -> list[str]:
    """Split into words and what stands between; any white space is one space."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return [" " if token.isspace() else token for token in _TOKEN.findall(printable.strip())]


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
    """Align the words: whether they are equal, and both half-open ranges.

    A lone space between two differences belongs to them: phrases are marked, not words.
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
    """Keep what is next to a difference; the ends of a text have one on one side only."""
    before = 0 if at_start else _CONTEXT
    after = 0 if at_end else _CONTEXT
    if len(words) <= before + after + _CONTEXT // 2:
        return "".join(words)
    head, tail = "".join(words[:before]), "".join(words[len(words) - after :])
    return head.rstrip() + (_ELLIPSIS if head else _ELLIPSIS.lstrip()) + tail.lstrip()
