"""The composition root: settings, a bus and a directory become stages and loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from time import monotonic

from lsh import Fingerprinter
from worker.bus import Bus, LogReader, Member, TopicPartition
from worker.bus.careful import CarefulMember, CarefulReader
from worker.bus.deadly_documents import DeadlyDocuments
from worker.bus.last_life import DeadlyBatches, LastLife
from worker.bus.shared import SharedMember, SharedReader
from worker.formats.choice import document_format, watched_fields
from worker.formats.first_documents import FieldWatch, TextWatch
from worker.formats.match_writer import MatchWriter
from worker.generations.modes import IN_USE, Mode
from worker.groups.joining import Kept
from worker.groups.store import GroupStore, Terms
from worker.index.directory import ShardDirectories
from worker.index.keyspace import StoreHeader
from worker.index.leftovers import Leftovers
from worker.index.memory import StoreMemory
from worker.index.owner import OwnedShards
from worker.index.recovery import Recovery
from worker.index.rocksdb import StoreOptions
from worker.index.snapshots.manifest import read_key
from worker.index.snapshots.repository import Repository
from worker.index.snapshots.shipper import Shipper
from worker.index.snapshots.soundness import Verification
from worker.index.standby import Standby
from worker.index.store import BandStore
from worker.loop.loop import Loop
from worker.loop.options import LoopOptions
from worker.loop.tracing import Trace
from worker.metrics.metrics import Metrics
from worker.probe import UNWATCHED, Probe, probing
from worker.settings.judging import IndexSection
from worker.settings.model import Settings
from worker.stages.base import Stage
from worker.stages.document_cache import DocumentCache
from worker.stages.fingerprint import Fingerprint
from worker.stages.index import Index
from worker.stages.judge import Judge
from worker.stages.refingerprint import Refingerprint
from worker.stages.reject_limit import RejectLimit
from worker.stages.route import Route
from worker.topology import Topology
from worker.wire.frame import by_partition

_FRAMES_BYTES = 5 << 19
"""Of a burst of frames: some 12,000 documents."""
_RETRY_SECONDS = 60.0
_SETTLE_SECONDS = 1.0
_SETTLE_LONGER_SECONDS = 5.0
"""If a batch is blamed already: a second death decides, and must not be that of another batch."""
_RETRIES = 15
"""Of a transaction that takes all of its time: enough to find the size that gets through."""
_FRAMES_ONLY = frozenset({"index", "refingerprint"})
"""Stages whose group reads frames, and that write frames."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The parts that all loops of a process share.

    Attributes:
        metrics: what is exported.
        stores: the memory of all shards.
        leftovers: what is told of files that a store leaves behind.
        documents: what is kept for *route* of the documents that *fingerprint* has read.
        life: returns what the worker died of, which notes what it reads of the documents, so that
            what kills it is found after its restarts; without it, nothing is noted.
        background: whether shards are opened, fetched and shipped in threads of their own, as a
            worker needs it that must go on polling. A bus for one thread can't have it.
        watch: whether the log warns of a field in the settings that no document has.
        probe: gives what is told of a stage's points, by the stage's name.
        clock: in seconds from an unknown start; by it, everything that is due at times has its
            turns.
        trace: makes spans; see `Trace`.
        groups: whether groups are kept, which take a part of the memory.
    """

    metrics: Metrics = field(default_factory=Metrics)
    stores: StoreMemory | None = None
    leftovers: Leftovers | None = None
    documents: DocumentCache | None = None
    life: Callable[[], LastLife] | None = None
    background: bool = False
    watch: bool = False
    probe: Callable[[str], Probe] = lambda _stage: UNWATCHED
    clock: Callable[[], float] = monotonic
    trace: Trace | None = None
    groups: bool = False


class Application:
    """Builds the stages of one generation."""

    def __init__(  # noqa: PLR0913 -- one generation, and where it runs
        self,
        settings: Settings,
        topology: Topology,
        bus: Bus,
        state_dir: Path,
        *,
        mode: Mode = IN_USE,
        environment: Environment | None = None,
    ) -> None:
        """Take the settings and the topology of a generation, where it runs, and for what it works.

        ``shares`` is how the worker's memory is divided.
        """
        self.settings = settings
        self.topology = topology
        self._mode = mode
        self.environment = environment = environment or Environment()
        self.metrics = environment.metrics
        self._bus = bus
        self._clock = clock = environment.clock
        self._watched = watched_fields(settings) if environment.watch else ()
        self._texts = TextWatch(topology.layout.parameters) if environment.watch else None
        index = settings.index
        self.shares = shares = settings.memory(groups=environment.groups)
        self._stores = environment.stores or StoreMemory(
            shares.index, write_buffers=shares.write_buffers, cache=shares.cache
        )
        self.directories = ShardDirectories(
            state_dir,
            self._store_header,
            memory=self._stores,
            options=StoreOptions(
                write_buffer_bytes=shares.write_buffer,
                run_documents=index.run_documents,
                flush_documents=index.flush_documents,
                flush_seconds=index.flush_seconds,
                window_ms=index.window_ms,
                erasure_seconds=index.erasure_seconds,
            ),
            leftovers=environment.leftovers,
            clock=clock,
            probe=environment.probe("index"),
        )

    def memory(self) -> dict[str, tuple[int, int]]:
        """Return what the stores of all shards take of their memory; see `StoreMemory.taken`."""
        return self._stores.taken()

    @cached_property
    def _log_identity(self) -> str:
        return self._bus.identity(self.topology.fingerprints)

    def loop(self, stage: str, instance: str) -> Loop:
        """Build a stage and seat it in its group."""
        built, inputs = self.stage(stage), list(self._inputs(stage))
        seats = stage == "index"
        member: Member = self._bus.join(
            self.topology.group(stage),
            inputs,
            instance,
            # Frames are hashes and ids, of which lz4 saves 5 to 25 %; of newswire it saves a third.
            compress=stage not in _FRAMES_ONLY,
            of=self.topology.fingerprints if seats else None,
        )
        if seats:
            member = SharedMember(member, self.reader())
        return self._loop(built, member)

    def _guarded(self, member: Member, group: str) -> Member:
        """Return a member that reads one batch at a time what the worker may die of, if anything.

        Notes that the group fetches documents.
        """
        if self.environment.life is None:
            return member
        batches = self.environment.life().batches
        batches.begin(group)
        if isinstance(member, CarefulMember):
            member.avoid(by_partition(self._mode.aside))
        elif self._mode.aside or batches.known:
            reader = self._careful(batches, group)
            topic = self.topology.documents
            return CarefulMember(member, topic, group, batches, reader, clock=self._clock)
        return member

    def _careful(self, batches: DeadlyBatches, group: str) -> CarefulReader:
        """Make a reader of single batches of the documents."""
        topics = [self.topology.documents]
        connect = partial(self._bus.log_reader, group, topics, single=True)
        settle = _SETTLE_LONGER_SECONDS if batches.blames else _SETTLE_SECONDS
        reader = CarefulReader(group, batches, connect, settle_seconds=settle, clock=self._clock)
        reader.aside = by_partition(self._mode.aside)
        return reader

    def succeed(self, loop: Loop) -> Loop:
        """Build a stage in the seat of an earlier one, which ends; it may read other topics.

        An index that was built is the one that is then in use: it only counts as that.
        """
        if isinstance(loop.stage, Index):
            loop.stage.metrics = self.metrics
            loop.count_in(self.metrics)
            return loop
        built = self.stage(loop.stage.name)
        inputs = self._inputs(built.name)
        same = inputs.keys() == set(loop.inputs)
        if not same:
            loop.finish()
        loop.stage.close()
        successor = self._loop(built, loop.member)
        if same:  # The group would not assign partitions anew.
            successor.take_over(loop)
        else:
            loop.member.subscribe(list(inputs))
        return successor

    def _loop(self, built: Stage, member: Member) -> Loop:
        stage, following = built.name, self._mode.following
        inputs = self._inputs(stage)
        if self.topology.documents in inputs:
            member = self._guarded(member, self.topology.group(stage))
        timeout = self.settings.kafka.transaction_timeout_ms / 1_000
        batch = self.shares.batch
        size = min(_FRAMES_BYTES, batch) if stage in _FRAMES_ONLY else batch
        return Loop(
            built,
            member,
            partitions=inputs,
            begins=following.answers if following is not None and stage == "route" else (),
            options=LoopOptions(
                max_records=self.settings.worker.batch_records,
                max_bytes=size,
                retry_seconds=max(_RETRY_SECONDS, _RETRIES * timeout),
                transaction_seconds=timeout,
                trace=self.environment.trace,
            ),
            metrics=self._own_metrics,
            has_room=self._room_for(member) if stage == "fingerprint" else lambda _seconds: True,
            probe=self.environment.probe(stage),
            clock=self._clock,
        )

    def _room_for(self, member: Member) -> Callable[[float], bool]:
        """Return what waits for room for more documents, and says what is committed of them."""
        cache = self._cache
        if cache is None:
            return lambda _seconds: True
        patient = self.environment.background  # In one thread, nothing can make room meanwhile.

        def has_room(seconds: float) -> bool:
            for place, claim in member.claims().items():
                cache.know(place.partition, claim)
            return cache.has_room(seconds if patient else 0)

        return has_room

    @property
    def _cache(self) -> DocumentCache | None:
        """Return what keeps documents, of which one stage each may read and publish them."""
        return self.environment.documents if self._mode.in_use else None

    @property
    def _own_metrics(self) -> Metrics:
        """Return what loops count in; those that have no part in the pipeline count apart."""
        return self.metrics if self._mode.counts else Metrics(self.settings.app)

    def _inputs(self, stage: str) -> dict[str, int]:
        """Return the partition counts of what a stage reads, in both generations."""
        if self._mode.source is not None:
            return {self._mode.source.fingerprints: 1}
        inputs = self.topology.inputs(stage)
        if stage == "route" and self._mode.following is not None:
            inputs |= self._mode.following.inputs(stage)
        return inputs

    def reader(self, stage: str = "index") -> SharedReader:
        """Make a reader of the order for any number of shards, with the rights of a group."""
        topology = self.topology
        group, topics = topology.group(stage), [topology.fingerprints]
        return SharedReader(topology.order, lambda: self._bus.log_reader(group, topics))

    def stage(self, name: str) -> Stage:
        """Build a stage."""
        builders: dict[str, Callable[[], Stage]] = {
            "fingerprint": self._fingerprint,
            "refingerprint": self._refingerprint,
            "index": self._index,
            "route": self._route,
        }
        return builders[name]()

    def _fingerprint(self) -> Fingerprint:
        topology, settings = self.topology, self.settings
        limits = settings.limits
        reader = document_format(settings)
        return Fingerprint(
            topology,
            reader=reader,
            fingerprinter=Fingerprinter(topology.layout.parameters),
            reject_limit=RejectLimit(limits.reject_share, limits.reject_window),
            skip_deleted=settings.documents.skip_deleted,
            deaths=self._deaths("fingerprint"),
            watch=FieldWatch(reader, self._watched),
            silent=not self.environment.watch,
            texts=self._texts,
            sealed=self._mode.work == "seal",
            starts={
                TopicPartition(topology.documents, number): start
                for number, start in enumerate(self._mode.starts)
            },
            aside=self._mode.aside,
            cache=self._cache,
            metrics=self.metrics,
        )

    def _refingerprint(self) -> Refingerprint:
        topology, settings = self.topology, self.settings
        group, topics = topology.group("refingerprint"), [topology.documents]
        return Refingerprint(
            self._mode.source or topology,
            topology,
            documents=self._payloads(group, topics),
            reader=document_format(settings),
            fingerprinter=Fingerprinter(topology.layout.parameters),
            future_allowance_ms=settings.index.future_allowance_ms,
            buffer_bytes=self.shares.batch,
            deaths=self._deaths("refingerprint"),
            aside=self._mode.aside,
            metrics=self.metrics,
        )

    def _payloads(self, group: str, topics: list[str]) -> Callable[[], LogReader]:
        """Return what connects to the documents: batch by batch if some are, or may be, too large.

        It notes nothing while it doesn't have to be careful, so a death is found out by the stages
        that read the documents before.
        """
        batches = self.environment.life and self.environment.life().batches
        if batches is not None and (self._mode.aside or batches.known):
            reader = self._careful(batches, group)
            return lambda: reader
        return lambda: self._bus.log_reader(group, topics)

    def _deaths(self, stage: str) -> DeadlyDocuments | None:
        """Return what the worker has died of while a stage read documents, if that is noted."""
        life = self.environment.life
        return life and life().documents(self.topology.group(stage))

    def _store_header(self, shard: int) -> StoreHeader:
        """Return everything on which a store must agree with the settings."""
        rules = self.settings.rules()
        return {
            "shard": shard,
            "shards": self.topology.layout.shards,
            "partitions": self.topology.layout.begun_with,
            "absorb": rules.absorb,
            "bucket_capacity": rules.capacity,
            **_memory_of(self.settings.index),
            "log": self._log_identity,
            **self.topology.layout.parameters.describe(),
        }

    def repository(self) -> Repository | None:
        """Find where snapshots lie, if anywhere.

        Raises:
            ConfigurationError: the URL's kind is not known, or what it needs not installed; or the
                key can't be read.
        """
        snapshots = self.settings.index.snapshots
        if snapshots.url is None:
            return None
        return Repository(
            snapshots.url,
            self.topology.index,
            self.settings.snapshot_options(),
            key=read_key(snapshots.key_file),
            erasure_seconds=self.settings.index.erasure_seconds,
        )

    def _shipper(self, repository: Repository) -> Shipper:
        snapshots, order = self.settings.index.snapshots, self.topology.order
        probe = self.environment.probe("index")

        def trim(before: int) -> None:
            with probing(probe, "trim"):
                self._bus.trim(*order, before)

        return Shipper(
            repository,
            self.directories.header,
            shards=self.topology.layout.shards,
            every_seconds=snapshots.every_seconds,
            keep=snapshots.keep,
            verification=Verification(snapshots.verify_seconds),
            erasure_seconds=self.settings.index.erasure_seconds,
            trim=trim if snapshots.trim_log else None,
            background=self.environment.background,
            metrics=self.metrics,
            probe=probe,
            clock=self._clock,
        )

    def _index(self) -> Index[BandStore]:
        repository = self.repository()
        self.directories.tidy()
        judge, recovery = self.judge(), self.recovery(repository)
        shards = OwnedShards(
            recovery,
            self.directories,
            self._shipper(repository) if repository else None,
            self._standby(recovery, judge),
            background=self.environment.background,
            clock=self._clock,
        )
        return Index(self.topology, judge=judge, shards=shards, metrics=self._own_metrics)

    def judge(self) -> Judge:
        """Make what judges frames."""
        return Judge(
            self.topology.layout,
            future_allowance_ms=self.settings.index.future_allowance_ms,
            rules=self.settings.rules(),
        )

    def groups(self) -> GroupStore | None:
        """Open the groups of documents that match one another, if they are kept.

        Raises:
            GroupsUnusable: they can't be read, or must be made anew.
        """
        serve, window_ms = self.settings.serve, self.settings.index.window_ms
        if not serve.groups:
            return None
        kept = Kept(serve.groups_window_ms(window_ms), window_ms)
        rules = self.settings.rules()
        header = {
            **self._store_header(0),
            "max_matches": rules.max_matches,
            "kept_ms": kept.member or 0,
        }
        return GroupStore(
            self.directories.groups_path,
            self.topology.layout.shards,
            Terms(rules, kept, header, self.settings.index.erasure_seconds),
            clock=self._clock,
            probe=self.environment.probe("groups"),
        )

    def recovery(self, repository: Repository | None) -> Recovery:
        """Make what opens the stores of shards, from snapshots there if need be."""
        return Recovery(
            self.directories,
            repository,
            forgets=self.settings.index.log_window_ms is not None,
            probe=self.environment.probe("index"),
        )

    def _standby(self, recovery: Recovery, judge: Judge) -> Standby | None:
        """Make what keeps shards warm while others own them, if there are such."""
        shards = self.settings.index.standby_shards
        if not shards or self._mode.work == "build":
            return None
        return Standby(
            [TopicPartition(self.topology.seats, shard) for shard in shards],
            self.reader,
            recovery,
            self.directories,
            judge.keep_warm,
            background=self.environment.background,
            clock=self._clock,
        )

    def _route(self) -> Route:
        topology, settings = self.topology, self.settings
        outputs = (topology.unique, topology.duplicate, topology.rejected)
        counts = self._bus.partitions(outputs)
        return Route(
            topology,
            self._mode.following,
            writer=MatchWriter(
                document_format(settings),
                max_matches=settings.index.max_matches,
                max_record_bytes=settings.limits.record_bytes,
                splice=settings.documents.splice,
            ),
            same_partitions={
                topic: counts[topic] == topology.layout.partitions for topic in outputs
            },
            buffer_bytes=self.shares.lanes,
            aside=self._mode.aside,
            cache=self._cache,
            metrics=self.metrics,
            clock=self._clock,
        )


def _memory_of(index: IndexSection) -> StoreHeader:
    """Return when a store forgets, and what a repeated id means; nothing by default."""
    header: StoreHeader = {}
    if index.window_ms is not None:
        header |= {"window": index.window, "future_allowance_ms": index.future_allowance_ms}
    return header if index.same_id == "duplicate" else {**header, "same_id": index.same_id}
