"""What people correct over HTTP: the corrections that hold, and how one is made or undone."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from http import HTTPStatus
from time import monotonic
from typing import Annotated

import msgspec

from worker.bus import Bus, Outgoing
from worker.closing import Closing
from worker.corrections import request
from worker.corrections.request import Request
from worker.corrections.sending import restored
from worker.corrections.service import Corrector, MadeList, listed
from worker.corrections.state import MOST_ALLOWANCES, erasure_name
from worker.documents.lookup import FORGOTTEN, Gone
from worker.serve.answers import Refused
from worker.serve.comparisons import Sequence, Side
from worker.serve.following import Following
from worker.settings.model import Settings
from worker.topology import Topology
from worker.wire.corrections import Note

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
        self._corrector = Corrector(settings, topology, bus)
        self._following = following
        self._window_ms = window_ms
        self._sent: dict[str, float] = {}
        """When this server has sent an allowance, by its id: it may not hold yet."""

    def made(self, skipped: int, limit: int) -> MadeList:
        """Return corrections, without some of the latest; from any thread.

        Raises:
            Warming: shard 0 can't be read yet.
        """
        return listed(
            self._following.corrections(),
            skipped,
            limit,
            window_ms=self._window_ms,
            is_forgotten=lambda one: self._following.forgotten(one.id, 0, lambda: one.since),
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
        ident, sent = self._sent_for(asked)
        ((partition, offset),) = self._corrector.send([sent], seconds=_SECONDS).items()
        return Corrected(ident, f"{partition.topic}-{partition.partition}-{offset}")

    def _sent_for(self, asked: Correct) -> tuple[str, Request | Outgoing]:
        """Return the id of what is corrected, and what is sent."""
        if asked.allow is not msgspec.UNSET:
            allow = self._allow(asked.allow)
            if len({*self._allowed(), allow.id}) > MOST_ALLOWANCES:
                raise Refused(
                    HTTPStatus.CONFLICT,
                    f"{MOST_ALLOWANCES:,} texts are allowed, which is the most: withdraw one first",
                )
            self._sent[allow.id] = monotonic()
            return allow.id, allow
        if asked.withdraw is not msgspec.UNSET:
            withdraw = self._corrector.withdraw(asked.withdraw.id, why=asked.withdraw.why)
            if withdraw.id not in self._allowed():
                raise Gone(f"no text is allowed as {withdraw.id!r}")
            self._sent.pop(withdraw.id, None)
            return withdraw.id, withdraw
        if asked.forget is not msgspec.UNSET:
            forget = self._forget(asked.forget)
            return forget.id, forget
        assert asked.restore is not msgspec.UNSET  # noqa: S101 -- who decodes it checks that
        return asked.restore.id, self._restoration(asked.restore.id)

    def _allowed(self) -> set[str]:
        """Return the ids of the allowances that hold, or will soon.

        Raises:
            Warming: shard 0 can't be read yet.
        """
        late = monotonic() - _SENT_SECONDS
        self._sent = {ident: at for ident, at in self._sent.items() if at > late}
        held = self._following.corrections().allowances
        return {*self._sent, *(one.id.decode(errors="replace") for one in held)}

    def _allow(self, asked: Allow) -> request.Allow:
        allow = partial(self._corrector.allow, exact=asked.exact, why=asked.why)
        if asked.of.text is not msgspec.UNSET:
            return allow(asked.of.text)
        assert asked.of.sequence is not msgspec.UNSET  # noqa: S101 -- as above
        found = self._corrector.lookup.document(asked.of.sequence)
        if self._following.forgotten(
            found.id.encode(), asked.of.sequence, lambda: found.logged
        ):  # fmt: skip
            raise Gone(FORGOTTEN)
        return allow(found.text, ident=found.id)

    def _forget(self, asked: Forget) -> request.Forget:
        lookup = self._corrector.lookup
        forget = self._corrector.forget(asked.id.encode(errors="surrogatepass"), why=asked.why)
        ident, source = forget.id, ""
        if asked.sequence is not msgspec.UNSET:
            with suppress(Gone):  # Its place is a convenience.
                found = lookup.document(asked.sequence)
                source = found.source if found.id == ident else ""
        if not source and not self._is_member(ident) and lookup.never_came(ident):
            raise Gone(f"no document with the id {ident!r} was ever published")
        return msgspec.structs.replace(forget, source=source)

    def _is_member(self, ident: str) -> bool:
        """Return whether a document with an id is in a group."""
        if not self._following.keeps_groups:
            return False
        found = self._following.groups(lambda groups: groups.of_document(ident.encode()))
        return found is not None

    def _restoration(self, ident: str) -> Outgoing:
        """Return a document as it is sent again: where it was noted, or else where outputs say.

        ``ident`` is its id, or what its erasure is called by in the list.

        Raises:
            Gone: it isn't there.
        """
        given = ident.encode(errors="surrogatepass")
        for one in reversed(self._following.corrections().erasures):
            if one.name in {given, erasure_name(given)}:
                source = msgspec.msgpack.decode(one.note, type=Note).source
                with suppress(Gone):
                    own, record = self._corrector.lookup.at(source)
                    if erasure_name(own) == one.name:
                        return restored(record)
        return self._corrector.restoration(ident)

    def close(self) -> None:
        """Close what it has read with."""
        self._corrector.close()
