"""Judges frames against a shard's store, for its owner and for a standby."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NamedTuple

from lsh._core import Decision
from lsh.index import BucketRules
from worker.bus import Record
from worker.corrections.state import Corrected, corrected
from worker.stages.coverage import Coverage
from worker.stages.order import Documents, Placed, covered, placed
from worker.stages.ownership import ShardStore
from worker.wire.codec import hand_over
from worker.wire.frame import Layout


class Judgement(NamedTuple):
    """The result of judging frames: the decision, and how far the store is once it is applied.

    ``known`` are the ids that tombstones of the frames forget and that a document had: in the
    store, or in the frames themselves. ``corrected`` is what people have corrected until after the
    frames, which only shard 0 knows.
    """

    decision: Decision
    offset: int
    documents: int
    coverage: Coverage
    known: frozenset[bytes]
    corrected: Corrected

    def apply(self, store: ShardStore, readers: AbstractContextManager[None] | None = None) -> None:
        """Write it to the store that it was made for, beside those who read it."""
        store.apply(
            self.decision,
            offset=self.offset,
            documents=self.documents,
            coverage=self.coverage,
            corrections=self.corrected.held,
            readers=readers,
        )


class Judge:
    """Judges frames by the application's layout and rules. Has no state."""

    def __init__(self, layout: Layout, *, future_allowance_ms: int, rules: BucketRules) -> None:
        """Take what all workers agree on.

        A document's time is at most the log's and ``future_allowance_ms``.
        """
        self._layout = layout
        self._allowance = future_allowance_ms
        made = layout.parameters
        self._rules = replace(rules, bands=made.bands, rows=made.rows)

    @property
    def has_window(self) -> bool:
        """Return whether documents are forgotten when they are old."""
        return self._rules.window_ms is not None

    def placed(self, record: Record) -> Placed:
        """Return the frame of a record of the log, with its place in the order.

        Raises:
            FrameError: this worker can't read the record as a frame.
        """
        return placed(record, self._layout, self._allowance)

    def judge(self, shard: int, store: ShardStore, documents: Documents) -> Judgement:
        """Judge the documents of frames without writing.

        Everything that is applied to a store, by an owner or a standby, comes from here.

        Raises:
            FrameOutOfPlace: a frame was lost, doubled or moved.
        """
        frames = documents.frames
        coverage = covered(shard, store.coverage, frames)
        batch = documents.batch(self._layout, shard)
        decision = store.decide(batch, self._rules)
        after = frames[-1].offset + 1
        ids = documents.forgotten_ids
        known = (ids & documents.own_ids).union(decision.known) if ids else ids
        rules, made = self._rules, Corrected()
        if shard == 0:
            logged = ((one.frame, one.offset, one.logged) for one in frames)
            made = corrected(
                store.corrections, logged, threshold=rules.threshold, window=rules.window_ms
            )
        return Judgement(decision, after, len(documents), coverage, known, made)

    def replay(self, shard: int, store: ShardStore, documents: Documents) -> int:
        """Apply the changes of frames without answering; return their number of documents."""
        judgement = self.judge(shard, store, documents)
        judgement.apply(store)
        return judgement.documents

    def keep_warm(self, shard: int, store: ShardStore, records: Iterable[Record]) -> None:
        """Apply records of the log that another worker has already answered."""
        layout = self._layout.id
        frames = [record for record in records if hand_over(record.value, layout) is None]
        if frames:
            self.replay(shard, store, Documents([self.placed(record) for record in frames]))


def pass_over(store: ShardStore, offset: int) -> None:
    """Note that a store has read a hand-over: it changes nothing but the offset."""
    store.apply(None, offset=offset, documents=0, coverage=store.coverage)
