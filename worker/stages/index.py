"""Index: each shard reports, in the global order, the earlier documents that each one matches."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from lsh.index import Match
from worker.bus import (
    Offset,
    Outgoing,
    PartitionUnreadable,
    Record,
    RecordBatch,
    TopicPartition,
)
from worker.corrections.state import MOST_ALLOWANCES
from worker.generations.turns import BUILDING, NEVER, Turns, answers_from
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.stages.answers import BatchMatches, split_answer, with_done
from worker.stages.base import NOTHING, Burst, Shards, Status
from worker.stages.guard import FirstCases
from worker.stages.judge import Judge, Judgement, Ownership, Shard, ShardStore, pass_over
from worker.stages.order import Documents, Placed
from worker.stages.shard_reports import DateReports, ShardFigures
from worker.topology import Topology
from worker.wire.codec import encode
from worker.wire.corrections import ALLOWED
from worker.wire.frame import FRAME_BYTES

StoreT = TypeVar("StoreT", bound=ShardStore)

_log = logging.getLogger(__name__)


class _Read:
    """The frames of one burst. Shards that read the same frames share the decoded ones."""

    def __init__(self, place: Callable[[Record], Placed]) -> None:
        self._place = place
        self._frames: dict[int, Placed] = {}
        self._documents: dict[tuple[int, ...], Documents] = {}

    def frames(self, records: Sequence[Record]) -> list[Placed]:
        """Return the frames of these records; each is decoded once."""
        found = []
        for record in records:
            frame = self._frames.get(record.offset)
            if frame is None:
                frame = self._frames[record.offset] = self._place(record)
            found.append(frame)
        return found

    def documents(self, frames: Sequence[Placed]) -> Documents:
        """Return the documents of these frames."""
        offsets = tuple(frame.offset for frame in frames)
        return self._documents.setdefault(offsets, Documents(frames))


class Index(Generic[StoreT]):
    """The stateful stage; the kind of store is a type parameter.

    All shards read the same log, whose order is the order of all documents. Each shard takes the
    columns of its own bands. State is written only after the transaction that covers it. A newly
    assigned shard is read from its store's own offset, and doesn't answer before the group's
    committed offset. A generation that is being built answers nothing; see
    `worker.generations.turns`.
    """

    name = "index"

    def __init__(
        self,
        topology: Topology,
        *,
        judge: Judge,
        shards: Ownership[StoreT],
        frame_bytes: int = FRAME_BYTES,
        metrics: Metrics | None = None,
    ) -> None:
        """Take where to read and write, who judges frames, and the shards that are owned.

        Each shard is a partition of the seats' topic, which says who owns the shard. Its records
        are those of the one log.
        """
        self._matches = topology.matches
        self._order = topology.order
        self._judge = judge
        self._shards = shards
        self._frame_bytes = frame_bytes
        self.metrics = metrics or Metrics()
        self._figures = ShardFigures()
        self._turns = Turns(topology.generation, topology.layout.id)
        self._pending: dict[TopicPartition, Judgement] = {}
        self._begun: dict[TopicPartition, int] = {}
        self._reported: dict[TopicPartition, int] = {}
        self._report = False
        self._dates = DateReports(window=judge.has_window)
        self._first = FirstCases(_log)
        self._told = -1
        """The offset of the last record that was said to be refused."""
        self._told_full = False

    @property
    def shards(self) -> Shards:
        """Return itself; see `Stage`."""
        return self

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        """Own these shards and drop what isn't committed; see `Stage`."""
        self._pending.clear()
        self._begun.clear()
        self._reported.clear()
        self._turns.forget(self._turns.ended)
        silent = {seat: answers_from(committed) for seat, committed in offsets.items()}
        return self._shards.adopt(silent, watermarks)

    def process(
        self,
        batches: Sequence[RecordBatch],
        room: int = sys.maxsize,  # noqa: ARG002 -- bounded by the records
        quiet: Mapping[TopicPartition, int] = NOTHING,  # noqa: ARG002 -- the log outlasts a shard
    ) -> Burst:
        """Judge frames; see `Stage`."""
        starts = self._shards.started()
        self._turns.forget(starts)
        outgoing: list[Outgoing] = []
        offsets: dict[TopicPartition, int] = {}
        # A poll may return a partition's records in several runs. They are judged as one batch,
        # because the store doesn't show the first run's changes until the transaction commits.
        by_partition: dict[TopicPartition, list[Record]] = {}
        for batch in batches:
            by_partition.setdefault(batch.place, []).extend(batch)
        read = _Read(self._judge.placed)
        for partition, group in by_partition.items():
            shard = self._shards.owned.get(partition)
            if shard is None or partition in starts:
                continue  # its store is, or was, replaced; the log is read again for the new one
            turn = self._turns.of(partition, shard.committed, group)
            if turn.begun is not None:
                shard.committed = offsets[partition] = self._begun[partition] = turn.begun
            frames = read.frames(turn.frames)
            with self._shards.guarded(partition):
                live = self._replay(partition, shard, frames, read)
                if partition.partition == 0:  # All shards see the same records.
                    self._tell(shard, turn.nothing, live)
                if live:
                    outgoing += self._answer(partition, shard, read.documents(live))
                    offsets[partition] = live[-1].offset + 1
                elif turn.passed is not None:
                    pass_over(shard.store, turn.passed)
        offsets = {**self._progress(), **offsets}
        held = self._shards.waiting() | self._turns.ended
        return Burst(outgoing, offsets, held=held, starts=starts)

    def _tell(
        self, shard: Shard[StoreT], nothing: Sequence[Record], live: Sequence[Placed]
    ) -> None:
        """Say which records can't be carried out, each once."""
        before = self._told
        for record in nothing:
            if record.offset >= shard.committed and record.offset > before:
                self._count_refused(record.offset)
                said = f"passed over: {len(record.value or b'')} bytes that are no frame"
                of_log = record._replace(topic=self._order.topic, partition=self._order.partition)
                self._first.tell("nothing", of_log, said, logging.ERROR)
        for one in live:
            if one.refused is not None and one.offset > before:
                self._count_refused(one.offset)
                _log.error(
                    "the frame at offset %d of the fingerprints is refused: %s. Documents of"
                    " partition %d from offset %d to %d that are there are rejected",
                    one.offset, one.refused, one.frame.partition, one.frame.start,
                    one.frame.end - 1,
                )  # fmt: skip

    def _count_refused(self, offset: int) -> None:
        self._told = max(self._told, offset)
        self.metrics.add(table.FRAMES_REFUSED, 1, self.name)

    def _progress(self) -> dict[TopicPartition, int]:
        """Return what to commit of the shards that are being built, about once a second."""
        if not self._report:
            return {}
        self._report = False
        reached: dict[TopicPartition, int] = {
            seat: Offset(shard.store.offset, BUILDING)
            for seat, shard in self._shards.owned.items()
            if shard.committed == NEVER
        }
        moved = {seat: at for seat, at in reached.items() if self._reported.get(seat) != at}
        self._reported |= moved
        return moved

    def _replay(
        self,
        partition: TopicPartition,
        shard: Shard[StoreT],
        frames: list[Placed],
        read: _Read,
    ) -> list[Placed]:
        """Apply the frames that were already answered; return the others."""
        replayed = [frame for frame in frames if frame.offset < shard.committed]
        if replayed:
            found = read.documents(replayed)
            documents = self._judge.replay(partition.partition, shard.store, found)
            self.metrics.add(table.INDEX_DOCUMENTS, documents, "replayed")
            self._shards.replayed(documents)
        return frames[len(replayed) :]

    def _answer(
        self, partition: TopicPartition, shard: Shard[StoreT], documents: Documents
    ) -> Iterator[Outgoing]:
        """Judge frames and return the answers; the changes wait for the commit."""
        number = partition.partition
        judgement = self._judge.judge(number, shard.store, documents)
        self._pending[partition] = judgement
        return self._answers(number, documents.frames, judgement)

    def _count(self, judgement: Judgement) -> None:
        decision, add = judgement.decision, self.metrics.add
        if judgement.corrected.refused and not self._told_full:
            self._told_full = True
            _log.error(
                "allowance %r doesn't hold: there are %d, which is the most. Withdraw one, and"
                " allow the text again. Later ones like it are not named",
                judgement.corrected.refused[0].decode(errors="replace"), MOST_ALLOWANCES,
            )  # fmt: skip
        add(table.INDEX_DOCUMENTS, judgement.documents, "live")
        add(table.INDEX_CANDIDATES, decision.candidates)
        add(table.INDEX_MATCHES, len(decision.matches.ids))
        add(table.INDEX_ABSORBED, decision.absorbed)
        add(table.INDEX_ABSORBED_SIMILAR, decision.covered)
        add(table.INDEX_DIVIDED, decision.divided)
        add(table.INDEX_DROPPED, decision.dropped)
        add(table.INDEX_OLDER, decision.older)
        add(table.INDEX_REPEATED, decision.repeated)

    def _answers(
        self, shard: int, frames: Sequence[Placed], judgement: Judgement
    ) -> Iterator[Outgoing]:
        matches, limit, base = BatchMatches(judgement.decision.matches), self._frame_bytes, 0
        allowed, done = judgement.corrected.allowed, judgement.corrected.done
        for frame in frames:
            own = matches.of(base, base + frame.count)
            for row in range(base, base + frame.count) if allowed else ():
                if row in allowed:
                    ident, similarity = allowed[row]
                    named = Match(ALLOWED, similarity, ident, None)
                    own[row - base] = [named, *own.get(row - base, ())]
            base += frame.count
            partition = frame.frame.partition
            for part in split_answer(frame, shard, own, limit, judgement.known):
                if frame.offset in done:
                    part = with_done(part, frame.frame.start, done[frame.offset])  # noqa: PLW2901
                yield Outgoing(self._matches(shard), partition, None, encode(part))

    def committed(self) -> None:
        """Write to the stores what the transaction has covered."""
        begun, self._begun = self._begun, {}
        for seat in begun.keys() - self._pending.keys() & self._shards.owned.keys():
            with self._shards.guarded(seat):
                pass_over(self._shards.owned[seat].store, begun[seat])
        while self._pending:
            partition, judgement = self._pending.popitem()
            shard = self._shards.owned[partition]
            shard.committed = judgement.offset
            self._count(judgement)
            if partition == min(self._shards.owned):  # All shards see the same documents.
                self._dates.judged(judgement.decision, judgement.documents)
            with self._shards.guarded(partition):
                judgement.apply(shard.store)

    def idle(self) -> None:
        """Start flushes and snapshots that are due, and report status and stores."""
        self._shards.idle()
        self._report = True
        stores = self.stores()
        self._figures.status(self.metrics, self.status(), stores)
        self._figures.stores(self.metrics, stores)

    def status(self) -> Status:
        """Return the state of the shards; see `Shards`."""
        return self._shards.status()

    def stores(self) -> dict[int, StoreT]:
        """Return the open stores by shard. Use them only in the stage's own thread."""
        owned = list(self._shards.owned.items())
        return {partition.partition: shard.store for partition, shard in owned}

    def unreadable(self, error: PartitionUnreadable) -> int | None:
        """Raise it: every shard needs all frames."""
        raise error

    def close(self) -> None:
        """Flush and close the stores."""
        self._shards.close()
