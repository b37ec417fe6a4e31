"""Two texts side by side, with their differences marked."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from worker.cli.screen import shown
from worker.comparing import CONTEXT, blocks, window, words
from worker.visible import visible

__all__ = ["compared"]

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
    parts = _parts(_words(left[1]), _words(right[1]))
    table.add_row(*_sides(*parts, budget, marked=marked))
    return table


def _words(text: str) -> list[str]:
    """Split a text into words and separators; each run of white space becomes one space."""
    shown_text = visible(" ".join(text.split()))
    return [" " if token.isspace() else token for token in words(shown_text)]


def _parts(left: list[str], right: list[str]) -> tuple[list[str], list[str]]:
    """Return the parts of long texts from just before their first difference on."""
    begin, end = window(left, right)
    parts = left[begin:end], right[begin:end]
    return (["…", *parts[0]], ["…", *parts[1]]) if begin else parts


def _sides(left: list[str], right: list[str], budget: int, *, marked: bool) -> tuple[Text, Text]:
    one, other = Text(), Text()
    found = blocks(left, right)
    for number, (equal, a, b, c, d) in enumerate(found):
        if equal:
            first, last = number == 0, number == len(found) - 1
            kept = _trimmed(left[a:b], at_start=first, at_end=last)
            one.append(kept)
            other.append(kept)
        else:
            _add(one, "".join(left[a:b]), _LEFT, "[-{}-]" if marked else "{}")
            _add(other, "".join(right[c:d]), _RIGHT, "{{+{}+}}" if marked else "{}")
        if max(len(one), len(other)) > budget and number < len(found) - 1:
            one.append("…")
            other.append("…")
            break
    for side in (one, other):
        side.truncate(budget * 3 // 2, overflow="ellipsis")
    return one, other


def _add(side: Text, words: str, style: str, form: str) -> None:
    if words:
        side.append(form.format(words), style=style)


def _trimmed(words: list[str], *, at_start: bool, at_end: bool) -> str:
    """Keep the words next to a difference; the ends of a text have one on one side only."""
    before = 0 if at_start else CONTEXT
    after = 0 if at_end else CONTEXT
    if len(words) <= before + after + CONTEXT // 2:
        return "".join(words)
    head, tail = "".join(words[:before]), "".join(words[len(words) - after :])
    return head.rstrip() + (_ELLIPSIS if head else _ELLIPSIS.lstrip()) + tail.lstrip()
