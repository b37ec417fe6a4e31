"""Makes corrections, sends them and lists those that hold: for the command line and over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from getpass import getuser
from hashlib import blake2b
from itertools import count
from time import sleep
from typing import Literal

import msgspec

from lsh import Fingerprinter
from worker.bus import Bus, BusError, Outgoing, Record, TopicPartition
from worker.closing import Closing
from worker.corrections.request import Allow, CorrectionError, Forget, Request, Withdraw
from worker.corrections.sending import SECONDS, Judging, record_of, restored, send
from worker.corrections.state import (
    MOST_ALLOWANCES,
    Allowance,
    Corrections,
    Erasure,
    erasure_name,
)
from worker.documents.lookup import Lookup
from worker.formats.choice import document_format
from worker.generations.plan import Plan
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings
from worker.topology import Topology
from worker.visible import tell
from worker.wire.corrections import MOST_CHARACTERS, Note
from worker.wire.headers import FORGET

_DIGITS = 12
_PAUSE_SECONDS = 0.5
_TOLD_EVERY = 60
"""Pauses between two lines that say what is waited for."""


_NAMES = {
    Forget: ("tombstone", "tombstones"),
    Allow: ("correction", "corrections"),
    Withdraw: ("correction", "corrections"),
    Outgoing: ("last one", "documents"),
}
"""The names of what is sent: of one, and of several."""


class NotJudged(Exception):
    """Corrections were sent, and can't be waited for; the message and the cause say why."""


class Corrector(Closing):
    """Makes and sends the corrections of an application. Belongs to one thread.

    Attributes:
        lookup: finds documents on the topics.
    """

    def __init__(self, settings: Settings, topology: Topology, bus: Bus) -> None:
        """Take where to send to. Nothing is read or sent before the first call."""
        self.settings = settings
        self.topology = topology
        self.lookup = Lookup(settings, topology, bus)
        self.documents = document_format(settings)
        self._bus = bus
        self._by = _name_of_corrector(settings)
        self._fingerprinter = Fingerprinter(topology.layout.parameters)

    @classmethod
    def of(cls, settings: Settings, plan: Plan, bus: Bus) -> Corrector:
        """Return a corrector of as many partitions as the documents have.

        Raises:
            ConfigurationError: their topic doesn't exist.
        """
        topic = settings.topology(1).documents
        partitions = bus.partitions([topic])[topic]
        if partitions is None:
            raise ConfigurationError(f"there is no topic {topic}; run `neardup topics create`")
        return cls(settings, plan.topology(settings, partitions), bus)

    def allow(self, text: str, *, ident: str = "", exact: bool = False, why: str = "") -> Allow:
        """Return the request that allows a text; without an id, it has one made from the text.

        Raises:
            CorrectionError: the text is too long, or nothing is left of it to compare.
        """
        made = _allowance_id(text)
        if len(text) > MOST_CHARACTERS:
            raise CorrectionError(
                f"the text has {len(text):,} characters; one that is allowed may have"
                f" {MOST_CHARACTERS:,}"
            )
        if not text.strip():
            raise CorrectionError("the text is empty")
        if self._fingerprinter.fingerprint([text]).blank[0]:
            raise CorrectionError("nothing is left of the text once it is normalised")
        return Allow(ident or made, text, exact, self._by, why)

    def withdraw(self, ident: str, *, why: str = "") -> Withdraw:
        """Return the request that withdraws an allowance."""
        return Withdraw(ident, self._by, why)

    def forget(self, ident: bytes, *, why: str = "", source: str = "") -> Forget:
        """Return the request that has a document forgotten; its id is as the index knows it.

        Raises:
            Unreadable: no document can have this id.
        """
        named = Record("", 0, 0, -1, None, None, ((FORGET, ident),))
        return Forget(self.documents.forgotten(named).decode(), self._by, why, source)

    def never_came(self, ids: Collection[str]) -> set[str]:
        """Return the ids of which it is certain that no document ever had them.

        Nothing is certain while documents wait, or if the outputs can't be read whole.
        """
        try:
            with Judging(self._bus, self.topology) as judging:
                if judging.waiting():
                    return set()
            return {ident for ident in ids if self.lookup.never_came(ident)}
        except BusError:
            return set()

    def restoration(self, ident: str) -> Outgoing:
        """Return the record that sends the latest document with an id again.

        Raises:
            Gone: it isn't there.
            BusError: the topics can't be read.
        """
        return restored(self.lookup.origin(ident))

    def text_of(self, ident: str) -> str:
        """Return the text of the latest document with an id.

        Raises:
            Gone: it isn't there.
            Unreadable: it can't be read.
            BusError: the topics can't be read.
        """
        return self.documents.read(self.lookup.origin(ident)).text

    def send(
        self, sent: Sequence[Request | Outgoing], *, seconds: float = SECONDS
    ) -> dict[TopicPartition, int]:
        """Send corrections, or documents again; return the last offset in each partition.

        Raises:
            BusError: nothing could be sent within some ``seconds``.
        """
        keys = self.documents.keys
        records = [
            one if isinstance(one, Outgoing) else record_of(one, self.topology, keys)
            for one in sent
        ]
        return send(self._bus, self.topology, records, seconds=seconds)

    def send_and_wait(
        self,
        sent: Sequence[Request | Outgoing],
        *,
        wait: bool = True,
        pause: Callable[[float], None] = sleep,
    ) -> tuple[dict[TopicPartition, int], set[str] | None]:
        """Send, and wait until every shard has judged it; return also the ids that had an effect.

        An id had an effect if a shard has done something for it. None: that can't be known, or
        nobody waits. ``pause`` waits for some seconds.

        Raises:
            NotJudged: everything was sent, and waiting failed or was interrupted.
            BusError: nothing was sent.
        """
        if not wait:
            return self.send(sent), None
        effects = {_effect(one): one.id for one in sent if not isinstance(one, Outgoing)}
        with Judging(self._bus, self.topology) as judging:
            try:
                if effects:
                    judging.begin()
            except BusError as error:
                tell(f"what the shards do can't be seen: {error}")
            ends = self.send(sent)
            single, several = _NAMES[type(sent[0])]
            left = f"the {several} were sent, and are judged as soon as the workers read them"
            try:
                _wait(judging, ends, single, pause)
            except KeyboardInterrupt as interrupt:
                raise NotJudged(f"interrupted: {left}") from interrupt
            except BusError as error:
                raise NotJudged(f"{error}; {left}") from error
            try:
                done = judging.done(ends)
            except BusError as error:
                tell(f"what the shards have done can't be seen: {error}")
                return ends, None
            return ends, None if done is None else {effects[one] for one in done & effects.keys()}

    def close(self) -> None:
        """Close what it has read with."""
        self.lookup.close()


