"""The indexes that a run has left behind, each against its log."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from tests.support.audit import read_all
from tests.support.checker.index import Dump, continued, dump, index_differences, rebuilt, unexpired
from worker.admin.cluster import Cluster
from worker.app import Application
from worker.bus import Record, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.index.directory import beside
from worker.index.recovery import LogRange, Recovery
from worker.index.restore_progress import RestoreProgress
from worker.index.snapshots.soundness import rotten
from worker.settings.model import Settings
from worker.topology import Topology

ADMIN_SECONDS = 30.0
SHOWN = 5


class EndedRun(NamedTuple):
    """What workers have left behind that have stopped."""

    bootstrap: str
    settings: Settings
    topology: Topology
    states: Mapping[str, Path]
    """Where each worker's shards lie."""
    directory: Path
    """Where there is room for more."""
    reached: Mapping[int, int]
    """By shard, the offset that its group had committed when the workers stopped.

    It is read at once: a group without members forgets its offsets, and judging takes minutes.
    """
    fingerprints: Sequence[Record] | None = None
    """What was collected of them, if their log may have forgotten some."""
    rotten: bool = False
    """Whether tables were damaged: who opens such a store puts it aside, and makes it anew."""

    @staticmethod
    def committed(settings: Settings, topology: Topology) -> dict[int, int]:
        """Return, by shard, the offset that its group has committed."""
        seats = [TopicPartition(topology.seats, shard) for shard in range(topology.layout.shards)]
        group = topology.group("index")
        found = Cluster(settings.kafka_options(), ADMIN_SECONDS).committed({group: seats})[group]
        return {seat.partition: found[seat] for seat in seats}

    def problems(self, shard: int) -> list[str]:
        """Say where a shard's indexes aren't what its log makes of it."""
        return list(self._problems(shard))

    def _problems(self, shard: int) -> Iterator[str]:
        order = self.topology.order
        cluster = Cluster(self.settings.kafka_options(), ADMIN_SECONDS)
        low, _ = cluster.ranges({order.topic: 1})[order]
        # A worker that is told to stop settles what is left to *fingerprint*, and index is gone.
        high = self.reached[shard]
        log = [record for record in read_all(self.bootstrap, order) if record.offset < high]
        last = log[-1].offset if log else low - 1
        fresh = None
        for name, state in sorted(self.states.items()):
            owner = self._owner(state)
            if not owner.directories.path(shard).exists():
                continue
            if self.rotten and rotten(sorted(owner.directories.path(shard).glob("*.sst"))):
                continue
            store = owner.directories.open(shard)
            try:
                # Who lost a shard to another worker keeps what it had, for when it comes back.
                if store.offset <= last:
                    continue
                live = dump(store)
            finally:
                store.close()
            fresh = fresh or self._rebuilt(shard, log, high, whole=low == 0)
            wanted = fresh if low == 0 else fresh._replace(offset=live.offset)
            for problem in _few(self._differences(live, wanted)):
                yield f"shard {shard} of {name}: {problem}"
        if fresh is None and not self.rotten:
            yield f"no worker has an index of shard {shard} that has reached the end of its log"
        if self.settings.index.snapshots.url is not None:
            fresh = fresh or self._rebuilt(shard, log, high, whole=low == 0)
            restored = self._restored(shard, log, LogRange(low, high, high))
            wanted = fresh._replace(offset=restored.offset)
            for problem in _few(self._differences(restored, wanted)):
                yield f"shard {shard}, restored from its snapshots and its log: {problem}"

    def _differences(self, live: Dump, wanted: Dump) -> Iterator[str]:
        window = self.settings.index.window_ms
        if window is not None:
            live, wanted = unexpired(live, window), unexpired(wanted, window)
        return index_differences(live, wanted)

    def _owner(self, state: Path) -> Application:
        bus = KafkaBus(self.settings.kafka_options())
        return Application(self.settings, self.topology, bus, state)

    def _rebuilt(self, shard: int, log: Sequence[Record], high: int, *, whole: bool) -> Dump:
        """Build it from the log, or if that has been trimmed, from what was collected of it."""
        if not whole:
            assert self.fingerprints is not None, "the log was trimmed, and nobody has collected it"
            log = [record for record in self.fingerprints if record.offset < high]
        rules = self._owner(self.directory).settings.rules()
        return rebuilt(log, self.topology, rules, shard, self.directory)

    def _restored(self, shard: int, log: list[Record], known: LogRange) -> Dump:
        """Restore it as a worker would that has lost its disk, and judge the rest of its log."""
        owner = self._owner(self.directory / "restored")
        repository = owner.repository()
        assert repository is not None

        store = Recovery(owner.directories, repository).open(
            shard, known, RestoreProgress(shard), lambda: False
        )
        aside = beside(owner.directories.path(shard), "aside")
        assert not aside.exists(), f"shard {shard}, just restored, is no good: {aside}"
        return continued(store, log, self.topology, owner.settings.rules(), shard)


def _few(problems: Iterator[str]) -> Iterator[str]:
    """Give the first ones, and count the rest: a lost frame is in thousands of buckets."""
    yield from islice(problems, SHOWN)
    if more := sum(1 for _ in problems):
        yield f"… and {more:,} more"
