"""The commands that need Kafka, with their options; the bodies are in a module each.

Nothing heavy is imported here, so that ``--help`` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from worker.settings import Settings

__all__ = ["register"]

_KAFKA = "Kafka"
_OPERATE = "Kafka: topics and settings"

Bootstrap = Annotated[
    str | None,
    typer.Option(help="Kafka's address, host:port, several with commas.", show_default=False),
]
Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.toml",
        help="Settings; or name the file in NEARDUP_CONFIG.",
        show_default=False,
    ),
]
App = Annotated[
    str | None, typer.Option(help="The prefix of topics and groups.", show_default=False)
]
Start = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="earliest|latest|TIME|app:NAME",
        help="Where to begin in the documents; TIME is ISO 8601 (UTC), or an age like 24h;"
        " app:NAME is where that application, now stopped, ended to publish.",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace starting offsets and what workers agree on; only as long as no worker has"
        " processed anything.",
    ),
]


def _settings(
    config: Path | None, bootstrap: str | None, app: str | None, **more: object
) -> Settings:
    from worker.settings import load  # noqa: PLC0415 -- keeps --help fast

    given = {name.replace("__", "."): value for name, value in more.items()}
    return load(config, {"kafka.bootstrap": bootstrap, "app": app, **given})


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("run", rich_help_panel=_KAFKA)(run)
    app.command("feed", rich_help_panel=_KAFKA)(feed)
    app.command("watch", rich_help_panel=_KAFKA)(watch)
    app.command("redrive", rich_help_panel=_KAFKA)(redrive)
    app.command("init", rich_help_panel=_OPERATE)(init)
    topics = typer.Typer(help="Create the topics, or check them.", no_args_is_help=True)
    topics.command("create")(topics_create)
    topics.command("verify")(topics_verify)
    app.add_typer(topics, name="topics", rich_help_panel=_OPERATE)
    config = typer.Typer(help="Show the settings, or check them.", no_args_is_help=True)
    config.command("show")(config_show)
    config.command("check")(config_check)
    app.add_typer(config, name="config", rich_help_panel=_OPERATE)


def run(  # noqa: PLR0913 -- the command's options
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    stages: Annotated[
        str | None,
        typer.Option(help="Some of fingerprint,index,route; default: all.", show_default=False),
    ] = None,
    instance: Annotated[
        str | None,
        typer.Option(
            help="The worker's stable name; default: kept in the state directory.",
            show_default=False,
        ),
    ] = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(help="Where the index lives; each worker its own.", show_default=False),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Where metrics and health are served.", show_default=False
        ),
    ] = None,
    no_http: Annotated[bool, typer.Option("--no-http", help="Serve nothing over HTTP.")] = False,
    log_level: Annotated[
        str | None,
        typer.Option(
            metavar="debug|info|warning|error", help="How much is logged.", show_default=False
        ),
    ] = None,
    log_format: Annotated[
        str | None,
        typer.Option(metavar="text|json", help="How it is logged.", show_default=False),
    ] = None,
) -> None:
    """Run a worker: all stages, or some; start more workers to scale out."""
    host, port = _address(http)
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
    from worker.cli.run import run as body  # noqa: PLC0415 -- keeps --help fast

    body(settings)


def _address(given: str | None) -> tuple[str | None, str | None]:
    """Split ``host:port``, ``[v6]:port``, ``:port`` or ``port``."""
    if given is None:
        return None, None
    host, _, port = given.rpartition(":")
    return host.strip("[]") or None, port


def topics_create(  # noqa: PLR0913 -- the command's options
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    partitions: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Of the documents, and of all that follows them. Can't be changed later. "
            "Default: 4, or what the documents topic has.",
            show_default=False,
        ),
    ] = None,
    replication: Annotated[
        int | None,
        typer.Option(
            min=1, help="Default: 3, or as many as there are brokers.", show_default=False
        ),
    ] = None,
    start: Start = "earliest",
    documents_max_bytes: Annotated[
        int,
        typer.Option(min=16_384, help="The largest record batch that the documents topic takes."),
    ] = 1_048_588,
    force: Force = False,
) -> None:
    """Create the topics that don't exist, verify the others, and set where the groups begin.

    May be run again at any time: it changes no topic that exists and no offset that is set.
    """
    from worker.cli.topics import create  # noqa: PLC0415 -- keeps --help fast

    create(
        _settings(config, bootstrap, app),
        partitions=partitions,
        replication=replication,
        start=start,
        documents_max_bytes=documents_max_bytes,
        force=force,
    )


def topics_verify(bootstrap: Bootstrap = None, config: Config = None, app: App = None) -> None:
    """Check topics, their settings, and the groups' offsets; exit 2 if a worker can't run."""
    from worker.cli.topics import show  # noqa: PLC0415 -- keeps --help fast

    show(_settings(config, bootstrap, app))


def init(  # noqa: PLR0913 -- the command's options
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
            help="Have all workers use these settings of documents, limits and topics from now on.",
        ),
    ] = False,
) -> None:
    """Set where the groups begin and what workers agree on, for topics made by other means.

    Leaves offsets alone that are set already.
    """
    from worker.cli.topics import begin  # noqa: PLC0415 -- keeps --help fast

    begin(_settings(config, bootstrap, app), start=start, force=force, accept=accept)


def config_show(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of TOML.")] = False,
) -> None:
    """Print all settings as they apply, secrets as ***."""
    from worker.cli.config import show  # noqa: PLC0415 -- keeps --help fast

    show(_settings(config, bootstrap, app), as_json=as_json)


def config_check(bootstrap: Bootstrap = None, config: Config = None, app: App = None) -> None:
    """Say ok, or what is wrong with the settings (exit 2)."""
    _settings(config, bootstrap, app)
    typer.echo("ok")


def feed(  # noqa: PLR0913 -- the command's options
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="JSON Lines, plain, .gz or .zst; - is standard input.",
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
            help="The field whose value is the record's key; default: documents.id_field.",
            show_default=False,
        ),
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="Default: the documents topic.", show_default=False)
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(min=0.001, help="At most so many documents per second.", show_default=False),
    ] = None,
) -> None:
    """Publish the lines of files as documents, each as it is."""
    from worker.cli.feed import feed as body  # noqa: PLC0415 -- keeps --help fast

    body(_settings(config, bootstrap, app), files, key_field=key_field, topic=topic, rate=rate)


def watch(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
) -> None:
    """Watch rates, verdicts, lag and the latest duplicates live; q quits."""
    from worker.cli.watch import watch as body  # noqa: PLC0415 -- keeps --help fast

    body(_settings(config, bootstrap, app))


def redrive(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    reason: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODE",
            help="Only those rejected for this reason, such as no-text; may be repeated.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most so many.", show_default=False)
    ] = None,
) -> None:
    """Send rejected documents through again, exactly once each."""
    from worker.cli.redrive import redrive as body  # noqa: PLC0415 -- keeps --help fast

    body(_settings(config, bootstrap, app), reasons=tuple(reason or ()), limit=limit)
