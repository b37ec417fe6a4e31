"""What *index* needs from the shards that a worker owns; `worker.index.owner` implements it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from lsh._core import Decision
from lsh.index import BucketRules, DocumentBatch
from worker.bus import TopicPartition
from worker.corrections.state import Corrections
from worker.stages.base import Status
from worker.stages.coverage import Coverage


class StoreSize(Protocol):
    """The sizes of an open store. Call these only in the stage's own thread."""

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


@runtime_checkable
class StoreReach(Protocol):
    """How far back an open store reaches. Call this only in the stage's own thread."""

    def oldest_seconds(self) -> float | None:
        """Return how much older its oldest era is than its newest document; None if it is empty."""

    def expired_eras(self) -> int:
        """Return how many eras it has given back since it was made."""


class Parts(NamedTuple):
    """What a store consists of.

    Attributes:
        documents: how many it has records of, forgotten ones included.
        eras: how many it keeps.
        runs: how many runs a tier has; ``open`` is the one that grows.
        cells: how many cells the runs of a tier have.
    """

    documents: int
    eras: int
    runs: Mapping[str, int]
    cells: Mapping[str, int]


@runtime_checkable
class StoreParts(Protocol):
    """What an open store consists of. Call this only in the stage's own thread."""

    def parts(self) -> Parts:
        """Return how many documents, eras, runs and cells it has."""


class ShardStore(StoreSize, Protocol):
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
