"""How many clients librdkafka has in this process."""

import gc
from contextlib import suppress
from pathlib import Path
from typing import Final

from localkafka.broker import wait_until

__all__ = ["COUNTABLE", "await_clients", "clients", "clients_in_use"]

SECONDS: Final = 10.0

_TASKS: Final = Path("/proc/self/task")
COUNTABLE: Final = _TASKS.exists()


def clients() -> int:
    """Count them, by their main threads."""
    names = []
    for path in _TASKS.glob("*/comm"):
        with suppress(FileNotFoundError, ProcessLookupError):  # It has just ended.
            names.append(path.read_text().strip())
    return names.count("rdk:main")


def clients_in_use() -> int:
    """Count them, without those that earlier tests have left to the garbage collection."""
    gc.collect()
    return clients()


def await_clients(count: int) -> None:
    """Wait until there are so many: a thread that was joined is still listed for a moment."""
    wait_until(lambda: clients() == count, SECONDS, f"{count} clients of librdkafka")
