"""All settings, the values derived from them, and the checks across sections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from lsh import Parameters, choose, sufficient_slots
from lsh.index import BucketRules
from worker.bus.kafka.config import ClientMemory, KafkaOptions, Value
from worker.bus.kafka.shown_keys import HARMLESS
from worker.settings.documents import DocumentsSection, RegistrySection
from worker.settings.judging import MOST_BANDS, IndexSection, SimilaritySection
from worker.settings.memory import MemoryShares, Wishes, automatic, divided, machine
from worker.settings.oauth import token_provider
from worker.settings.secrets import FILE, MASK, REFUSED, masks, resolved, without_credentials
from worker.settings.sections import (
    APP_NAME,
    CorrectionsSection,
    KafkaSection,
    LimitsSection,
    ServeSection,
    TopicsSection,
    WatchdogSection,
    WorkerSection,
)
from worker.topology import Topology
from worker.wire.frame import FRAME_BYTES, Layout
from worker.wire.matches import answer_bytes

ENV_PREFIX = "NEARDUP_"
_ABSORB = 0.95
_POLL_MARGIN_SECONDS = 30.0
_LEAST_UNPACKED = 256 << 20
"""To which a batch may unpack, however little memory there is: it is the only one then."""


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    app: str = Field("neardup", pattern=APP_NAME, description="prefix of topics and groups")
    kafka: KafkaSection = KafkaSection()
    topics: TopicsSection = TopicsSection()
    documents: DocumentsSection = DocumentsSection()
    registry: RegistrySection = RegistrySection()
    similarity: SimilaritySection = SimilaritySection()
    index: IndexSection = IndexSection()
    limits: LimitsSection = LimitsSection()
    worker: WorkerSection = WorkerSection()
    serve: ServeSection = ServeSection()
    corrections: CorrectionsSection = CorrectionsSection()
    watchdog: WatchdogSection = WatchdogSection()

    @property
    def absorb(self) -> float:
        """Return the similarity at or above which an entry stands for a document."""
        if self.index.absorb is None:
            return max(_ABSORB, self.similarity.threshold)
        return self.index.absorb

    def parameters(self) -> Parameters:
        """Return the fingerprint's parameters; slots, bands and rows are chosen if not set."""
        s = self.similarity
        slots, bands, rows = s.slots, s.bands, s.rows
        if bands is None or rows is None:
            slots, bands, rows = choose(s.sought, slots, s.recall, MOST_BANDS)
        elif slots is None:
            slots = sufficient_slots(s.sought)
        return Parameters(
            threshold=s.threshold,
            shingle=s.shingle,
            shingle_size=s.shingle_size,
            slots=slots,
            bands=bands,
            rows=rows,
            **s.switches(),
            containment=s.containment,
            boilerplate=s.boilerplate_lines,
            seed=s.seed_bytes(),
        )

    def rules(self) -> BucketRules:
        """Return the rules by which buckets are kept."""
        return BucketRules(
            threshold=self.similarity.threshold,
            absorb=self.absorb,
            capacity=self.index.bucket_capacity,
            max_matches=self.index.max_matches,
            window_ms=self.index.window_ms,
            same_id=self.index.same_id,
            containment=self.similarity.containment,
        )

    def topology(self, partitions: int) -> Topology:
        """Return the topics' and groups' names; ``partitions`` is N, of the documents.

        They are those of an application that was never reindexed; see `Plan.topology` for others.
        """
        named = self.topics
        return Topology(
            app=self.app,
            documents=named.documents or f"{self.app}.documents",
            unique=named.unique or f"{self.app}.unique",
            duplicate=named.duplicate or f"{self.app}.duplicate",
            rejected=named.rejected or f"{self.app}.rejected",
            layout=Layout.of(self.app, partitions, self.index.shards, self.parameters()),
        )

    def kafka_options(self) -> KafkaOptions:
        """Return the options of the Kafka adapter. Secrets in files are read now.

        Raises:
            ConfigurationError: such a file can't be read, or kafka.oauth names no entry point.
        """
        kafka = self.kafka
        tables = {name: resolved(f"kafka.{name}", getattr(kafka, name)) for name in kafka.names()}
        return replace(
            self._kafka_options(tables),
            memory=self._client_memory(),
            oauth=None if kafka.oauth is None else token_provider(kafka.oauth),
        )

    def memory(self, *, groups: bool = False) -> MemoryShares:
        """Return how the worker divides its memory. Without a setting, the machine is looked at.

        ``groups``: it is a server, which keeps groups.
        """
        given = self.worker.memory_bytes
        total = automatic(machine()) if given is None else given
        return self._divided(total, groups=groups)

    def _divided(self, total: int, *, groups: bool = False) -> MemoryShares:
        index, worker = self.index, self.worker
        return divided(
            total,
            Wishes(
                stages=worker.stages,
                shards=index.shards,
                standby=bool(index.standby_shards),
                groups=groups,
                cache=index.cache_bytes,
                write_buffer=index.write_buffer_bytes,
                lanes=worker.buffer_bytes,
                batch=worker.batch_bytes,
            ),
        )

    def _client_memory(self) -> ClientMemory:
        shares = self.memory()
        produced = max(shares.produced, 2 * self.limits.record_bytes)
        unpacked = max(_LEAST_UNPACKED, shares.total)
        return ClientMemory(shares.fetched, shares.log_fetched, produced, unpacked)

    def snapshot_options(self) -> dict[str, Any]:
        """Return the options of the snapshots' file system. Secrets in files are read now.

        Raises:
            ConfigurationError: such a file can't be read.
        """
        return resolved("index.snapshots.options", self.index.snapshots.options)

    def _kafka_options(self, tables: Mapping[str, Mapping[str, Value]]) -> KafkaOptions:
        options = KafkaOptions(
            bootstrap=self.kafka.bootstrap,
            protocol=self.kafka.group_protocol,
            session_timeout_ms=self.kafka.session_timeout_ms,
            transaction_timeout_ms=self.kafka.transaction_timeout_ms,
            common=tables["common"],
            consumer=tables["consumer"],
            producer=tables["producer"],
        )
        # A stage doesn't poll during a transaction.
        least = int((options.longest_transaction_seconds + _POLL_MARGIN_SECONDS) * 1_000)
        return replace(options, max_poll_interval_ms=max(options.max_poll_interval_ms, least))

    def redacted(self) -> dict[str, Any]:
        """Return the settings as plain values, with ``****`` for secrets.

        Only what is known to be harmless is shown.
        """
        plain = self.model_dump(mode="json")
        plain["similarity"]["seed"] = (
            self.similarity.seed.get_secret_value() if self.similarity.default_seed else MASK
        )
        for table in ("common", "consumer", "producer"):
            plain["kafka"][table] = {
                key: value if key in HARMLESS or _is_path(key, value) else MASK
                for key, value in plain["kafka"][table].items()
            }
        snapshots = plain["index"]["snapshots"]
        # The options of a file system have no fixed names, and most are credentials.
        snapshots["options"] = {
            key: value if _is_path(key, value) else MASK
            for key, value in snapshots["options"].items()
        }
        if snapshots["url"] is not None:
            snapshots["url"] = without_credentials(snapshots["url"])
        return plain

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        """Check the rules that involve several sections."""
        if masked := next(masks(self.model_dump()), None):
            raise ValueError(f"{masked}: {REFUSED}")
        if (self.similarity.bands is None) != (self.similarity.rows is None):
            raise ValueError("similarity.bands and similarity.rows: set both or neither")
        if self.similarity.join_letters and self.similarity.shingle == "word":
            raise ValueError(
                "similarity.join_letters: got true, must be false with similarity.shingle = word:"
                " without white space there are no words"
            )
        if self.absorb < self.similarity.threshold:
            raise ValueError(
                f"index.absorb: got {self.index.absorb}, must be between"
                f" similarity.threshold ({self.similarity.threshold}) and 1"
            )
        parameters = self.parameters()
        if self.index.shards > parameters.bands:
            raise ValueError(
                f"index.shards: got {self.index.shards}, must be at most the number of bands,"
                f" {parameters.bands}"
            )
        # Commands without Kafka do without its secrets: their files are not read here.
        keys = self.kafka.names()
        unread = self._kafka_options({name: dict.fromkeys(keys[name], "") for name in keys})
        longest = unread.longest_transaction_seconds
        if self.watchdog.transaction_seconds < longest:
            raise ValueError(
                f"kafka.transaction_timeout_ms: with {self.kafka.transaction_timeout_ms} ms, a"
                f" transaction and its abort can take {longest:.0f} s, but the watchdog ends the"
                f" worker after watchdog.transaction_seconds"
                f" ({self.watchdog.transaction_seconds:.0f}); raise that to at least"
                f" {longest:.0f}, or lower the timeout"
            )
        self._check_answers()
        self._check_memory()
        self._check_registry()
        return self

    def _check_registry(self) -> None:
        """Check that a registry is named where documents need one."""
        needed = self.documents.format == "registry"
        if needed and self.registry.url is None:
            raise ValueError("documents.format: registry needs registry.url")
        if self.documents.key == "registry" and not needed:
            raise ValueError(
                "documents.key: got registry, which needs documents.format registry; it is"
                f" {self.documents.format}"
            )

    def _check_memory(self) -> None:
        """Check that the parts that are set fit into the memory if that is set, too."""
        total = self.worker.memory_bytes
        if total is not None and not self._divided(total).fits:
            raise ValueError(
                f"worker.memory: got {self.worker.memory}, which can't hold index.cache_bytes,"
                " index.write_buffer_bytes, worker.buffer_bytes and worker.batch_bytes as they are"
                " set; raise it, or leave some of these out"
            )

    def _check_answers(self) -> None:
        """Check that a document's matches fit into one frame: they can't be split."""
        ids = self.limits.id_bytes
        contained = self.similarity.containment is not None
        none, one = (answer_bytes(count, ids, containment=contained) for count in (0, 1))
        most = (FRAME_BYTES - none) // (one - none)
        if self.index.max_matches > most:
            raise ValueError(
                f"index.max_matches: got {self.index.max_matches}, must be at most {most} with"
                f" limits.id_bytes {ids}: a longer answer does not fit into a record"
            )


def _is_path(key: str, value: object) -> bool:
    return key.endswith(FILE) and isinstance(value, str)
