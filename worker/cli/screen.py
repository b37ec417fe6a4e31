"""The output of commands: on consoles that take no markup from data, as JSON, and progress."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate, takewhile
from typing import IO

from rich.cells import cell_len
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.style import Style
from rich.text import Text

from worker.visible import counted, json_text, visible

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


class _Documents(ProgressColumn):
    """The number of documents, and the rate per second."""

    def render(self, task: Task) -> Text:
        count = task.fields["documents"]
        rate = count / task.elapsed if task.elapsed else 0.0
        return Text(f"{counted(count, 'document')}, {rate:,.0f}/s")


@contextmanager
def byte_progress(total: int | None, *, shown: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar; yield a function of the bytes read and the documents judged so far.

    Without a ``total`` there is no bar and no remaining time.
    """
    if not shown:
        yield lambda _bytes, _documents: None
        return
    columns: list[ProgressColumn] = [SpinnerColumn()]
    if total is not None:
        columns += [BarColumn(bar_width=None), TaskProgressColumn()]
    columns.append(_Documents())
    if total is not None:
        columns += [TextColumn("left"), TimeRemainingColumn(compact=True)]
    else:
        columns.append(TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, expand=True) as progress:
        task = progress.add_task("", total=total, documents=0)

        def advance(position: int, documents: int) -> None:
            progress.update(task, completed=position, documents=documents)

        yield advance


@contextmanager
def share_progress(what: str, *, shown: bool) -> Iterator[Callable[[float], None]]:
    """Show a progress bar; yield a function of the share that is done, in [0, 1]."""
    if not shown:
        yield lambda _share: None
        return
    columns = (
        SpinnerColumn(),
        TextColumn(what, markup=False),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, expand=True) as progress:
        task = progress.add_task("", total=1.0)
        yield lambda share: progress.update(task, completed=share)
