"""The sections of the settings, with the accepted values and the defaults."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from ssl import SSLError, create_default_context
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import NoDecode

from lsh import PRESETS, SWITCHES, Parameters
from lsh.index import SameId
from lsh.tuning import CONTAINMENT_RATIO, sought
from worker.fields import AUTO, check_time_format, parse, single
from worker.settings.errors import ConfigurationError
from worker.settings.files import check_names, line_list, resolved
from worker.settings.mask import REFUSED, is_mask
from worker.settings.memory import LEAST_MEMORY
from worker.settings.units import duration_ms, duration_text, size_bytes, size_text

MOST_BANDS = 250
"""A store's key has one byte for the band, and a few of its values are reserved."""
APP_NAME = r"^[A-Za-z0-9._-]{1,100}$"
_BROKER = re.compile(r"([a-zA-Z_]+://)?(\[[0-9a-fA-F:.]+(%\w+)?\]|[^\s:/@\[\]]+)(:\d{1,5})?")
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[?[0-9a-fA-F:.]*:[0-9a-fA-F:.]*\]?")
_DEFAULT_SEED = "neardup"
_SEED_BYTES = 16
_NO_WINDOW = _NONE = "none"
_AUTO = "auto"
_LEAST_WINDOW_MS = 1_000
_GROUPS_MS = 30 * 86_400_000
_DEFAULTS = Parameters()


def _listed(value: object) -> object:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def _number(value: object) -> object:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _none(value: object) -> object:
    return None if value == _NONE else value


Watch = Literal["poll", "transaction", "progress", "restore"]
"""What the watchdog looks at, in every stage."""

_Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed), Field(min_length=1)]
_Scalar = str | int | float | bool


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KafkaSection(_Section):
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


class TopicsSection(_Section):
    """The topics that users see. The internal topics are named after the application."""

    documents: str = Field("", description="input documents; default: APP.documents")
    unique: str = Field("", description="unique documents; default: APP.unique")
    duplicate: str = Field("", description="duplicates; default: APP.duplicate")
    rejected: str = Field("", description="rejected documents; default: APP.rejected")


class DocumentsSection(_Section):
    """The format of payloads, and the fields with the id, the text and the time."""

    format: Literal["json", "text", "registry"] = Field(
        "json",
        description="json: an object with the fields below; text: the value is the text; registry:"
        " Avro, Protobuf or JSON with a schema in a registry, see registry.url",
    )
    id_field: str = Field(
        "id",
        min_length=1,
        description="field with the id; without it, the id follows from the record's key",
    )
    text_fields: _Names = Field(
        ("text",),
        description="fields with the text, joined; a comma-separated list. In all fields, a.b is"
        " the field of that name, or else b in the object a; a[] is every element of a list,"
        " a[0] the first",
    )
    time_field: str | None = Field(
        None,
        description="field with the time, without which a document counts as of now; default: the"
        " record's timestamp",
    )
    time_format: str = Field(
        AUTO,
        description="what documents.time_field holds; auto: ISO 8601, RFC 822, or seconds,"
        " milliseconds, microseconds or nanoseconds since 1970 of the years 1990 to 2031; one of"
        " these units: any time in it; excel: days since 1900; or a pattern of strptime such as"
        " %Y%m%d",
    )
    require_id: bool = Field(
        default=False, description="reject documents without an id in the value or the key"
    )
    key: Literal["auto", "text", "bytes", "long", "int", "registry", "ignore"] = Field(
        "auto",
        description="what keys are, for documents without an id in the value and for tombstones:"
        " auto: text as it is, other bytes in hexadecimal; text; bytes: all in hexadecimal; long"
        " and int: big-endian numbers of 8 and 4 bytes; registry: with a schema, as the value;"
        " ignore: no ids. A key that isn't that is"
        " bad-id",
    )
    deletes: Literal["reject", "forget"] = Field(
        "reject",
        description="what a record is whose text is null, or in an object that is null, as in the"
        " deletes of change feeds: reject: set aside on *rejected*; forget: a tombstone for the id"
        " in id_field, else deleted_id_field, else the key, passed on to both outputs",
    )
    deleted_id_field: str | None = Field(
        None,
        min_length=1,
        description="field with the id in deletes, such as payload.before.id; needed with forget"
        " if id_field is set",
    )
    splice: bool = Field(
        default=True,
        description="add duplicate_of and duplicate_first to JSON objects on *duplicate*",
    )
    skip_deleted: bool = Field(
        default=False, description="start even if documents were deleted before they were read"
    )

    @field_validator("text_fields")
    @classmethod
    def _check_texts(cls, fields: tuple[str, ...]) -> tuple[str, ...]:
        for field in fields:
            parse(field)
        return fields

    @field_validator("id_field", "time_field", "deleted_id_field")
    @classmethod
    def _check_one(cls, field: str | None) -> str | None:
        return None if field is None else single(field)

    @field_validator("time_format")
    @classmethod
    def _check_time_format(cls, time_format: str) -> str:
        check_time_format(time_format)
        return time_format

    @model_validator(mode="after")
    def _check_deletes(self) -> DocumentsSection:
        if self.deletes == "reject":
            return self
        if self.format == "text":
            raise ValueError(
                "documents.deletes: got forget, must be reject with documents.format text: plain"
                " text has no fields that could be null; send tombstones"
            )
        if "id_field" in self.model_fields_set and self.deleted_id_field is None:
            raise ValueError(
                "documents.deletes: forget needs documents.deleted_id_field, the field with the id"
                f" in deletes, since documents.id_field is {self.id_field!r}: such as"
                " payload.before.id, or the same field if deletes have it"
            )
        return self


