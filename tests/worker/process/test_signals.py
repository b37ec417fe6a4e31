"""A signal stops a worker, whatever its main thread is doing."""

import os
import signal
import threading

from worker.process.signals import stopping_on_signals

SECONDS = 30.0


def test_a_signal_waits_for_no_lock_of_the_main_thread() -> None:
    lock, stopped = threading.Lock(), threading.Event()

    def stop() -> None:
        with lock:
            stopped.set()

    with stopping_on_signals(stop):
        with lock:  # As within an Event that the main thread is about to wait for.
            os.kill(os.getpid(), signal.SIGTERM)
            assert not stopped.is_set()
        assert stopped.wait(SECONDS)


def test_handlers_are_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with stopping_on_signals(lambda: None):
        assert signal.getsignal(signal.SIGTERM) is not before[0]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
