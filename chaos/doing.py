"""Threads of a run whose failure is the run's, and which never keep it from ending."""

from collections.abc import Callable
from threading import Thread
from time import monotonic
from typing import Final

from worker.closing import Closing

END_SECONDS: Final = 120.0
"""Longer than anything waits that a thread of a run may be in, once the run is over."""


class Doing(Closing):
    """Runs functions at the same time, each in a thread. Use as a context manager.

    A thread that doesn't end is left behind: the process ends without it.
    """

    def __init__(
        self,
        functions: dict[str, Callable[[], None]],
        over: Callable[[], None],
        end_seconds: float = END_SECONDS,
    ) -> None:
        """Begin.

        Args:
            functions: what is done, by name.
            over: tells all of them to end.
            end_seconds: how long they may take then.
        """
        self._over = over
        self._end_seconds = end_seconds
        self._failures: list[BaseException] = []
        self._threads = [
            Thread(target=self._run, args=(function,), name=name, daemon=True)
            for name, function in functions.items()
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 -- raised by whoever waits
            self._failures.append(error)

    def all_done(self) -> bool:
        """Tell whether all have ended.

        Raises:
            BaseException: one has failed, with this.
        """
        done = not any(thread.is_alive() for thread in self._threads)
        if self._failures:
            raise self._failures[0]
        return done

    def close(self) -> None:
        """Tell all to end, and wait for them.

        Raises:
            TimeoutError: some don't, and are left behind.
        """
        self._over()
        deadline = monotonic() + self._end_seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - monotonic()))
        left = [thread.name for thread in self._threads if thread.is_alive()]
        if left:
            raise TimeoutError(f"{' and '.join(left)} did not end in {self._end_seconds:.0f} s")
