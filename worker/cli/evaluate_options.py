"""The options of ``neardup evaluate``."""

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
    app.command(rich_help_panel="Without Kafka")(evaluate)


def evaluate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Documents, as `neardup dedupe` reads them; -: standard input.",
            show_default=False,
        ),
    ],
    *,
    pairs: Annotated[
        Path | None,
        typer.Option(
            metavar="PAIRS",
            help="Pairs of ids that somebody calls duplicates: a line for each, separated by a"
            " tab.",
            show_default=False,
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png",
            help="Draw what was found by similarity, and estimates against exact. Needs"
            " neardup[plots].",
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
    """Measure how right the filter is on your documents.

    Judges them like `neardup dedupe`, computes the exact similarity of all pairs, and compares.
    """
    from worker.cli.evaluate import evaluate as run
    from worker.cli.inputs import Reading
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
    run(reading.offline(settings), files, reading, pairs=pairs, picture=picture, as_json=as_json)
