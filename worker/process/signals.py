"""Handlers of SIGTERM and SIGINT, which stop a worker."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType

_log = logging.getLogger(__name__)


@contextmanager
def stopping_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` on SIGTERM and SIGINT; a second signal ends the process at once.

    ``stop`` is called in a thread of its own. A signal handler runs in the main thread between
    any two of its instructions, so what it calls may wait for a lock that the main thread holds,
    for ever: `threading.Event.set` while the main thread is in `threading.Event.wait`, for
    example. `SimpleQueue.put` can be called there at any time.
    """
    signals: SimpleQueue[int | None] = SimpleQueue()
    received = 0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal received
        del frame
        received += 1
        if received > 1:
            os._exit(128 + number)
        signals.put(number)

    def carry_out() -> None:
        number = signals.get()
        if number is not None:
            _log.info("%s: stopping", signal.Signals(number).name)
            stop()

    thread = threading.Thread(target=carry_out, name="signals", daemon=True)
    thread.start()
    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signals.put(None)
        thread.join()
