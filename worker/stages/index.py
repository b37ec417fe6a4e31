"""Index: each shard answers, in the one order, which earlier documents are matched."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from worker.bus import OffsetOutOfRange, Outgoing, Record, TopicPartition
from worker.frames import (
    F32,
    I64,
    POSITION_BITS,
    U16,
    U32,
    U64,
    BandFrame,
    Ids,
    MatchFrame,
    decode,
    encode,
)
from worker.shard import BucketRules, Decision, Match, ShardBatch, decide
from worker.stages.base import Burst, StageError
from worker.stages.sequence import columns_of
from worker.store import BandStore

__all__ = ["Index", "IndexCounts"]

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class IndexCounts:
    """What became of a burst, for metrics."""

    documents: int = 0
    replayed: int = 0
    candidates: int = 0
    matches: int = 0
    absorbed: int = 0
    dropped: int = 0


@dataclass(slots=True)
class _Shard:
    """A store that this worker owns, and where the group stood when it took it on."""

    store: BandStore
    committed: int
    pending: tuple[Decision, int, int, int] | None = None


class Index:
    """The stateful stage.

    State is written only after the transaction that covers it. On taking on a shard it
    reads on from the shard's own offset, silent until the group's committed offset.
    """

    name = "index"

    def __init__(  # noqa: PLR0913 -- the composition root's business
        self,
        *,
        bands: str,
        matches: Callable[[int], str],
        layout: str,
        shards: int,
        columns: int,
        rules: BucketRules,
        open_store: Callable[[int], BandStore],
        put_aside: Callable[[int, str], None],
        frame_bytes: int = 900_000,
        on_burst: Callable[[IndexCounts], None] = lambda _counts: None,
    ) -> None:
        """Take topic names, and how to open a shard's store or put it aside."""
        self.topics = (bands,)
        self._matches = matches
        self._layout = layout
        self._shards = shards
        self._columns = columns
        self._rules = rules
        self._open = open_store
        self._put_aside = put_aside
        self._frame_bytes = frame_bytes
        self._on_burst = on_burst
        self._owned: dict[TopicPartition, _Shard] = {}
        self._counts = IndexCounts()

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        """Open the shards that are new, close those that are gone, drop what isn't committed."""
        for partition in self._owned.keys() - offsets.keys():
            self._owned.pop(partition).store.close()
        starts = {}
        for partition, committed in offsets.items():
            shard = self._owned.get(partition)
            if shard is None:
                shard = _Shard(self._open(partition.partition), committed)
                self._owned[partition] = shard
            shard.committed = committed
            shard.pending = None
            self._reconcile(partition, shard, watermarks(partition))
            starts[partition] = shard.store.offset
            behind = committed - shard.store.offset
            if behind > 0:
                _log.info(
                    "shard %d replays %d frames, from offset %d to %d, before it answers",
                    partition.partition,
                    behind,
                    shard.store.offset,
                    committed,
                )
        return starts

    def _reconcile(self, partition: TopicPartition, shard: _Shard, log: tuple[int, int]) -> None:
        """Put a store aside that can't be continued, and begin anew if the log allows it."""
        low, high = log
        own = shard.store.offset
        why = None
        if own > high:
            why = f"its offset {own} is after the end of the log, {high}"
        elif own > shard.committed:
            why = f"its offset {own} is past the group's, {shard.committed}"
        elif own < low and own > 0:
            why = f"its offset {own} is before the start of the log, {low}"
        if why is not None:
            shard.store.close(flush=False)
            self._put_aside(partition.partition, why)
            shard.store = self._open(partition.partition)
        if shard.store.offset < low:
            msg = (
                f"shard {partition.partition} must be rebuilt from offset {shard.store.offset} of"
                f" {partition.topic}, and that log begins at {low}: what came before is deleted."
                " Move the shard's directory here from the worker that had it"
            )
            raise StageError(msg)

    def process(self, records: Sequence[Record]) -> Burst | None:
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
        for partition, group in by_partition.items():
            shard = self._owned[partition]
            frames = [(r.offset, decode(BandFrame, r.value, self._layout)) for r in group]
            replayed = [pair for pair in frames if pair[0] < shard.committed]
            live = frames[len(replayed) :]
            if replayed:
                decision, _ = self._decide(partition, shard, replayed)
                self._write(shard, decision, replayed)
                self._counts.replayed += sum(frame.count for _, frame in replayed)
            if live:
                decision, batch = self._decide(partition, shard, live)
                shard.pending = (
                    decision,
                    live[-1][0] + 1,
                    max(frame.now for _, frame in live),
                    len(batch.ids),
                )
                outgoing += self._answers(partition.partition, live, decision)
                offsets[partition] = live[-1][0] + 1
                self._count(decision, batch)
        if not offsets:
            self._on_burst(self._counts)
            return None
        return Burst(outgoing, offsets)

    def _count(self, decision: Decision, batch: ShardBatch) -> None:
        self._counts.documents += len(batch.ids)
        self._counts.candidates += decision.candidates
        self._counts.matches += sum(map(len, decision.matches.values()))
        self._counts.absorbed += decision.absorbed
        self._counts.dropped += decision.dropped

    def _decide(
        self, partition: TopicPartition, shard: _Shard, frames: list[tuple[int, BandFrame]]
    ) -> tuple[Decision, ShardBatch]:
        for _, frame in frames:
            if frame.shard != partition.partition:
                msg = (
                    f"{partition.topic}[{partition.partition}] holds a frame of shard {frame.shard}"
                )
                raise StageError(msg)
        batch = self._batch(partition.partition, [frame for _, frame in frames])
        return decide(shard.store, batch, self._rules), batch

    def _batch(self, shard: int, frames: list[BandFrame]) -> ShardBatch:
        columns = columns_of(shard, self._shards, self._columns)
        return ShardBatch(
            sequences=np.concatenate(
                [
                    np.uint64(frame.number << POSITION_BITS)
                    + np.arange(frame.count, dtype=np.uint64)
                    for frame in frames
                ]
            ),
            times=np.frombuffer(b"".join(frame.times for frame in frames), I64),
            ids=list(chain.from_iterable(frame.ids.unpack() for frame in frames)),
            shingles=np.frombuffer(b"".join(frame.shingles for frame in frames), U32),
            columns=columns,
            keys=np.concatenate(
                [np.frombuffer(f.keys, U64).reshape(len(columns), f.count) for f in frames], axis=1
            ),
            sketches=_sketches(frames),
        )

    def _write(
        self, shard: _Shard, decision: Decision, frames: list[tuple[int, BandFrame]]
    ) -> None:
        shard.store.write(
            decision.writes,
            offset=frames[-1][0] + 1,
            now=max(shard.store.now, *(frame.now for _, frame in frames)),
            documents=sum(frame.count for _, frame in frames),
        )

    def _answers(
        self, shard: int, frames: list[tuple[int, BandFrame]], decision: Decision
    ) -> Iterator[Outgoing]:
        base = 0
        for _, frame in frames:
            matches = {
                row - base: decision.matches[row]
                for row in decision.matches.keys() & range(base, base + frame.count)
            }
            base += frame.count
            for part in split_answer(frame, matches, self._frame_bytes):
                yield Outgoing(self._matches(shard), frame.partition, None, encode(part))

    def committed(self) -> None:
        """Write to the stores what the transaction covered."""
        for shard in self._owned.values():
            if shard.pending is None:
                continue
            decision, offset, now, documents = shard.pending
            shard.pending = None
            shard.store.write(
                decision.writes,
                offset=offset,
                now=max(shard.store.now, now),
                documents=documents,
            )
            shard.committed = offset
        self._on_burst(self._counts)

    def idle(self) -> None:
        """Flush what has waited long enough."""
        for shard in self._owned.values():
            shard.store.flush_if_due()

    def paused(self) -> frozenset[TopicPartition]:
        """Take all that comes."""
        return frozenset()

    def restoring(self) -> bool:
        """Tell whether a shard is still silent."""
        return any(shard.store.offset < shard.committed for shard in self._owned.values())

    def stores(self) -> dict[int, BandStore]:
        """Give the open stores by shard, for metrics."""
        return {partition.partition: shard.store for partition, shard in self._owned.items()}

    def out_of_range(self, error: OffsetOutOfRange) -> int:
        """Refuse to skip frames.

        Raises:
            StageError: always.
        """
        msg = f"{error}: frames were deleted before the shard had read them"
        raise StageError(msg)

    def close(self) -> None:
        """Flush and close the stores."""
        while self._owned:
            self._owned.popitem()[1].store.close()


