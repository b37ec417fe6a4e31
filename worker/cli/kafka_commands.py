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
    Encoding,
    FileFormat,
    FollowLinks,
    Json,
    LogFormat,
    LogLevel,
    StateDir,
    for_kafka,
    serve_extra,
    settings_of,
)

_SERVE_DIRECTORY = Path("neardup-serve")
_SERVE_PROBES_PORT = 9466
"""Of a server's metrics and health: a worker on the same machine has 9464, and queries 9465."""
Http = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Address for metrics and health."),
]


def run(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    stages: Annotated[
        str | None,
        typer.Option(
            metavar="STAGES",
            help="Comma-separated stages to run: fingerprint, index, route. Default: all.",
        ),
    ] = None,
    instance: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Stable name of the worker. Default: generated, and kept in the state directory.",
        ),
    ] = None,
    state_dir: StateDir = None,
    http: Http = None,
    no_http: Annotated[
        bool, typer.Option("--no-http", help="Don't serve metrics and health.")
    ] = False,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
) -> None:
    """Run a worker. Start more workers to scale out."""
    host, port = address(http)
    kind = log_format or os.environ.get("NEARDUP_WORKER__LOG_FORMAT")
    with last_line(kind, begun=False):
        settings = settings_of(
            config,
            bootstrap,
            app,
            worker__stages=stages,
            worker__instance=instance,
            worker__state_dir=state_dir,
            worker__http=False if no_http else None,
            worker__http_host=host,
            worker__http_port=port,
            worker__log_level=log_level,
            worker__log_format=log_format,
        )
    from worker.cli.run import run as body

    body(settings)


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


def address(given: str | None) -> tuple[str | None, str | None]:
    """Split ``host:port``, ``[v6]:port``, ``:port`` or ``port``."""
    if given is None:
        return None, None
    host, _, port = given.rpartition(":")
    return host.strip("[]") or None, port


def feed(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="What `neardup dedupe` reads; -: standard input."),
    ],
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    key_field: Annotated[
        str | None,
        typer.Option(metavar="F", help="Field with the record's key. Default: documents.id_field."),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(metavar="TOPIC", help="Topic to publish to. Default: the documents topic."),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(metavar="N", min=0.001, help="Most documents per second."),
    ] = None,
    format_: FileFormat = None,
    encoding: Encoding = None,
    follow_links: FollowLinks = False,
) -> None:
    """Publish the documents in files: lines of JSON unchanged, and others as JSON.

    If documents.format is text, the texts are published.
    """
    from worker.cli.feed import feed as body
    from worker.files.reading import Reading

    settings = for_kafka(config, bootstrap, app)
    if settings.documents.format == "registry":
        from worker.cli.errors import CommandError

        raise CommandError(
            "documents.format: got registry, whose documents `neardup feed` can't write: use the"
            " serializers of your own producers"
        )
    reading = Reading.given(format_, encoding, settings.documents, follow_links=follow_links)
    if reading.format == "json" and settings.documents.format == "text":
        from worker.cli.errors import CommandError

        raise CommandError("--format json: documents.format is text, so documents have no fields")
    body(settings, files, reading, key_field=key_field, topic=topic, rate=rate)


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


def redrive(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    reason: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODE",
            help="Only documents rejected for this reason, such as no-text; may be repeated."
            " Default: all but poison and null-text, which must be named.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Most documents to send."),
    ] = None,
) -> None:
    """Send rejected documents through the filter again, exactly once each.

    Documents that were rejected as poison have killed workers. They only go with --reason poison.
    Deletes of a change feed (null-text) only go with --reason null-text: they may forget what came
    after them.
    """
    from worker.cli.redrive import redrive as body

    body(for_kafka(config, bootstrap, app), reasons=tuple(reason or ()), limit=limit)


def skip(
    partition: Annotated[
        int,
        typer.Argument(metavar="PARTITION", min=0, help="Partition of the documents topic."),
    ],
    offset: Annotated[
        int,
        typer.Argument(
            metavar="OFFSET", min=0, help="Offset of the batch, as the worker's last line has it."
        ),
    ],
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    to: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="OFFSET",
            help="The offset after the range to reject. Default: that after the batch, which is"
            " searched for.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it. Without this option, only say what would be done.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Have the workers reject a batch of documents that can't be unpacked, and go on after it.

    A few kilobytes can unpack to more memory than a worker has. It then ends with a line that
    names the batch. All offsets of the batch go to the rejected topic, without their values.
    """
    from worker.cli.skip import skip as body

    settings = for_kafka(config, bootstrap, app)
    body(settings, partition, offset, to=to, yes=yes, as_json=as_json)


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
