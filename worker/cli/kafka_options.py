"""The commands that need Kafka, with their options; each body is in a module of its own.

This module imports nothing heavy, so that ``--help`` answers at once.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from worker.cli.file_options import Encoding, FileFormat
from worker.cli.last_line import last_line

if TYPE_CHECKING:
    from worker.settings import Settings

__all__ = ["address", "register"]

_KAFKA = "Kafka"
_OPERATE = "Kafka: topics and settings"

Bootstrap = Annotated[
    str | None,
    typer.Option(
        help="Kafka's address, host:port; several separated by commas.", show_default=False
    ),
]
Config = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE.toml",
        help="Settings file; may be repeated, the later wins. Default: those named in"
        " NEARDUP_CONFIG.",
        show_default=False,
    ),
]
App = Annotated[
    str | None,
    typer.Option(help="Application name: the prefix of topics and groups.", show_default=False),
]
Start = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="earliest|latest|TIME|app:NAME",
        help="Where to start in the documents topic. TIME is ISO 8601 (UTC) or an age like 24h."
        " app:NAME continues after the last document that application NAME published; stop it"
        " first.",
    ),
]
Http = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Address for metrics and health.", show_default=False),
]
LogLevel = Annotated[
    str | None,
    typer.Option(
        metavar="debug|info|warning|error", help="Lowest level to log.", show_default=False
    ),
]
LogFormat = Annotated[
    str | None,
    typer.Option(metavar="text|json", help="Format of log lines.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace the starting offsets and the recorded settings. Works only until a worker"
        " has processed anything.",
    ),
]


def _settings(
    config: list[Path] | None, bootstrap: str | None, app: str | None, **more: object
) -> Settings:
    from worker.settings import load

    given = {name.replace("__", "."): value for name, value in more.items()}
    return load(config, {"kafka.bootstrap": bootstrap, "app": app, **given})


def _for_kafka(config: list[Path] | None, bootstrap: str | None, app: str | None) -> Settings:
    """Return the settings, with which librdkafka can make every kind of client."""
    settings = _settings(config, bootstrap, app)
    from worker.bus.kafka.clients import check_clients

    check_clients(settings.kafka_options())
    return settings


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("run", rich_help_panel=_KAFKA)(run)
    app.command("feed", rich_help_panel=_KAFKA)(feed)
    app.command("watch", rich_help_panel=_KAFKA)(watch)
    app.command("redrive", rich_help_panel=_KAFKA)(redrive)
    app.command("forget", rich_help_panel=_KAFKA)(forget)
    app.command("skip", rich_help_panel=_KAFKA)(skip)
    app.command("reindex", rich_help_panel=_KAFKA)(reindex)
    app.command("init", rich_help_panel=_OPERATE)(init)
    topics = typer.Typer(
        help="Create or check the topics, or list the rights they need.", no_args_is_help=True
    )
    topics.command("create")(topics_create)
    topics.command("verify")(topics_verify)
    topics.command("acls")(topics_acls)
    app.add_typer(topics, name="topics", rich_help_panel=_OPERATE)
    config = typer.Typer(help="Show or check the settings.", no_args_is_help=True)
    config.command("show")(config_show)
    config.command("check")(config_check)
    app.add_typer(config, name="config", rich_help_panel=_OPERATE)


def run(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    stages: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated stages to run: fingerprint, index, route. Default: all.",
            show_default=False,
        ),
    ] = None,
    instance: Annotated[
        str | None,
        typer.Option(
            help="Stable name of the worker. Default: generated, and kept in the state directory.",
            show_default=False,
        ),
    ] = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(
            help="Directory of the index; a separate one for each worker.", show_default=False
        ),
    ] = None,
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
        settings = _settings(
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


def address(given: str | None) -> tuple[str | None, str | None]:
    """Split ``host:port``, ``[v6]:port``, ``:port`` or ``port``."""
    if given is None:
        return None, None
    host, _, port = given.rpartition(":")
    return host.strip("[]") or None, port


def topics_create(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    partitions: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Partitions of the documents topic and the topics that follow it; can't be"
            " changed later. Default: those of the existing documents topic, else 4.",
            show_default=False,
        ),
    ] = None,
    replication: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Replication factor. Default: 3, or the number of brokers if that is lower.",
            show_default=False,
        ),
    ] = None,
    start: Start = "earliest",
    documents_max_bytes: Annotated[
        int,
        typer.Option(
            min=16_384, help="max.message.bytes of the documents topic: its largest record batch."
        ),
    ] = 1_048_588,
    force: Force = False,
) -> None:
    """Create missing topics, check the others, and set the starting offsets.

    You can run it again at any time: it changes no existing topic and no offset that is set.
    """
    from worker.cli.topics import create

    create(
        _for_kafka(config, bootstrap, app),
        partitions=partitions,
        replication=replication,
        start=start,
        documents_max_bytes=documents_max_bytes,
        force=force,
    )


def topics_verify(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    as_json: Json = False,
) -> None:
    """Check topics, their settings, and the groups' offsets; exit 2 if a worker can't run."""
    from worker.cli.topics import show

    show(_for_kafka(config, bootstrap, app), as_json=as_json)


def topics_acls(
    config: Config = None,
    app: App = None,
    *,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Only this command, such as 'run' or 'topics create'.",
            show_default=False,
        ),
    ] = None,
    stages: Annotated[
        str | None,
        typer.Option(
            help="Stages of a worker: fingerprint, index, route. Default: worker.stages.",
            show_default=False,
        ),
    ] = None,
    principal: Annotated[
        str | None,
        typer.Option(
            metavar="User:NAME",
            help="Print the kafka-acls.sh commands for this principal.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print what each command needs on a cluster with ACLs; doesn't connect."""
    from worker.cli.acls import show

    settings = _settings(config, None, app, worker__stages=stages)
    show(settings, command=command, principal=principal, as_json=as_json)


