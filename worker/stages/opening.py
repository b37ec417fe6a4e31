"""A shard on its way: opened, or fetched, while the loop goes on polling."""

from __future__ import annotations

import logging
import threading

from worker.snapshots import Interrupted, LogRange, Recovery, RestoreProgress
from worker.store import BandStore

__all__ = ["Opening"]

_log = logging.getLogger(__name__)


class Opening:
    """One attempt to open a shard, in a thread of its own or, for embedded runs, at once."""

    def __init__(  # noqa: PLR0913 -- what `Recovery` takes, and when
        self,
        shard: int,
        log: LogRange,
        recovery: Recovery,
        *,
        after: Opening | None = None,
        background: bool,
        begin: bool = True,
    ) -> None:
        """Begin; an attempt given up that still runs is waited for, as it has the directory.

        Without ``begin``, it waits for a store that somebody else has at work: `fulfil` or `begin`
        is called once that has ended.
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
        """Take a store that is open; if nobody wants it any more, close it."""
        self._hand_over(store)
        self._done.set()

    def _run(self) -> None:
        try:
            if self._after is not None:
                self._after.wait()
                self._after = None
            if not self._given_up.is_set():
                store = self._recovery.open(
                    self.shard, self.log, self.progress, self._given_up.is_set
                )
                self._hand_over(store)
        except Interrupted:
            _log.info("shard %d: given up before it was open", self.shard)
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
        """Tell whether `result` has something to say."""
        return self._done.is_set()

    @property
    def given_up(self) -> bool:
        """Tell whether nobody wants the result any more."""
        return self._given_up.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until nothing is under way any more."""
        return self._done.wait(seconds)

    def result(self) -> BandStore:
        """Give the store, which is the caller's from now on.

        Raises:
            BaseException: what `Recovery.open` has failed with.
        """
        if self._error is not None:
            raise self._error
        with self._lock:
            store, self._store = self._store, None
        if store is None:
            raise RuntimeError(f"the opening of shard {self.shard} has no result")
        return store

    def give_up(self) -> None:
        """Take no interest any more: what is open is closed, what runs ends soon."""
        with self._lock:
            self._given_up.set()
            store, self._store = self._store, None
        if store is not None:
            store.close(flush=False)
