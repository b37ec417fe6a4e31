"""What commands print: on consoles that take no markup from data, and as JSON."""

from __future__ import annotations

import sys
from typing import IO

from rich.console import Console
from rich.style import Style
from rich.text import Text

from worker.visible import json_text, visible

__all__ = ["line", "print_json", "screen", "shown", "tell"]

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


def tell(message: str) -> None:
    """Print one line about the run on standard error."""
    print(visible(message), file=sys.stderr)  # noqa: T201 -- the command's messages
