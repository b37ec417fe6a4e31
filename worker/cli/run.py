"""``neardup run``: a worker on Kafka."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from time import time
from typing import Annotated

import typer

from worker.admin.checks import topic_problems
from worker.admin.cluster import Cluster
from worker.admin.reindex.in_use import in_use
from worker.bus import BusError
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.clients import check_clients
from worker.bus.kafka.queues import Queues
from worker.cli.errors import ending_at_once, last_line
from worker.cli.options import (
    App,
    Bootstrap,
    Config,
    Http,
    LogFormat,
    LogLevel,
    StateDir,
    address,
    settings_of,
)
from worker.cli.starting import STOPPED, checked_partitions, leave
from worker.generations.log import FollowedPlan
from worker.generations.plan import Plan
from worker.loop.tracing import Tracing
from worker.metrics.metrics import Metrics
from worker.probes.probes import Pages
from worker.probes.server import serving, url
from worker.process.heap import limit, relax
from worker.process.logs import LogFields, set_up
from worker.process.service import Service, starting
from worker.process.signals import stopping_on_signals
from worker.process.state_directory import instance_name, locked
from worker.settings.loading import advice
from worker.settings.model import Settings
from worker.visible import counted

_log = logging.getLogger(__name__)


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
    run_worker(settings)


def run_worker(settings: Settings) -> None:
    """Run a worker until SIGTERM or SIGINT. It waits for Kafka if that is away.

    Raises:
        ConfigurationError: a setting, a topic or a group is wrong.
    """
    limit()
    worker = settings.worker
    fields = set_up(worker.log_level, worker.log_format)
    fields.app = settings.app
    with ending_at_once() as begin, last_line(worker.log_format, begun=True):
        _run(settings, fields, begin)


def _run(settings: Settings, fields: LogFields, begin: Callable[[], None]) -> None:
    worker = settings.worker
    options = settings.kafka_options()
    check_clients(options)
    for line in advice(settings):
        _log.warning("%s", line)
    state_dir = worker.state_dir
    with ExitStack() as stack:
        stack.enter_context(locked(state_dir))
        instance = fields.instance = instance_name(settings, state_dir)
        tracing = Tracing(settings.app, instance) if worker.tracing else None
        if tracing is not None:
            stack.enter_context(tracing)
        bus = KafkaBus(options, Queues())
        stopping = threading.Event()
        metrics = Metrics(settings.app, time, threading.Lock())
        stack.enter_context(stopping_on_signals(stopping.set))
        service: Service | None = None
        if worker.http:
            pages = Pages(
                metrics,
                lambda: starting(settings) if service is None else service.health(),
            )
            port = stack.enter_context(serving(worker.http_host, worker.http_port, pages.answer))
            _log.info("metrics and health on %s", url(worker.http_host, port))
        followed = FollowedPlan(bus, settings.topology(1).layout_log)
        end_ghost = partial(_end_ghost, settings, bus, instance)
        partitions = checked_partitions(settings, stopping, end_ghost, followed.look)
        if partitions is None:
            leave()
        plan = followed.plan or Plan.of(settings)
        base = plan.base_topology(settings, partitions)
        service = Service(
            settings,
            base,
            bus,
            state_dir,
            instance,
            followed=followed,
            metrics=metrics,
            stopping=stopping,
            check=lambda: topic_problems(Cluster(options), settings),
            trace=tracing.burst if tracing is not None else None,
        )
        topology = plan.current.topology(base)
        relax()
        _log.info(
            "instance %s, application %s: %s, %s, %d bands of %d rows; stages %s",
            instance,
            settings.app,
            counted(partitions, "partition"),
            counted(topology.layout.shards, "shard"),
            topology.layout.parameters.bands,
            topology.layout.parameters.rows,
            ", ".join(worker.stages),
        )
        begin()
        service.run()
        _log.info(STOPPED)


def _end_ghost(settings: Settings, bus: KafkaBus, instance: str) -> None:
    """End transactions that this worker left open when it was killed; they block the offsets."""
    plan = in_use(Cluster(settings.kafka_options()), settings)
    base = plan.base_topology(settings, 1)
    seats = {
        topology.group(stage): next(iter(topology.inputs(stage)))
        for topology in (generation.topology(base) for generation in plan.generations())
        for stage in settings.worker.stages
    }
    if plan.following is not None and plan.rewriting and "fingerprint" in settings.worker.stages:
        source, target = plan.current.topology(base), plan.following.topology(base)
        seats[target.group("refingerprint")] = source.fingerprints
    try:
        bus.end_transactions(seats, instance)
    except BusError as error:
        _log.warning("%s; waiting until the brokers end the transaction", error)
