"""``neardup run``: a worker on Kafka."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from functools import partial

from worker.admin import verify
from worker.bus import BusError
from worker.bus.kafka import KafkaBus
from worker.collector import relax
from worker.health import serving
from worker.heap import limit
from worker.logs import set_up
from worker.service import Service, instance_name, locked, stopping_on_signals
from worker.settings import ConfigurationError, Settings
from worker.topology import Topology

__all__ = ["run"]

_log = logging.getLogger(__name__)


def run(settings: Settings) -> None:
    """Run until told to stop.

    Raises:
        ConfigurationError: topics or groups aren't as they must be.
    """
    limit()
    worker = settings.worker
    set_up(worker.log_level, worker.log_format)
    state_dir = worker.state_dir
    with ExitStack() as stack:
        stack.enter_context(locked(state_dir))
        instance = instance_name(settings, state_dir)
        bus = KafkaBus(settings.kafka_options())
        partitions, problems = verify(settings, partial(_end_ghost, settings, bus, instance))
        errors = [problem for problem in problems if problem.severity == "error"]
        for problem in problems:
            _log.log(logging.ERROR if problem in errors else logging.WARNING, "%s", problem)
        if errors:
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            raise ConfigurationError(f"{errors[0]}{more}; see `neardup topics verify`")
        topology = Topology.of(settings, partitions)
        service = Service(settings, topology, bus, state_dir, instance)
        relax()
        stack.enter_context(stopping_on_signals(service.stop))
        if worker.http:
            port = stack.enter_context(
                serving(
                    worker.http_host, worker.http_port, service.metrics.registry, service.health
                )
            )
            _log.info("metrics and health on http://%s:%d", worker.http_host, port)
        _log.info(
            "instance %s, application %s: %d partitions, %d shards, %d bands of %d rows; stages %s",
            instance,
            settings.app,
            partitions,
            topology.shards,
            topology.parameters.bands,
            topology.parameters.rows,
            ", ".join(worker.stages),
        )
        service.run()
        _log.info("left cleanly")


def _end_ghost(settings: Settings, bus: KafkaBus, instance: str) -> None:
    """End what this worker has left open when it was killed, for which the groups' offsets wait."""
    topology = Topology.of(settings, 1)
    seats = {
        topology.group(stage): next(iter(topology.inputs(stage)))
        for stage in settings.worker.stages
    }
    try:
        bus.end_transactions(seats, instance)
    except BusError as error:
        _log.warning("%s; waiting for the brokers to end it", error)
