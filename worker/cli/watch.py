"""``neardup watch``: a live view on the terminal, or a line every few seconds."""

from __future__ import annotations

import json
import logging
import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from time import monotonic, sleep
from typing import Any

from confluent_kafka import Message
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from worker.admin.observe import VERDICTS, Lag, Observer, Snapshot
from worker.headers import MATCHES, REASON, SOURCE_OFFSET, SOURCE_PARTITION
from worker.settings import Settings
from worker.topology import STAGES

__all__ = ["View", "printable", "watch"]

_REFRESH_SECONDS = 0.5
_PLAIN_SECONDS = 5.0
_STYLE = {"unique": "green", "duplicate": "yellow", "rejected": "red"}
_UNITS = {"fingerprint": "docs", "index": "frames", "route": "docs"}
_FIXED_LINES = 12
"""Of the view, next to the two lists."""
_TEXT_CHARACTERS = 300
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def watch(settings: Settings) -> None:
    """Watch until q or Ctrl-C."""
    logging.getLogger("librdkafka").addHandler(logging.NullHandler())
    with Observer(settings) as observer:
        try:
            if sys.stdout.isatty():
                _live(settings, observer)
            else:
                _plain(observer)
        except KeyboardInterrupt:
            return


def _live(settings: Settings, observer: Observer) -> None:
    console = Console()
    view = View(settings, observer.snapshot())
    with _keys() as pressed, Live(view, console=console, screen=True, auto_refresh=False) as live:
        while not pressed(_REFRESH_SECONDS):
            live.update(View(settings, observer.snapshot()), refresh=True)


def _plain(observer: Observer) -> None:
    due = monotonic()
    while True:
        due += _PLAIN_SECONDS
        sleep(max(0.0, due - monotonic()))
        print(_line(observer.snapshot()), flush=True)  # noqa: T201 -- what the command is for


def _line(seen: Snapshot) -> str:
    verdicts = ", ".join(
        f"{verdict} {seen.totals[verdict]:,} ({seen.recent[verdict]:,.0f}/s)"
        for verdict in VERDICTS
    )
    lags = ", ".join(
        f"{stage} {lag.records:,} {_UNITS[stage]}"
        + (f" {_span(lag.seconds)}" if lag.seconds is not None else "")
        for stage, lag in seen.lag.items()
    )
    trouble = f"; trouble: {printable(seen.trouble)}" if seen.trouble else ""
    return f"{timedelta(seconds=int(seen.seconds))} {verdicts}; behind: {lags or '?'}{trouble}"


@contextmanager
def _keys() -> Iterator[Any]:
    """Give a function that waits, and tells whether q was pressed."""
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


