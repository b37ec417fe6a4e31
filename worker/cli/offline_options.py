"""The options of the commands that need no Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from worker.cli.file_options import FIELDS, Encoding, FileFormat
from worker.cli.kafka_options import Config

__all__ = [
    "Containment",
    "Format",
    "IdField",
    "TextField",
    "Threshold",
    "register",
]

_PANEL = "Without Kafka"
Threshold = Annotated[
    float | None,
    typer.Option(
        metavar="T", help="Lowest similarity of duplicates. Default: 0.8.", show_default=False
    ),
]
Containment = Annotated[
    float | None,
    typer.Option(
        metavar="C",
        help="Also find documents that an earlier one has this share of. Default: don't.",
        show_default=False,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="json (default) or text.",
        show_default=False,
        rich_help_panel=FIELDS,
    ),
]
IdField = Annotated[
    str | None,
    typer.Option(
        metavar="F",
        help="Field with the id. Default: id.",
        show_default=False,
        rich_help_panel=FIELDS,
    ),
]
TextField = Annotated[
    list[str] | None,
    typer.Option(
        metavar="F",
        help="Field with the text, such as a, a.b or, for a list, a[] or a[].b. Default: text. May"
        " be repeated; the texts are joined.",
        show_default=False,
        rich_help_panel=FIELDS,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(rich_help_panel=_PANEL)(demo)
    app.command(rich_help_panel=_PANEL)(dedupe)


def demo() -> None:
    """Filter bundled sample documents, and show the duplicates found."""
    from worker.cli.demo import demo as run

    run()


def dedupe(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="JSON Lines, CSV, Parquet, text, HTML, mail or WARC, also compressed; a directory,"
            " or a pattern in quotes. Arguments are read in their order. Default, and -: standard"
            " input.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="OUT",
            help="Output: JSON Lines, or a table if it is named .csv, .tsv or .parquet. Default:"
            " standard output.",
        ),
    ] = None,
    unique_only: Annotated[  # noqa: FBT002 -- typer's way to declare a flag
        bool,
        typer.Option(
            "--unique-only",
            help="Write the lines of unique documents, unchanged, instead of verdicts.",
        ),
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Keep the index here, to compare with documents of earlier runs."
        ),
    ] = None,
    threshold: Threshold = None,
    containment: Containment = None,
    window: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help="Forget documents after this time: 30d, 12h, 90m, 45s, 1d12h. Default: never.",
            show_default=False,
        ),
    ] = None,
    same_id: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="What a document is whose id came before: judged like any other (duplicate), in"
            " place of the earlier one (replace), or the same again (ignore). Default: duplicate.",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[  # noqa: FBT002 -- typer's way to declare a flag
        bool, typer.Option("--strict", help="Exit with status 1 if a document was rejected.")
    ] = False,
    shards: Annotated[
        int | None,
        typer.Option(metavar="P", help="Shards of the index; verdicts stay the same. Default: 1."),
    ] = None,
    config: Config = None,
    format_: FileFormat = None,
    encoding: Encoding = None,
    id_field: IdField = None,
    text_field: TextField = None,
    time_field: Annotated[
        str | None,
        typer.Option(
            metavar="F",
            help="Field with the time. Default: none; a document's time is that of the run.",
            show_default=False,
            rich_help_panel=FIELDS,
        ),
    ] = None,
    time_format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="What that field holds: auto (ISO 8601, RFC 822, or a number that can only be"
            " seconds, ms, µs or ns since 1970), seconds, milliseconds, microseconds, nanoseconds,"
            " excel, or a pattern such as %Y%m%d. Default: auto.",
            show_default=False,
            rich_help_panel=FIELDS,
        ),
    ] = None,
) -> None:
    """Judge the documents in files: unique, duplicate (and of what), or rejected (and why).

    A document is a line, a row, a mail, a record, or a file of text. It is a duplicate if it
    matches an earlier one. One without an id is FILE:LINE. The output is a JSON object per line.
    """
    from worker.cli.dedupe import Job, run_job
    from worker.cli.inputs import Reading
    from worker.offline import offline_settings

    settings = offline_settings(
        config,
        {
            "similarity.threshold": threshold,
            "similarity.containment": containment,
            "index.shards": shards,
            "index.window": window,
            "index.same_id": same_id,
            "documents.id_field": id_field,
            "documents.text_fields": text_field or None,
            "documents.time_field": time_field,
            "documents.time_format": time_format,
        },
    )
    reading = Reading.given(format_, encoding, settings.documents)
    run_job(
        Job(
            files=files or [],
            reading=reading,
            out=out,
            unique_only=unique_only,
            state=state,
            strict=strict,
        ),
        reading.offline(settings),
    )
