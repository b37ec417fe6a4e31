"""Schemas as they are met: asked for once, kept, and waited for if the registry is away."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from time import monotonic, sleep
from typing import Final, Protocol

from worker.bus import Away
from worker.formats.registry.client import Fetched, Missing
from worker.formats.registry.wire_format import Ident, id_of, named
from worker.formats.unreadable import Unreadable

_log = logging.getLogger(__name__)

_WAIT_SECONDS: Final = 10.0
"""How long a batch waits for the registry before its stage polls again, and reads it anew."""
_PAUSE_SECONDS: Final = 0.5
_SILENT_SECONDS: Final = 5.0
_AT_ONCE: Final = 16
"""Schemas that are asked for together."""
_MOST_KNOWN: Final = 16 << 20
"""Characters of the schemas that are kept; decoders take some ten times as much."""
_MOST_REFUSED: Final = 10_000
_UNKNOWN_SECONDS: Final = 60.0
"""How long it counts that the registry has no schema of an id."""
_AGAIN: Final = 16
_AGAIN_SECONDS: Final = 1.0
"""So many of those are asked for again in this time: most ids that nobody has are garbage."""
_UNUSABLE_SECONDS: Final = 600.0
"""How long it counts that a schema can't be used. None changes, but the reason may be ours."""
_SAID: Final = 200
"""Characters of what is said about a schema: it may quote all of it."""

Fetch = Callable[[Sequence[Ident]], Sequence[Fetched | Exception]]
"""Asks for schemas; returns each, or `Unreadable`, `Away`, or `Denied`: see `Registry.fetch`."""


class Decoder(Protocol):
    """Decodes what has one schema."""

    @property
    def names(self) -> Sequence[str]:
        """Return the names of the fields, as far as the schema has them."""

    def decode(self, value: bytes, start: int) -> object:
        """Return what is in a value from a position on.

        Raises:
            Unreadable: it isn't what the schema says.
        """


