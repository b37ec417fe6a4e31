"""Looks from time to time at the topics' settings, on which what a worker promises depends."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from time import monotonic

from worker.admin.problem import Problem
from worker.bus import BusError
from worker.settings.errors import ConfigurationError

_log = logging.getLogger(__name__)

AGAIN_SECONDS = 30.0
"""After so long the second look comes, once the first has found an error."""


class SettingsWatch:
    """Has the worker end if a setting stays as no worker would start with.

    `look` never blocks: each check runs in a thread of its own, which ends with it. The first
    check is due after one interval, since every worker has just made it at its start.

    Attributes:
        errors: how many errors the last check has found.
    """

    def __init__(
        self,
        check: Callable[[], Sequence[Problem]],
        every_seconds: float,
        fail: Callable[[ConfigurationError], None],
        *,
        again_seconds: float = AGAIN_SECONDS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take the check, and what is told of an error that two checks have found."""
        self._check = check
        self._every = every_seconds
        self._again = min(again_seconds, every_seconds)
        self._fail = fail
        self._clock = clock
        self._due = clock() + every_seconds
        self._thread: threading.Thread | None = None
        self._found: set[Problem] | None = None
        self.errors = 0

    def look(self) -> None:
        """Start a check if one is due."""
        if self._clock() < self._due or (self._thread is not None and self._thread.is_alive()):
            return
        self._due = self._clock() + self._every
        self._thread = threading.Thread(target=self.check, name="settings", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Check once, and log what has not been found before."""
        try:
            found = set(self._check())
        except (BusError, ConfigurationError) as error:
            _log.warning("the topics' settings can't be checked: %s; trying again", error)
            return
        errors = {problem for problem in found if problem.severity == "error"}
        # The worker has started without errors, and has logged the warnings that there were then.
        known = found - errors if self._found is None else self._found
        for problem in sorted(found - known, key=str):
            level = logging.ERROR if problem in errors else logging.WARNING
            _log.log(level, "changed while the worker runs: %s", problem)
        lasting = sorted(map(str, errors & known))
        self._found = found
        self.errors = len(errors)
        if lasting:
            self._fail(ConfigurationError(f"{lasting[0]}; see `neardup topics verify`"))
        elif errors:
            self._due = min(self._due, self._clock() + self._again)