class RegistrySection(_Section):
    """The schema registry, if documents.format is registry: Confluent's API, as others have it."""

    url: str | None = Field(
        None,
        description="address of the API, such as https://registry:8081 (Apicurio:"
        " http://HOST:8080/apis/ccompat/v7); several separated by commas",
    )
    credentials_file: Path | None = Field(
        None,
        description="file with user:password, with KEY:SECRET of Confluent Cloud, or with"
        " CLIENT:SECRET for token_url",
    )
    ca_file: Path | None = Field(
        None, description="certificates that sign the registry's, in PEM; default: those of certifi"
    )
    certificate_file: Path | None = Field(
        None, description="certificate of this client, in PEM, if the registry asks for one"
    )
    key_file: Path | None = Field(
        None,
        description="its private key, in PEM and not encrypted; default: that in certificate_file",
    )
    token_url: str | None = Field(
        None,
        description="OAuth: address of the issuer of tokens, which takes client credentials (RFC"
        " 6749, section 4.4); default: credentials_file is sent to the registry itself",
    )
    token_scope: str | None = Field(None, description="OAuth: scope to ask for")
    logical_cluster: str | None = Field(
        None, description="Confluent Cloud with OAuth: id of the registry, such as lsrc-abcde"
    )
    identity_pool: str | None = Field(
        None, description="Confluent Cloud with OAuth: id of the identity pool, such as pool-abcde"
    )
    id_bytes: Annotated[Literal[4, 8], BeforeValidator(_number)] = Field(
        4,
        description="length of the schema ids in values; 8: those of Apicurio's older serializers,"
        " see docs/how-to/registry.md",
    )
    timeout_seconds: float = Field(5, gt=0, le=15, description="time for an answer")

    @field_validator("url", "token_url")
    @classmethod
    def _check_url(cls, url: str | None, given: ValidationInfo) -> str | None:
        several = given.field_name == "url"
        for part in () if url is None else url.split(",") if several else (url,):
            found = urlsplit(part.strip())
            if "@" in found.netloc:
                raise ValueError("must have no user or password: registry.credentials_file has it")
            if found.scheme not in {"http", "https"} or not found.hostname:
                raise ValueError("must begin with http:// or https:// and a host")
        return url

    @field_validator("ca_file")
    @classmethod
    def _check_ca_file(cls, path: Path | None) -> Path | None:
        try:
            if path is not None:
                create_default_context(cafile=path)
        except OSError as error:  # An SSLError, too.
            raise ValueError(f"{path}: {error.strerror or 'not a certificate in PEM'}") from None
        return path

    @model_validator(mode="after")
    def _check_login(self) -> RegistrySection:
        if self.key_file is not None and self.certificate_file is None:
            raise ValueError("registry.key_file: needs registry.certificate_file")
        for name in ("token_scope", "logical_cluster", "identity_pool"):
            if getattr(self, name) is not None and self.token_url is None:
                raise ValueError(f"registry.{name}: needs registry.token_url")
        if self.token_url is not None and self.credentials_file is None:
            raise ValueError("registry.token_url: needs registry.credentials_file")
        if self.certificate_file is not None:
            where = "registry.certificate_file" + ("" if self.key_file is None else ", key_file")
            context = create_default_context()
            try:
                # With a password, even an empty one, nobody is asked for it.
                context.load_cert_chain(self.certificate_file, self.key_file, password="")
            except SSLError:
                msg = f"{where}: not a certificate and its key in PEM, or the key is encrypted"
                raise ValueError(msg) from None
            except OSError as error:
                raise ValueError(f"{where}: {error.strerror}") from None
        return self

    def credentials(self) -> str | None:
        """Return the user and the password. The file is read now.

        Raises:
            ConfigurationError: it can't be read, or has something else.
        """
        if self.credentials_file is None:
            return None
        table = {"credentials_file": str(self.credentials_file)}
        found = resolved("registry", table)["credentials"]
        if ":" not in found:
            raise ConfigurationError("registry.credentials_file: must have user:password")
        return found


