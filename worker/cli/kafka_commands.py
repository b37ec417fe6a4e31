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


def reindex(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    shards: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="index.shards from then on."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(metavar="T", min=0.01, max=1, help="similarity.threshold from then on."),
    ] = None,
    containment: Annotated[
        str | None,
        typer.Option(
            metavar="none|SHARE",
            help="similarity.containment from then on; only if the application began with one.",
        ),
    ] = None,
    absorb: Annotated[
        float | None,
        typer.Option(metavar="A", min=0.01, max=1, help="index.absorb from then on."),
    ] = None,
    bucket_capacity: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=4_096, help="index.bucket_capacity from then on."),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(metavar="none|LENGTH", help="index.window from then on, such as 30d."),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Have workers read so many partitions of the documents, and add those that"
            " are missing. No index is built.",
        ),
    ] = None,
    from_documents: Annotated[
        bool,
        typer.Option(
            "--from-documents",
            help="Make new fingerprints, too. The settings have all that is to be different.",
        ),
    ] = False,
    status: Annotated[bool, typer.Option("--status", help="Print how far it is.")] = False,
    abort: Annotated[
        bool, typer.Option("--abort", help="Give up what is being built, and has not taken over.")
    ] = False,
    clean: Annotated[
        bool,
        typer.Option(
            "--clean", help="Delete the topics and groups that earlier indexes have left."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --status: print JSON.")] = False,
) -> None:
    """Change the shards and rules of the index of running workers, without downtime.

    The workers build the new index from the fingerprints beside the one in use. Then all verdicts
    come from it, from one point in the order of documents on. Run the command again to go on after
    an interruption.
    """
    from worker.cli import reindex as body

    settings = for_kafka(config, bootstrap, app)
    if status:
        body.status(settings, as_json=as_json)
    elif abort:
        body.abort(settings)
    elif clean:
        body.clean(settings)
    else:
        rules: dict[str, object] = {
            "shards": shards,
            "threshold": threshold,
            "absorb": absorb,
            "bucket_capacity": bucket_capacity,
        }
        given = {name: one for name, one in rules.items() if one is not None}
        if window is not None:
            own = settings_of(config, bootstrap, app, index__window=window)
            given["window"] = own.index.window
        if containment is not None:
            own = settings_of(config, bootstrap, app, similarity__containment=containment)
            given["containment"] = own.similarity.containment
        if partitions is not None:
            body.widen(settings, partitions, given, anew=from_documents)
        else:
            body.reindex(settings, given, anew=from_documents)
