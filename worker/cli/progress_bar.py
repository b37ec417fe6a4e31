"""A progress bar on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
from rich.text import Text

from worker.visible import counted


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
