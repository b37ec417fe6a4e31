"""The commands that judge or compare documents in files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from worker.cli.options import (
    DOCUMENTS,
    App,
    Config,
    Containment,
    Encoding,
    FileFormat,
    FollowLinks,
    IdField,
    Json,
    Server,
    TextField,
    Threshold,
    for_files,
    serve_extra,
)


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
            from worker.cli.demo_page import show_page
        show_page()
        return
    from worker.cli.demo import demo as run

    run()


def dedupe(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="JSON Lines, CSV, Parquet, text, HTML, mail or WARC, also compressed; a directory,"
            " or a pattern in quotes. Each may be at an address (s3, gs, az, https, hf). Arguments"
            " are read in their order. Default, and -: standard input.",
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
            help="Write the lines or rows of unique documents, unchanged, instead of verdicts.",
        ),
    ] = False,
    keep_columns: Annotated[  # noqa: FBT002 -- typer's way to declare a flag
        bool,
        typer.Option(
            "--keep-columns",
            help="Write the rows of tables, with the verdicts in columns beside: of CSV to a .csv"
            " or .tsv, of Parquet to a .parquet.",
        ),
    ] = False,
    keep_formulas: Annotated[  # noqa: FBT002 -- typer's way to declare a flag
        bool,
        typer.Option(
            "--keep-formulas",
            help="Write verdicts to a .csv or .tsv without the apostrophe that keeps spreadsheets"
            " from running a cell that begins with =, +, - or @.",
        ),
    ] = False,
    groups: Annotated[  # noqa: FBT002 -- typer's way to declare a flag
        bool,
        typer.Option(
            "--groups",
            help="Also name the group of each document: all that matches connect. The output is"
            " written when all documents are judged.",
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
        ),
    ] = None,
    same_id: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="What happens when an id comes again. The document is judged like any other"
            " (duplicate), takes the place of the earlier one (replace), or counts as the same"
            " again (ignore). Default: duplicate.",
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
    follow_links: FollowLinks = False,  # noqa: FBT002 -- typer\'s way to declare a flag
    id_field: IdField = None,
    text_field: TextField = None,
    time_field: Annotated[
        str | None,
        typer.Option(
            metavar="F",
            help="Field with the time. Default: none; a document's time is that of the run.",
            rich_help_panel=DOCUMENTS,
        ),
    ] = None,
    time_format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="What that field holds: auto (ISO 8601, RFC 822, or a number that can only be"
            " seconds, ms, µs or ns since 1970), seconds, milliseconds, microseconds, nanoseconds,"
            " excel, or a pattern such as %Y%m%d. Default: auto.",
            rich_help_panel=DOCUMENTS,
        ),
    ] = None,
) -> None:
    """Judge the documents in files: unique, duplicate (and of what), or rejected (and why).

    A document is a line, a row, a mail, a record, or a file of text. It is a duplicate if it
    matches an earlier one. One without an id is FILE:LINE. The output is a JSON object per line.
    """
    from worker.cli.dedupe import Job, run_job
    from worker.cli.errors import CommandError

    if groups and unique_only:
        raise CommandError("--groups and --unique-only: choose one")
    if keep_columns and unique_only:
        raise CommandError("--keep-columns and --unique-only: choose one")
    settings, reading = for_files(
        config,
        format_,
        encoding,
        follow_links=follow_links,
        similarity__threshold=threshold,
        similarity__containment=containment,
        index__shards=shards,
        index__window=window,
        index__same_id=same_id,
        documents__id_field=id_field,
        documents__text_fields=text_field or None,
        documents__time_field=time_field,
        documents__time_format=time_format,
    )
    run_job(
        Job(
            files=files or [],
            reading=reading,
            out=out,
            unique_only=unique_only,
            keep_columns=keep_columns,
            keep_formulas=keep_formulas,
            groups=groups,
            state=state,
            strict=strict,
        ),
        settings,
    )


def query(
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="A text; - is standard input."),
    ] = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="A file with one document, instead of a text: a .txt, .md, .html and the like"
            " is one text, all else JSON. - is standard input.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Ask this directory of `dedupe --state`. Its parameters are used."
        ),
    ] = None,
    server: Server = None,
    config: Config = None,
    app: App = None,
    as_json: Json = False,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="json or text, whatever the file is named.",
            rich_help_panel=DOCUMENTS,
        ),
    ] = None,
    id_field: IdField = None,
    text_field: TextField = None,
) -> None:
    """Show what a text or a document would match, and why. Nothing is written."""
    from worker.cli.client import Client
    from worker.cli.errors import CommandError
    from worker.cli.query import Asked, ask_server, ask_state, note_a_file
    from worker.settings.loading import load

    if (text is None) == (file is None):
        raise CommandError("TEXT, --file: give one of them")
    if state is not None and server is not None:
        raise CommandError("--state and --server: choose one")
    asked = Asked(text, file)
    documents = {
        "documents.format": format_ or asked.format,
        "documents.id_field": id_field,
        "documents.text_fields": text_field or None,
    }
    note_a_file(text)
    if state is not None:
        ask_state(asked, state, config, documents, as_json=as_json)
    else:
        settings = load(config, {"app": app, **documents})
        ask_server(asked, Client.of(settings, server), settings, as_json=as_json)