def _sketches(frames: Sequence[BandFrame]) -> npt.NDArray[np.uint8]:
    data = np.frombuffer(b"".join(frame.sketches for frame in frames), np.uint8)
    return (
        data.reshape(sum(map(attrgetter("count"), frames)), -1) if len(data) else data.reshape(0, 0)
    )


def split_answer(
    frame: BandFrame, matches: Mapping[int, Sequence[Match]], limit: int
) -> Iterator[MatchFrame]:
    """Cut an answer at documents, so that no part is larger than about ``limit`` bytes."""
    offsets = np.frombuffer(frame.offsets, U32)
    checksums = np.frombuffer(frame.checksums, U64)
    cuts = []
    size = 0
    for row in sorted(matches):
        own = 6 + sum(14 + len(match.id) for match in matches[row])
        if size and size + own > limit:
            cuts.append(row)
            size = 0
        size += own
    for low, high in pairwise([0, *cuts, frame.count]):
        skipped = int(offsets[low]) if low else 0
        rows = sorted(row for row in matches if low <= row < high)
        found = [match for row in rows for match in matches[row]]
        yield MatchFrame(
            layout=frame.layout,
            partition=frame.partition,
            start=frame.start + skipped,
            end=frame.end if high == frame.count else frame.start + int(offsets[high]),
            shard=frame.shard,
            number=frame.number,
            first=low,
            offsets=(offsets[low:high] - U32.type(skipped)).tobytes() if frame.shard == 0 else b"",
            checksums=checksums[low:high].tobytes() if frame.shard == 0 else b"",
            matched=(offsets[rows] - U32.type(skipped)).tobytes(),
            counts=np.array([len(matches[row]) for row in rows], U16).tobytes(),
            sequences=np.array([match.sequence for match in found], U64).tobytes(),
            similarities=np.array([match.similarity for match in found], F32).tobytes(),
            ids=Ids.pack([match.id for match in found]),
        )
