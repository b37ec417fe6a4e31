"""Index: each shard answers, in the one order, which earlier documents are matched."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

from worker.bus import OffsetOutOfRange, Outgoing, Reader, Record, TopicPartition
from worker.coverage import Coverage
from worker.frames import FRAME_BYTES, encode
from worker.shard import BucketRules, Decision, decide
from worker.snapshots import Kept, OpenStore, Recovery, Shipper
from worker.stages.answers import split_answer
from worker.stages.base import Burst, StageError
from worker.stages.order import Documents, Placed, columns_of, placed
from worker.stages.replays import Shard
from worker.stages.shards import RestoreState, Shards
from worker.stages.standby import Standby
from worker.stages.tiling import covered
from worker.store import BandStore

__all__ = ["Index", "IndexCounts"]


@dataclass(slots=True)
class IndexCounts:
    """What became of a burst, for metrics."""

    documents: int = 0
    replayed: int = 0
    candidates: int = 0
    matches: int = 0
    absorbed: int = 0
    dropped: int = 0


class _Pending(NamedTuple):
    """What a shard becomes once the transaction has committed."""

    decision: Decision
    offset: int
    now: int
    documents: int
    coverage: Coverage


class _Read:
    """What a burst has brought: shards that read the same frames share what they are made into."""

    def __init__(self, place: Callable[[Record], Placed]) -> None:
        self._place = place
        self._frames: dict[int, Placed] = {}
        self._documents: dict[tuple[int, ...], Documents] = {}

    def frames(self, records: Sequence[Record]) -> list[Placed]:
        """Read records of the log."""
        found = []
        for record in records:
            frame = self._frames.get(record.offset)
            if frame is None:
                frame = self._frames[record.offset] = self._place(record)
            found.append(frame)
        return found

    def documents(self, frames: Sequence[Placed]) -> Documents:
        """Return the documents of these frames."""
        numbers = tuple(frame.number for frame in frames)
        return self._documents.setdefault(numbers, Documents(frames))


class Index:
    """The stateful stage.

    All shards read the one log, whose order is the order of all documents, and each takes the
    columns of the bands that it owns. State is written only after the transaction that covers it.
    On taking on a shard it reads on from the shard's own offset, silent until the group's
    committed offset.
    """

    name = "index"
    pending = False

    def __init__(  # noqa: PLR0913 -- the composition root's business
        self,
        *,
        seats: str,
        matches: Callable[[int], str],
        layout: str,
        shards: int,
        columns: int,
        future_allowance_ms: int,
        rules: BucketRules,
        open_store: OpenStore,
        put_aside: Callable[[int, str], None],
        kept: Kept | None = None,
        shipper: Shipper | None = None,
        standby: Collection[int] = (),
        reader: Callable[[], Reader] | None = None,
        background: bool = False,
        clock: Callable[[], float] = monotonic,
        frame_bytes: int = FRAME_BYTES,
        on_burst: Callable[[IndexCounts], None] = lambda _counts: None,
        on_idle: Callable[[Mapping[int, RestoreState]], None] = lambda _states: None,
        on_standby: Callable[[Mapping[int, int]], None] = lambda _lag: None,
    ) -> None:
        """Take topic names, and how to open a shard's store or put it aside.

        ``seats`` is the topic with a partition per shard, which says who owns it; its records are
        those of the one log. A document's time is at most the log's and ``future_allowance_ms``.
        ``kept`` says where snapshots are, and ``shipper`` takes them. The shards of ``standby``
        are kept warm, by a ``reader`` beside the group, while others own them. With ``background``,
        stores are opened and fetched in threads of their own, while the loop polls. ``on_idle``
        is told, about once a second, of the shards that don't answer yet, and ``on_standby`` how
        many records those kept warm are behind.
        """
        self.topics = (seats,)
        self._matches = matches
        self._layout = layout
        self._shards = shards
        self._columns = columns
        self._allowance = future_allowance_ms
        self._rules = rules
        self._frame_bytes = frame_bytes
        self._on_burst = on_burst
        self._on_idle = on_idle
        self._on_standby = on_standby
        recovery = Recovery(open_store, put_aside, kept)
        warm = None
        if standby and reader is not None:
            places = [TopicPartition(seats, shard) for shard in standby]
            warm = Standby(
                places,
                reader,
                recovery,
                put_aside,
                self._keep_warm,
                background=background,
                clock=clock,
            )
        self._stores = Shards(
            recovery, put_aside, shipper, warm, background=background, clock=clock
        )
        self._pending: dict[TopicPartition, _Pending] = {}
        self._counts = IndexCounts()

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        """Own these shards; what isn't committed is dropped. See `Stage`."""
        self._pending.clear()
        return self._stores.adopt(offsets, watermarks)

    def started(self) -> dict[TopicPartition, int]:
        """Take on the shards that are open by now; see `Stage`."""
        return self._stores.started()

    def process(
        self,
        records: Sequence[Record],
        room: int = sys.maxsize,  # noqa: ARG002 -- bounded by the records
    ) -> Burst | None:
        """Judge frames; see `Stage`."""
        outgoing: list[Outgoing] = []
        offsets: dict[TopicPartition, int] = {}
        self._counts = IndexCounts()
        # A poll may bring a partition's records in several runs. They are judged as one batch:
        # the store shows nothing of a run before the transaction has committed.
        by_partition: dict[TopicPartition, list[Record]] = {}
        for record in records:
            place = TopicPartition(record.topic, record.partition)
            by_partition.setdefault(place, []).append(record)
        read = _Read(self._placed)
        for partition, group in by_partition.items():
            shard = self._stores.owned.get(partition)
            if shard is None:
                continue  # its store is being replaced, and it is read anew from there
            frames = read.frames(group)
            with self._stores.guarded(partition):
                live = self._replay(partition, shard, frames, read)
                if live:
                    outgoing += self._judge(partition, shard, read.documents(live))
                    offsets[partition] = live[-1].number + 1
        if not offsets:
            self._on_burst(self._counts)
            return None
        return Burst(outgoing, offsets)

    def _placed(self, record: Record) -> Placed:
        return placed(record, self._layout, self._allowance)

    def _replay(
        self, partition: TopicPartition, shard: Shard, frames: list[Placed], read: _Read
    ) -> list[Placed]:
        """Apply, in silence, the frames that were answered before; give the others."""
        replayed = [frame for frame in frames if frame.number < shard.committed]
        if replayed:
            documents = self._apply(partition, shard.store, read.documents(replayed))
            self._counts.replayed += documents
            self._stores.replayed += documents
        return frames[len(replayed) :]

    def _apply(self, partition: TopicPartition, store: BandStore, documents: Documents) -> int:
        """Write what frames change, and answer nothing; count their documents."""
        pending = self._decide(partition, store, documents)
        _write(store, pending)
        return pending.documents

    def _keep_warm(
        self, partition: TopicPartition, store: BandStore, records: list[Record]
    ) -> None:
        """Apply what another worker has answered; runs in the standby's thread."""
        self._apply(partition, store, Documents(list(map(self._placed, records))))

    def _judge(
        self, partition: TopicPartition, shard: Shard, documents: Documents
    ) -> list[Outgoing]:
        """Answer frames; what they change waits for the commit."""
        pending = self._decide(partition, shard.store, documents)
        self._pending[partition] = pending
        self._count(pending)
        return list(self._answers(partition.partition, documents.frames, pending.decision))

    def _count(self, pending: _Pending) -> None:
        decision = pending.decision
        self._counts.documents += pending.documents
        self._counts.candidates += decision.candidates
        self._counts.matches += sum(map(len, decision.matches.values()))
        self._counts.absorbed += decision.absorbed
        self._counts.dropped += decision.dropped

    def _decide(
        self, partition: TopicPartition, store: BandStore, documents: Documents
    ) -> _Pending:
        """Judge frames; say what the store becomes by them.

        Whatever is applied to a store, for an owner or a standby, comes through here.
        """
        frames, shard = documents.frames, partition.partition
        coverage = covered(shard, store.coverage, frames)
        batch = documents.batch(columns_of(shard, self._shards, self._columns))
        decision = decide(store, batch, self._rules)
        now = max(store.now, *(frame.now for frame in frames))
        return _Pending(decision, frames[-1].number + 1, now, len(documents), coverage)

    def _answers(
        self, shard: int, frames: Sequence[Placed], decision: Decision
    ) -> Iterator[Outgoing]:
        base = 0
        for frame in frames:
            matches = {
                row - base: decision.matches[row]
                for row in decision.matches.keys() & range(base, base + frame.count)
            }
            base += frame.count
            partition = frame.frame.partition
            for part in split_answer(frame, shard, matches, self._frame_bytes):
                yield Outgoing(self._matches(shard), partition, None, encode(part))

    def settle(
        self,
        positions: Mapping[TopicPartition, int],  # noqa: ARG002 -- port
    ) -> Burst | None:
        """Do without: the log is kept as long as the shard needs it."""
        return None

    def reduced(self, record: Outgoing) -> Outgoing | None:  # noqa: ARG002 -- port
        """Nothing can be left out of an answer."""
        return None

    def committed(self) -> None:
        """Write to the stores what the transaction covered."""
        while self._pending:
            partition, pending = self._pending.popitem()
            shard = self._stores.owned[partition]
            shard.committed = pending.offset
            with self._stores.guarded(partition):
                _write(shard.store, pending)
        self._on_burst(self._counts)

    def idle(self) -> None:
        """Flush and snapshot what is due."""
        self._stores.idle()
        self._on_idle(self._stores.states())
        self._on_standby(self.warm())

    def paused(self) -> frozenset[TopicPartition]:
        """Hold back shards whose store isn't open."""
        return self._stores.waiting()

    def restoring(self) -> dict[int, RestoreState]:
        """Tell which shards are still silent, and how far they are; from any thread."""
        return self._stores.states()

    def restored(self) -> int:
        """Give a number that grows as long as a restore gets on, by fetching or by replaying."""
        return self._stores.moved()

    def warm(self) -> Mapping[int, int]:
        """Give how many records behind their groups the shards kept warm are."""
        return self._stores.standby_lag()

    def stores(self) -> dict[int, BandStore]:
        """Give the open stores by shard, for metrics."""
        owned = list(self._stores.owned.items())
        return {partition.partition: shard.store for partition, shard in owned}

    def out_of_range(self, error: OffsetOutOfRange) -> int:
        """Refuse to skip frames.

        Raises:
            StageError: always.
        """
        msg = f"{error}: frames were deleted before the shard had read them"
        raise StageError(msg)

    def close(self) -> None:
        """Flush and close the stores."""
        self._stores.close()


def _write(store: BandStore, pending: _Pending) -> None:
    store.write(
        pending.decision.writes,
        offset=pending.offset,
        now=pending.now,
        documents=pending.documents,
        coverage=pending.coverage,
    )