class SimilaritySection(_Section):
    """The definition of a near duplicate."""

    threshold: float = Field(
        0.8,
        gt=0,
        le=1,
        description="documents at or above this Jaccard similarity of shingles match",
    )
    recall: float = Field(
        0.98,
        gt=0,
        lt=1,
        description="share of pairs at the threshold to find; bands and rows follow from it",
    )
    containment: Annotated[float | None, BeforeValidator(_none)] = Field(
        None,
        gt=0,
        le=1,
        description="a document also matches an earlier one that has at least this share of its"
        " shingles, whatever their similarity: excerpts and reprints that were cut; none: only the"
        " similarity counts",
    )
    containment_ratio: float = Field(
        CONTAINMENT_RATIO,
        ge=1,
        le=4,
        description="with a containment: how many times as long as an excerpt a document may be"
        " for the two to be found with similarity.recall; bands and rows follow from it",
    )
    shingle: Literal["char", "word"] = Field(
        "char", description="compare runs of characters, or of words"
    )
    shingle_size: int = Field(5, ge=1, le=64, description="characters or words in a shingle")
    slots: int | None = Field(
        None,
        ge=16,
        le=4096,
        description="slots of a sketch; more slots estimate better and cost time and space;"
        " default: follows from the threshold, 128 from 0.79 on and 256 below",
    )
    bands: int | None = Field(
        None, ge=1, le=MOST_BANDS, description="number of bands; default: follows from recall"
    )
    rows: int | None = Field(
        None, ge=1, le=250, description="slots per band; default: follows from recall"
    )
    nfkc: bool | None = Field(
        None,
        description="unify compatibility characters (Unicode NFKC); default: true, or by the"
        " preset",
    )
    casefold: bool | None = Field(None, description="ignore case; default: true, or by the preset")
    collapse_whitespace: bool | None = Field(
        None, description="treat any run of white space as one space; default: true"
    )
    drop_invisible: bool | None = Field(
        None,
        description="drop what nothing shows: zero-width and control characters, soft hyphens,"
        " variation selectors, the stroke that lengthens Arabic words (tatweel); joiners"
        " stay where the script needs them; default: true",
    )
    drop_overlays: bool | None = Field(
        None,
        description="drop strokes over letters, and enclosures; default: true, or by the preset",
    )
    preset: Literal["comments", "news", "code"] | None = Field(
        None,
        description="switches that belong together: comments turns fold_confusables, fold_digits,"
        " fold_accents, drop_symbols and join_letters on, and leaves web addresses as"
        " they are; news turns strip_html and reduce_urls on; code turns nfkc, casefold and"
        " drop_overlays off",
    )
    fold_confusables: bool | None = Field(
        None,
        description="read letters as the ASCII that they look like (UTS 39); default: false, or by"
        " the preset",
    )
    fold_digits: bool | None = Field(
        None, description="read every digit as 0; default: false, or by the preset"
    )
    fold_accents: bool | None = Field(
        None,
        description="drop marks that carry no words: accents of Latin, Greek and Cyrillic letters,"
        " vowel signs of Hebrew, Arabic and Syriac; read letters with a stroke, such as"
        " that of Danish, as plain ones; default: false, or by the preset",
    )
    fold_turkish_i: bool | None = Field(
        None,
        description="read the four letters i of Turkish and Azeri as one, so that a text in"
        " capitals matches; fold_accents does so too; default: false",
    )
    drop_symbols: bool | None = Field(
        None,
        description="drop punctuation, symbols and emoji between letters; default: false, or by the"
        " preset",
    )
    join_letters: bool | None = Field(
        None,
        description="drop white space between letters, for shingles of characters; default: false,"
        " or by the preset",
    )
    strip_html: bool | None = Field(
        None,
        description="take the text out of HTML, as a browser shows it; a text without markup stays;"
        " default: false, or by the preset",
    )
    reduce_urls: bool | None = Field(
        None,
        description="reduce web addresses to their hosts, in texts that say something else too;"
        " default: false, or by the preset",
    )
    boilerplate: Path | None = Field(
        None,
        description="file with lines that are left out of texts before they are compared, such as"
        " `neardup boilerplate` writes; workers need the same lines",
    )
    seed: SecretStr = Field(
        SecretStr(_DEFAULT_SEED),
        description="secret that goes into every hash; set your own, of at least 16 bytes",
    )
    seed_file: Path | None = Field(None, description="file that holds the seed")

    @property
    def sought(self) -> float:
        """Return the least Jaccard similarity of the pairs that bands have to find."""
        return sought(self.threshold, self.containment, self.containment_ratio)

    def switches(self) -> dict[str, bool]:
        """Return the normaliser's switches by name: what is set, else the preset, else default."""
        preset = dict(PRESETS[self.preset]) if self.preset else {}
        if self.shingle == "word":  # Without white space there are no words.
            preset.pop("join_letters", None)
        given = {name: getattr(self, name) for name in SWITCHES}
        return {
            name: preset.get(name, getattr(_DEFAULTS, name)) if value is None else value
            for name, value in given.items()
        }

    @cached_property
    def boilerplate_lines(self) -> frozenset[str]:
        """Return the lines that are left out. The file is read once.

        Raises:
            ValueError: it can't be read, or isn't such a list.
        """
        if self.boilerplate is None:
            return frozenset()
        return line_list("similarity.boilerplate", self.boilerplate)

    @property
    def default_seed(self) -> bool:
        """Return whether the seed is the default, which is public."""
        return self.seed_file is None and self.seed.get_secret_value() == _DEFAULT_SEED

    def seed_bytes(self) -> bytes:
        """Return the seed; one in a file is read now.

        Raises:
            ValueError: the file can't be read, or the seed is too short.
        """
        if self.seed_file is None:
            given, where = self.seed.get_secret_value().encode(), "similarity.seed"
        else:
            where = "similarity.seed_file"
            try:
                given = self.seed_file.read_bytes().strip()
            except OSError as error:
                raise ValueError(f"{where}: the file can't be read: {error.strerror}") from None
            if is_mask(given.decode(errors="replace")):
                raise ValueError(f"{where}: {REFUSED}")
        if len(given) < _SEED_BYTES and not self.default_seed:
            raise ValueError(
                f"{where}: got fewer than {_SEED_BYTES} bytes, must be at least {_SEED_BYTES};"
                " for example the output of `openssl rand -hex 32`"
            )
        return given


