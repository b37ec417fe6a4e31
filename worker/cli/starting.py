"""The check that every process makes before it works, and its end if stopped meanwhile."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from worker.admin.checks import verify
from worker.admin.problem import Problem
from worker.cli.errors import end
from worker.process.outage import aside, until_answered
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings

_log = logging.getLogger(__name__)

STOPPED = "stopped cleanly"


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


def leave() -> NoReturn:
    """End the process at once: a thread that is left in a request would keep it until an answer."""
    _log.info(STOPPED)
    end(0)
