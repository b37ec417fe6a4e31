"""The options, start and end of ``run`` and ``serve``, which work until they are stopped."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import time
from typing import Annotated, Any, NoReturn

import typer

from worker.admin.checks import verify
from worker.admin.problem import Problem
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.client_reports import Queues
from worker.bus.kafka.clients import check_clients
from worker.cli.errors import EXIT_FAILED, end, ending_at_once, status_of
from worker.cli.options import settings_of
from worker.metrics.metrics import Metrics
from worker.probes.probes import Health, Pages
from worker.probes.server import serving, url
from worker.process.heap import limit
from worker.process.logs import LogFields, set_up
from worker.process.outage import aside, until_answered
from worker.process.signals import stopping_on_signals
from worker.process.state_directory import locked
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings

_log = logging.getLogger(__name__)

_STOPPED = "stopped cleanly"
LogLevel = Annotated[
    str | None,
    typer.Option(metavar="LEVEL", help="Lowest level to log: debug, info, warning or error."),
]
LogFormat = Annotated[
    str | None,
    typer.Option(metavar="FORMAT", help="Format of log lines: text or json."),
]
Http = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Address for metrics and health."),
]


def process_settings(
    config: list[Path] | None,
    bootstrap: str | None,
    app: str | None,
    defaults: Mapping[str, Any] | None = None,
    *,
    http: str | None,
    log_level: str | None,
    log_format: str | None,
    **more: object,
) -> Settings:
    """Return the settings; with a log in JSON, a wrong setting is one of its lines."""
    host, port = address(http)
    with last_line(log_format or os.environ.get("NEARDUP_WORKER__LOG_FORMAT"), begun=False):
        return settings_of(
            config,
            bootstrap,
            app,
            defaults,
            worker__http_host=host,
            worker__http_port=port,
            worker__log_level=log_level,
            worker__log_format=log_format,
            **more,
        )


def address(given: str | None) -> tuple[str | None, str | None]:
    """Split ``host:port``, ``[v6]:port``, ``:port`` or ``port``."""
    if given is None:
        return None, None
    host, _, port = given.rpartition(":")
    return host.strip("[]") or None, port


@dataclass(frozen=True, slots=True)
class Process:
    """A process on Kafka, whose state directory is locked.

    Attributes:
        stack: closes at the end of the process what is entered.
        stopping: set by SIGTERM and SIGINT.
        begin: must be called when threads begin; see `worker.cli.errors.ending_at_once`.
    """

    settings: Settings
    bus: KafkaBus
    metrics: Metrics
    log_fields: LogFields
    stack: ExitStack
    stopping: threading.Event
    begin: Callable[[], None]

    def show(self, health: Callable[[], Health]) -> None:
        """Answer for metrics and health over HTTP, unless the settings don't want that."""
        worker = self.settings.worker
        if worker.http:
            pages = Pages(self.metrics, health)
            server = serving(worker.http_host, worker.http_port, pages.answer)
            port = self.stack.enter_context(server)
            _log.info("metrics and health on %s", url(worker.http_host, port))

    def partitions(
        self,
        on_undecided: Callable[[], None] = lambda: None,
        then: Callable[[], object] = lambda: None,
    ) -> int:
        """Return the documents' partition count; ends the process if it is stopped meanwhile.

        See `checked_partitions`.
        """
        count = checked_partitions(self.settings, self.stopping, on_undecided, then)
        return self.leave() if count is None else count

    @staticmethod
    def leave() -> NoReturn:
        """End the process at once: a thread in a request would keep it until an answer."""
        _log.info(_STOPPED)
        end(0)


@contextmanager
def process(settings: Settings) -> Iterator[Process]:
    """Set the process up, and yield it; at the end, say that it was stopped."""
    limit()
    worker = settings.worker
    fields = set_up(worker.log_level, worker.log_format)
    fields.app = settings.app
    with ending_at_once() as begin, last_line(worker.log_format, begun=True):
        options = settings.kafka_options()
        check_clients(options)
        with ExitStack() as stack:
            stack.enter_context(locked(worker.state_dir))
            bus = KafkaBus(options, Queues())
            metrics = Metrics(settings.app, time, threading.Lock())
            stopping = threading.Event()
            stack.enter_context(stopping_on_signals(stopping.set))
            yield Process(settings, bus, metrics, fields, stack, stopping, begin)
        _log.info(_STOPPED)


@contextmanager
def last_line(kind: str | None, *, begun: bool) -> Iterator[None]:
    """If ``kind`` is json, log an error and exit with its status; else pass it on.

    ``begun``: whether the log is set up. It isn't while settings are read.
    """
    try:
        yield
    except Exception as error:
        if kind != "json":
            raise
        if not begun:
            set_up("info", "json")
        status = status_of(error)
        _log.critical("%s", error, exc_info=error if status is None else None)
        sys.exit(EXIT_FAILED if status is None else status)


def checked_partitions(
    settings: Settings,
    stopping: threading.Event,
    on_undecided: Callable[[], None] = lambda: None,
    then: Callable[[], object] = lambda: None,
) -> int | None:
    """Return the documents' partition count; None once ``stopping`` is set. Waits for Kafka.

    ``on_undecided``: see `worker.admin.Cluster`. ``then`` is called once nothing is wrong, and is
    repeated with the check until Kafka answers.

    Raises:
        ConfigurationError: a topic or a group is wrong, or the settings aren't those of the other
            workers; the message names the first difference.
    """

    def check() -> tuple[int, list[Problem]]:
        partitions, problems = verify(settings, on_undecided)
        if not any(problem.severity == "error" for problem in problems):
            then()
        return partitions, problems

    checked = until_answered(partial(aside, check, stopping), stopping)
    if checked is None:
        return None
    partitions, problems = checked
    errors = [problem for problem in problems if problem.severity == "error"]
    for problem in problems:
        _log.log(logging.ERROR if problem in errors else logging.WARNING, "%s", problem)
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        fix = f"; fix it: {errors[0].fix}" if errors[0].fix else ""
        raise ConfigurationError(f"{errors[0]}{more}{fix}; `neardup topics verify` shows all")
    return partitions
