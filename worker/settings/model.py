"""All settings, and what follows from several of them."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from lsh import Parameters, choose
from worker.bus.kafka import KafkaOptions
from worker.frames import FRAME_BYTES, answer_bytes
from worker.settings.sections import (
    APP_NAME,
    MOST_BANDS,
    DocumentsSection,
    IndexSection,
    KafkaSection,
    LimitsSection,
    SimilaritySection,
    TopicsSection,
    WatchdogSection,
    WorkerSection,
)

__all__ = ["ENV_PREFIX", "Settings"]

ENV_PREFIX = "NEARDUP_"
_ABSORB = 0.95
_POLL_MARGIN_SECONDS = 30.0


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    app: str = Field("neardup", pattern=APP_NAME, description="prefix of topics and groups")
    kafka: KafkaSection = KafkaSection()
    topics: TopicsSection = TopicsSection()
    documents: DocumentsSection = DocumentsSection()
    similarity: SimilaritySection = SimilaritySection()
    index: IndexSection = IndexSection()
    limits: LimitsSection = LimitsSection()
    worker: WorkerSection = WorkerSection()
    watchdog: WatchdogSection = WatchdogSection()

    @property
    def absorb(self) -> float:
        """Give the similarity from which on an entry stands for a document."""
        if self.index.absorb is None:
            return max(_ABSORB, self.similarity.threshold)
        return self.index.absorb

    def parameters(self) -> Parameters:
        """Give the fingerprint's parameters, with bands and rows chosen where left open."""
        s = self.similarity
        bands, rows = s.bands, s.rows
        if bands is None or rows is None:
            bands, rows = choose(s.threshold, s.slots, s.recall, MOST_BANDS)
        return Parameters(
            threshold=s.threshold,
            shingle=s.shingle,
            shingle_size=s.shingle_size,
            slots=s.slots,
            bands=bands,
            rows=rows,
            nfkc=s.nfkc,
            casefold=s.casefold,
            collapse_whitespace=s.collapse_whitespace,
            seed=_seed(s),
        )

    def kafka_options(self) -> KafkaOptions:
        """Give the adapter's options."""
        options = self._kafka_options()
        # No poll comes while a transaction is under way.
        away = int((options.longest_transaction_seconds + _POLL_MARGIN_SECONDS) * 1_000)
        return replace(options, max_poll_interval_ms=max(options.max_poll_interval_ms, away))

    def _kafka_options(self) -> KafkaOptions:
        return KafkaOptions(
            bootstrap=self.kafka.bootstrap,
            protocol=self.kafka.group_protocol,
            session_timeout_ms=self.kafka.session_timeout_ms,
            transaction_timeout_ms=self.kafka.transaction_timeout_ms,
            common=self.kafka.common,
            consumer=self.kafka.consumer,
            producer=self.kafka.producer,
        )

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        """Check what one section can't see alone."""
        if (self.similarity.bands is None) != (self.similarity.rows is None):
            raise ValueError("similarity.bands and similarity.rows: set both or neither")
        if self.absorb < self.similarity.threshold:
            raise ValueError(
                f"index.absorb: got {self.index.absorb}, takes a number from"
                f" similarity.threshold ({self.similarity.threshold}) to 1"
            )
        parameters = self.parameters()
        if self.index.shards > parameters.bands:
            raise ValueError(
                f"index.shards: got {self.index.shards}, takes at most the number of bands,"
                f" {parameters.bands}"
            )
        longest = self.kafka_options().longest_transaction_seconds
        if self.watchdog.transaction_seconds < longest:
            raise ValueError(
                f"kafka.transaction_timeout_ms: with {self.kafka.transaction_timeout_ms} ms a"
                f" transaction and its abort may take {longest:.0f} s, and"
                f" watchdog.transaction_seconds ({self.watchdog.transaction_seconds:.0f}) ends the"
                f" worker before; raise that to at least {longest:.0f}, or lower the timeout"
            )
        self._check_answers()
        return self

    def _check_answers(self) -> None:
        """Check that a document's matches fit into one frame, which can't be cut within them."""
        ids = self.limits.id_bytes
        most = (FRAME_BYTES - answer_bytes(0, ids)) // (answer_bytes(1, ids) - answer_bytes(0, ids))
        if self.index.max_matches > most:
            raise ValueError(
                f"index.max_matches: got {self.index.max_matches}, takes at most {most} with"
                f" limits.id_bytes {ids}, as an answer of more does not fit into a record"
            )


def _seed(similarity: SimilaritySection) -> bytes:
    if similarity.seed_file is None:
        return similarity.seed.get_secret_value().encode()
    try:
        seed = similarity.seed_file.read_bytes().strip()
    except OSError as error:
        raise ValueError(f"similarity.seed_file: {error}") from None
    if not seed:
        raise ValueError(f"similarity.seed_file: {similarity.seed_file} is empty")
    return seed
