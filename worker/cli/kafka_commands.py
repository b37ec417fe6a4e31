"""The commands that run the filter on Kafka, and those that send it something."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from worker.cli.errors import last_line
from worker.cli.options import (
    SERVE_PORT,
    App,
    Bootstrap,
    Config,
    LogFormat,
    LogLevel,
    address,
    for_kafka,
    serve_extra,
    settings_of,
)

_SERVE_DIRECTORY = Path("neardup-serve")
_SERVE_PROBES_PORT = 9466
"""Of a server's metrics and health: a worker on the same machine has 9464, and queries 9465."""


def serve(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    state_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory of its copy of the index; never that of a worker. Default:"
            f" {_SERVE_DIRECTORY}.",
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help=f"Address for queries. Default: 127.0.0.1:{SERVE_PORT}.",
        ),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help=f"Address for metrics and health. Default: 127.0.0.1:{_SERVE_PROBES_PORT}.",
        ),
    ] = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
) -> None:
    r"""Answer over HTTP what a document would match. Writes nothing to Kafka but corrections.

    Run as many as you like, each with a directory of its own. Needs the extra `neardup\[serve]`.
    """
    host, port = address(listen)
    probes_host, probes_port = address(http)
    kind = log_format or os.environ.get("NEARDUP_WORKER__LOG_FORMAT")
    with last_line(kind, begun=False):
        settings = settings_of(
            config,
            bootstrap,
            app,
            {"worker.state_dir": _SERVE_DIRECTORY, "worker.http_port": _SERVE_PROBES_PORT},
            worker__state_dir=state_dir,
            serve__host=host,
            serve__port=port,
            worker__http_host=probes_host,
            worker__http_port=probes_port,
            worker__log_level=log_level,
            worker__log_format=log_format,
        )
        with serve_extra():
            from worker.cli.serve import serve as body

    body(settings)


def watch(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object every five seconds instead.")
    ] = False,
) -> None:
    """Show rates, verdicts, lag and the latest duplicates live; q quits."""
    from worker.cli.watch import watch as body

    body(for_kafka(config, bootstrap, app), as_json=as_json)