def _length(window: str, others: str) -> str:
    """Return a window in its shortest form; ``others`` are what may be said instead of a length."""
    if window == _NO_WINDOW:
        return window
    try:
        length = duration_ms(window)
    except ValueError:
        length = 0
    if length < _LEAST_WINDOW_MS:
        raise ValueError(
            f"got {window!r}, must be {others}, or a length of at least 1s, such as 30d, 12h, 90m,"
            " 45s or 1d12h"
        )
    return duration_text(length)


class SnapshotsSection(_Section):
    """Copies of shards, from which a lost shard is restored."""

    url: str | None = Field(
        None,
        description="directory shared by all workers, or an object store; default: no snapshots",
        repr=False,
    )
    options: dict[str, JsonValue] = Field(
        {}, description="options of the file system, such as credentials", repr=False
    )
    key_file: Path | None = Field(
        None,
        description="file with a secret of 32 bytes or more, the same for all workers: it signs"
        " snapshots, and others are refused",
    )
    every_seconds: float = Field(900, gt=0, description="time between snapshots of a shard")
    keep: int = Field(3, ge=1, description="snapshots kept per shard; older ones are deleted")
    verify_seconds: float = Field(
        86_400,
        gt=0,
        description="time between checks of the files of a shard's snapshots",
    )
    trim_log: bool = Field(
        default=False,
        description="delete from APP.fingerprints what the kept snapshots of all shards contain",
    )


