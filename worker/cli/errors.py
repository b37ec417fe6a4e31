"""The end of a command: an expected error is one line on standard error and an exit status."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn

from worker.files.errors import FULL_DISK, FileError, of_file
from worker.visible import visible

_log = logging.getLogger(__name__)

EXIT_FAILED = 1
EXIT_USAGE = 2


class CommandError(Exception):
    """Ends a command with one line and a status."""

    def __init__(self, message: str, status: int = EXIT_USAGE, details: Sequence[str] = ()) -> None:
        """Keep the line, the exit status, and lines to print below."""
        self.status = status
        self.details = details
        super().__init__(message)


@contextmanager
def reported() -> Iterator[None]:
    """Turn expected errors into one line and an exit status."""
    try:
        yield
    except CommandError as error:
        _fail(str(error), error.status, error.details)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except BrokenPipeError:
        # The reader closed the pipe, like `| head`. Python must not print an error about it either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    except Exception as error:
        status = status_of(error)
        if status is None:
            raise
        if isinstance(error, OSError) and error.errno in FULL_DISK:
            error = of_file(error)
        _fail(str(error), status)


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


def status_of(error: BaseException) -> int | None:
    """Return the exit status of an expected error; None for any other."""
    if isinstance(error, CommandError):
        return error.status
    if isinstance(error, FileError):  # A wrong name is the caller's to correct.
        return EXIT_FAILED if error.full_disk else EXIT_USAGE
    if _is_of_the_sent(error):
        cause = error.__cause__
        interrupted = isinstance(cause, KeyboardInterrupt)
        return 130 if interrupted else (cause and status_of(cause)) or EXIT_FAILED
    if not _is_expected(error):
        return None
    return EXIT_USAGE if _is_configuration(error) else EXIT_FAILED


def _is_of_the_sent(error: BaseException) -> bool:
    from worker.corrections.service import NotJudged  # noqa: PLC0415 -- only after an error

    return isinstance(error, NotJudged)


def _is_configuration(error: BaseException) -> bool:
    from worker.bus import Denied  # noqa: PLC0415 -- only after an error
    from worker.bus.kafka.config import OptionError  # noqa: PLC0415 -- only after an error
    from worker.index.errors import HeaderMismatch  # noqa: PLC0415 -- only after an error
    from worker.settings.errors import ConfigurationError  # noqa: PLC0415 -- only after an error

    return isinstance(error, ConfigurationError | Denied | HeaderMismatch | OptionError)


def _is_expected(error: BaseException) -> bool:
    from worker.bus import BusError  # noqa: PLC0415 -- only after an error
    from worker.index.errors import StoreDamaged  # noqa: PLC0415 -- only after an error
    from worker.stages.base import StageError  # noqa: PLC0415 -- only after an error
    from worker.wire.codec import FrameError  # noqa: PLC0415 -- only after an error

    return _is_configuration(error) or isinstance(
        error, BusError | FrameError | StageError | StoreDamaged | OSError
    )


def _fail(message: str, status: int, details: Sequence[str] = ()) -> None:
    for line in (f"neardup: {message}", *details):
        print(visible(line), file=sys.stderr)  # noqa: T201 -- the one line
    sys.exit(status)
