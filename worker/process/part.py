"""A loop of a worker, in a thread of its own, which follows the plan of generations."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import monotonic

from worker.generations.modes import Part
from worker.loop.loop import Loop
from worker.process.outage import until_answered

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
_HURRY_SECONDS = 0.2
"""Between checks of a stage that catches up: a rolling restart waits for it."""
_RETRY_SECONDS = 10.0
_WAIT_SECONDS = 0.1


class PartThread:
    """Builds a part's loop and steps it until the worker stops, the part is left, or it fails.

    If the part is changed, another loop takes the seat of the one that runs.

    Attributes:
        part: what it runs.
        loop: its loop, as long as that is open.
        spare: whether the worker goes on without it: a failure is logged, and it is built again.
    """

    def __init__(
        self,
        part: Part,
        build: Callable[[Part, Loop | None], Loop],
        stopping: threading.Event,
        failed: Callable[[BaseException], None],
        *,
        spare: bool = False,
    ) -> None:
        """Take what builds the loop, and what is told of its failure.

        ``build`` gets the loop whose seat the new one takes, if there is one.
        """
        self.part = part
        self.spare = spare
        self.loop: Loop | None = None
        self._build = build
        self._failed = failed
        self._changed = threading.Event()
        self._ending = _Ending(stopping)
        self.thread = threading.Thread(target=self._run, name=part.name, daemon=True)

    def change(self, part: Part) -> None:
        """Have it run another part in the same seat."""
        self.part = part
        self._changed.set()

    def leave(self) -> None:
        """Have it leave its group for good, and end."""
        self._ending.set()

    def _run(self) -> None:
        while not self._ending.is_set() and not self._lived():
            _log.info("%s is tried again in %.0f s", self.part.name, _RETRY_SECONDS)
            self._ending.wait(_RETRY_SECONDS)

    def _lived(self) -> bool:
        """Build the loop and step it to its end; return False if it is to be tried again."""
        again = False
        try:
            self._changed.clear()
            self.loop = until_answered(lambda: self._build(self.part, None), self._ending)
            while self.loop is not None and self._step(self.loop):
                self.loop = self._build(self.part, self.loop)
        except BaseException as error:  # noqa: BLE001 -- carried to the main thread, which raises it
            again = self._handle(error)
        loop, self.loop = self.loop, None
        if loop is not None:
            try:
                # A seat that is left for good goes to another worker; one that is kept waits.
                loop.close(leave=self._ending.own)
            except Exception as error:  # noqa: BLE001 -- carried to the main thread, which raises it
                again = self._handle(error)
        return not again

    def _step(self, loop: Loop) -> bool:
        """Step a loop; return True if another one is to take its seat."""
        seen = monotonic()
        while not self._ending.is_set():
            if self._changed.is_set():
                self._changed.clear()
                return True
            loop.step()
            if monotonic() - seen >= (_HURRY_SECONDS if loop.catching_up else _LOOK_SECONDS):
                seen = monotonic()
                loop.lag()
        loop.finish()
        return False

    def _handle(self, error: BaseException) -> bool:
        """Report a failure; return whether the worker goes on without this part for a while."""
        if self.spare:
            _log.error("%s, which is being built, failed: %s", self.part.name, error)
        else:
            self._failed(error)
        return self.spare


class _Ending(threading.Event):
    """Is set if the worker stops, or by itself.

    Attributes:
        own: whether it was set by itself.
    """

    def __init__(self, stopping: threading.Event) -> None:
        super().__init__()
        self._stopping = stopping

    @property
    def own(self) -> bool:
        return super().is_set()

    def is_set(self) -> bool:
        return self.own or self._stopping.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        deadline = None if timeout is None else monotonic() + timeout
        while not self.is_set() and (deadline is None or monotonic() < deadline):
            super().wait(_WAIT_SECONDS)
        return self.is_set()
