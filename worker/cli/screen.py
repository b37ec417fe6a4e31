"""The output of commands: on consoles that take no markup from data, and as JSON."""

from __future__ import annotations

import re
import sys
from itertools import accumulate, takewhile
from typing import IO

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

from worker.visible import json_text, visible

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PLAIN_WIDTH = 10_000  # Lines in a pipe are not wrapped.


def screen(
    *, width: int | None = None, height: int | None = None, file: IO[str] | None = None
) -> Console:
    """Return a console that takes strings as they are: brackets are no markup, colons no emoji.

    By default it is standard output; in a pipe, lines are not wrapped.
    """
    plain = file is None and not sys.stdout.isatty()
    return Console(
        file=file,
        width=_PLAIN_WIDTH if plain and width is None else width,
        height=height,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=plain,
    )


def shown(text: object, style: str | Style = "") -> Text:
    """Return text from outside for a console: visible, in one line, without markup."""
    return Text(visible(str(text)), style=style)


def fitted(text: object, cells: int, style: str | Style = "") -> Text:
    """Return text from outside like `shown`, in at most so many cells of a terminal.

    Of a longer text, the middle is left out: ids differ at either end. Of a web address, the
    beginning is: those of a site have it in common.

    >>> fitted("crawl-2024-000000000123", 15).plain, fitted("https://a.example/b/c.html", 10).plain
    ('crawl-2…0000123', '…/b/c.html')
    """
    seen = visible(str(text))
    if cell_len(seen) > cells:
        head = 0 if _ADDRESS.match(seen) else (cells - 1) // 2
        tail = _beginning(seen[::-1], cells - 1 - head)[::-1]
        seen = f"{_beginning(seen, head)}…{tail}"
    return Text(seen, style=style)


def _beginning(text: str, cells: int) -> str:
    widths = accumulate(cell_len(character) for character in text[: 2 * cells])
    return text[: len(list(takewhile(lambda width: width <= cells, widths)))]


def line(*parts: object | tuple[object, str]) -> Text:
    """Return a line made of texts, and of pairs of a text and its style."""
    made = Text()
    for part in parts:
        text, style = part if isinstance(part, tuple) else (part, "")
        made.append_text(shown(text, style))
    return made


def print_json(value: object) -> None:
    """Print an object or an array for other programs."""
    sys.stdout.write(json_text(value, indent=2) + "\n")
