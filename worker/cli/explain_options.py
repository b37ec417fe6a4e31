"""The options of ``neardup explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from worker.cli.file_options import Encoding, FileFormat
from worker.cli.kafka_options import App, Bootstrap, Config, Json
from worker.cli.offline_options import (
    Containment,
    IdField,
    TextField,
    Threshold,
)

__all__ = ["register"]

_KAFKA = "Kafka"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Without Kafka")(explain)


def explain(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="A B",
            help="Two files with one document each (- is standard input); or two ids, with --in or"
            " --kafka.",
            show_default=False,
        ),
    ],
    *,
    within: Annotated[
        list[Path] | None,
        typer.Option(
            "--in",
            metavar="FILE",
            help="A and B are ids in this file, or in this directory; may be repeated. A document"
            " without an id is FILE:LINE.",
            show_default=False,
        ),
    ] = None,
    kafka: Annotated[
        bool,
        typer.Option(
            "--kafka",
            help="A and B are ids on the topics unique and duplicate. Without B: the best match of"
            " A.",
            rich_help_panel=_KAFKA,
        ),
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="earliest|TIME",
            help="How far back to search. TIME is ISO 8601 (UTC) or an age. Default: 24h.",
            show_default=False,
            rich_help_panel=_KAFKA,
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    app: App = None,
    config: Config = None,
    threshold: Threshold = None,
    containment: Containment = None,
    as_json: Json = False,
    format_: FileFormat = None,
    encoding: Encoding = None,
    id_field: IdField = None,
    text_field: TextField = None,
) -> None:
    """Show why two documents are near duplicates, or are not.

    Use the settings of the workers: they decide what is similar. With --kafka, the rules are those
    of the generation of the index that is in use.
    """
    from worker.cli.errors import CommandError
    from worker.cli.explain import explain as show
    from worker.cli.inputs import Reading
    from worker.settings import load

    if kafka and within:
        raise CommandError("--in and --kafka: choose one")
    if kafka and encoding is not None:
        raise CommandError("--encoding: not with --kafka")
    if not kafka and (since is not None or bootstrap is not None or app is not None):
        raise CommandError("--since, --bootstrap and --app: only with --kafka")
    if len(names) != 2 and not (kafka and len(names) == 1):  # noqa: PLR2004 -- a pair
        takes = "one or two ids" if kafka else "two ids" if within else "two files"
        raise CommandError(f"A B: got {len(names)}, takes {takes}")
    named = {
        "kafka.bootstrap": bootstrap,
        "app": app,
        "documents.format": format_ if kafka else None,
        "documents.id_field": id_field,
        "documents.text_fields": text_field or None,
    }
    least = {"threshold": threshold, "containment": containment}
    settings = load(config, named | {f"similarity.{name}": one for name, one in least.items()})
    recorded = rules = None
    reading = Reading.given(None if kafka else format_, encoding, settings.documents)
    if kafka:
        from worker.admin import Cluster
        from worker.cli.explain_kafka import in_use_there, judged

        settings = load(config, named)
        settings, rules = in_use_there(Cluster(settings.kafka_options()), settings)
        given = {name: one for name, one in least.items() if one is not None}
        similarity = settings.similarity.model_copy(update=given)
        settings = settings.model_copy(update={"similarity": similarity})
        left, right, recorded = judged(settings, names, since or "24h")
    elif within:
        from worker.cli.explain_files import documents_in

        left, right = documents_in(reading.offline(settings), within, reading, names)
    else:
        from worker.cli.explain_files import whole_files

        left, right = whole_files(reading.offline(settings), reading, names)
    show(settings.parameters(), left, right, recorded=recorded, rules=rules, as_json=as_json)
