"""Reads questions, asks shards what they would match, and merges the answers as *route* does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from time import time
from typing import NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace as replaced

from lsh import Fingerprinter, Fingerprints
from lsh.index import BucketRules, DocumentBatch, Match
from lsh.sketch import SKETCH_BITS
from lsh.tuning import standard_error
from worker.bus import Record
from worker.corrections.state import NO_CORRECTIONS, Allowed, Corrections, nearest
from worker.documents.published import First
from worker.formats.choice import plain_format, text_format
from worker.formats.unreadable import Unreadable
from worker.index.store_reader import MetBucket, ShardAnswer, StoreReader
from worker.serve.answers import Answer, Found, Met, rejected
from worker.settings.model import Settings
from worker.untrusted import NOT_READ, why
from worker.wire.frame import Layout

T = TypeVar("T")

_AT_ONCE = 16
"""The most questions that a shard is asked at a time: whoever else needs it waits for them."""
_BLANK = "nothing is left of the text once it is normalised"


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


class Shards(Protocol):
    """The shards of an application."""

    def read(self, shard: int, ask: Callable[[StoreReader], T]) -> T:
        """Return what ``ask`` returns; nobody writes to the shard meanwhile.

        Raises:
            Warming: the shard can't be read yet.
            StoreDamaged: the store isn't as it was written.
            OSError: it can't be read.
        """


class Asker:
    """Answers questions by an application's layout and rules. Thread-safe."""

    def __init__(self, layout: Layout, rules: BucketRules) -> None:
        """Take what all workers agree on."""
        self._layout = layout
        made = layout.parameters
        self._rules = replace(rules, bands=made.bands, rows=made.rows)
        self._fingerprinter = Fingerprinter(layout.parameters)

    @property
    def rules(self) -> BucketRules:
        """Return the rules by which documents match."""
        return self._rules

    def answers(
        self,
        shards: Shards,
        questions: Sequence[Question | Unreadable],
        corrections: Corrections = NO_CORRECTIONS,
    ) -> list[Answer]:
        """Return the answer to each question, as if its document came alone.

        ``corrections`` say which texts people have allowed.

        Raises:
            Warming: a shard can't be read yet.
            StoreDamaged: a store isn't as it was written.
            OSError: a store can't be read.
        """
        asked = [one for one in questions if isinstance(one, Question)]
        prints = self._fingerprinter.fingerprint([one.text for one in asked])
        times = np.array([one.time for one in asked], np.int64)
        allowed = nearest(
            corrections.allowances, prints.keys[:, -1], prints.sketches, self._rules.threshold
        )
        found = iter(self._found(shards, prints, times, allowed))
        return [rejected(one) if isinstance(one, Unreadable) else next(found) for one in questions]

    def _found(
        self,
        shards: Shards,
        prints: Fingerprints,
        times: npt.NDArray[np.int64],
        allowed: Mapping[int, Allowed],
    ) -> Iterator[Answer]:
        blank = prints.blank.tolist()
        (rows,) = np.nonzero(~prints.blank)
        of_shards = [
            self._of_shard(shards, shard, prints, times, rows)
            for shard in range(self._layout.shards)
        ]
        merged = map(self._merged, zip(*of_shards, strict=True))
        for row, is_blank in enumerate(blank):
            if is_blank:
                yield rejected(Unreadable("empty-text", _BLANK))
            elif row in allowed:
                by = allowed[row].id.decode(errors="replace")
                yield replaced(next(merged), verdict="unique", allowed_by=by)
            else:
                yield next(merged)

    def _of_shard(
        self,
        shards: Shards,
        shard: int,
        prints: Fingerprints,
        times: npt.NDArray[np.int64],
        rows: npt.NDArray[np.int64],
    ) -> list[ShardAnswer]:
        """Ask a shard about some texts, a few at a time."""
        columns = self._layout.columns_of(shard)
        found: list[ShardAnswer] = []
        for first in range(0, len(rows), _AT_ONCE):
            some = rows[first : first + _AT_ONCE]
            keys = np.ascontiguousarray(prints.keys[some][:, list(columns)].T)
            sketches, sizes = prints.sketches[some], prints.shingle_counts[some]
            batch = DocumentBatch(
                sequences=np.zeros(len(some), np.uint64),
                times=times[some],
                ids=[b""] * len(some),
                shingles=sizes.astype(np.uint32),
                columns=columns,
                keys=keys,
                sketches=sketches,
            )
            found += shards.read(shard, partial(self._ask, batch))
        return found

    def _ask(self, batch: DocumentBatch, reader: StoreReader) -> list[ShardAnswer]:
        return reader.query(batch, self._rules)

    def _merged(self, of_shards: Sequence[ShardAnswer]) -> Answer:
        """Return the answer to one question from those of all shards."""
        # Shards send similarities with 32 bits.
        named = {
            (-float(np.float32(one.similarity)), one.sequence, one.id, one.containment or 0.0)
            for answer in of_shards
            for one in answer.matches
        }
        met = sorted(met for answer in of_shards for met in answer.met)
        best = [
            Match(sequence, -negative, ident, share or None)
            for negative, sequence, ident, share in sorted(named)
        ]
        matches = [self._match(one, met) for one in best[: self._rules.max_matches]]
        return Answer(
            "duplicate" if matches else "unique",
            None,
            matches,
            _first(matches),
            sum(answer.compared for answer in of_shards),
            [self._met(column, list(some)) for column, some in _by_column(met)],
        )

    def _match(self, match: Match, met: Sequence[MetBucket]) -> Found:
        columns = sorted({one.column for one in met if match.sequence in one.holds})
        parameters = self._layout.parameters
        error = standard_error(match.similarity, parameters.slots, SKETCH_BITS)
        return Found(
            match.id.decode(),
            round(match.similarity, 4),
            round(float(error), 4),
            match.sequence,
            [column for column in columns if column < parameters.bands],
            parameters.bands in columns,
            None if match.containment is None else round(match.containment, 4),
        )

    def _met(self, column: int, some: Sequence[MetBucket]) -> Met:
        is_text = column == self._layout.parameters.bands
        return Met(None if is_text else column, [one.size for one in some])


def _first(matches: Sequence[Found]) -> First | None:
    """Return the earliest of the matches that are published."""
    if not matches:
        return None
    first = min(matches, key=attrgetter("sequence"))
    return First(first.id, first.sequence)


def _by_column(met: Sequence[MetBucket]) -> Iterator[tuple[int, Iterator[MetBucket]]]:
    return groupby(met, key=attrgetter("column"))
