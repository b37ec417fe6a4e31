"""``neardup run``: a worker on Kafka."""

from __future__ import annotations

import logging
from functools import partial
from typing import Annotated

import typer

from worker.admin.checks import topic_problems
from worker.admin.cluster import Cluster
from worker.admin.reindex.in_use import in_use
from worker.bus import BusError
from worker.bus.kafka.bus import KafkaBus
from worker.cli.options import App, Bootstrap, Config, StateDir
from worker.cli.starting import Http, LogFormat, LogLevel, process, process_settings
from worker.generations.log import FollowedPlan
from worker.generations.plan import Plan
from worker.loop.tracing import Tracing
from worker.process.heap import relax
from worker.process.service import Service, starting
from worker.process.state_directory import instance_name
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
    settings = process_settings(
        config,
        bootstrap,
        app,
        http=http,
        log_level=log_level,
        log_format=log_format,
        worker__stages=stages,
        worker__instance=instance,
        worker__state_dir=state_dir,
        worker__http=False if no_http else None,
    )
    run_worker(settings)


def run_worker(settings: Settings) -> None:
    """Run a worker until SIGTERM or SIGINT. It waits for Kafka if that is away.

    Raises:
        ConfigurationError: a setting, a topic or a group is wrong.
    """
    worker = settings.worker
    with process(settings) as started:
        for line in advice(settings):
            _log.warning("%s", line)
        instance = started.log_fields.instance = instance_name(settings, worker.state_dir)
        tracing = Tracing(settings.app, instance) if worker.tracing else None
        if tracing is not None:
            started.stack.enter_context(tracing)
        service: Service | None = None
        started.show(lambda: starting(settings) if service is None else service.health())
        bus = started.bus
        followed = FollowedPlan(bus, settings.topology(1).layout_log)
        partitions = started.partitions(partial(_end_ghost, settings, bus, instance), followed.look)
        plan = followed.plan or Plan.of(settings)
        base = plan.base_topology(settings, partitions)
        service = Service(
            settings,
            base,
            bus,
            worker.state_dir,
            instance,
            followed=followed,
            metrics=started.metrics,
            stopping=started.stopping,
            check=lambda: topic_problems(Cluster(settings.kafka_options()), settings),
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
        started.begin()
        service.run()


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
