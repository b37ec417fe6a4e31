"""``neardup serve``: answers what a document would match; writes only corrections to Kafka."""

from __future__ import annotations

import logging
import threading
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from worker.admin.cluster import Cluster
from worker.admin.reindex.in_use import planned
from worker.app import Application, Environment
from worker.cli.options import (
    SERVE_PORT,
    App,
    Bootstrap,
    Config,
    serve_extra,
)
from worker.cli.starting import (
    LogFormat,
    LogLevel,
    address,
    last_line,
    process,
    process_settings,
)
from worker.generations.plan import Plan
from worker.index.leftovers import Leftovers, keep_looking, look_through
from worker.observe.presence import owners
from worker.probes.server import url
from worker.process.heap import collect_until, relax
from worker.process.outage import until_answered
from worker.serve.service import QueryService
from worker.settings.model import Settings
from worker.visible import counted

_log = logging.getLogger(__name__)

_DIRECTORY = Path("neardup-serve")
_PROBES_PORT = 9466
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
            f" {_DIRECTORY}.",
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
            help=f"Address for metrics and health. Default: 127.0.0.1:{_PROBES_PORT}.",
        ),
    ] = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
) -> None:
    r"""Answer over HTTP what a document would match. Writes nothing to Kafka but corrections.

    Run as many as you like, each with a directory of its own. Needs the extra `neardup\[serve]`.
    """
    host, port = address(listen)
    settings = process_settings(
        config,
        bootstrap,
        app,
        {"worker.state_dir": _DIRECTORY, "worker.http_port": _PROBES_PORT},
        http=http,
        log_level=log_level,
        log_format=log_format,
        worker__state_dir=state_dir,
        serve__host=host,
        serve__port=port,
    )
    run_server(settings)


def run_server(settings: Settings) -> None:
    """Answer queries until SIGTERM or SIGINT. It waits for Kafka if that is away.

    Raises:
        ConfigurationError: a setting or a topic is wrong, or the settings aren't the workers'.
    """
    with last_line(settings.worker.log_format, begun=False), serve_extra():
        from worker.serve.server import answering  # noqa: PLC0415 -- --help needs no extra
    with process(settings) as started:
        bus, stopping, metrics = started.bus, started.stopping, started.metrics
        options, worker = settings.kafka_options(), settings.worker
        service = started.stack.enter_context(QueryService(settings, metrics, stopping))
        started.show(service.health)
        at = settings.serve
        answers = answering(
            at,
            service.query,
            service.most_bytes,
            app=settings.app,
            groups=service.groups,
            desk=service.desk,
        )
        asked = started.stack.enter_context(answers)
        scheme = "http" if at.tls_cert_file is None else "https"
        _log.info("queries on %s", url(at.host, asked, scheme))
        _log.info("the page is on %s/", url(at.host, asked, scheme))
        plan = Plan.of(settings)

        def look() -> None:
            nonlocal plan
            plan = planned(Cluster(options), settings) or plan

        partitions = started.partitions(then=look)
        generation, base = plan.latest, plan.base_topology(settings, partitions)
        topology, state_dir = generation.topology(base), generation.directory(worker.state_dir)
        application = until_answered(
            lambda: Application(
                generation.settings(settings),
                topology,
                bus,
                state_dir,
                environment=Environment(metrics, background=True, groups=settings.serve.groups),
            ),
            stopping,
        )
        if application is None:
            started.leave()
        started.begin()
        service.begin(application)
        group, cluster = topology.group("index"), Cluster(options)
        service.show(bus, lambda: owners(cluster.members([group])[group], topology.seats))
        relax()
        threading.Thread(
            target=collect_until, args=(stopping,), name="collector", daemon=True
        ).start()
        tidying = partial(
            look_through,
            worker.state_dir,
            Leftovers(),
            settings.index.erasure_seconds,
            {
                state_dir: application.directories.paths(
                    topology.layout.shards, groups=settings.serve.groups
                )
            },
        )
        threading.Thread(
            target=keep_looking,
            args=(tidying, settings.index.erasure_seconds, stopping),
            name="tidy",
            daemon=True,
        ).start()
        _log.info(
            "application %s: %s, kept warm in %s",
            settings.app,
            counted(topology.layout.shards, "shard"),
            state_dir,
        )
        service.run(bus)
