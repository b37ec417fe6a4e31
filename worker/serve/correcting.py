"""What people correct over HTTP: the corrections that hold, and how one is made or undone."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import Annotated, Literal

import msgspec

from lsh import Fingerprinter
from worker.bus import Bus, Outgoing, Record
from worker.closing import Closing
from worker.corrections.records import allowance, correction, corrector, erasure, restored
from worker.corrections.sending import send
from worker.corrections.state import MOST_ALLOWANCES, Allowance, Erasure, erasure_name
from worker.documents.lookup import FORGOTTEN, Gone, Lookup
from worker.formats.choice import document_format
from worker.serve.following import Following
from worker.serve.views import Sequence, Side
from worker.settings.model import Settings
from worker.topology import Topology
from worker.wire.corrections import Note, Request
from worker.wire.headers import FORGET

_SECONDS = 10.0
_SENT_SECONDS = 60.0
"""How long what this server has sent may take until its copy of shard 0 has it."""

_Why = Annotated[str, msgspec.Meta(max_length=200)]
_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]


class Allow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Allow a text, or that of a document: what is near to it is unique.

    With ``exact``, only what has the same normal form is.
    """

    of: Side
    exact: bool = False
    why: _Why = ""


class Withdraw(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Withdraw the allowance with an id."""

    id: _Id
    why: _Why = ""


class Forget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Forget the document with an id. If its number is known, its place is noted with it."""

    id: _Id
    sequence: Sequence | msgspec.UnsetType = msgspec.UNSET
    why: _Why = ""


class Restore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Send the document with an id again, so that it is judged and published anew."""

    id: _Id


class Correct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to correct."""

    allow: Allow | msgspec.UnsetType = msgspec.UNSET
    withdraw: Withdraw | msgspec.UnsetType = msgspec.UNSET
    forget: Forget | msgspec.UnsetType = msgspec.UNSET
    restore: Restore | msgspec.UnsetType = msgspec.UNSET


class Corrected(msgspec.Struct, frozen=True):
    """A correction was sent: the id of the allowance or the document, and where the record is.

    It holds from there on. ``place`` is ``topic-partition-offset``.
    """

    id: str
    place: str


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


class Refused(Exception):
    """A correction would not hold; the message says why. Nothing was sent."""


class Correcting(Closing):
    """Makes corrections, each with a producer of its own; belongs to one thread, but for `made`."""

    def __init__(
        self,
        settings: Settings,
        topology: Topology,
        bus: Bus,
        following: Following,
        window_ms: int | None,
    ) -> None:
        """Take where to send to, and who knows what holds. Nothing is sent before `correct`."""
        self._topology = topology
        self._bus = bus
        self._following = following
        self._window_ms = window_ms
        self._by = corrector(settings)
        self._documents = document_format(settings)
        self._sent: dict[str, float] = {}
        """When this server has sent an allowance, by its id: it may not hold yet."""
        self._fingerprinter = Fingerprinter(topology.layout.parameters)
        self._lookup = Lookup(settings, topology, bus)

    def made(self, skipped: int, limit: int) -> MadeList:
        """Return corrections, without some of the latest; from any thread.

        Raises:
            Warming: shard 0 can't be read yet.
        """
        held = self._following.corrections()
        every: list[Allowance | Erasure] = [*held.allowances, *held.erasures]
        found = sorted(every, key=lambda one: -one.since)
        some = found[skipped : skipped + limit]
        after = skipped + limit
        return MadeList(
            [self._seen(one) for one in some],
            len(found),
            len(held.allowances),
            MOST_ALLOWANCES,
            str(after) if after < len(found) else None,
        )

    def _seen(self, one: Allowance | Erasure) -> Made:
        note = msgspec.msgpack.decode(one.note, type=Note)
        allows = isinstance(one, Allowance)
        until = None if self._window_ms is None or not allows else one.since + self._window_ms
        return Made(
            "allow" if allows else "forget",
            (one.id if isinstance(one, Allowance) else one.name).decode(errors="replace"),
            note.at,
            until,
            note.by,
            note.why,
            "" if self._is_forgotten(one) else note.text,
            isinstance(one, Allowance) and one.exact,
            note.source,
        )

    def _is_forgotten(self, one: Allowance | Erasure) -> bool:
        """Return whether the document was forgotten whose text is allowed."""
        return isinstance(one, Allowance) and self._following.forgotten(
            one.id, 0, lambda: one.since
        )

    def correct(self, asked: Correct) -> Corrected:
        """Send a correction; return where it is.

        Raises:
            CorrectionError: the text can't be allowed.
            Refused: as many texts are allowed as may be.
            Unreadable: the id is none.
            Gone: the document isn't there, or never was, or no such text is allowed.
            BusError: it can't be sent.
        """
        ident, record = self._record(asked)
        ((place, offset),) = send(
            self._bus, self._topology, [record], seconds=_SECONDS
        ).items()  # fmt: skip
        return Corrected(ident, f"{place.topic}-{place.partition}-{offset}")

    def _record(self, asked: Correct) -> tuple[str, Outgoing]:
        if (allow := asked.allow) is not msgspec.UNSET:
            request = self._signed(self._allowance(allow), allow.why)
            if len({*self._allowed(), request.id}) > MOST_ALLOWANCES:
                raise Refused(
                    f"{MOST_ALLOWANCES:,} texts are allowed, which is the most: withdraw one first"
                )
            self._sent[request.id] = monotonic()
            return request.id, correction(self._topology, request)
        if (withdraw := asked.withdraw) is not msgspec.UNSET:
            request = self._signed(Request("withdraw", withdraw.id), withdraw.why)
            if request.id not in self._allowed():
                raise Gone(f"no text is allowed as {request.id!r}")
            self._sent.pop(request.id, None)
            return request.id, correction(self._topology, request)
        if (forget := asked.forget) is not msgspec.UNSET:
            request = self._signed(self._forgotten(forget), forget.why)
            return request.id, erasure(self._topology, self._documents.keys, request)
        assert asked.restore is not msgspec.UNSET  # noqa: S101 -- who decodes it checks that
        return asked.restore.id, restored(self._origin(asked.restore.id))

    def _allowed(self) -> set[str]:
        """Return the ids of the allowances that hold, or will soon.

        Raises:
            Warming: shard 0 can't be read yet.
        """
        late = monotonic() - _SENT_SECONDS
        self._sent = {ident: at for ident, at in self._sent.items() if at > late}
        held = self._following.corrections().allowances
        return {*self._sent, *(one.id.decode(errors="replace") for one in held)}

    def _signed(self, request: Request, why: str) -> Request:
        return msgspec.structs.replace(request, by=self._by, why=why)

    def _allowance(self, asked: Allow) -> Request:
        if asked.of.text is not msgspec.UNSET:
            return allowance(self._fingerprinter, asked.of.text, exact=asked.exact)
        assert asked.of.sequence is not msgspec.UNSET  # noqa: S101 -- as above
        found = self._lookup.document(asked.of.sequence)
        if self._following.forgotten(
            found.id.encode(), asked.of.sequence, lambda: found.logged
        ):  # fmt: skip
            raise Gone(FORGOTTEN)
        return allowance(self._fingerprinter, found.text, ident=found.id, exact=asked.exact)

    def _forgotten(self, asked: Forget) -> Request:
        header = (FORGET, asked.id.encode(errors="surrogatepass"))
        ident = self._documents.forgotten(Record("", 0, 0, -1, None, None, (header,))).decode()
        source = ""
        if asked.sequence is not msgspec.UNSET:
            with suppress(Gone):  # Its place is a convenience.
                found = self._lookup.document(asked.sequence)
                source = found.source if found.id == ident else ""
        if not source and not self._is_member(ident) and self._lookup.never_came(ident):
            raise Gone(f"no document with the id {ident!r} was ever published")
        return Request("forget", ident, source=source)

    def _is_member(self, ident: str) -> bool:
        """Return whether a document with an id is in a group."""
        if not self._following.keeps_groups:
            return False
        found = self._following.groups(lambda groups: groups.of_document(ident.encode()))
        return found is not None

    def _origin(self, ident: str) -> Record:
        """Return where a document came: where it was noted, or else where outputs say.

        ``ident`` is its id, or what its erasure is called by in the list.

        Raises:
            Gone: it isn't there.
        """
        given = ident.encode(errors="surrogatepass")
        for one in reversed(self._following.corrections().erasures):
            if one.name in {given, erasure_name(given)}:
                source = msgspec.msgpack.decode(one.note, type=Note).source
                with suppress(Gone):
                    own, record = self._lookup.at(source)
                    if erasure_name(own) == one.name:
                        return record
        return self._lookup.origin(ident)

    def close(self) -> None:
        """Close what it has read with."""
        self._lookup.close()