def init(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    start: Start = "earliest",
    force: Force = False,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="Record the current settings of documents, limits and topics; all workers must"
            " use them from now on. Also go on after the documents' log has lost its end: what"
            " has taken the place of read documents is published on `rejected`.",
        ),
    ] = False,
) -> None:
    """Set starting offsets and record the shared settings, for topics created by other tools.

    Offsets that are already set stay.
    """
    from worker.cli.topics import begin

    begin(_for_kafka(config, bootstrap, app), start=start, force=force, accept=accept)


def config_show(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    as_json: Json = False,
) -> None:
    """Print the effective settings, with secrets as ****."""
    from worker.cli.config import show

    show(_settings(config, bootstrap, app), as_json=as_json)


def config_check(bootstrap: Bootstrap = None, config: Config = None, app: App = None) -> None:
    """Print ok, or the first wrong setting (exit status 2); warnings go to standard error.

    This includes the settings of librdkafka, and the files that hold secrets. It does not connect.
    """
    settings = _for_kafka(config, bootstrap, app)
    settings.snapshot_options()
    from worker.settings import advice

    for line in advice(settings):
        typer.echo(f"warning: {line}", err=True)
    typer.echo("ok")


def feed(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="What `neardup dedupe` reads; -: standard input.",
            show_default=False,
        ),
    ],
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    key_field: Annotated[
        str | None,
        typer.Option(
            help="Field with the record's key. Default: documents.id_field.",
            show_default=False,
        ),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(help="Topic to publish to. Default: the documents topic.", show_default=False),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(min=0.001, help="Most documents per second.", show_default=False),
    ] = None,
    format_: FileFormat = None,
    encoding: Encoding = None,
) -> None:
    """Publish the documents in files: lines of JSON unchanged, and others as JSON.

    If documents.format is text, the texts are published.
    """
    from worker.cli.feed import feed as body
    from worker.cli.inputs import Reading

    settings = _for_kafka(config, bootstrap, app)
    reading = Reading.given(format_, encoding, settings.documents)
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

    body(_for_kafka(config, bootstrap, app), as_json=as_json)


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
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Most documents to send.", show_default=False)
    ] = None,
) -> None:
    """Send rejected documents through the filter again, exactly once each.

    Documents that were rejected as poison have killed workers. They only go with --reason poison.
    Deletes of a change feed (null-text) only go with --reason null-text: they may forget what came
    after them.
    """
    from worker.cli.redrive import redrive as body

    body(_for_kafka(config, bootstrap, app), reasons=tuple(reason or ()), limit=limit)


def forget(
    ids: Annotated[
        list[str],
        typer.Argument(
            metavar="ID...",
            help="The ids of the documents to forget, as they are published.",
            show_default=False,
        ),
    ],
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    no_wait: Annotated[
        bool,
        typer.Option("--no-wait", help="Don't wait until every shard has forgotten them."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Have the index forget documents, and say when nothing is left of them.

    It sends a tombstone for each id: a record on the documents topic without a value, whose key
    is the one that has this id (documents.key). Your own producers may do the same.
    """
    from worker.cli.forget import forget as body

    body(_for_kafka(config, bootstrap, app), ids, wait=not no_wait, as_json=as_json)


def skip(
    partition: Annotated[
        int,
        typer.Argument(min=0, help="Partition of the documents topic.", show_default=False),
    ],
    offset: Annotated[
        int,
        typer.Argument(
            min=0, help="Offset of the batch, as the worker's last line has it.", show_default=False
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
            show_default=False,
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

    settings = _for_kafka(config, bootstrap, app)
    body(settings, partition, offset, to=to, yes=yes, as_json=as_json)


def reindex(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    shards: Annotated[
        int | None, typer.Option(min=1, help="index.shards from then on.", show_default=False)
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0.01, max=1, help="similarity.threshold from then on.", show_default=False
        ),
    ] = None,
    containment: Annotated[
        str | None,
        typer.Option(
            metavar="none|SHARE",
            help="similarity.containment from then on; only if the application began with one.",
            show_default=False,
        ),
    ] = None,
    absorb: Annotated[
        float | None,
        typer.Option(min=0.01, max=1, help="index.absorb from then on.", show_default=False),
    ] = None,
    bucket_capacity: Annotated[
        int | None,
        typer.Option(
            min=1, max=4_096, help="index.bucket_capacity from then on.", show_default=False
        ),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            metavar="none|LENGTH",
            help="index.window from then on, such as 30d.",
            show_default=False,
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Have workers read so many partitions of the documents, and add those that"
            " are missing. No index is built.",
            show_default=False,
        ),
    ] = None,
    from_documents: Annotated[
        bool,
        typer.Option(
            "--from-documents",
            help="Make new fingerprints, too; the settings have all that is to be different.",
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

    The workers build the new index from the fingerprints beside the one in use, then all verdicts
    come from it, from one place in the order of documents on. Run it again to go on after an
    interruption.
    """
    from worker.cli import reindex as body

    settings = _for_kafka(config, bootstrap, app)
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
            "window": window
            and _settings(config, bootstrap, app, index__window=window).index.window,
        }
        given = {name: one for name, one in rules.items() if one is not None}
        if containment is not None:
            own = _settings(config, bootstrap, app, similarity__containment=containment)
            given["containment"] = own.similarity.containment
        if partitions is not None:
            body.widen(settings, partitions, given, anew=from_documents)
            return
        body.reindex(settings, given, anew=from_documents)
