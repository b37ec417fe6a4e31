"""Reads the questions in a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import time
from typing import NamedTuple

import msgspec

from worker.bus import Record
from worker.formats.choice import plain_format, text_format
from worker.formats.unreadable import Unreadable
from worker.settings.model import Settings
from worker.untrusted import NOT_READ, why

MOST_QUESTIONS = 100
"""The most questions in a request."""


class BadRequest(ValueError):
    """A request has another form than it must have; the message says how."""


class Question(NamedTuple):
    """A text, and the time of its document in ms, or `NO_TIME`."""

    text: str
    time: int


class Query(msgspec.Struct, forbid_unknown_fields=True):
    """A text, or a document as it would be in the topic of the documents."""

    text: str | msgspec.UnsetType = msgspec.UNSET
    document: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class Body(Query, forbid_unknown_fields=True):
    """A request: a text, a document, or several of these."""

    queries: list[Query] | msgspec.UnsetType = msgspec.UNSET


_FORM = 'takes {"text": …}, {"document": …}, or {"queries": […]} with a list of these'
_decode = msgspec.json.Decoder(Body).decode
_string = msgspec.json.Decoder(str).decode


class Questions:
    """Reads questions by an application's settings. Thread-safe."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time) -> None:
        """Take how documents are read, and their limits.

        ``clock`` returns seconds since the epoch, which stamps a document as if it were sent now. A
        text has no time if a field of the documents has theirs.
        """
        self._clock = clock
        self._dated = settings.documents.time_field is not None
        self._documents = plain_format(settings)
        self._texts = text_format(settings)
        self._strings = settings.documents.format == "text"

    def read(self, body: bytes) -> list[Question | Unreadable]:
        """Return the questions of a request, one or more, in their order.

        A document that an application would reject is an `Unreadable` with the same reason.

        Raises:
            BadRequest: the request isn't JSON of the form that it must have.
        """
        try:
            given = _decode(body)
        except NOT_READ as error:
            raise BadRequest(f"{why(error)}; the request {_FORM}") from None
        return list(map(self._question, _single(given)))

    def document(self, value: bytes) -> Question | Unreadable:
        """Return the question of a document as it would be on *documents*."""
        return self._read(value, texts=False)

    def text(self, text: str) -> Question | Unreadable:
        """Return the question of a text."""
        return self._read(text.encode(errors="surrogatepass"), texts=True)

    def _question(self, one: Query) -> Question | Unreadable:
        if one.text is not msgspec.UNSET:
            return self.text(one.text)
        assert one.document is not msgspec.UNSET  # noqa: S101 -- it has one of the two
        value = bytes(one.document)
        if self._strings:
            try:
                value = _string(value).encode()
            except NOT_READ:
                raise BadRequest(
                    "document: must be a string, because documents are plain text"
                ) from None
        return self.document(value)

    def _read(self, value: bytes, *, texts: bool) -> Question | Unreadable:
        documents = self._texts if texts else self._documents
        stamp = -1 if texts and self._dated else int(1_000 * self._clock())
        try:
            found = documents.read(Record("query", 0, 0, stamp, None, value))
        except Unreadable as error:
            return error
        return Question(found.text, found.time)


def _single(body: Body) -> Iterator[Query]:
    """Yield what asks one question.

    Raises:
        BadRequest: something asks none, or several.
    """
    if body.queries is msgspec.UNSET:
        yield _checked(body)
        return
    if body.text is not msgspec.UNSET or body.document is not msgspec.UNSET:
        raise BadRequest(f"the request {_FORM}, and not several of them")
    if not 1 <= len(body.queries) <= MOST_QUESTIONS:
        raise BadRequest(f"queries: got {len(body.queries)}, takes 1 to {MOST_QUESTIONS}")
    yield from map(_checked, body.queries)


def _checked(one: Query) -> Query:
    if (one.text is msgspec.UNSET) == (one.document is msgspec.UNSET):
        raise BadRequest("a query has either a text or a document")
    return one
