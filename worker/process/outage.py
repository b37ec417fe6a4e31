"""Waiting for Kafka: an outage is no reason to end, and a crash loop would delay the recovery."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import monotonic
from typing import TypeVar

from worker.bus import Unanswered

_log = logging.getLogger(__name__)

T = TypeVar("T")

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 15.0
_LOOK_SECONDS = 0.1


def until_answered(attempt: Callable[[], T | None], stopping: threading.Event) -> T | None:
    """Return what an attempt returns, or None once ``stopping`` is set.

    An attempt that gets no answer is repeated, after a pause that grows to 15 s. One line of the
    log says what it waits for, and one that it is there. Any other error is passed on: waiting
    would not mend it.
    """
    pause = _FIRST_PAUSE_SECONDS
    began: float | None = None
    while not stopping.is_set():
        try:
            found = attempt()
        except Unanswered as error:
            if began is None:
                began = monotonic()
                _log.warning("waiting for Kafka: %s", error)
            stopping.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        else:
            if began is not None and found is not None:
                _log.info("Kafka answers again, after %.0f s", monotonic() - began)
            return found
    return None


def aside(call: Callable[[], T], stopping: threading.Event) -> T | None:
    """Return what a call returns that runs in a thread of its own; None once ``stopping`` is set.

    librdkafka's calls can't be interrupted: a signal would be heard only after their timeouts. The
    thread is left behind then.
    """
    done: Future[T] = Future()
    threading.Thread(target=_run, args=(call, done), name="start", daemon=True).start()
    while not stopping.is_set():
        try:
            return done.result(_LOOK_SECONDS)
        except TimeoutError:
            if done.done():  # Just now; or the call itself has raised a TimeoutError.
                return done.result()
    return None


def _run(call: Callable[[], T], done: Future[T]) -> None:
    try:
        done.set_result(call())
    except BaseException as error:  # noqa: BLE001 -- passed on to the caller, where it is raised
        done.set_exception(error)
