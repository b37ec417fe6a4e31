"""A world in which the next generation gets fingerprints of its own, from the documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from tests.support.checker import check
from tests.support.checker.history import History, verdicts
from tests.world.crash.proof import Oracle
from tests.world.crash.reindexing import BUILT_ROUNDS, ReindexedWorld
from worker.admin.reindex.checking import numbered
from worker.bus import Offset, TopicPartition, state_of
from worker.generations.generation import Generation, Signing
from worker.generations.plan import Plan
from worker.generations.turns import SEALED, WAITING
from worker.settings.model import Settings
from worker.topology import Topology
from worker.wire.codec import decode
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.frame import POSITION_BITS

_ANY_TEXT: Final = 0.01
"""A threshold below which no match is ever wrong."""


class RewrittenWorld(ReindexedWorld):
    """A world whose operator has fingerprints made anew, step by step."""

    def rewrite(self, **settings: dict[str, object]) -> None:
        """Have the next generation built with these settings, by section, in place of others."""
        plan = self.plan()
        source = plan.current.topology(self.topology)
        given = self.settings.model_dump(exclude_unset=True)
        own = {section: {**given.get(section, {}), **new} for section, new in settings.items()}
        wanted = Generation.fingerprinted(Settings.model_validate({**given, **own}))
        following = numbered(plan, wanted, self.bus.end_offset(*source.order))
        target = following.topology(self.topology)
        for topic, partitions in target.internal().items():
            appended = topic == target.fingerprints
            self.bus.create_topic(topic, partitions, log_append_time=appended)
        self._seat_groups(source, target)
        self._generations.append(following)
        self.archive.follow(target)
        signing = Signing.of(self.settings.parameters())
        self._change(partial(Plan.start_build, following=following, signing=signing))

    def _seat_groups(self, source: Topology, target: Topology) -> None:
        """Set where the groups of the new log begin."""
        seats = [TopicPartition(target.seats, shard) for shard in range(target.layout.shards)]
        group = target.group("index")
        self.bus.commit_offsets(
            group, dict.fromkeys(seats, Offset(0, WAITING)), of=target.fingerprints
        )
        reached = self.bus.committed(source.group("fingerprint"), self._documents())
        documents = {place: Offset(at or 0, WAITING) for place, at in reached.items()}
        self.bus.commit_offsets(target.group("fingerprint"), documents)
        low = self.bus.start_offset(*source.order)
        self.bus.commit_offsets(target.group("refingerprint"), {source.order: low})

    def _documents(self) -> list[TopicPartition]:
        documents, partitions = self.topology.documents, self.topology.layout.partitions
        return [TopicPartition(documents, number) for number in range(partitions)]

    def _logs(self) -> tuple[Topology, Topology]:
        """Give the topologies of the log in use, and of the next one."""
        plan = self.plan()
        assert plan.following is not None
        return plan.current.topology(self.topology), plan.following.topology(self.topology)

    def begin_to_seal(self) -> None:
        """Have workers seal the log in use."""
        self._change(Plan.seal)

    def seal(self) -> None:
        """Have the log in use sealed, and wait for it."""
        self.begin_to_seal()
        self._until(self.sealed)

    def sealed(self) -> bool:
        """Tell whether all of the log in use is sealed."""
        offsets = self.bus.committed(self._logs()[0].group("fingerprint"))
        return all(offset is not None and state_of(offset) == SEALED for offset in offsets.values())

    def direct(self) -> None:
        """Have the documents go to the new log, once it has the hand-over."""
        old, new = self._logs()
        self._until(lambda: new.generation in self.archive.log(new).hand_overs)
        offsets = self.bus.committed(old.group("fingerprint"))
        starts = [int(offsets[place] or 0) for place in self._documents()]
        self._change(partial(Plan.begin_log, starts=starts))

    def through(self) -> bool:
        """See the base class; and all documents go to the new log."""
        plan = self.plan()
        if plan.rewriting:
            offsets = self.bus.committed(self._logs()[1].group("fingerprint"))
            if any(offset is None or state_of(offset) == WAITING for offset in offsets.values()):
                return False
        return super().through()

    def _until(self, what: Callable[[], bool]) -> None:
        for _ in range(BUILT_ROUNDS):
            if what():
                return
            self.rounds(1)
        raise AssertionError(f"stuck: {self.positions()}")

    def delete_published(self) -> int:
        """Delete the documents that were published; return how many there were in all."""
        routed = self.bus.committed(self.topology.group("route"))
        for place in self._documents():
            self.bus.trim(*place, routed[place] or 0)
        return sum(routed[place] or 0 for place in self._documents())

    def trim_log(self) -> None:
        """Delete the first half of the log in use, as its retention would."""
        plan = self.plan()
        order = plan.current.topology(self.topology).order
        self.bus.trim(*order, self.bus.end_offset(*order) // 2)

    def left_out(self) -> int:
        """Give how many documents of the earlier log have no fingerprint in the last one."""
        earlier, last = (
            set(self._numbers(one.topology(self.topology)).values())
            for one in (self._generations[0], self._generations[-1])
        )
        return len(earlier - last)

    # What it comes to.

    def history(self) -> History:
        """See the base class; documents have another number in a log that was made anew."""
        found = super().history()
        published = {at: verdict.sequence for at, verdict in verdicts(found).items()}
        numbers: dict[int, int] = {}
        for topology in self.topologies():
            for number, place in self._numbers(topology).items():
                if place in published:
                    numbers[number] = published[place]
        return replace(found, renumbered=numbers)

    def _numbers(self, topology: Topology) -> dict[int, tuple[int, int]]:
        """Give the documents of a log, by the sequence numbers that they have there."""
        found: dict[int, tuple[int, int]] = {}
        for record in self.archive.log(topology).frames:
            frame = decode(FingerprintFrame, record.value, topology.layout.id)
            first = (topology.layout.numbered_from + record.offset) << POSITION_BITS
            for position, offset in enumerate(frame.offsets.tolist()):
                found[first + position] = frame.partition, frame.start + offset
        return found

    def invariants(self, history: History) -> list[str]:
        """See the base class; what is similar is another thing in each log: replays tell."""
        lenient = replace(history.parameters, threshold=_ANY_TEXT)
        return check(replace(history, parameters=lenient))

    def judged_otherwise(self, oracle: Oracle) -> int:
        """Give how many verdicts before the hand-over the new fingerprints would have changed."""
        old, new = (
            oracle.replayed(
                self.archive.log(topology).frames, one.settings(self.settings), topology
            )
            for one in self._generations
            for topology in [one.topology(self.topology)]
        )
        return sum(bool(old[at].matches) != bool(new[at].matches) for at in old)
