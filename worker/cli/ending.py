"""How a process ends that has threads in libraries written in C."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from worker.cli.errors import EXIT_FAILED, reported

__all__ = ["end", "ending_at_once"]


@contextmanager
def ending_at_once() -> Iterator[Callable[[], None]]:
    """End the process when what is done within is over, if what this yields was called.

    Call it when threads begin that may still be in RocksDB or librdkafka at the end. Python's own
    end would take them out of their calls, which can kill the process, and RocksDB would wait for
    its own threads, however long the disk takes. If it wasn't called, this is `reported`.
    """
    begun = False

    def begin() -> None:
        nonlocal begun
        begun = True

    status = 0
    try:
        with reported():
            yield begin
    except BaseException as error:
        if not begun:
            raise
        status = EXIT_FAILED
        if not isinstance(error, SystemExit):
            traceback.print_exc()
        elif isinstance(error.code, int):
            status = error.code
    if begun:
        end(status)


def end(status: int) -> NoReturn:
    """End the process at once with all that was logged and written."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # Nobody reads it any more.
            stream.flush()
    os._exit(status)