def last_records(ends: Mapping[TopicPartition, int]) -> list[dict[str, object]]:
    """Return, as JSON has it, where the last record of each partition is."""
    return [
        {"topic": topic, "partition": number, "offset": offset}
        for (topic, number), offset in sorted(ends.items())
    ]


def _effect(request: Request) -> bytes:
    """Return the id in the answers of shards if a request had an effect."""
    ident = request.id.encode()
    return ident if isinstance(request, Forget) else erasure_name(ident)


def _wait(
    judging: Judging,
    ends: Mapping[TopicPartition, int],
    what: str,
    pause: Callable[[float], None],
) -> None:
    for number in count(1):
        behind = judging.behind(ends)
        if behind is None:
            return
        if number % _TOLD_EVERY == 0:
            topic, partition = behind.partition
            tell(
                f"waiting: {topic}[{partition}] is judged up to offset {behind.judged:,}, the"
                f" {what} is at {behind.offset:,}; `neardup watch` shows whether the workers get on"
            )
        pause(_PAUSE_SECONDS)


def _name_of_corrector(settings: Settings) -> str:
    """Return the name that is noted: that of the settings, or else of the user."""
    if settings.corrections.by is not None:
        return settings.corrections.by
    try:
        return getuser()
    except (KeyError, OSError):  # In a container, a user may have no name.
        return ""


def _allowance_id(text: str) -> str:
    """Return the id of the allowance of a text: the same one if the text is allowed again.

    Raises:
        CorrectionError: the text isn't Unicode.
    """
    try:
        digest = blake2b(text.encode(), digest_size=_DIGITS // 2)
    except UnicodeEncodeError:
        raise CorrectionError("the text is not UTF-8") from None
    return f"allow-{digest.hexdigest()}"


class Made(msgspec.Struct, frozen=True):
    """A correction: an allowance that holds, or the note on an erasure.

    ``id`` is that of the allowance, or stands for the id of the forgotten document, of which
    nothing is kept. ``at`` is when it was made, ``until`` when it ends, in ms since 1970; null:
    never. ``text`` is the beginning of what is allowed, ``source`` where the forgotten document is,
    as ``partition-offset``.
    """

    kind: Literal["allow", "forget"]
    id: str
    at: int
    until: int | None
    by: str
    why: str
    text: str
    exact: bool
    source: str


class MadeList(msgspec.Struct, frozen=True):
    """Corrections, the latest first; ``count`` are all, ``next`` is the cursor of those before.

    ``allowances`` of them are allowances, of which ``most_allowances`` hold at once.
    """

    corrections: list[Made]
    count: int
    allowances: int
    most_allowances: int
    next: str | None


def listed(
    held: Corrections,
    skipped: int,
    limit: int,
    *,
    window_ms: int | None,
    is_forgotten: Callable[[Allowance], bool],
) -> MadeList:
    """Return corrections that hold, the latest first, without some of the latest.

    The text of an allowance is left out if its document ``is_forgotten``.
    """
    every: list[Allowance | Erasure] = [*held.allowances, *held.erasures]
    every.sort(key=lambda one: -one.since)
    after = skipped + limit
    return MadeList(
        [_made(one, window_ms, is_forgotten) for one in every[skipped:after]],
        len(every),
        len(held.allowances),
        MOST_ALLOWANCES,
        str(after) if after < len(every) else None,
    )


def _made(
    one: Allowance | Erasure, window_ms: int | None, is_forgotten: Callable[[Allowance], bool]
) -> Made:
    note = msgspec.msgpack.decode(one.note, type=Note)
    allowance = one if isinstance(one, Allowance) else None
    until = None if window_ms is None or allowance is None else one.since + window_ms
    return Made(
        "forget" if allowance is None else "allow",
        (one.name if isinstance(one, Erasure) else one.id).decode(errors="replace"),
        note.at,
        until,
        note.by,
        note.why,
        "" if allowance is not None and is_forgotten(allowance) else note.text,
        allowance is not None and allowance.exact,
        note.source,
    )
