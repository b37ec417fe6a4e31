"""A deadline for librdkafka calls whose own timeout does not always hold."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from worker.bus import OutcomeUnknown

T = TypeVar("T")

_GRACE_SECONDS = 2.0


def within(call: Callable[[], T], seconds: float, doing: str) -> T:
    """Call in a separate thread, and stop waiting 2 s after ``seconds``.

    Seen with librdkafka 2.16: when the only broker crashed and came back,
    send_offsets_to_transaction with a timeout of 10 s did not return in 300 s. The call is
    left behind, with the client in which it hangs.

    Raises:
        OutcomeUnknown: the call has not returned in time.
    """
    done: Future[T] = Future()
    threading.Thread(target=_run, args=(call, done), name=doing, daemon=True).start()
    try:
        return done.result(seconds + _GRACE_SECONDS)
    except TimeoutError:
        raise OutcomeUnknown(f"{doing}: no answer within {seconds:.0f} s") from None
    finally:
        # The future holds the raised exception, whose traceback holds this frame: a cycle. It
        # would keep the called client and its threads alive until the garbage collector runs.
        del done


def _run(call: Callable[[], T], done: Future[T]) -> None:
    try:
        done.set_result(call())
    except BaseException as error:  # noqa: BLE001 -- passed on to the caller, where it is raised
        done.set_exception(error)
    finally:
        del done  # as above