class IndexSection(_Section):
    """The band index."""

    shards: int = Field(
        2, ge=1, le=251, description="number of shards; at most this many workers share the index"
    )
    bucket_capacity: int = Field(
        32, ge=1, le=4096, description="most entries of a bucket; later ones go to finer buckets"
    )
    absorb: float | None = Field(
        None,
        gt=0,
        le=1,
        description="copies at or above this similarity get no entry of their own; default: 0.95,"
        " or the threshold if that is higher",
    )
    window: str = Field(
        _NO_WINDOW,
        description="how long a document is remembered after its time, or after that of the latest"
        " copy that it stands for: a length such as 30d, 12h, 90m, 45s or 1d12h; none: for ever",
    )
    same_id: SameId = Field(
        "duplicate",
        description="what a document is whose id the index already has: duplicate: judged like any"
        " other, so it may match its own earlier version; replace: it takes the place of the"
        " earlier one, and is not matched against it; ignore: sent again, and published with the"
        " first one's verdict",
    )
    max_matches: int = Field(
        64, ge=1, le=1024, description="most matches published with a duplicate, best first"
    )
    future_allowance_seconds: float = Field(
        60, ge=0, description="how far a document's time may be ahead of the log's"
    )
    cache_bytes: int | None = Field(
        None,
        ge=1 << 20,
        description="block cache, shared by all shards of a worker; default: what is left of the"
        " index's share of worker.memory, at most 16 MiB",
    )
    write_buffer_bytes: int | None = Field(
        None,
        ge=1 << 20,
        description="write buffer of each shard; default: follows from worker.memory",
    )
    run_documents: int = Field(
        1 << 16,
        ge=16,
        le=1 << 24,
        description="a new index keeps the keys of so many documents in memory before it writes"
        " them as a sorted run",
    )
    erasure_seconds: float = Field(
        86_400,
        ge=60,
        description="within this time after a shard has judged a tombstone, the id and the sketch"
        " of the forgotten document leave the files of all running workers. So a store that no"
        " shard has used for a third of it is deleted, and what belongs to no snapshot after half"
        " of it. Logs and snapshots keep them for their own retention",
    )
    flush_documents: int = Field(
        10_000, ge=1, description="flush a shard to disk after this many documents"
    )
    flush_seconds: float = Field(60, gt=0, description="flush a shard to disk after this time")
    standby: str = Field(
        "none",
        description="shards of other workers to keep warm: none, all, or comma-separated numbers",
    )
    snapshots: SnapshotsSection = SnapshotsSection()

    @property
    def window_ms(self) -> int | None:
        """Return how long a document is remembered, in ms; None: for ever."""
        return None if self.window == _NO_WINDOW else duration_ms(self.window)

    @property
    def future_allowance_ms(self) -> int:
        """Return how far a document's time may be ahead of the log's, in ms."""
        return int(self.future_allowance_seconds * 1_000)

    @property
    def log_window_ms(self) -> int | None:
        """Return how far back the index needs its log if brokers delete from it, in ms.

        None: brokers must delete nothing. Either nothing expires, or neardup itself trims the log.
        """
        if self.window_ms is None or self.snapshots.trim_log:
            return None
        return self.window_ms + self.future_allowance_ms

    @property
    def standby_shards(self) -> tuple[int, ...]:
        """Return the shards to keep warm while others own them."""
        if self.standby == "none":
            return ()
        if self.standby == "all":
            return tuple(range(self.shards))
        return tuple(map(int, self.standby.split(",")))

    @field_validator("window")
    @classmethod
    def _check_window(cls, window: str) -> str:
        """Return a window in its shortest form, in which equal ones are the same text."""
        return _length(window, "none")

    @model_validator(mode="after")
    def _check_standby(self) -> IndexSection:
        numbers = set(map(str, range(self.shards)))
        if self.standby not in {"none", "all"} and not numbers.issuperset(self.standby.split(",")):
            raise ValueError(
                f"index.standby: got {self.standby!r}, must be none, all, or comma-separated shard"
                f" numbers below {self.shards}"
            )
        return self

    @model_validator(mode="after")
    def _check_options(self) -> IndexSection:
        check_names("index.snapshots.options", self.snapshots.options)
        return self

    @model_validator(mode="after")
    def _check_trim_log(self) -> IndexSection:
        if self.snapshots.trim_log and self.snapshots.url is None:
            raise ValueError("index.snapshots.trim_log: needs index.snapshots.url")
        return self


