"""``neardup watch``: a live view in the terminal, or a line or object every few seconds."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from time import monotonic, sleep
from typing import Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from worker.bus import Record
from worker.cli.options import App, Bootstrap, Config, for_kafka
from worker.cli.screen import fitted, line, screen, shown
from worker.documents.published import matches_of
from worker.formats.base import DocumentFormat
from worker.formats.choice import document_format
from worker.observe.lag import Lag
from worker.observe.observer import VERDICTS, Observer, View
from worker.observe.presence import Presence
from worker.settings.model import Settings
from worker.topology import STAGES
from worker.untrusted import NOT_READ
from worker.visible import counted, excerpt, json_text, visible
from worker.wire.headers import REASON, SOURCE_OFFSET, SOURCE_PARTITION, header

_REFRESH_SECONDS = 0.5
_PLAIN_SECONDS = 5.0
_STYLE = {"unique": "green", "duplicate": "yellow", "rejected": "red"}
_UNITS = {"fingerprint": "docs", "index": "frames", "route": "docs"}
_FIXED_LINES = 13
"""Lines of the view besides the two lists."""
_NARROW, _WIDE = 80, 100
"""Below the first width, the tables leave out their least needed columns, so that numbers fit.
Below the second, long numbers are rounded: a number that is cut off would mislead."""
_DIGITS, _FEWEST_DIGITS = 11, 9
"""How many characters a number may have then, and in a narrow terminal."""
_CHARACTERS = 1_000
"""How much of a text is looked at; the screen shows what fits."""
_NAME = 24
"""How many cells the name of a worker takes at most."""
_SHOWN = 8
"""How many shards are named."""
_SHARE = 4
"""The columns of ids take at most the width divided by this, each."""
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def watch(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object every five seconds instead.")
    ] = False,
) -> None:
    """Show rates, verdicts, lag and the latest duplicates live; q quits."""
    settings = for_kafka(config, bootstrap, app)
    with Observer(settings) as observer:
        try:
            if as_json:
                _lines(observer, lambda seen: json_text(facts(seen)))
            elif sys.stdout.isatty():
                _live(settings, observer)
            else:
                _lines(observer, _line)
        except KeyboardInterrupt:
            return


def _live(settings: Settings, observer: Observer) -> None:
    console = screen()
    documents = document_format(settings)
    view = Screen(settings, documents, observer.view())
    with _keys() as pressed, Live(view, console=console, screen=True, auto_refresh=False) as live:
        while not pressed(_REFRESH_SECONDS):
            live.update(Screen(settings, documents, observer.view()), refresh=True)


def _lines(observer: Observer, form: Callable[[View], str]) -> None:
    due = monotonic()
    while True:
        due += _PLAIN_SECONDS
        sleep(max(0.0, due - monotonic()))
        print(form(observer.view()), flush=True)  # noqa: T201 -- the command's output


def facts(seen: View) -> dict[str, Any]:
    """Return a view without documents as plain values. The names are part of the interface."""
    return {
        "seconds": round(seen.seconds, 1),
        "totals": seen.totals,
        "per_second": {verdict: round(rate, 1) for verdict, rate in seen.recent.items()},
        "lag": {
            stage: {"records": lag.records, "seconds": lag.seconds}
            for stage, lag in seen.lag.items()
        },
        "present": None if seen.present is None else _present(seen.present),
        "trouble": seen.trouble or None,
    }


def _present(here: Presence) -> dict[str, Any]:
    return {
        "workers": here.workers,
        "shards": here.shards,
        "shards_without_worker": here.unowned,
        "shards_still": {str(shard): round(seconds) for shard, seconds in here.still.items()},
    }


def _line(seen: View) -> str:
    verdicts = ", ".join(
        f"{verdict} {seen.totals[verdict]:,} ({seen.recent[verdict]:,.0f}/s)"
        for verdict in VERDICTS
    )
    lags = ", ".join(
        f"{stage} {lag.records:,} {_UNITS[stage]}"
        + (f" {_span(lag.seconds)}" if lag.seconds is not None else "")
        for stage, lag in seen.lag.items()
    )
    trouble = f"; trouble: {visible(seen.trouble)}" if seen.trouble else ""
    here = "?" if seen.present is None else visible(_here(seen.present).plain)
    since = timedelta(seconds=int(seen.seconds))
    return f"{since} {verdicts}; behind: {lags or '?'}; here: {here}{trouble}"


@contextmanager
def _keys() -> Iterator[Any]:
    """Yield a function that waits for some seconds and returns whether q was pressed."""
    if not sys.stdin.isatty():

        def wait(seconds: float) -> bool:
            sleep(seconds)
            return False

        yield wait
        return
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    try:
        tty.setcbreak(number)

        def pressed(seconds: float) -> bool:
            if not select.select([number], [], [], seconds)[0]:
                return False
            keys = os.read(number, 64)
            return not keys or keys in (b"q", b"Q")

        yield pressed
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


class Screen:
    """The content of the screen; it fills the terminal."""

    def __init__(self, settings: Settings, documents: DocumentFormat, seen: View) -> None:
        """Keep one observation of the application."""
        self._settings = settings
        self._documents = documents
        self._seen = seen

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lay out the screen."""
        height = (options.height or console.height) - _FIXED_LINES
        rejected = min(max(1, height // 3), max(1, len(self._seen.rejections)))
        duplicates = max(1, height - rejected)
        tables = Table.grid(padding=(0, 3))
        tables.add_column()
        tables.add_column()
        narrow = options.max_width < _NARROW
        tables.add_row(self._rates(options.max_width), self._lags(narrow=narrow))
        trouble = Text(no_wrap=True, overflow="ellipsis", style="bold red")
        if self._seen.trouble:
            trouble.append_text(shown(f"trouble: {self._seen.trouble}"))
        yield Group(
            self._title(),
            Text() if self._seen.present is None else _here(self._seen.present),
            trouble,
            tables,
            Text(),
            Text("latest duplicates", style="bold"),
            self._duplicates(duplicates, options.max_width // _SHARE),
            Text(),
            Text("latest rejections", style="bold"),
            self._rejections(rejected, options.max_width // _SHARE),
        )

    def _title(self) -> Table:
        seen = self._seen
        title = Table.grid(expand=True)
        title.add_column(no_wrap=True, overflow="ellipsis")
        title.add_column(no_wrap=True, justify="right")
        name = line((self._settings.app, "bold"), f"  {self._settings.kafka.bootstrap}")
        since = timedelta(seconds=int(seen.seconds))
        title.add_row(name, Text(f"  watching for {since}, q quits", style="dim"))
        return title

    def _rates(self, width: int) -> Table:
        seen, narrow = self._seen, width < _NARROW
        digits = _FEWEST_DIGITS if narrow else _DIGITS if width < _WIDE else width
        table = _table("verdict", "10 s", *([] if narrow else ["overall"]), "seen")
        rows = [
            (Text(name, _STYLE[name]), seen.recent[name], seen.overall[name], seen.totals[name])
            for name in VERDICTS
        ]
        sums = [sum(of.values()) for of in (seen.recent, seen.overall)]
        rows.append((Text("all", "bold"), sums[0], sums[1], sum(seen.totals.values())))
        for name, recent, overall, total in rows:
            since = [] if narrow else [f"{overall:,.0f}/s"]
            table.add_row(name, f"{recent:,.0f}/s", *since, _number(total, digits))
        return table

    def _lags(self, *, narrow: bool) -> Table:
        table = _table("stage", "behind", *([] if narrow else ["oldest"]))
        for stage in STAGES:
            behind, oldest = _lag(self._seen.lag.get(stage), _UNITS[stage])
            table.add_row(stage, behind, *([] if narrow else [oldest]))
        return table

    def _duplicates(self, count: int, widest: int) -> Table:
        table = Table.grid(expand=True, padding=(0, 1))
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, justify="right")
        table.add_column(no_wrap=True)
        table.add_column(ratio=1, no_wrap=True, overflow="ellipsis", style="dim")
        rows = [self._duplicate(record) for record in self._seen.duplicates[: -count - 1 : -1]]
        for ident, similarity, other, text in rows + [("", "", "", "")] * (count - len(rows)):
            table.add_row(
                fitted(ident, widest),
                similarity,
                fitted(other, widest, "cyan"),
                Text(excerpt(text, _CHARACTERS)),
            )
        return table

    def _duplicate(self, record: Record) -> tuple[str, str, str, str]:
        record = self._documents.whole(record)
        ident, text = self._id(record), self._documents.excerpt(record.value or b"")
        try:
            matches = matches_of(record)
        except NOT_READ:
            matches = []
        if not matches:
            return ident, "", "", text
        return ident, f"{matches[0].similarity:.2f}", matches[0].id, text

    def _rejections(self, count: int, widest: int) -> Table:
        table = Table.grid(expand=True, padding=(0, 1))
        table.add_column(no_wrap=True)
        table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        for record in self._seen.rejections[: -count - 1 : -1]:
            given = header(record, REASON) or b"no reason given"
            code, _, why = given[:_CHARACTERS].decode(errors="replace").partition(":")
            said = line((code, "red"), f":{why}" if why else "")
            table.add_row(fitted(self._id(record), widest), said)
        return table

    def _id(self, record: Record) -> str:
        """Return the id of the document: its own, or else that of its key, or its position."""
        record = self._documents.whole(record)
        found = self._documents.identify(record.value or b"", record.key)
        if found is not None:
            return found.decode()
        source = [header(record, name) for name in (SOURCE_PARTITION, SOURCE_OFFSET)]
        if None in source:
            source = [b"%d" % record.partition, b"%d" % record.offset]
        return b"-".join(part or b"" for part in source).decode(errors="replace")


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _number(number: int, digits: int) -> str:
    """Return a number in full if it has at most so many characters, else rounded."""
    full = f"{number:,}"
    if len(full) <= digits:
        return full
    return f"{number / 1e6:,.1f} M" if number < 1e10 else f"{number / 1e9:,.1f} G"  # noqa: PLR2004 -- 7 digits are left


def _here(here: Presence) -> Text:
    """Return who is here, with what needs somebody first."""
    said = line(counted(here.shards, "shard"))
    said.no_wrap, said.overflow = True, "ellipsis"
    if here.unowned:
        said.append_text(line((f", without a worker: {_numbers(here.unowned)}", "bold red")))
    if here.still:
        longest = _span(max(here.still.values()))
        which = f", restoring or stuck for {longest}: {_numbers(here.still)}"
        said.append_text(line((which, "bold yellow")))
    if not here.unowned and not here.still:
        said.append_text(line((", all at work", "green")))
    said.append(f"; {counted(len(here.workers), 'worker')}: " if here.workers else "; no worker")
    for number, name in enumerate(here.workers):
        said.append(", " if number else "")
        said.append_text(fitted(name, _NAME))
    return said


def _numbers(shards: Iterable[int]) -> str:
    numbers = list(map(str, shards))
    return ", ".join(numbers[:_SHOWN] + ["…"] * (len(numbers) > _SHOWN))


def _lag(lag: Lag | None, unit: str) -> tuple[str, str]:
    if lag is None:
        return "?", ""
    return f"{lag.records:,} {unit}", "" if lag.seconds is None else _span(lag.seconds)


def _span(seconds: float) -> str:
    """Return a duration in its largest sensible unit."""
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.0f} h" if seconds < 2 * _DAY else f"{seconds / _DAY:.0f} days"
