"""The options of ``neardup tune``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from worker.cli.file_options import Encoding, FileFormat
from worker.cli.kafka_options import Config, Json
from worker.cli.offline_options import (
    Containment,
    IdField,
    TextField,
    Threshold,
)

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Without Kafka")(tune)


def tune(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Documents, as `neardup dedupe` reads them; -: standard input.",
            show_default=False,
        ),
    ],
    *,
    sample: Annotated[
        int,
        typer.Option(metavar="N", min=2, help="Look at the first N documents."),
    ] = 5_000,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="18x7,16x8",
            help="Bands and rows to compare with the ones chosen for the threshold.",
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="PAIRS",
            help="Pairs of ids that somebody calls duplicates, to see which threshold tells them"
            " from others: a line for each, separated by a tab.",
            show_default=False,
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png",
            help="Draw the curves, and the similarities of the sample. Needs neardup[plots].",
            show_default=False,
        ),
    ] = None,
    threshold: Threshold = None,
    containment: Containment = None,
    as_json: Json = False,
    config: Config = None,
    format_: FileFormat = None,
    encoding: Encoding = None,
    id_field: IdField = None,
    text_field: TextField = None,
) -> None:
    """Show what thresholds, bands and rows would find and cost on your documents.

    Computes the exact similarities of a sample, and applies the S-curves to them.
    """
    from worker.cli.inputs import Reading
    from worker.cli.tune import tune as run
    from worker.offline import offline_settings

    settings = offline_settings(
        config,
        {
            "similarity.threshold": threshold,
            "similarity.containment": containment,
            "documents.id_field": id_field,
            "documents.text_fields": text_field or None,
        },
    )
    reading = Reading.given(format_, encoding, settings.documents)
    run(
        reading.offline(settings),
        files,
        reading,
        sample=sample,
        compare=compare,
        labels=labels,
        picture=picture,
        as_json=as_json,
    )