class LimitsSection(_Section):
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


class WorkerSection(_Section):
    """How a worker runs."""

    instance: str | None = Field(
        None,
        pattern=APP_NAME,
        description="stable name of the worker; default: generated, kept in the state directory",
    )
    state_dir: Path = Field(
        Path("neardup-state"), description="directory of the index; a separate one for each worker"
    )
    stages: _Names = Field(
        ("fingerprint", "index", "route"),
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
        known = ("fingerprint", "index", "route")
        for stage in stages:
            if stage not in known:
                near = difflib.get_close_matches(stage, known, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise ValueError(f"got {stage!r}, must be one of {', '.join(known)}{hint}")
        return stages


class ServeSection(_Section):
    """Where `neardup serve` is asked. Its metrics and health are on `worker.http_host`."""

    host: str = Field("127.0.0.1", description="address for queries")
    port: int = Field(9465, ge=0, le=65_535, description="port for queries; 0: any")
    hosts: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)] = Field(
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
        return None if self.groups_window == _NO_WINDOW else duration_ms(self.groups_window)

    @field_validator("groups_window")
    @classmethod
    def _check_groups_window(cls, window: str) -> str:
        return window if window == _AUTO else _length(window, "auto, none")

    @field_validator("hosts")
    @classmethod
    def _check_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        given = tuple(host for host in hosts if host)
        for host in given:
            if not _HOST.fullmatch(host):
                raise ValueError(f"got {host!r}, must be a host name or an address without a port")
        return tuple(host.strip("[]").lower() for host in given)


class CorrectionsSection(_Section):
    """Who corrects: `neardup allow`, `neardup forget`, and the page."""

    by: str | None = Field(
        None,
        max_length=100,
        description="name that is noted with each correction; default: that of the user",
    )


class WatchdogSection(_Section):
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