class Schemas:
    """The decoders of the schemas that were met, by the marks of values.

    Strangers choose the marks, and some of them the schemas: both are kept within bounds.
    """

    def __init__(
        self,
        fetch: Fetch,
        made: Callable[[Fetched], Decoder],
        clock: Callable[[], float] = monotonic,
        pause: Callable[[float], None] = sleep,
    ) -> None:
        """Take what asks the registry, and what makes a decoder, or raises anything."""
        self._fetch = fetch
        self._made = made
        self._clock = clock
        self._pause = pause
        self.known: dict[bytes, Decoder] = {}
        """The decoders by marks: whoever is in a hurry looks here first."""
        self._lengths: dict[bytes, int] = {}
        self._refused: dict[bytes, tuple[Unreadable, float]] = {}
        """Why there is no decoder, and from when on the registry may be asked again."""
        self._again_at = 0.0
        self._silent: tuple[float, Away] | None = None

    def decoder(self, mark: bytes) -> Decoder:
        """Return the decoder of a mark; the registry is asked once if it wasn't before.

        Raises:
            Unreadable: there is no such schema, or it can't be used.
            Away: the registry can't be asked now.
            Denied: the registry doesn't let us.
        """
        found = self.known.get(mark)
        if found is not None:
            return found
        if mark not in self._refused:
            self._ask_once(mark)
        if mark in self._refused:
            # An error that is raised again would keep the frames of each time.
            raise self._refused[mark][0].with_traceback(None)
        return self.known[mark]

    def _ask_once(self, mark: bytes) -> None:
        """Ask for a mark, unless the registry was away just now: many may be asked for in turn."""
        if self._silent is not None and self._clock() < self._silent[0]:
            raise self._silent[1].with_traceback(None)
        self._silent = None
        self._forget((mark,))
        away = self._ask([mark])
        if away is not None:
            self._silent = self._clock() + _SILENT_SECONDS, away
            raise away

    def prepare(self, marks: Iterable[bytes]) -> None:
        """Ask for what isn't known of these marks; wait some seconds if the registry is away.

        What the registry didn't have is asked for again after a while, a few at a time. Whether
        it answers then makes no difference to a document that could go on.

        Raises:
            Away: it still is, or there was more to ask for than can be in this time.
            Denied: the registry doesn't let us.
        """
        wanted = set(marks)
        self._forget(wanted)
        missing = sorted(wanted - self.known.keys())
        self._await([mark for mark in missing if mark not in self._refused])
        now = self._clock()
        if self._refused and now >= self._again_at:
            self._again_at = now + _AGAIN_SECONDS
            # The oldest are first.
            due = (one for one, (_, at) in self._refused.items() if at < now and one in wanted)
            self._ask(list(islice(due, _AGAIN)))

    def _forget(self, wanted: Collection[bytes]) -> None:
        """Forget what is more than may be kept, the oldest first, but nothing that is wanted."""
        excess = max(0, len(self._refused) - _MOST_REFUSED)
        for mark in list(islice((one for one in self._refused if one not in wanted), excess)):
            del self._refused[mark]
        total = sum(self._lengths.values())
        for mark in [one for one in self.known if one not in wanted]:
            if total <= _MOST_KNOWN:
                break
            del self.known[mark]
            total -= self._lengths.pop(mark)

    def _await(self, marks: list[bytes]) -> None:
        """Ask for marks until all are answered."""
        until = self._clock() + _WAIT_SECONDS
        waiting = False
        while marks:
            asked = marks[:_AT_ONCE]
            away = self._ask(asked)
            marks[:_AT_ONCE] = [
                mark for mark in asked if mark not in self.known and mark not in self._refused
            ]
            if away is not None:
                if not waiting:
                    _log.warning("%s; documents wait for it, and none is rejected", away)
                waiting = True
            elif waiting:
                waiting = False
                _log.info("the schema registry answers again")
            if marks and self._clock() > until:
                more = f"{len(marks)} more schemas are to be asked for; documents wait for them"
                raise away or Away(more)
            if away is not None:
                self._pause(_PAUSE_SECONDS)

    def _ask(self, marks: Sequence[bytes]) -> Away | None:
        """Keep the decoders of marks, or why there is none; return why some have no answer yet.

        Raises:
            Denied: the registry doesn't let us.
        """
        asked: dict[bytes, Ident] = {}
        for mark in marks:
            try:
                asked[mark] = id_of(mark)
            except Unreadable as error:
                self._refuse(mark, error, _UNUSABLE_SECONDS)
        away = None
        for mark, found in zip(asked, self._fetch([*asked.values()]), strict=True):
            if isinstance(found, Away):
                away = found
                if mark in self._refused:
                    self._refuse(mark, self._refused[mark][0], _UNKNOWN_SECONDS)
            elif isinstance(found, Unreadable):
                later = isinstance(found, Missing)
                self._refuse(mark, found, _UNKNOWN_SECONDS if later else _UNUSABLE_SECONDS)
            elif isinstance(found, Exception):
                raise found
            else:
                self._keep(mark, asked[mark], found)
        return away

    def _refuse(self, mark: bytes, why: Unreadable, seconds: float) -> None:
        self._refused.pop(mark, None)
        self._refused[mark] = why, self._clock() + seconds

    def _keep(self, mark: bytes, ident: Ident, fetched: Fetched) -> None:
        """Keep the decoder of a schema, or why there is none."""
        try:
            made = self._made(fetched)
        except Exception as error:  # noqa: BLE001 -- any: a stranger wrote the schema
            said = f"{named(ident)} can't be used: {type(error).__name__}: {error}"
            self._refuse(mark, Unreadable("no-schema", said[:_SAID]), _UNUSABLE_SECONDS)
            return
        self._refused.pop(mark, None)
        self.known[mark] = made
        self._lengths[mark] = len(fetched.text) + sum(len(text) for _, text in fetched.references)
        _log.info("%s (%s) is known now", named(ident), fetched.kind.lower())
