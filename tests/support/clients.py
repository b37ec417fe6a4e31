"""Clients of librdkafka: how many this process has, and how one is closed."""

import gc
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Final, Protocol

from localkafka.broker import wait_until

SECONDS: Final = 10.0
CLOSE_SECONDS: Final = 10.0

_TASKS: Final = Path("/proc/self/task")
COUNTABLE: Final = _TASKS.exists()


class Closable(Protocol):
    """What has a `close`."""

    def close(self) -> None:
        """Let go."""


def close(client: Closable, seconds: float = CLOSE_SECONDS) -> None:
    """Close a consumer; if that takes longer, as it may if its brokers hang, leave it behind."""
    closing = Thread(target=client.close, daemon=True)
    closing.start()
    closing.join(seconds)


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
