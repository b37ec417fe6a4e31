"""The line of the error that ends a worker whose log is JSON: it is JSON, too."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from worker.cli.errors import EXIT_FAILED, status_of

__all__ = ["last_line"]

_log = logging.getLogger(__name__)


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
            from worker.process.logs import set_up  # noqa: PLC0415 -- only after an error

            set_up("info", "json")
        status = status_of(error)
        _log.critical("%s", error, exc_info=error if status is None else None)
        sys.exit(EXIT_FAILED if status is None else status)
