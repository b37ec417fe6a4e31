"""The sections of the settings, each with what it takes."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic_settings import NoDecode

from worker.watchdog import Watch

__all__ = [
    "APP_NAME",
    "MOST_BANDS",
    "DocumentsSection",
    "IndexSection",
    "KafkaSection",
    "LimitsSection",
    "SimilaritySection",
    "SnapshotsSection",
    "TopicsSection",
    "WatchdogSection",
    "WorkerSection",
]

MOST_BANDS = 250
"""A store's key has one byte for its band, and a few of its values are taken."""
APP_NAME = r"^[A-Za-z0-9._-]{1,100}$"


def _listed(value: object) -> object:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


_Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed), Field(min_length=1)]
_Scalar = str | int | float | bool


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KafkaSection(_Section):
    """How to reach Kafka."""

    bootstrap: str = Field("localhost:9092", description="host:port, several with commas")
    group_protocol: Literal["classic", "consumer"] = Field(
        "classic", description="consumer is KIP-848"
    )
    session_timeout_ms: int = Field(10_000, ge=1_000, le=300_000)
    transaction_timeout_ms: int = Field(
        4_000,
        ge=1_000,
        le=900_000,
        description="after which a transaction is given up; the longer, the slower a link may be",
    )
    common: dict[str, _Scalar] = Field(
        {}, description="librdkafka keys for every client", repr=False
    )
    consumer: dict[str, _Scalar] = Field(
        {}, description="librdkafka keys for consumers", repr=False
    )
    producer: dict[str, _Scalar] = Field(
        {}, description="librdkafka keys for producers", repr=False
    )


class TopicsSection(_Section):
    """The topics that users see; the internal ones are named after the application."""

    documents: str = Field("", description="default: APP.documents")
    unique: str = Field("", description="default: APP.unique")
    duplicate: str = Field("", description="default: APP.duplicate")
    rejected: str = Field("", description="default: APP.rejected")


class DocumentsSection(_Section):
    """Where a payload has what."""

    format: Literal["json", "text"] = "json"
    id_field: str = Field("id", min_length=1)
    text_fields: _Names = ("text",)
    time_field: str | None = Field(None, description="default: the record's timestamp")
    require_id: bool = Field(
        default=False, description="reject documents with no id in value or key"
    )
    splice: bool = Field(default=True, description="add duplicate_of to JSON objects")
    skip_deleted: bool = Field(
        default=False, description="go on without documents that were deleted before they were read"
    )


class SimilaritySection(_Section):
    """What a near duplicate is."""

    threshold: float = Field(0.8, gt=0, le=1)
    recall: float = Field(0.98, gt=0, lt=1, description="at the threshold, for bands and rows")
    shingle: Literal["char", "word"] = "char"
    shingle_size: int = Field(5, ge=1, le=64)
    slots: int = Field(128, ge=16, le=4096)
    bands: int | None = Field(None, ge=1, le=MOST_BANDS, description="default: chosen by recall")
    rows: int | None = Field(None, ge=1, le=250, description="default: chosen by recall")
    nfkc: bool = True
    casefold: bool = True
    collapse_whitespace: bool = True
    seed: SecretStr = Field(SecretStr("neardup"), description="the site's secret", min_length=1)
    seed_file: Path | None = Field(None, description="a file that holds the seed")


class SnapshotsSection(_Section):
    """Copies of the shards, from which a lost one is restored."""

    url: str | None = Field(
        None,
        description="a directory that all workers reach, or an object store; default: none",
    )
    options: dict[str, JsonValue] = Field(
        {}, description="of that file system, such as credentials", repr=False
    )
    every_seconds: float = Field(900, gt=0, description="between a shard's snapshots")
    keep: int = Field(3, ge=1, description="snapshots of a shard; older ones are deleted")
    verify_seconds: float = Field(
        86_400,
        gt=0,
        description="between two times that the files of a shard's snapshots are read back",
    )
    trim_log: bool = Field(
        default=False,
        description="delete from APP.fingerprints what precedes the oldest kept of all shards",
    )


