"""Options that several commands have, and the settings that they give.

This module imports nothing heavy, so that ``--help`` answers at once.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from worker.corrections.service import Corrector
    from worker.settings.model import Settings


WITHOUT_KAFKA, KAFKA, OPERATE = "Without Kafka", "Kafka", "Kafka: topics and settings"
"""The groups of commands in ``neardup --help``."""
DOCUMENTS = "Documents"
"""The group of options about the documents in files."""
SERVE_PORT = 9465
"""Where `neardup serve` is asked."""
_SERVE_EXTRA = frozenset({"h11", "starlette", "uvicorn"})

Bootstrap = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Kafka's address; several are separated by commas."),
]
Config = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE.toml",
        help="Settings file; may be repeated, the later wins. Default: those named in"
        " NEARDUP_CONFIG.",
    ),
]
App = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Application name: the prefix of topics and groups."),
]
StateDir = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Directory of the index (worker.state_dir); each worker has its own."
    ),
]
Server = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Ask this `neardup serve`. Default: where serve.host and serve.port have one listen,"
        f" http://127.0.0.1:{SERVE_PORT} without settings.",
    ),
]
Reason = Annotated[
    str,
    typer.Option(
        "--why",
        metavar="REASON",
        help="The reason, noted with your name: at most 200 characters of it.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")]
Threshold = Annotated[
    float | None,
    typer.Option(metavar="T", help="Lowest similarity of duplicates. Default: 0.8."),
]
Containment = Annotated[
    float | None,
    typer.Option(
        metavar="C",
        help="Also find documents that an earlier one has this share of. Default: don't.",
    ),
]
FileFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="What is a document. json: lines and rows, with fields; text: each file; lines: each"
        " line, as text. Default: what the files' names say, else JSON Lines.",
        rich_help_panel=DOCUMENTS,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Encoding of files that don't say theirs, such as cp1252. Default: UTF-8.",
        rich_help_panel=DOCUMENTS,
    ),
]
FollowLinks = Annotated[
    bool,
    typer.Option(
        "--follow-links",
        help="Follow links in directories and patterns also to what is outside of them.",
        rich_help_panel=DOCUMENTS,
    ),
]
IdField = Annotated[
    str | None,
    typer.Option(
        metavar="F",
        help="Field with the id. Default: id.",
        rich_help_panel=DOCUMENTS,
    ),
]
TextField = Annotated[
    list[str] | None,
    typer.Option(
        metavar="F",
        help="Field with the text, such as a, a.b or, for a list, a[] or a[].b. Default: text. May"
        " be repeated; the texts are joined.",
        rich_help_panel=DOCUMENTS,
    ),
]
Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE", help="Documents, as `neardup dedupe` reads them; -: standard input."
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.png", help="Draw the result into this file. Needs neardup\\[plots]."
    ),
]


def settings_of(
    config: list[Path] | None,
    bootstrap: str | None = None,
    app: str | None = None,
    defaults: Mapping[str, Any] | None = None,
    **more: object,
) -> Settings:
    """Return the settings of files and options, which are named as ``section__setting``."""
    from worker.settings.loading import load

    return load(config, dotted({"kafka__bootstrap": bootstrap, "app": app, **more}), defaults)


def for_kafka(config: list[Path] | None, bootstrap: str | None, app: str | None) -> Settings:
    """Return the settings, with which librdkafka can make every kind of client.

    librdkafka's own log lines are left out: if the command fails, its last line has the error.
    """
    settings = settings_of(config, bootstrap, app)
    from worker.bus.kafka.clients import check_clients

    check_clients(settings.kafka_options())
    logging.getLogger("librdkafka").addHandler(logging.NullHandler())
    return settings


def corrector(settings: Settings) -> Corrector:
    """Return what corrects the application on its brokers, by the generation in use.

    Raises:
        ConfigurationError: there is no topic with documents.
        BusError: Kafka failed.
    """
    from worker.admin.cluster import Cluster
    from worker.admin.reindex.in_use import in_use
    from worker.bus.kafka.bus import KafkaBus
    from worker.corrections.service import Corrector

    options = settings.kafka_options()
    plan = in_use(Cluster(options), settings)
    return Corrector.of(plan.settings(settings), plan, KafkaBus(options))


def dotted(given: Mapping[str, object]) -> dict[str, object]:
    """Return options by the names of their settings: ``section.setting``."""
    return {name.replace("__", "."): value for name, value in given.items()}


@contextmanager
def serve_extra() -> Iterator[None]:
    """Say which extra is missing, if what is imported within needs it.

    Raises:
        ConfigurationError: it is.
    """
    from worker.settings.errors import ConfigurationError

    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _SERVE_EXTRA:
            raise
        raise ConfigurationError(
            "to answer queries takes more: pip install 'neardup[serve]'"
        ) from None


def is_file(text: str) -> bool:
    """Return whether what is given as a text is the name of a file."""
    return os.path.isfile(text)  # noqa: PTH113 -- the other one fails if a text is long
