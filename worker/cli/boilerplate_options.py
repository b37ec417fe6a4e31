"""The options of ``neardup boilerplate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from worker.cli.file_options import Encoding, FileFormat
from worker.cli.kafka_options import Config
from worker.cli.offline_options import (
    IdField,
    TextField,
    Threshold,
)

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Without Kafka")(boilerplate)


def boilerplate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Documents, as `neardup dedupe` reads them; -: standard input.",
            show_default=False,
        ),
    ],
    *,
    share: Annotated[
        float,
        typer.Option(
            metavar="S",
            min=0,
            max=1,
            help="List a line that stands in at least this share of the different documents,",
        ),
    ] = 0.001,
    least: Annotated[
        int, typer.Option(metavar="N", min=2, help="and in at least so many of them.")
    ] = 5,
    sample: Annotated[
        int, typer.Option(metavar="N", min=2, help="Look at the first N documents.")
    ] = 100_000,
    threshold: Threshold = None,
    config: Config = None,
    format_: FileFormat = None,
    encoding: Encoding = None,
    id_field: IdField = None,
    text_field: TextField = None,
) -> None:
    """List the lines that stand in many documents: footers, menus, cookie banners.

    Look the list over, delete what is no boilerplate, and set similarity.boilerplate to its file.

    Documents that nearly repeat an earlier one don't count: a story that many print is none.
    """
    from worker.cli.boilerplate import boilerplate as run
    from worker.cli.inputs import Reading
    from worker.offline import offline_settings

    settings = offline_settings(
        config,
        {
            "similarity.threshold": threshold,
            "documents.id_field": id_field,
            "documents.text_fields": text_field or None,
        },
    )
    reading = Reading.given(format_, encoding, settings.documents)
    run(reading.offline(settings), files, reading, share=share, least=least, sample=sample)
