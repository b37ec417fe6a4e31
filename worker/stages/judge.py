"""Judges frames against a shard's store, for its owner and for a standby.

`Ownership` is what *index* needs from the shards that a worker owns. `worker.index.owner`
implements it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NamedTuple, Protocol, TypeVar

from lsh._core import Decision
from lsh.index import BucketRules, DocumentBatch
from worker.bus import Record, TopicPartition
from worker.corrections.state import Corrected, Corrections, corrected
from worker.stages.base import Status
from worker.stages.order import Coverage, Documents, Placed, covered, placed
from worker.wire.codec import hand_over
from worker.wire.frame import Layout


class Parts(NamedTuple):
    """The parts of a store.

    Attributes:
        documents: how many it has records of, forgotten ones included.
        time_slices: how many it keeps.
        runs: how many runs a level has; ``memtable`` is the one that grows.
        postings: how many postings the runs of a level have.
    """

    documents: int
    time_slices: int
    runs: Mapping[str, int]
    postings: Mapping[str, int]


class StoreFigures(Protocol):
    """The figures of an open store. Call these only in the stage's own thread."""

    def size_bytes(self) -> int:
        """Return the estimated size on disk."""

    def memory_bytes(self) -> int:
        """Return its memory, without the block cache, which stores share."""

    def keys_estimate(self) -> int:
        """Return the number of cells and records."""

    def pending_compaction_bytes(self) -> int:
        """Return how much is still to be rewritten on disk."""

    @property
    def stalled_seconds(self) -> float:
        """Return for how long writes have waited for the disk since it was opened."""

    def oldest_seconds(self) -> float | None:
        """Return how much older its oldest era is than its newest document; None if it is empty."""

    def expired_eras(self) -> int:
        """Return how many eras it has given back since it was made."""

    def parts(self) -> Parts:
        """Return how many documents, time slices, runs and postings it has."""


class ShardStore(StoreFigures, Protocol):
    """A shard's state: its buckets, and how far it has read the log."""

    @property
    def offset(self) -> int:
        """Return the next offset to read in ``fingerprints``."""

    @property
    def coverage(self) -> Coverage:
        """Return which offsets of ``documents`` the applied frames have covered."""

    @property
    def corrections(self) -> Corrections:
        """Return what people have corrected, in the store of shard 0."""

    def decide(self, batch: DocumentBatch, rules: BucketRules) -> Decision:
        """Judge a batch of documents."""

    def apply(  # noqa: PLR0913 -- what is applied together
        self,
        decision: Decision | None,
        *,
        offset: int,
        documents: int,
        coverage: Coverage,
        corrections: Corrections | None = None,
        readers: AbstractContextManager[None] | None = None,
    ) -> None:
        """Apply the last decision and its offset atomically; None: only the offset.

        Without ``corrections``, these don't change.
        ``readers`` wait while they must.
        """


StoreT_co = TypeVar("StoreT_co", bound=ShardStore, covariant=True)


class Shard(Protocol[StoreT_co]):
    """An owned shard whose log can be read.

    ``committed`` is the group's offset; frames before it were already answered.
    """

    committed: int

    @property
    def store(self) -> StoreT_co:
        """Return its open store."""


class Ownership(Protocol[StoreT_co]):
    """The shards that a worker owns. Used in the stage's thread, except where noted."""

    @property
    def owned(self) -> Mapping[TopicPartition, Shard[StoreT_co]]:
        """Return the shards whose log can be read, by their seats."""

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        """Own exactly these shards; see `Stage`."""

    def started(self) -> dict[TopicPartition, int]:
        """Return the shards that have become ready; see `Stage`."""

    def guarded(self, partition: TopicPartition) -> AbstractContextManager[None]:
        """Replace the shard's store if the body finds it damaged, and continue.

        Raises:
            StageError: the disk is full, or can't be read or written.
        """

    def replayed(self, documents: int) -> None:
        """Count documents that were replayed without answers."""

    def idle(self) -> None:
        """Do what is due between bursts."""

    def waiting(self) -> frozenset[TopicPartition]:
        """Return the owned shards whose log can't be read yet."""

    def status(self) -> Status:
        """Return which shards don't answer yet, and how far warm ones are behind. Thread-safe."""

    def close(self) -> None:
        """Release everything within a bounded time."""


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
