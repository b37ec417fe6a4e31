"""``neardup demo``: filter the bundled samples through all stages, and show the result."""

from __future__ import annotations

import shutil
import sys
import tempfile
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from time import monotonic
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from lsh import Parameters, normalise
from worker.cli.comparison import compared
from worker.cli.options import serve_extra
from worker.cli.screen import byte_progress, line
from worker.files.inputs import Inputs
from worker.formats.choice import document_format
from worker.offline.filter import Counts, OfflineFilter, offline_settings
from worker.settings.model import Settings

SAMPLES = {
    "onestop.jsonl.gz": "news at three reading levels",
    "pypa_advisories.jsonl.gz": "security advisories",
    "youtube_spam.jsonl.gz": "video comments",
}
_READABLE = range(60, 10_000)
"""Lengths in characters of texts that are worth showing."""


class _Pair(NamedTuple):
    """A duplicate, its best match, and their similarity."""

    ident: str
    of: str
    similarity: float


def demo(
    *,
    page: Annotated[
        bool,
        typer.Option("--page", help="Show them on the page of `neardup serve`, until Ctrl-C."),
    ] = False,
) -> None:
    r"""Filter bundled sample documents, and show the duplicates found.

    `--page` needs the extra `neardup\[serve]`, and no Kafka.
    """
    if page:
        with serve_extra():
            from worker.cli.demo_page import show_page  # noqa: PLC0415 -- needs an extra
        show_page()
        return
    settings = offline_settings()
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(
        f"Filtering the bundled samples: 5-character shingles,"
        f" threshold {settings.similarity.threshold:g}.\n"
    )
    began = monotonic()
    with as_file(files("worker") / "samples") as folder, tempfile.TemporaryDirectory() as scratch:
        counts, pairs, texts = _filter(settings, folder, Path(scratch))
    _summary(console, counts, monotonic() - began)
    for found in pairs.values():
        pair = _example(found, texts)
        if pair is not None:
            _show(console, pair, texts, settings.parameters())
    command = typed()
    console.print(
        "Next:\n"
        f"  {command} demo --page    look at the duplicates in a browser\n"
        f"  {command} dedupe FILE    filter your own JSON Lines\n"
        f"  {command} run            filter a Kafka topic\n"
        f"  {command} --help         list all commands\n",
        soft_wrap=True,
    )
    console.print(
        "Samples: OneStopEnglish corpus (CC BY-SA 4.0), PyPA Advisory Database (CC BY 4.0),"
        " UCI YouTube Spam Collection (CC BY 4.0).",
        style="dim",
    )


def typed() -> str:
    """Return what a user types to run this command: its name, or a path if it isn't found by it."""
    program = Path(sys.argv[0])
    found = shutil.which("neardup")
    if program.stem != "neardup" or not program.is_file():
        return "neardup" if found else f"{sys.executable} -m worker.cli"
    if found and Path(found).samefile(program):
        return "neardup"
    program = program.absolute()
    here = Path.cwd()
    return str(program.relative_to(here) if program.is_relative_to(here) else program)


def _filter(
    settings: Settings, folder: Path, scratch: Path
) -> tuple[dict[str, Counts], dict[str, list[_Pair]], dict[str, str]]:
    """Return counts and duplicates by file, and the text of each id."""
    counts = {name: Counts() for name in SAMPLES}
    pairs: dict[str, list[_Pair]] = {name: [] for name in SAMPLES}
    texts: dict[str, str] = {}
    documents = document_format(settings)
    done = 0
    with (
        Inputs([folder / name for name in SAMPLES], settings.documents) as inputs,
        OfflineFilter(settings, scratch) as judge,
        byte_progress(inputs.total, shown=sys.stderr.isatty()) as advance,
    ):
        for chunk in inputs.chunks(settings.limits.record_bytes, lines=250):
            for given, verdict in zip(chunk, judge.judge(chunk), strict=True):
                name = given.key.decode().rpartition(":")[0]
                ident = (documents.identify(given.value, given.key) or given.key).decode()
                texts[ident] = documents.excerpt(given.value)
                counts[name].add(given, verdict)
                if verdict.kind == "duplicate":
                    best = msgspec.json.decode(verdict.matches)[0]
                    pairs[name].append(_Pair(ident, best["id"], best["similarity"]))
            done += len(chunk)
            advance(inputs.position, done)
    return counts, pairs, texts


def _summary(console: Console, counts: dict[str, Counts], seconds: float) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=True)
    total = sum(count.documents for count in counts.values())
    table.add_column("sample", footer="all")
    for verdict in ("documents", "unique", "duplicate", "rejected"):
        footer = sum(getattr(count, verdict) for count in counts.values())
        table.add_column(verdict, justify="right", footer=f"{footer:,}")
    for name, count in counts.items():
        numbers = (count.documents, count.unique, count.duplicate, count.rejected)
        table.add_row(SAMPLES[name], *(f"{number:,}" for number in numbers))
    console.print(table)
    console.print(f"{seconds:.1f} s, {total / seconds:,.0f} documents/s.\n")


def _example(pairs: list[_Pair], texts: dict[str, str]) -> _Pair | None:
    """Return the least similar pair of readable length whose texts differ."""
    readable = [
        pair
        for pair in pairs
        if len(texts[pair.ident]) in _READABLE and texts[pair.ident] != texts[pair.of]
    ]
    return min(readable, key=lambda pair: (pair.similarity, pair.ident), default=None)


def _show(console: Console, pair: _Pair, texts: dict[str, str], parameters: Parameters) -> None:
    console.print(
        line(
            (pair.ident, "bold"),
            " is a duplicate of ",
            (pair.of, "bold"),
            f", similarity {pair.similarity:.2f}:",
        )
    )
    plain = console.color_system is None
    one, other = ((ident, texts[ident]) for ident in (pair.of, pair.ident))
    console.print(compared(one, other, partial(normalise, parameters=parameters), marked=plain))
    console.print()
