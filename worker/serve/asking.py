"""Asks shards what texts would match, and merges their answers as *route* does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace as replaced

from lsh import Fingerprinter, Fingerprints
from lsh.index import BucketRules, DocumentBatch, Match
from lsh.sketch import SKETCH_BITS
from lsh.tuning import standard_error
from worker.corrections.state import NO_CORRECTIONS, Allowed, Corrections, nearest
from worker.documents.published import First
from worker.formats.unreadable import Unreadable
from worker.index.store_reader import MetBucket, ShardAnswer, StoreReader
from worker.serve.answers import Answer, Found, Met, rejected
from worker.serve.questions import Question
from worker.wire.frame import Layout

T = TypeVar("T")

_AT_ONCE = 16
"""The most questions that a shard is asked at a time: whoever else needs it waits for them."""
_BLANK = "nothing is left of the text once it is normalised"


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
