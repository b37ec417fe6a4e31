"""Deletes stores in a state directory that no shard has used for some time.

A shard that moves to another worker leaves its store behind, which is a warm start if the shard
comes back. But nothing purges that store of what is forgotten meanwhile, so it can't stay for ever.
The same holds for stores that were put aside, and for those of generations that nobody runs.

A directory beside a store, ``shard-000.unused``, says by its time since when nobody has used it.
It is made by the first look that finds the store unused, and removed when the store is opened. So
neither a crash nor a restart begins the time anew.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from time import time

_log = logging.getLogger(__name__)

_UNUSED = ".unused"
_DROPPED = ".dropped"
"""A directory that is being deleted; a crash may leave some of it."""
_ASIDE = ".aside"
_STORES = ("shard-[0-9][0-9][0-9]*", "groups", "groups.*")
_SHARE = 1 / 3
"""Of `index.erasure_seconds`, for how long a store may be unused. Tombstones that it has judged
itself before are purged from it within half of that time, if it stays open."""
_LOOKS = 30
_LONGEST_PAUSE = 60.0


def look_seconds(erasure_seconds: float) -> float:
    """Return how long to wait between two looks."""
    return min(_LONGEST_PAUSE, erasure_seconds / _LOOKS)


def keep_looking(
    look: Callable[[], None], erasure_seconds: float, stopping: threading.Event
) -> None:
    """Look now, and again and again until the process stops, whatever a look ends in."""
    while not stopping.is_set():
        try:
            look()
        except Exception:  # noqa: BLE001 -- what is forgotten must go, whatever it was
            _log.exception("what nobody uses could not be deleted; trying again")
        stopping.wait(look_seconds(erasure_seconds))


class Leftovers:
    """Unused stores in directories of shards. Thread-safe; share one in a process."""

    def __init__(
        self,
        clock: Callable[[], float] = time,
        stores: Callable[[], Container[Path]] = tuple,
    ) -> None:
        """Take a clock, in seconds since the epoch, and what returns the stores that are open."""
        self._clock = clock
        self._stores = stores
        self._lock = threading.Lock()
        self._opening: Counter[Path] = Counter()

    @contextmanager
    def opening(self, store: Path) -> Iterator[None]:
        """Keep a store, and what is made beside it, while the body opens it.

        If that succeeds, the store counts as used until now.
        """
        with self._lock:
            self._opening[store] += 1
        try:
            yield
            self.renew(store)
        finally:
            with self._lock:
                self._opening[store] -= 1

    def renew(self, path: Path) -> None:
        """Note that something was used until now."""
        with suppress(FileNotFoundError):
            _mark(path).rmdir()

    def look(
        self,
        directory: Path,
        erasure_seconds: float,
        owned: Container[Path] = (),
        *,
        at_once: bool = False,
    ) -> None:
        """Delete what nobody has used for a third of ``erasure_seconds``, or ``at_once``.

        A store is used if it is open, or will be, since its shard is ``owned``. So is what is made
        beside it, but not what was put aside.
        """
        longest = 0.0 if at_once else erasure_seconds * _SHARE
        for path in sorted(chain.from_iterable(map(directory.glob, _STORES))):
            try:
                if path.suffix == _DROPPED:
                    shutil.rmtree(path)
                elif path.suffix == _UNUSED:
                    if not path.with_suffix("").exists():
                        path.rmdir()
                else:
                    self._look_at(path, owned, longest)
            except FileNotFoundError:
                continue  # Another thread has just removed or opened it.
            except OSError as error:
                _log.warning(
                    "%s: nobody uses it, and it can't be deleted: %s; trying again", path, error
                )

    def _look_at(self, path: Path, owned: Container[Path], longest: float) -> None:
        dropped = path.with_name(path.name + _DROPPED)
        with self._lock:
            if self._is_used(path, owned):
                self.renew(path)
                return
            since = self._since(path)
            unused = self._clock() - since
            if unused < longest:
                return
            path.rename(dropped)  # Whoever opens it from now on begins an empty one.
            self.renew(path)
        shutil.rmtree(dropped)
        _log.info(
            "deleted %s: no shard has used it for %.0f s (index.erasure_seconds)", path, unused
        )

    def _is_used(self, path: Path, owned: Container[Path]) -> bool:
        store = path.with_name(path.name.partition(".")[0])
        if path.name == store.name + _ASIDE:
            return False
        return store in owned or self._opening[store] > 0 or store in self._stores()

    def _since(self, path: Path) -> float:
        """Return since when nobody has used a path; that is now, unless a look has noted it."""
        now, mark = self._clock(), _mark(path)
        with suppress(FileNotFoundError):
            since = mark.stat().st_mtime
            if since <= now:
                return since
        mark.mkdir(mode=0o700, exist_ok=True)
        os.utime(mark, (now, now))
        return now


def look_through(
    state_dir: Path,
    leftovers: Leftovers,
    erasure_seconds: float,
    run: Mapping[Path, Container[Path] | None],
    left: Container[Path] = (),
) -> None:
    """Look through the directories of all generations in a state directory.

    ``run`` are those that are in use, with the stores whose shards are owned; None if that isn't
    known now. Those that were ``left`` for good are emptied at once.
    """
    generations = [path for path in sorted(state_dir.glob("g*")) if path.name[1:].isdigit()]
    for directory in (state_dir, *generations):
        if directory not in run:
            leftovers.look(directory, erasure_seconds, at_once=directory in left)
            if directory != state_dir:
                with suppress(OSError):  # It isn't empty.
                    directory.rmdir()
            continue
        owned = run[directory]
        if owned is not None:
            leftovers.look(directory, erasure_seconds, owned)


def _mark(path: Path) -> Path:
    return path.with_name(path.name + _UNUSED)
