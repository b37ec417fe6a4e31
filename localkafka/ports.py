"""Ports for nodes: free, and taken by nobody else while a node is down."""

import contextlib
import os
import random
import socket
from collections.abc import Iterator
from typing import Final

# Below the range from which Linux takes ports for outgoing connections (32768 and up):
# a node that is down keeps its port free until it starts again.
PORTS: Final = range(20_000, 32_000)
PROCESSES: Final = 8
"""Of a run that is spread over processes, so many have ports of their own."""


def free_ports(count: int) -> Iterator[int]:
    """Return so many ports of this process that nobody listens on."""
    ports = own_ports()
    with contextlib.ExitStack() as held:
        free: list[int] = []
        for port in random.SystemRandom().sample(ports, k=len(ports)):
            probe = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                free.append(port)
            if len(free) == count:
                return iter(free)
    raise OSError(f"no {count} free ports from {PORTS.start} to {PORTS.stop - 1}")


def own_ports() -> range:
    """Return the ports that no other process of this run takes, also while a node is down."""
    number = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    return PORTS[int(number) % PROCESSES :: PROCESSES]
