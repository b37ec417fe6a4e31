"""The commands for topics, starting offsets and settings."""

from __future__ import annotations

from typing import Annotated

import typer

from worker.cli.options import App, Bootstrap, Config, Json, for_kafka, settings_of

Start = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="START",
        help="Where to start in the documents topic: earliest, latest, a time (ISO 8601 in UTC, or"
        " an age like 24h), or app:NAME, after the last document that application NAME published."
        " Stop that application first.",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace the starting offsets and the recorded settings. Works only until a worker"
        " has processed anything.",
    ),
]


def topics_create(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    partitions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Partitions of the documents topic and the topics that follow it. Default: those"
            " of the existing documents topic, else 4. `neardup reindex --partitions` adds more.",
        ),
    ] = None,
    replication: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Replication factor. Default: 3, or the number of brokers if that is lower.",
        ),
    ] = None,
    start: Start = "earliest",
    documents_max_bytes: Annotated[
        int,
        typer.Option(
            metavar="BYTES",
            min=16_384,
            help="max.message.bytes of the documents topic: its largest record batch.",
        ),
    ] = 1_048_588,
    force: Force = False,
) -> None:
    """Create missing topics, check the others, and set the starting offsets.

    You can run it again at any time: it changes no existing topic and no offset that is set.
    """
    from worker.cli.topics import create

    create(
        for_kafka(config, bootstrap, app),
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

    show(for_kafka(config, bootstrap, app), as_json=as_json)


def topics_acls(
    config: Config = None,
    app: App = None,
    *,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="Only these commands, such as 'run' or 'topics create,run'."
        ),
    ] = None,
    stages: Annotated[
        str | None,
        typer.Option(
            metavar="STAGES",
            help="Stages of a worker: fingerprint, index, route. Default: worker.stages.",
        ),
    ] = None,
    principal: Annotated[
        str | None,
        typer.Option(
            metavar="User:NAME", help="Print the kafka-acls.sh commands for this principal."
        ),
    ] = None,
    strimzi: Annotated[
        str | None,
        typer.Option(metavar="CLUSTER/USER", help="Print a KafkaUser for Strimzi's operator."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print what each command needs on a cluster with ACLs; doesn't connect."""
    from worker.cli.acls import show

    settings = settings_of(config, None, app, worker__stages=stages)
    show(settings, command=command, principal=principal, strimzi=strimzi, as_json=as_json)


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
            " use them from now on. Also go on after the documents' log has lost its end: documents"
            " at offsets that were read before are published on `rejected`.",
        ),
    ] = False,
) -> None:
    """Set starting offsets and record the shared settings, for topics created by other tools.

    Offsets that are already set stay.
    """
    from worker.cli.topics import begin

    begin(for_kafka(config, bootstrap, app), start=start, force=force, accept=accept)


def config_show(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    as_json: Json = False,
) -> None:
    """Print the effective settings, with secrets as ****."""
    from worker.cli.config import show

    show(settings_of(config, bootstrap, app), as_json=as_json)


def config_check(bootstrap: Bootstrap = None, config: Config = None, app: App = None) -> None:
    """Print ok, or the first wrong setting (exit status 2); warnings go to standard error.

    This includes the settings of librdkafka, and the files that hold secrets. It does not connect.
    """
    settings = for_kafka(config, bootstrap, app)
    settings.snapshot_options()
    from worker.formats.choice import document_format
    from worker.settings.loading import advice

    document_format(settings)
    for line in advice(settings):
        typer.echo(f"warning: {line}", err=True)
    typer.echo("ok")
