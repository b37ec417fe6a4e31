"""The composition root: settings, a bus and a directory become stages and loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from time import monotonic

from rocksdict import Cache

from lsh import Fingerprinter
from worker.bus import Bus, Member
from worker.bus.shared import SharedMember, SharedReader
from worker.documents import DocumentFormat, DocumentReader
from worker.loop import Loop
from worker.loop_options import LoopOptions
from worker.metrics import Metrics
from worker.probe import UNWATCHED, Probe, probing
from worker.settings import Settings
from worker.shard import BucketRules
from worker.snapshots import Kept, Repository, Shipper, Verification, tidy
from worker.stages import Fingerprint, Index, RejectLimit, Route, Stage
from worker.store import BandStore, Header, StoreOptions, put_aside
from worker.topology import Topology
from worker.verdicts import MATCH_RESERVE_BYTES, MatchWriter

__all__ = ["Application"]

_FRAMES_BYTES = 4 << 20
_RETRY_SECONDS = 60.0
_RETRIES = 15
"""Of a transaction that takes all of its time: enough to find the size that gets through."""
_FRAMES_ONLY = frozenset({"index"})
"""Stages that read and write frames, and no documents."""


class Application:
    """Builds the stages of one worker."""

    def __init__(  # noqa: PLR0913 -- what all stages share
        self,
        settings: Settings,
        topology: Topology,
        bus: Bus,
        state_dir: Path,
        *,
        metrics: Metrics | None = None,
        background: bool = False,
        probe: Callable[[str], Probe] = lambda _stage: UNWATCHED,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take what all stages share.

        With ``background``, shards are opened, fetched and shipped in threads of their own,
        as a worker that must go on polling needs it; a bus for one thread can't have it.
        ``probe`` gives what is told of a stage's points, by the stage's name. By ``clock``,
        in seconds from an unknown start, everything that is due at times has its turns.
        """
        self.settings = settings
        self.topology = topology
        self.metrics = metrics or Metrics()
        self._bus = bus
        self._state_dir = state_dir
        self._background = background
        self._probe = probe
        self._clock = clock
        self._cache = Cache(settings.index.cache_bytes)

    @property
    def cached_bytes(self) -> int:
        """Give what the block cache holds, of all shards."""
        return int(self._cache.get_usage())

    @cached_property
    def _log_identity(self) -> str:
        return self._bus.identity(self.topology.fingerprints)

    def loop(self, stage: str, instance: str) -> Loop:
        """Build a stage and seat it in its group."""
        built = self.stage(stage)
        frames = stage in _FRAMES_ONLY
        seats = stage == "index"
        member: Member = self._bus.join(
            self.topology.group(stage),
            list(built.topics),
            instance,
            # Frames are hashes, of which lz4 saves 4 to 7 %; of newswire it saves a third.
            compress=not frames,
            of=self.topology.fingerprints if seats else None,
        )
        if seats:
            member = SharedMember(member, self._reader())
        worker = self.settings.worker
        timeout = self.settings.kafka.transaction_timeout_ms / 1_000
        # A frame stands for many documents: a few MB of them are a burst.
        size = _FRAMES_BYTES if frames else worker.batch_bytes
        return Loop(
            built,
            member,
            partitions=self.topology.inputs(stage),
            options=LoopOptions(
                max_records=worker.batch_records,
                max_bytes=size,
                retry_seconds=max(_RETRY_SECONDS, _RETRIES * timeout),
                transaction_seconds=timeout,
            ),
            events=self.metrics.loop_events(stage),
            probe=self._probe(stage),
            clock=self._clock,
        )

    def _reader(self) -> SharedReader:
        """Make a reader of the order, for any number of shards."""
        topology = self.topology
        group, topics = topology.group("index"), [topology.fingerprints]
        return SharedReader(topology.order, lambda: self._bus.reader(group, topics))

    def stage(self, name: str) -> Stage:
        """Build a stage."""
        builders: dict[str, Callable[[], Stage]] = {
            "fingerprint": self._fingerprint,
            "index": self._index,
            "route": self._route,
        }
        return builders[name]()

    def _fingerprint(self) -> Fingerprint:
        topology, settings = self.topology, self.settings
        documents, limits = settings.documents, settings.limits
        return Fingerprint(
            documents=topology.documents,
            fingerprints=topology.fingerprints,
            rejected=topology.rejected,
            layout=topology.layout,
            reader=DocumentReader(
                DocumentFormat(
                    kind=documents.format,
                    id_field=documents.id_field,
                    text_fields=documents.text_fields,
                    time_field=documents.time_field,
                    require_id=documents.require_id,
                    max_text_characters=limits.text_characters,
                    max_id_bytes=limits.id_bytes,
                    max_record_bytes=limits.record_bytes - MATCH_RESERVE_BYTES,
                )
            ),
            fingerprinter=Fingerprinter(topology.parameters),
            reject_limit=RejectLimit(limits.reject_share, limits.reject_window),
            skip_deleted=documents.skip_deleted,
            on_rejected=self.metrics.rejected,
        )

    def rules(self) -> BucketRules:
        """Give the rules by which buckets are kept."""
        index = self.settings.index
        return BucketRules(
            threshold=self.topology.parameters.threshold,
            absorb=self.settings.absorb,
            capacity=index.bucket_capacity,
            max_matches=index.max_matches,
        )

    def store_header(self, shard: int) -> Header:
        """Give everything on which a store must agree with the settings."""
        rules = self.rules()
        return {
            "shard": shard,
            "shards": self.topology.shards,
            "partitions": self.topology.partitions,
            "absorb": rules.absorb,
            "bucket_capacity": rules.capacity,
            "log": self._log_identity,
            **self.topology.parameters.describe(),
        }

    def store_path(self, shard: int) -> Path:
        """Name a shard's directory."""
        return self._state_dir / f"shard-{shard:03d}"

    def open_store(
        self, shard: int, on_keys: Callable[[int, int], None] = lambda _count, _total: None
    ) -> BandStore:
        """Open a shard's store; `BandStore` says what ``on_keys`` is told.

        Raises:
            HeaderMismatch: it was made with other parameters.
            OSError: RocksDB can't open it.
        """
        index = self.settings.index
        probe = self._probe("index")
        with probing(probe, "open"):
            store = BandStore(
                self.store_path(shard),
                self.store_header(shard),
                cache=self._cache,
                options=StoreOptions(
                    write_buffer_bytes=index.write_buffer_bytes,
                    filter_bytes=index.filter_bytes,
                    flush_documents=index.flush_documents,
                    flush_seconds=index.flush_seconds,
                ),
                clock=self._clock,
                on_keys=on_keys,
                probe=probe,
            )
            probe.opened(store)
        return store

    def put_aside(self, shard: int, why: str) -> None:
        """Move a shard's store, which is closed, out of the way."""
        with probing(self._probe("index"), "put aside"):
            put_aside(self.store_path(shard), why)

    def repository(self) -> Repository | None:
        """Find where snapshots lie, if anywhere.

        Raises:
            ConfigurationError: the URL's kind is not known, or what it needs not installed.
        """
        snapshots = self.settings.index.snapshots
        if snapshots.url is None:
            return None
        return Repository(snapshots.url, self.settings.app, snapshots.options)

    def _kept(self, repository: Repository) -> Kept:
        return Kept(repository, self.store_path, self.store_header, self._probe("index"))

    def _shipper(self, repository: Repository) -> Shipper:
        snapshots, order = self.settings.index.snapshots, self.topology.order
        probe = self._probe("index")

        def trim(before: int) -> None:
            with probing(probe, "trim"):
                self._bus.trim(*order, before)

        return Shipper(
            repository,
            self.store_header,
            shards=self.topology.shards,
            every_seconds=snapshots.every_seconds,
            keep=snapshots.keep,
            verification=Verification(snapshots.verify_seconds),
            trim=trim if snapshots.trim_log else None,
            background=self._background,
            events=self.metrics.snapshot_events(),
            probe=probe,
            clock=self._clock,
        )

    def _index(self) -> Index:
        topology = self.topology
        repository = self.repository()
        tidy(self._state_dir)
        return Index(
            seats=topology.seats,
            matches=topology.matches,
            layout=topology.layout,
            shards=topology.shards,
            columns=topology.columns,
            future_allowance_ms=int(self.settings.index.future_allowance_seconds * 1000),
            rules=self.rules(),
            open_store=self.open_store,
            put_aside=self.put_aside,
            kept=self._kept(repository) if repository else None,
            shipper=self._shipper(repository) if repository else None,
            standby=self.settings.index.standby_shards,
            reader=self._reader,
            background=self._background,
            clock=self._clock,
            on_standby=self.metrics.standby,
            on_idle=self.metrics.restoring,
            on_burst=self.metrics.indexed,
        )

    def _route(self) -> Route:
        topology, settings = self.topology, self.settings
        outputs = (topology.unique, topology.duplicate, topology.rejected)
        counts = self._bus.partitions(outputs)
        return Route(
            documents=topology.documents,
            matches=topology.matches,
            shards=topology.shards,
            unique=topology.unique,
            duplicate=topology.duplicate,
            rejected=topology.rejected,
            layout=topology.layout,
            writer=MatchWriter(
                max_matches=settings.index.max_matches,
                max_record_bytes=settings.limits.record_bytes,
                splice=settings.documents.splice and settings.documents.format == "json",
            ),
            same_partitions={topic: counts[topic] == topology.partitions for topic in outputs},
            buffer_bytes=settings.worker.buffer_bytes,
            on_burst=self.metrics.routed,
            clock=self._clock,
        )
