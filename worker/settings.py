"""The settings: read once, validated, frozen, and passed down.

Precedence: command line, environment (``NEARDUP_SECTION__NAME``), TOML file, defaults.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from lsh import Parameters, choose
from worker.bus.kafka import KafkaOptions
from worker.watchdog import Watch

__all__ = ["MOST_BANDS", "ConfigurationError", "Settings", "load", "redacted"]

ENV_PREFIX = "NEARDUP_"
_FOREIGN_ENV = ("NEARDUP_TEST_", "NEARDUP_BENCH_", "NEARDUP_REQUIRE_", "NEARDUP_CONFIG")
_SECRET = re.compile(r"password|secret|token|private|\.pem$|\.key$|jaas|sasl\.oauthbearer\.config")
MOST_BANDS = 250
"""A store's key has one byte for its band, and a few of its values are taken."""
_APP_NAME = r"^[A-Za-z0-9._-]{1,100}$"


_ABSORB = 0.95


class ConfigurationError(Exception):
    """A setting is wrong; the one line says which, what it got, and what it takes."""


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
    trim_log: bool = Field(
        default=False, description="delete from APP.bands what precedes the oldest one kept"
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

    instance: str | None = Field(None, pattern=_APP_NAME, description="stable name; default: kept")
    state_dir: Path = Path("neardup-state")
    stages: _Names = ("fingerprint", "sequence", "index", "route")
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
        known = ("fingerprint", "sequence", "index", "route")
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


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    app: str = Field("neardup", pattern=_APP_NAME, description="prefix of topics and groups")
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
        return KafkaOptions(
            bootstrap=self.kafka.bootstrap,
            protocol=self.kafka.group_protocol,
            session_timeout_ms=self.kafka.session_timeout_ms,
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
        self.kafka_options()
        return self


def load(path: Path | None = None, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Read the settings; ``overrides`` has dotted names, and wins.

    Raises:
        ConfigurationError: with the first thing that is wrong.
    """
    if path is None and os.environ.get("NEARDUP_CONFIG"):
        path = Path(os.environ["NEARDUP_CONFIG"])
    if path is not None and not path.is_file():
        raise ConfigurationError(f"--config: {path} is no file")
    _check_environment()
    nested: dict[str, Any] = {}
    for name, value in (overrides or {}).items():
        if value is None:
            continue
        *sections, leaf = name.split(".")
        table = nested
        for section in sections:
            table = table.setdefault(section, {})
        table[leaf] = value

    class FromFile(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
            file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            toml = TomlConfigSettingsSource(settings_cls, toml_file=path)
            return init_settings, env_settings, toml

    try:
        return FromFile(**nested)
    except ValidationError as error:
        raise ConfigurationError(_one_line(error)) from None
    except (SettingsError, ValueError) as error:
        where = f"{path}: " if path is not None else ""
        raise ConfigurationError(f"{where}{error}".splitlines()[0]) from None


def _check_environment() -> None:
    known = {_env_name(name) for name in _names(Settings)}
    sections = {ENV_PREFIX + name.upper() for name in Settings.model_fields}
    for name in sorted(os.environ):
        if not name.startswith(ENV_PREFIX) or name.startswith(_FOREIGN_ENV):
            continue
        if name not in known and name not in sections:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigurationError(f"{name}: no such setting{hint}")


def _names(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _names(kind, f"{prefix}{name}.")
        else:
            yield prefix + name


def _env_name(name: str) -> str:
    return ENV_PREFIX + name.replace(".", "__").upper()


def _one_line(error: ValidationError) -> str:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, [*_names(Settings), *Settings.model_fields], 1)
        return f"{name}: no such setting" + (f"; did you mean {near[0]}?" if near else "")
    if first["type"] == "value_error":
        message = str(first["ctx"]["error"])
        return message if not name or message.startswith(name) else f"{name}: {message}"
    given = "***" if "seed" in name else repr(first["input"])
    takes = first["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    takes = takes.removeprefix("String should ").removeprefix("Value error, ")
    return f"{name}: got {given}, takes {takes}"


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


def redacted(settings: Settings) -> dict[str, Any]:
    """Give the settings as plain values, with ``***`` for secrets."""
    plain = settings.model_dump(mode="json")
    default = Settings.model_fields["similarity"].default.seed
    if settings.similarity.seed == default:
        plain["similarity"]["seed"] = default.get_secret_value()
    for table in ("common", "consumer", "producer"):
        plain["kafka"][table] = {
            key: "***" if _SECRET.search(key) else value
            for key, value in plain["kafka"][table].items()
        }
    # What a file system takes has no fixed names, and is most often a credential.
    snapshots = plain["index"]["snapshots"]
    snapshots["options"] = dict.fromkeys(snapshots["options"], "***")
    return plain
