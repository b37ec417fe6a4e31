"""The base of all sections of the settings, and the sections on how a process runs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)
from pydantic_settings import NoDecode

from worker.settings.memory import LEAST_MEMORY
from worker.settings.secrets import check_names
from worker.settings.units import FOR_EVER, duration_ms, size_bytes, size_text, window_text
from worker.topology import STAGES

APP_NAME = r"^[A-Za-z0-9._-]{1,100}$"
_BROKER = re.compile(r"([a-zA-Z_]+://)?(\[[0-9a-fA-F:.]+(%\w+)?\]|[^\s:/@\[\]]+)(:\d{1,5})?")
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[?[0-9a-fA-F:.]*:[0-9a-fA-F:.]*\]?")
_AUTO = "auto"
_GROUPS_MS = 30 * 86_400_000


def listed(value: object) -> object:
    """Return the parts of a comma-separated text."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


Watch = Literal["poll", "transaction", "progress", "restore"]
"""The kinds of progress that the watchdog looks at, in every stage."""

Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(listed), Field(min_length=1)]
_Scalar = str | int | float | bool


class Section(BaseModel):
    """Settings that belong together."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class KafkaSection(Section):
    """How to reach Kafka."""

    bootstrap: str = Field(
        "localhost:9092", description="address, host:port; several separated by commas"
    )
    group_protocol: Literal["classic", "consumer"] = Field(
        "classic", description="rebalance protocol of the groups; consumer is KIP-848"
    )
    session_timeout_ms: int = Field(
        10_000,
        ge=1_000,
        le=300_000,
        description="time until others take over a dead worker's partitions (classic)",
    )
    transaction_timeout_ms: int = Field(
        4_000,
        ge=1_000,
        le=900_000,
        description="brokers abort a transaction after this time; raise it for a slow link",
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
    oauth: str | None = Field(
        None,
        min_length=1,
        description="name of the entry point (group neardup.oauth) that provides OAuth tokens",
    )

    @field_validator("bootstrap")
    @classmethod
    def _check_bootstrap(cls, bootstrap: str) -> str:
        if not all(_BROKER.fullmatch(part.strip()) for part in bootstrap.split(",")):
            raise ValueError("must be host:port; several separated by commas")
        return bootstrap

    @model_validator(mode="after")
    def _check_files(self) -> KafkaSection:
        self.names()
        return self

    def names(self) -> dict[str, list[str]]:
        """Return the librdkafka keys of each table, also of those whose values are in files.

        Raises:
            ValueError: a key is there twice.
        """
        tables: dict[str, Iterable[str]] = {
            "common": self.common,
            "consumer": self.consumer,
            "producer": self.producer,
        }
        return {name: check_names(f"kafka.{name}", keys) for name, keys in tables.items()}


class TopicsSection(Section):
    """The topics that users see. The internal topics are named after the application."""

    documents: str = Field("", description="input documents; default: APP.documents")
    unique: str = Field("", description="unique documents; default: APP.unique")
    duplicate: str = Field("", description="duplicates; default: APP.duplicate")
    rejected: str = Field("", description="rejected documents; default: APP.rejected")


class LimitsSection(Section):
    """Limits on the size of documents, and on the share of unreadable ones."""

    text_characters: int = Field(2_000_000, ge=1, description="longer texts are rejected")
    id_bytes: int = Field(
        1_024,
        ge=96,
        le=1_024,
        description="longer ids are rejected; those of longer keys are cut, with a digest",
    )
    record_bytes: int = Field(
        1_000_000, ge=32_768, description="largest output record; the topics must accept it"
    )
    reject_share: float = Field(
        0.5,
        gt=0,
        le=1,
        description="the worker stops if more than this share doesn't fit `documents.*`; commands"
        " that read files fail if more can't be read",
    )
    reject_window: int = Field(
        1_000, ge=10, description="number of latest documents to which limits.reject_share applies"
    )


class WorkerSection(Section):
    """How a worker runs."""

    instance: str | None = Field(
        None,
        pattern=APP_NAME,
        description="stable name of the worker; default: generated, kept in the state directory",
    )
    state_dir: Path = Field(
        Path("neardup-state"), description="directory of the index; a separate one for each worker"
    )
    stages: Names = Field(
        STAGES,
        description="stages that this worker runs; a comma-separated list",
    )
    http_host: str = Field("127.0.0.1", description="address for metrics and health")
    http_port: int = Field(
        9464,
        ge=0,
        le=65_535,
        description="port for metrics and health; 0: any. `neardup serve` has 9466 by default",
    )
    http: bool = Field(default=True, description="serve metrics and health")
    tracing: bool = Field(
        default=False,
        description="make spans of OpenTelemetry; the variables `OTEL_*` say where they go",
    )
    memory: str = Field(
        _AUTO,
        description="memory of the worker, such as 1GiB or 800MiB, at least 256MiB; auto: three"
        " quarters of the cgroup's limit, or without one a quarter of the machine's memory, but at"
        " most 1GiB",
    )
    batch_records: int = Field(8_000, ge=1, description="most records in a batch of a stage")
    batch_bytes: int | None = Field(
        None,
        ge=1 << 16,
        description="most bytes in a batch of a stage, or published at once by *route*; default:"
        " follows from worker.memory, at most 16 MiB",
    )
    buffer_bytes: int | None = Field(
        None,
        ge=1 << 20,
        description="memory for documents that wait for their answers, and for answers in *route*;"
        " default: follows from worker.memory, at most 64 MiB",
    )
    shutdown_seconds: float = Field(20, gt=0, description="time to finish after SIGTERM or SIGINT")
    check_seconds: float = Field(
        300,
        ge=1,
        description="how often a worker on Kafka checks the topics' settings again",
    )
    log_format: Literal["text", "json"] = Field("text", description="format of log lines")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="lowest level that is logged"
    )

    @property
    def memory_bytes(self) -> int | None:
        """Return the memory of the worker; None if it follows from the machine."""
        return None if self.memory == _AUTO else size_bytes(self.memory)

    @field_validator("memory")
    @classmethod
    def _check_memory(cls, memory: str) -> str:
        """Return a size in its shortest form."""
        if memory == _AUTO:
            return memory
        try:
            size = size_bytes(memory)
        except ValueError:
            size = 0
        if size < LEAST_MEMORY:
            raise ValueError(
                f"got {memory!r}, must be auto, or a size of at least {size_text(LEAST_MEMORY)},"
                " such as 1GiB or 800MiB"
            )
        return size_text(size)

    @field_validator("stages")
    @classmethod
    def _check_stages(cls, stages: tuple[str, ...]) -> tuple[str, ...]:
        for stage in stages:
            if stage not in STAGES:
                near = difflib.get_close_matches(stage, STAGES, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise ValueError(f"got {stage!r}, must be one of {', '.join(STAGES)}{hint}")
        return stages


class ServeSection(Section):
    """Where `neardup serve` is asked. Its metrics and health are on `worker.http_host`."""

    host: str = Field("127.0.0.1", description="address for queries")
    port: int = Field(9465, ge=0, le=65_535, description="port for queries; 0: any")
    hosts: Annotated[tuple[str, ...], NoDecode, BeforeValidator(listed)] = Field(
        (),
        description="host names by which clients and proxies may call `neardup serve`, separated by"
        " commas, beside localhost and the address that it listens on",
    )
    token_file: Path | None = Field(
        None,
        description="file with the token, of at least 32 bytes, that clients need to read; every"
        " address but loopback takes one",
    )
    correcting_token_file: Path | None = Field(
        None, description="file with another token, which allows corrections and reading"
    )
    tls_cert_file: Path | None = Field(None, description="certificate chain of the server, in PEM")
    tls_key_file: Path | None = Field(None, description="its private key, in PEM")
    tls_in_front: bool = Field(
        default=False, description="a proxy in front has TLS; nobody else reaches the port"
    )

    groups: bool = Field(
        default=True,
        description="keep the groups of documents that match one another. Then shards are read from"
        " the log as long as it has all that counts, and restored from snapshots otherwise",
    )
    groups_window: str = Field(
        _AUTO,
        description="how long a member of a group is kept after its time, or after that of the"
        " latest document that it matched: a length such as 30d; none: for ever; auto:"
        " index.window, or 30d without one",
    )

    def groups_window_ms(self, window_ms: int | None) -> int | None:
        """Return how long a member of a group is kept, given the index's window; None: for ever."""
        if self.groups_window == _AUTO:
            return _GROUPS_MS if window_ms is None else window_ms
        return None if self.groups_window == FOR_EVER else duration_ms(self.groups_window)

    @field_validator("groups_window")
    @classmethod
    def _check_groups_window(cls, window: str) -> str:
        return window if window == _AUTO else window_text(window, "auto, none")

    @field_validator("hosts")
    @classmethod
    def _check_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        given = tuple(host for host in hosts if host)
        for host in given:
            if not _HOST.fullmatch(host):
                raise ValueError(f"got {host!r}, must be a host name or an address without a port")
        return tuple(host.strip("[]").lower() for host in given)


class CorrectionsSection(Section):
    """Who corrects: `neardup allow`, `neardup forget`, and the page."""

    by: str | None = Field(
        None,
        max_length=100,
        description="name that is noted with each correction; default: that of the user",
    )


class WatchdogSection(Section):
    """A worker exits after this many seconds without progress."""

    poll_seconds: float = Field(120, ge=10, description="a stage doesn't poll")
    transaction_seconds: float = Field(120, ge=10, description="a transaction doesn't end")
    progress_seconds: float = Field(
        600, ge=10, description="a stage handles no record although records are waiting"
    )
    restore_seconds: float = Field(
        240, ge=10, description="the restore of a shard makes no progress"
    )

    def limits(self) -> dict[Watch, float]:
        """Return the limit of each watch, in seconds."""
        return {
            "poll": self.poll_seconds,
            "transaction": self.transaction_seconds,
            "progress": self.progress_seconds,
            "restore": self.restore_seconds,
        }
