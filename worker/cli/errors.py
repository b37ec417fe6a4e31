"""How a command ends: foreseen errors are one line on standard error, and a status."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["EXIT_FAILED", "EXIT_USAGE", "CommandError", "reported"]

EXIT_FAILED = 1
EXIT_USAGE = 2


class CommandError(Exception):
    """Ends a command with one line and a status."""

    def __init__(self, message: str, status: int = EXIT_USAGE) -> None:
        """Take the line, and the exit status."""
        self.status = status
        super().__init__(message)


@contextmanager
def reported() -> Iterator[None]:
    """Turn foreseen errors into one line and an exit status."""
    try:
        yield
    except CommandError as error:
        _fail(str(error), error.status)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except BrokenPipeError:
        # The reader has gone, as `| head` does; nothing is left to be said, not even by Python.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    except Exception as error:
        if not _is_foreseen(error):
            raise
        _fail(str(error), EXIT_USAGE if _is_configuration(error) else EXIT_FAILED)


def _is_configuration(error: Exception) -> bool:
    from worker.settings import ConfigurationError  # noqa: PLC0415 -- only when something failed
    from worker.store import HeaderMismatch  # noqa: PLC0415

    return isinstance(error, ConfigurationError | HeaderMismatch)


def _is_foreseen(error: Exception) -> bool:
    from worker.bus import BusError  # noqa: PLC0415 -- only when something failed
    from worker.frames import FrameError  # noqa: PLC0415
    from worker.stages import StageError  # noqa: PLC0415

    return _is_configuration(error) or isinstance(
        error, BusError | FrameError | StageError | OSError
    )


def _fail(message: str, status: int) -> None:
    print(f"neardup: {message}", file=sys.stderr)  # noqa: T201 -- the one line
    sys.exit(status)
