"""The options of ``neardup query`` and ``neardup serve``; each body is in a module of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from worker.cli.kafka_options import App, Bootstrap, Config, Json, LogFormat, LogLevel
from worker.cli.kafka_options import address as split
from worker.cli.last_line import last_line
from worker.cli.offline_options import Format, IdField, TextField

__all__ = ["register"]

_PORT = 9465
_PROBES_PORT = 9466
"""Of a server's metrics and health: a worker on the same machine has 9464, and queries 9465."""
_DIRECTORY = Path("neardup-serve")
_EXTRA = frozenset({"httptools", "starlette", "uvicorn"})
_DEFAULT_SERVER = f"http://localhost:{_PORT}"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(rich_help_panel="Without Kafka")(query)
    app.command(rich_help_panel="Kafka")(serve)


def query(
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="A text; - is standard input.", show_default=False),
    ] = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="A file with one document, instead of a text; - is standard input.",
            show_default=False,
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Ask this directory of `dedupe --state`. Its parameters are used.",
            show_default=False,
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help=f"Ask this `neardup serve`. Default, without --state: {_DEFAULT_SERVER}.",
            show_default=False,
        ),
    ] = None,
    config: Config = None,
    as_json: Json = False,
    format_: Format = None,
    id_field: IdField = None,
    text_field: TextField = None,
) -> None:
    """Show what a text or a document would match, and why. Nothing is written."""
    from worker.cli.errors import CommandError
    from worker.cli.query import Asked, ask_server, ask_state

    if (text is None) == (file is None):
        raise CommandError("TEXT, --file: give one of them")
    if state is not None and server is not None:
        raise CommandError("--state and --server: choose one")
    documents = {
        "documents.format": format_,
        "documents.id_field": id_field,
        "documents.text_fields": text_field or None,
    }
    asked = Asked(text, file)
    if state is not None:
        ask_state(asked, state, config, documents, as_json=as_json)
    else:
        ask_server(asked, server or _DEFAULT_SERVER, config, documents, as_json=as_json)


def serve(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    state_dir: Annotated[
        Path | None,
        typer.Option(
            help="Directory of its copy of the index; never that of a worker. Default:"
            f" {_DIRECTORY}.",
            show_default=False,
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help=f"Address for queries. Default: 127.0.0.1:{_PORT}.",
            show_default=False,
        ),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help=f"Address for metrics and health. Default: 127.0.0.1:{_PROBES_PORT}.",
            show_default=False,
        ),
    ] = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
) -> None:
    """Answer over HTTP what a document would match. Reads Kafka, and writes nothing to it.

    Run as many as you like, each with a directory of its own. Needs the extra `neardup[serve]`.
    """
    host, port = split(listen)
    probes_host, probes_port = split(http)
    kind = log_format or os.environ.get("NEARDUP_WORKER__LOG_FORMAT")
    with last_line(kind, begun=False):
        from worker.settings import ConfigurationError, load

        settings = load(
            config,
            {
                "kafka.bootstrap": bootstrap,
                "app": app,
                "worker.state_dir": state_dir,
                "serve.host": host,
                "serve.port": port,
                "worker.http_host": probes_host,
                "worker.http_port": probes_port,
                "worker.log_level": log_level,
                "worker.log_format": log_format,
            },
            {"worker.state_dir": _DIRECTORY, "worker.http_port": _PROBES_PORT},
        )
        try:
            from worker.cli.serve import serve as body
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in _EXTRA:
                raise
            raise ConfigurationError(
                "to answer queries takes more: pip install 'neardup[serve]'"
            ) from None

    body(settings)
