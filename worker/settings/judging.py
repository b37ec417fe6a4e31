"""The sections on verdicts: what a near duplicate is, and the index with its snapshots."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BeforeValidator,
    Field,
    JsonValue,
    SecretStr,
    field_validator,
    model_validator,
)

from lsh import PRESETS, SWITCHES, Parameters
from lsh.index import SameId
from lsh.tuning import CONTAINMENT_RATIO, sought
from worker.settings.secrets import REFUSED, check_names, is_mask, line_list
from worker.settings.sections import Section
from worker.settings.units import FOR_EVER, duration_ms, window_text

MOST_BANDS = 250
"""A store's key has one byte for the band, and a few of its values are reserved."""
_DEFAULT_SEED = "neardup"
_SEED_BYTES = 16
_DEFAULTS = Parameters()


def _none(value: object) -> object:
    return None if value == "none" else value


class SimilaritySection(Section):
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


class SnapshotsSection(Section):
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

    @model_validator(mode="after")
    def _check_options(self) -> SnapshotsSection:
        check_names("index.snapshots.options", self.options)
        if self.trim_log and self.url is None:
            raise ValueError("index.snapshots.trim_log: needs index.snapshots.url")
        return self


class IndexSection(Section):
    """The band index."""

    shards: int = Field(
        2, ge=1, le=251, description="number of shards; at most this many workers share the index"
    )
    bucket_capacity: int = Field(
        32, ge=1, le=4096, description="most entries of a bucket; later ones go to overflow buckets"
    )
    absorb: float | None = Field(
        None,
        gt=0,
        le=1,
        description="copies at or above this similarity get no entry of their own; default: 0.95,"
        " or the threshold if that is higher",
    )
    window: str = Field(
        FOR_EVER,
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
        return None if self.window == FOR_EVER else duration_ms(self.window)

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
        return window_text(window, "none")

    @model_validator(mode="after")
    def _check_standby(self) -> IndexSection:
        numbers = set(map(str, range(self.shards)))
        if self.standby not in {"none", "all"} and not numbers.issuperset(self.standby.split(",")):
            raise ValueError(
                f"index.standby: got {self.standby!r}, must be none, all, or comma-separated shard"
                f" numbers below {self.shards}"
            )
        return self
