"""The options of the commands that need no Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["register"]

_PANEL = "Without Kafka"
_FIELDS = "Documents"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(rich_help_panel=_PANEL)(demo)
    app.command(rich_help_panel=_PANEL)(dedupe)


def demo() -> None:
    """Filter bundled sample documents, and show what it finds."""
    from worker.cli.demo import demo as run  # noqa: PLC0415 -- heavy

    run()


def dedupe(  # noqa: PLR0913, PLR0917 -- an argument is an option
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="JSON Lines, plain, gzip or zstd; - or none: standard input.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="OUT", help="Where to; default: standard output."),
    ] = None,
    unique_only: Annotated[  # noqa: FBT002 -- typer's way to declare a flag
        bool, typer.Option("--unique-only", help="Write the lines of unique documents, unchanged.")
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the index here: judge against earlier runs, too."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(metavar="T", help="Similarity from which on it is a duplicate; default 0.8."),
    ] = None,
    strict: Annotated[  # noqa: FBT002 -- typer's way to declare a flag
        bool, typer.Option("--strict", help="Exit with status 1 if a document was rejected.")
    ] = False,
    shards: Annotated[
        int | None, typer.Option(metavar="P", help="Split the index; verdicts stay the same.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings, as TOML; options win.")
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="json (default), or text: a document per line.",
            rich_help_panel=_FIELDS,
        ),
    ] = None,
    id_field: Annotated[
        str | None,
        typer.Option(
            metavar="F",
            help="Default id; documents without one are FILE:LINE.",
            rich_help_panel=_FIELDS,
        ),
    ] = None,
    text_field: Annotated[
        list[str] | None,
        typer.Option(
            metavar="F",
            help="Default text; several are joined.",
            show_default=False,
            rich_help_panel=_FIELDS,
        ),
    ] = None,
    time_field: Annotated[
        str | None,
        typer.Option(
            metavar="F", help="ISO 8601, or seconds or ms since 1970.", rich_help_panel=_FIELDS
        ),
    ] = None,
) -> None:
    """Judge each line of files: unique, duplicate (of what), or rejected (why).

    A line is a duplicate if an earlier line matches it. Writes a line of JSON for each.
    """
    from worker.cli.dedupe import Job, run_job  # noqa: PLC0415 -- heavy
    from worker.offline import offline_settings  # noqa: PLC0415

    settings = offline_settings(
        config,
        {
            "similarity.threshold": threshold,
            "index.shards": shards,
            "documents.format": format_,
            "documents.id_field": id_field,
            "documents.text_fields": text_field or None,
            "documents.time_field": time_field,
        },
    )
    run_job(
        Job(
            files=files or [],
            out=out,
            unique_only=unique_only,
            state=state,
            strict=strict,
        ),
        settings,
    )
