"""Opens or fetches a shard's store while the loop keeps polling."""

from __future__ import annotations

import logging
import threading

from worker.index.errors import Unrecoverable
from worker.index.recovery import LogRange, Recovery
from worker.index.restore_progress import RestoreProgress
from worker.index.snapshots.repository import Interrupted
from worker.index.store import BandStore

_log = logging.getLogger(__name__)


class Opening:
    """One attempt to open a shard: in a thread of its own or, in embedded runs, at once."""

    def __init__(  # noqa: PLR0913 -- the arguments of `Recovery`, and when to start
        self,
        shard: int,
        log: LogRange,
        recovery: Recovery,
        *,
        after: Opening | None = None,
        background: bool,
        begin: bool = True,
    ) -> None:
        """Begin, after a cancelled attempt, ``after``, has ended: it still uses the directory.

        Without ``begin``, wait for a store that another thread is using: that thread calls `fulfil`
        or `begin` when it is done.
        """
        self.shard = shard
        self.log = log
        self.progress = RestoreProgress(shard)
        self._recovery = recovery
        self._after = after
        self._background = background
        self._done = threading.Event()
        self._given_up = threading.Event()
        self._lock = threading.Lock()
        self._store: BandStore | None = None
        self._error: BaseException | None = None
        self._tried: LogRange | None = None
        if begin:
            self.begin()

    def begin(self) -> None:
        """Open the store."""
        if self._background:
            name = f"open-shard-{self.shard}"
            threading.Thread(target=self._run, name=name, daemon=True).start()
        else:
            self._run()

    def fulfil(self, store: BandStore) -> None:
        """Take an open store as the result; close it if this attempt was cancelled."""
        self._hand_over(store)
        self._done.set()

    def _run(self) -> None:
        try:
            if self._after is not None:
                self._after.wait()
                self._after = None
            if not self._given_up.is_set():
                self._tried = log = self.log
                store = self._recovery.open(self.shard, log, self.progress, self._given_up.is_set)
                self._hand_over(store)
        except Interrupted:
            _log.info("shard %d: cancelled before it was open", self.shard)
        except BaseException as error:  # noqa: BLE001 -- carried to the stage, which raises it
            self._error = error
        finally:
            self._done.set()

    def _hand_over(self, store: BandStore) -> None:
        with self._lock:
            if not self._given_up.is_set():
                self._store = store
                return
        store.close(flush=False)

    @property
    def done(self) -> bool:
        """Return whether `result` may be called."""
        return self._done.is_set()

    @property
    def outdated(self) -> bool:
        """Return whether it failed with an earlier range of the log than the one it has now."""
        return isinstance(self._error, Unrecoverable) and self._tried != self.log

    @property
    def given_up(self) -> bool:
        """Return whether the attempt was cancelled."""
        return self._given_up.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the attempt has ended; return whether it has."""
        return self._done.wait(seconds)

    def result(self) -> BandStore:
        """Return the store. The caller then owns it.

        Raises:
            BaseException: the error that `Recovery.open` raised.
        """
        if self._error is not None:
            raise self._error
        with self._lock:
            store, self._store = self._store, None
        if store is None:
            raise RuntimeError(f"the opening of shard {self.shard} has no result")
        return store

    def give_up(self) -> None:
        """Cancel: an open store is closed, and a running attempt ends soon."""
        with self._lock:
            self._given_up.set()
            store, self._store = self._store, None
        if store is not None:
            store.close(flush=False)