class IndexSection(_Section):
    """The band index."""

    shards: int = Field(2, ge=1, le=251)
    bucket_capacity: int = Field(32, ge=1, le=4096)
    absorb: float | None = Field(
        None, gt=0, le=1, description="default: 0.95, or the threshold if that is higher"
    )
    max_matches: int = Field(64, ge=1, le=1024)
    future_allowance_seconds: float = Field(60, ge=0)
    cache_bytes: int = Field(256 << 20, ge=1 << 20, description="shared by a worker's shards")
    write_buffer_bytes: int = Field(32 << 20, ge=1 << 20, description="a shard's")
    filter_bytes: int = Field(
        16 << 20, ge=1 << 10, description="a shard's, to tell absent buckets without a look-up"
    )
    flush_documents: int = Field(10_000, ge=1)
    flush_seconds: float = Field(60, gt=0)
    standby: str = Field(
        "none",
        description="shards of other workers to keep warm: none, all, or numbers with commas",
    )
    snapshots: SnapshotsSection = SnapshotsSection()

    @property
    def standby_shards(self) -> tuple[int, ...]:
        """Give the shards to keep warm while others own them."""
        if self.standby == "none":
            return ()
        if self.standby == "all":
            return tuple(range(self.shards))
        return tuple(map(int, self.standby.split(",")))

    @model_validator(mode="after")
    def _keeps_warm_what_there_is(self) -> IndexSection:
        numbers = set(map(str, range(self.shards)))
        if self.standby not in {"none", "all"} and not numbers.issuperset(self.standby.split(",")):
            raise ValueError(
                f"index.standby: got {self.standby!r}, takes none, all, or shard numbers below"
                f" {self.shards} with commas"
            )
        return self

    @model_validator(mode="after")
    def _trims_only_what_is_kept(self) -> IndexSection:
        if self.snapshots.trim_log and self.snapshots.url is None:
            raise ValueError("index.snapshots.trim_log: needs index.snapshots.url")
        return self


class LimitsSection(_Section):
    """What a document may measure, and how many may be unreadable."""

    text_characters: int = Field(2_000_000, ge=1)
    id_bytes: int = Field(1_024, ge=16, le=1_024)
    record_bytes: int = Field(
        1_000_000, ge=16_384, description="of an output record; topics must take it"
    )
    reject_share: float = Field(0.5, gt=0, le=1)
    reject_window: int = Field(1_000, ge=10)


class WorkerSection(_Section):
    """How a worker runs."""

    instance: str | None = Field(None, pattern=APP_NAME, description="stable name; default: kept")
    state_dir: Path = Path("neardup-state")
    stages: _Names = ("fingerprint", "index", "route")
    http_host: str = "127.0.0.1"
    http_port: int = Field(9464, ge=0, le=65_535)
    http: bool = True
    batch_records: int = Field(4_000, ge=1)
    batch_bytes: int = Field(16 << 20, ge=1 << 16)
    buffer_bytes: int = Field(64 << 20, ge=1 << 20, description="documents waiting in route")
    shutdown_seconds: float = Field(20, gt=0)
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("stages")
    @classmethod
    def _known_stages(cls, stages: tuple[str, ...]) -> tuple[str, ...]:
        known = ("fingerprint", "index", "route")
        for stage in stages:
            if stage not in known:
                near = difflib.get_close_matches(stage, known, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise ValueError(f"got {stage!r}, takes some of {', '.join(known)}{hint}")
        return stages


class WatchdogSection(_Section):
    """After how long without any good sign a worker ends itself, in seconds."""

    poll_seconds: float = Field(120, ge=10, description="a stage does not come round")
    transaction_seconds: float = Field(120, ge=10, description="one transaction does not end")
    progress_seconds: float = Field(
        600, ge=10, description="records wait, and a stage deals with none"
    )
    restore_seconds: float = Field(240, ge=10, description="a shard's restore comes no further")

    def limits(self) -> dict[Watch, float]:
        """Give the limits by watch."""
        return {
            "poll": self.poll_seconds,
            "transaction": self.transaction_seconds,
            "progress": self.progress_seconds,
            "restore": self.restore_seconds,
        }