class View:
    """What is on the screen, as large as the terminal."""

    def __init__(self, settings: Settings, seen: Snapshot) -> None:
        """Take what is known at a moment."""
        self._settings = settings
        self._seen = seen

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lay it out."""
        height = (options.height or console.height) - _FIXED_LINES
        rejected = min(max(1, height // 3), max(1, len(self._seen.rejections)))
        duplicates = max(1, height - rejected)
        tables = Table.grid(expand=True, padding=(0, 3))
        tables.add_column()
        tables.add_column()
        tables.add_row(self._rates(), self._lags())
        trouble = Text(no_wrap=True, overflow="ellipsis", style="bold red")
        if self._seen.trouble:
            trouble.append(f"trouble: {printable(self._seen.trouble)}")
        yield Group(
            self._title(),
            trouble,
            tables,
            Text(),
            Text("latest duplicates", style="bold"),
            self._duplicates(duplicates),
            Text(),
            Text("latest rejections", style="bold"),
            self._rejections(rejected),
        )

    def _title(self) -> Table:
        seen = self._seen
        line = Table.grid(expand=True)
        line.add_column(no_wrap=True, overflow="ellipsis")
        line.add_column(no_wrap=True, justify="right")
        name = Text.assemble((self._settings.app, "bold"), f"  {self._settings.kafka.bootstrap}")
        since = timedelta(seconds=int(seen.seconds))
        line.add_row(name, Text(f"  watching for {since}, q quits", style="dim"))
        return line

    def _rates(self) -> Table:
        seen = self._seen
        table = _table("verdict", "10 s", "overall", "seen")
        for verdict in VERDICTS:
            table.add_row(
                Text(verdict, style=_STYLE[verdict]),
                f"{seen.recent[verdict]:,.0f}/s",
                f"{seen.overall[verdict]:,.0f}/s",
                f"{seen.totals[verdict]:,}",
            )
        table.add_row(
            Text("all", style="bold"),
            f"{sum(seen.recent.values()):,.0f}/s",
            f"{sum(seen.overall.values()):,.0f}/s",
            f"{sum(seen.totals.values()):,}",
        )
        return table

    def _lags(self) -> Table:
        table = _table("stage", "behind", "oldest")
        for stage in STAGES:
            lag = self._seen.lag.get(stage)
            table.add_row(stage, *_lag(lag, _UNITS[stage]))
        return table

    def _duplicates(self, count: int) -> Table:
        table = Table.grid(expand=True, padding=(0, 1))
        table.add_column(max_width=24, no_wrap=True, overflow="ellipsis")
        table.add_column(no_wrap=True, justify="right")
        table.add_column(max_width=24, no_wrap=True, overflow="ellipsis")
        table.add_column(ratio=1, no_wrap=True, overflow="ellipsis", style="dim")
        rows = [self._duplicate(message) for message in self._seen.duplicates[: -count - 1 : -1]]
        for ident, similarity, other, text in rows + [("", "", "", "")] * (count - len(rows)):
            table.add_row(
                printable(ident), similarity, Text(printable(other), "cyan"), printable(text)
            )
        return table

    def _duplicate(self, message: Message) -> tuple[str, str, str, str]:
        ident, text = self._document(message)
        try:
            first = json.loads(_header(message, MATCHES) or b"[]")[0]
            return ident, f"{first['similarity']:.2f}", str(first["id"]), text
        except (ValueError, LookupError, TypeError):
            return ident, "", "", text

    def _rejections(self, count: int) -> Table:
        table = Table.grid(expand=True, padding=(0, 1))
        table.add_column(max_width=24, no_wrap=True, overflow="ellipsis")
        table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        for message in self._seen.rejections[: -count - 1 : -1]:
            reason = (_header(message, REASON) or b"no reason given").decode(errors="replace")
            code, _, why = reason.partition(":")
            ident, _ = self._document(message)
            said = Text.assemble((printable(code), "red"), printable(f":{why}") if why else "")
            table.add_row(printable(ident), said)
        return table

    def _document(self, message: Message) -> tuple[str, str]:
        """Find id and text as far as that is easy."""
        value = message.value() or b""
        key = message.key()
        shown = value.decode(errors="replace") if isinstance(value, bytes) else value
        ident = key.decode(errors="replace") if isinstance(key, bytes) else key or ""
        source = [_header(message, name) for name in (SOURCE_PARTITION, SOURCE_OFFSET)]
        if None in source:
            source = [b"%d" % (message.partition() or 0), b"%d" % (message.offset() or 0)]
        place = b"-".join(part or b"" for part in source).decode(errors="replace")
        fields = self._settings.documents
        if fields.format == "json":
            try:
                found = json.loads(shown)
                texts = [found[name] for name in fields.text_fields if name in found]
                return str(found.get(fields.id_field, ident or place)), " ".join(map(str, texts))
            except (ValueError, TypeError, AttributeError, RecursionError):
                pass
        return ident or place, shown[:_TEXT_CHARACTERS]


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _lag(lag: Lag | None, unit: str) -> tuple[str, str]:
    if lag is None:
        return "?", ""
    return f"{lag.records:,} {unit}", "" if lag.seconds is None else _span(lag.seconds)


def _span(seconds: float) -> str:
    """Write a duration in one unit."""
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.0f} h" if seconds < 2 * _DAY else f"{seconds / _DAY:.0f} days"


def _header(message: Message, name: str) -> bytes | None:
    headers = message.headers() or []
    for key, value in reversed(headers.items() if isinstance(headers, dict) else headers):
        if key == name:
            return value.encode() if isinstance(value, str) else value
    return None


def printable(text: str) -> str:
    """Blank out what a terminal might take for a command."""
    return "".join(c if c.isprintable() else " " for c in text[:_TEXT_CHARACTERS])
