"""``neardup serve``: answers what a document would match; writes only corrections to Kafka."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from time import time
from typing import Annotated

import typer

from worker.admin.cluster import Cluster
from worker.admin.reindex.in_use import planned
from worker.app import Application, Environment
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.clients import check_clients
from worker.bus.kafka.queues import Queues
from worker.cli.errors import ending_at_once, last_line
from worker.cli.options import (
    SERVE_PORT,
    App,
    Bootstrap,
    Config,
    LogFormat,
    LogLevel,
    address,
    serve_extra,
    settings_of,
)
from worker.cli.starting import STOPPED, checked_partitions, leave
from worker.generations.plan import Plan
from worker.index.leftovers import Leftovers, keep_looking, look_through
from worker.metrics.metrics import Metrics
from worker.observe.presence import owners
from worker.probes.probes import Pages
from worker.probes.server import serving, url
from worker.process.heap import collect_until, limit, relax
from worker.process.logs import set_up
from worker.process.outage import until_answered
from worker.process.signals import stopping_on_signals
from worker.process.state_directory import locked
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
    probes_host, probes_port = address(http)
    kind = log_format or os.environ.get("NEARDUP_WORKER__LOG_FORMAT")
    with last_line(kind, begun=False):
        settings = settings_of(
            config,
            bootstrap,
            app,
            {"worker.state_dir": _DIRECTORY, "worker.http_port": _PROBES_PORT},
            worker__state_dir=state_dir,
            serve__host=host,
            serve__port=port,
            worker__http_host=probes_host,
            worker__http_port=probes_port,
            worker__log_level=log_level,
            worker__log_format=log_format,
        )
        with serve_extra():
            import worker.serve.server  # noqa: F401, PLC0415 -- --help needs no extra
    run_server(settings)


def run_server(settings: Settings) -> None:
    """Answer queries until SIGTERM or SIGINT. It waits for Kafka if that is away.

    Raises:
        ConfigurationError: a setting or a topic is wrong, or the settings aren't the workers'.
    """
    limit()
    worker = settings.worker
    set_up(worker.log_level, worker.log_format).app = settings.app
    with ending_at_once() as begin, last_line(worker.log_format, begun=True):
        _serve(settings, begin)


def _serve(settings: Settings, begin: Callable[[], None]) -> None:
    from worker.serve.server import answering  # noqa: PLC0415 -- as above

    worker = settings.worker
    options = settings.kafka_options()
    check_clients(options)
    with ExitStack() as stack:
        stack.enter_context(locked(worker.state_dir))
        bus = KafkaBus(options, Queues())
        stopping = threading.Event()
        metrics = Metrics(settings.app, time, threading.Lock())
        stack.enter_context(stopping_on_signals(stopping.set))
        service = stack.enter_context(QueryService(settings, metrics, stopping))
        if worker.http:
            pages = Pages(metrics, service.health)
            port = stack.enter_context(serving(worker.http_host, worker.http_port, pages.answer))
            _log.info("metrics and health on %s", url(worker.http_host, port))
        at = settings.serve
        answers = answering(
            at,
            service.query,
            service.most_bytes,
            app=settings.app,
            groups=service.groups,
            desk=service.desk,
        )
        asked = stack.enter_context(answers)
        scheme = "http" if at.tls_cert_file is None else "https"
        _log.info("queries on %s", url(at.host, asked, scheme))
        _log.info("the page is on %s/", url(at.host, asked, scheme))
        plan = Plan.of(settings)

        def look() -> None:
            nonlocal plan
            plan = planned(Cluster(options), settings) or plan

        partitions = checked_partitions(settings, stopping, then=look)
        if partitions is None:
            leave()
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
            leave()
        begin()
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
    _log.info(STOPPED)
