"""A deadline around calls of librdkafka whose own one does not always hold."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from worker.bus.port import OutcomeUnknown

__all__ = ["within"]

T = TypeVar("T")

_GRACE_SECONDS = 2.0


def within(call: Callable[[], T], seconds: float, doing: str) -> T:
    """Call in a thread of its own, and stop waiting a little after ``seconds``.

    Seen with librdkafka 2.16: when the only broker crashed and came back,
    send_offsets_to_transaction with a timeout of 10 s did not return in 300 s. The call is
    left behind, with the client that it hangs in.

    Raises:
        OutcomeUnknown: it has not returned in time.
    """
    done: Future[T] = Future()
    threading.Thread(target=_run, args=(call, done), name=doing, daemon=True).start()
    try:
        return done.result(seconds + _GRACE_SECONDS)
    except TimeoutError:
        raise OutcomeUnknown(f"{doing}: no answer within {seconds:.0f} s, nor after it") from None
    finally:
        # It holds the exception that is raised, whose traceback holds this frame: a cycle, which
        # would keep the client that was called, with its threads, until the collector comes by.
        del done


def _run(call: Callable[[], T], done: Future[T]) -> None:
    try:
        done.set_result(call())
    except BaseException as error:  # noqa: BLE001 -- carried to the caller, who gets it raised
        done.set_exception(error)
    finally:
        del done  # as above
