"""What a run tells: a line as things happen, a table at the end, JSON for whoever computes."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from chaos.cell import Outcome
from chaos.matrix import CELLS
from chaos.trends import Trend

PLAIN_WIDTH: Final = 132
SHOWN_LINES: Final = 12
COUNTED: Final = (
    "documents",
    "faults",
    "ended",
    "aborted",
    "unknown",
    "gap",
    "away",
    "wait",
    "upstream",
)
TREND: Final = ("minutes", "first", "last", "a minute", "95 % interval", "limit")
EXPLAINED: Final = (
    "gap: the longest time without a verdict, from a fault to the next; away: until the fault was"
    " over; wait: the longest that a document waited for its own; upstream: the longest time in"
    " which nothing was fingerprinted; each while documents were fed. After a stroke: the limit."
    " ended: how often workers ended by themselves, and with what status; an end that the cell does"
    " not expect breaks it."
)


def _console() -> Console:
    own = Console()
    return own if own.is_terminal else Console(width=PLAIN_WIDTH)


class Teller:
    """Prints lines with the time since the start."""

    def __init__(self) -> None:
        """Begin now."""
        self._began = monotonic()

    def __call__(self, line: str) -> None:
        """Print a line at once."""
        minutes, seconds = divmod(int(monotonic() - self._began), 60)
        sys.stdout.write(f"{minutes:3d}:{seconds:02d}  {line}\n")
        sys.stdout.flush()


def show(outcomes: Sequence[Outcome]) -> None:
    """Print the table, then what is wrong, if anything."""
    console = _console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("cell", no_wrap=True)
    table.add_column("protocol", no_wrap=True)
    for column in COUNTED:
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, min_width=len("LEFT OUT"))
    for one in outcomes:
        cell = CELLS.get(one.cell)
        table.add_row(
            one.cell,
            one.protocol,
            f"{one.documents:,}",
            str(len(one.hits)),
            _ended(one),
            str(one.troubles.get("aborted", 0)),
            str(one.troubles.get("unknown", 0)),
            _seconds(one.gap, cell.gap if cell else None),
            _seconds(one.away, cell.away if cell else None),
            _seconds(one.wait, cell.wait if cell else None),
            _seconds(one.upstream_gap, cell.upstream_gap if cell else None),
            _verdict(one),
        )
    console.print(table)
    console.print(EXPLAINED, style="dim")
    _show_trends(console, outcomes)
    for one in outcomes:
        for kind, times in Counter(restart.kind for restart in one.restarts).items():
            console.print(Text(f"{one.cell} {one.protocol}: ended {times} times, {kind}", "dim"))
    for one in outcomes:
        for note in _notes(one):
            console.print(Text(f"{one.cell} {one.protocol}: {note}", "dim"))
    for one in outcomes:
        if one.left_out:
            console.print(Text(f"{one.cell} {one.protocol}: LEFT OUT: {one.left_out}", "yellow"))
        for problem in one.problems:
            lines = problem.splitlines()
            shown = "\n".join(lines[:SHOWN_LINES] + (["…"] if len(lines) > SHOWN_LINES else []))
            console.print(Text(f"{one.cell} {one.protocol}: {shown}", "red"))


def _notes(outcome: Outcome) -> Iterator[str]:
    if outcome.reindexes:
        yield f"{outcome.reindexes} generations of the index took over from the one before"
    if outcome.contained:
        yield f"{outcome.contained:,} matches by their containment alone"
    for words, times in Counter(outcome.failures).items():
        yield f"a command failed {times} times, and was run again: {words}"


def _ended(outcome: Outcome) -> str:
    """Tell how often workers ended by themselves: ``9 (status 1)``, ``3 (1: 2, 2: 1)``."""
    counts = Counter(restart.status for restart in outcome.restarts)
    if not counts:
        return "0"
    if len(counts) == 1:
        return f"{len(outcome.restarts)} (status {next(iter(counts))})"
    return f"{len(outcome.restarts)} ({', '.join(f'{s}: {n}' for s, n in sorted(counts.items()))})"


def _verdict(outcome: Outcome) -> Text:
    if outcome.left_out:
        return Text("LEFT OUT", "bold yellow")
    return Text("broken", "bold red") if outcome.problems else Text("holds", "green")


def _show_trends(console: Console, outcomes: Sequence[Outcome]) -> None:
    trends = [trend for one in outcomes for trend in one.trends]
    if not trends:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("worker")
    table.add_column("")
    for column in TREND:
        table.add_column(column, justify="right")
    for one in trends:
        table.add_row(*_trend(one), style="bold red" if one.creeps else "")
    console.print(table)


def _trend(one: Trend) -> tuple[str, ...]:
    return (
        one.worker,
        one.what,
        f"{one.minutes:.0f}",
        f"{one.medians[0]:,.1f}",
        f"{one.medians[-1]:,.1f}",
        f"{one.slope.median:+.3f}",
        f"{one.slope.low:+.3f} to {one.slope.high:+.3f}",
        f"{one.limit:.1f}",
    )


def _seconds(value: float, limit: float | None) -> str:
    return f"{value:.1f} s" if limit is None else f"{value:.1f} / {limit:.0f} s"


def markdown(outcomes: Sequence[Outcome]) -> str:
    """Give the tables as the documentation has them."""
    rows = [
        (
            f"`{one.cell}`",
            one.protocol,
            f"{one.documents:,}",
            str(len(one.hits)),
            _ended(one),
            *(str(one.troubles.get(kind, 0)) for kind in ("aborted", "unknown")),
            *(f"{seconds:.1f} s" for seconds in (one.gap, one.away, one.wait, one.upstream_gap)),
            _verdict(one).plain,
        )
        for one in outcomes
    ]
    table = _markdown_table(("cell", "protocol"), COUNTED, ("",), rows)
    if trends := [_trend(trend) for one in outcomes for trend in one.trends if trend.tells]:
        table += "\n" + _markdown_table(("worker", ""), TREND, (), trends)
    return table


def _markdown_table(
    names: Sequence[str], counted: Sequence[str], last: Sequence[str], rows: Iterable[Sequence[str]]
) -> str:
    header = (*names, *counted, *last)
    aligned = (*("---" for _ in names), *("--:" for _ in counted), *("---" for _ in last))
    lines = [f"| {' | '.join(cells)} |" for cells in (header, *rows)]
    return "\n".join([lines[0], f"|{'|'.join(aligned)}|", *lines[1:]]) + "\n"


def write_json(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write all that is known of the outcomes."""
    path.write_text(json.dumps([asdict(one) for one in outcomes], indent=1) + "\n")
