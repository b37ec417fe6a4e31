"""Two texts side by side in a terminal, with their differences marked."""

from __future__ import annotations

import re

from rich import box
from rich.table import Table
from rich.text import Text

from worker.cli.screen import shown
from worker.differences import Differences, Normalise, differences
from worker.visible import visible

_CONTEXT = 48
"""How many characters to keep on each side of a difference."""
_ELLIPSIS = " … "
_LEFT, _RIGHT, _ASIDE = "bold red", "bold green", "dim"


def compared(
    left: tuple[str, str],
    right: tuple[str, str],
    normalise: Normalise,
    *,
    marked: bool,
    budget: int = 420,
) -> Table:
    """Return a table of two documents, each an id and a text, trimmed around their differences.

    Differences that count are marked; those that don't are dim.

    ``marked``: use brackets, for terminals without colours. Each side has at most about
    ``budget`` characters.
    """
    table = Table(box=box.ROUNDED if not marked else box.ASCII2, expand=True, padding=(0, 1))
    for name, style in ((left[0], _LEFT), (right[0], _RIGHT)):
        table.add_column(shown(name, style), ratio=1, overflow="fold")
    table.add_row(*_sides(differences(left[1], right[1], normalise), budget, marked=marked))
    return table


def _sides(found: Differences, budget: int, *, marked: bool) -> tuple[Text, Text]:
    one, other = Text(), Text()
    if found.begins_later:
        one.append("…")
        other.append("…")
    for number, span in enumerate(found.spans):
        last = number == len(found.spans) - 1
        if span.kind == "counts":
            _add(one, span.left, _LEFT, "[-{}-]" if marked else "{}")
            _add(other, span.right, _RIGHT, "{{+{}+}}" if marked else "{}")
        else:
            style = _ASIDE if span.kind == "aside" else ""
            for side, text in ((one, span.left), (other, span.right)):
                side.append(_trimmed(text, at_start=number == 0, at_end=last), style)
        if (not last and max(len(one), len(other)) > budget) or (last and found.ends_earlier):
            one.append("…")
            other.append("…")
            break
    for side in (one, other):
        side.truncate(budget * 3 // 2, overflow="ellipsis")
    return one, other


def _add(side: Text, text: str, style: str, form: str) -> None:
    if text:
        side.append(form.format(_spaced(text)), style=style)


def _spaced(text: str) -> str:
    """Return a text in one line, in which each run of white space is one space."""
    return visible(re.sub(r"\s+", " ", text))


def _trimmed(text: str, *, at_start: bool, at_end: bool) -> str:
    """Keep what is next to a difference; the ends of a text have one on one side only."""
    shown_text = _spaced(text)
    before = 0 if at_start else _CONTEXT
    after = 0 if at_end else _CONTEXT
    if len(shown_text) <= before + after + _CONTEXT // 2:
        return shown_text
    head = shown_text[:before].rpartition(" ")[0] or shown_text[:before]
    tail = shown_text[len(shown_text) - after :] if after else ""
    tail = tail.partition(" ")[2] or tail
    return head + (_ELLIPSIS if head else _ELLIPSIS.lstrip()) + tail
