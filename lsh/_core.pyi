"""The compiled core: `core/` in Rust. This stub is its whole face.

Arrays are given in C order, and nobody writes to them while a function reads them. Work on more
than some 30 kB lets other threads of Python run.

If the core fails by a defect of its own, what was called raises RuntimeError. An index that it was
changing then is not used again: all its methods raise the same.
"""

from collections.abc import Sequence
from typing import Literal, Self, TypeAlias, TypedDict, final

import numpy as np
from numpy.typing import NDArray

from lsh.index import BucketRules, DocumentBatch

__all__ = [
    "NORMALISER_VERSION",
    "UNICODE_VERSION",
    "Contents",
    "Damaged",
    "Decision",
    "Matches",
    "MemoryIndex",
    "Normaliser",
    "Opening",
    "Plan",
    "Query",
    "Shard",
    "Signed",
    "Signer",
    "Writes",
    "__version__",
    "band_keys",
    "check",
    "decode",
    "distinct",
    "equal_slots",
    "near_pairs",
    "read_payloads",
    "signatures",
    "text_keys",
]

__version__: str

NORMALISER_VERSION: int
"""Increased whenever the same text, switches and Unicode version give another normal form."""

UNICODE_VERSION: str
"""The version of the Unicode data that normal forms are made with, such as "18.0.0".

Characters that it doesn't know are left unchanged.
"""

@final
class Normaliser:
    """Makes normal forms of texts. Immutable: any number of threads may share it."""

    def __new__(
        cls,
        *,
        boilerplate: Sequence[str] = ...,
        nfkc: bool = False,
        casefold: bool = False,
        collapse_whitespace: bool = False,
        drop_invisible: bool = False,
        drop_overlays: bool = False,
        fold_confusables: bool = False,
        fold_digits: bool = False,
        fold_accents: bool = False,
        fold_turkish_i: bool = False,
        drop_symbols: bool = False,
        join_letters: bool = False,
        strip_html: bool = False,
        reduce_urls: bool = False,
    ) -> Normaliser:
        """Take the switches, and the lines that are left out of texts.

        Raises TypeError for a switch that there isn't, or one that is neither true nor false.
        """

    def normalise(self, text: str) -> str:
        """Return the normal form of a text. Lone surrogates stay."""

    def left_out(self, text: str) -> list[str]:
        """Return the lines that `normalise` leaves out because they are listed.

        They are in their order, without the breaks, each as often as the text has it.
        """

    def lines(self, text: str) -> list[str]:
        """Return the lines of a text without markup, without the breaks.

        A tag that begins a new line or cell breaks a line.
        """

    def forms(self, lines: Sequence[str]) -> list[str]:
        """Return the normal form of each line, as if it were a text without markup.

        No line is left out.
        """

    def listed(self) -> list[str]:
        """Return the normal forms of the lines that are left out, ascending by code points.

        Lines with nothing but white space, marks and what is dropped are not among them.
        """

@final
class Signed:
    """What signing makes of n texts. The rows of a blank text are zeros.

    A text is blank if nothing is left of it in its normal form, or if shingles are of words and
    it has none.
    """

    @property
    def sketches(self) -> NDArray[np.uint8]:
        """The sketches: uint8[n, slots]."""
    @property
    def texts(self) -> NDArray[np.uint64]:
        """The keys of the exact normal forms: uint64[n]; see `text_keys`."""
    @property
    def shingles(self) -> NDArray[np.uint32]:
        """How many shingles each text has, at most 2^32 - 1: uint32[n]."""
    @property
    def blank(self) -> NDArray[np.bool_]:
        """Which texts are blank: bool[n]."""

@final
class Signer:
    """Signs texts. Immutable: any number of threads may use one at a time."""

    def __new__(
        cls,
        normaliser: Normaliser,
        *,
        shingle: Literal["char", "word"],
        shingle_size: int,
        slots: int,
        count_distinct: bool,
        shingle_state: int,
        word_key: bytes,
        text_key: bytes,
    ) -> Signer:
        """Derive the constants.

        normaliser: makes the normal forms that are signed.
        shingle, shingle_size: a shingle is so many code points or words, from 1 to 64.
        slots: of a sketch, from 1 to 4,096.
        count_distinct: whether repeats of a shingle don't count in `Signed.shingles`.
        shingle_state: what the constants of shingle hashes are drawn from, of 64 bits.
        word_key, text_key: 32 bytes each, the keys of the hashes of words and of whole texts.

        Raises ValueError for a number or a key that is none of these.
        """

    def sign(self, texts: Sequence[str]) -> Signed:
        """Return the columns of n texts.

        A text's columns depend on nothing but the text. Lone surrogates are treated like any
        other code point.

        Raises TypeError, which names the row, for what isn't str.
        """

    def shingles(self, texts: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return the shingle hashes of n texts: uint64[total], and int64[n + 1], their starts.

        Each text's are in the order of its shingles. A text that is shorter than a shingle has
        one, of the whole text; a blank one has none.

        Raises TypeError, which names the row, for what isn't str.
        """

    def word_shingles(
        self, words: Sequence[str | bytes], starts: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return the shingle hashes of n sequences of words, as `shingles` does.

        words: all sequences, end to end. A word in str is its UTF-8.
        starts: int64[n + 1], where each sequence begins, then the number of words.

        Raises TypeError for a word that is neither str nor bytes; it names the word's number.
        Raises ValueError if the starts don't lead through all words.
        """

def band_keys(
    sketches: NDArray[np.uint8], bands: int, rows: int, columns: Sequence[int] | None = None
) -> NDArray[np.uint64]:
    """Return the keys of the bands of n sketches; see `lsh.sketch.band_keys`.

    sketches: uint8[n, slots], with at least bands * rows slots.
    columns: the numbers of the bands that are wanted; None: all.

    Returns uint64[n, bands], or uint64[n, len(columns)].

    Raises ValueError if there are fewer slots, or no such band.
    """

def distinct(
    hashes: NDArray[np.uint64], starts: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the different ones of the hashes of each of n texts, ascending, and their starts.

    hashes: uint64[total]. starts: int64[n + 1].

    Raises ValueError if the starts don't lead through all hashes.
    """

def equal_slots(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Return how many slots of each row of `a` equal those of the same row of `b`.

    a, b: uint8[m, slots], with at most 65,535 slots; one may have a single row, for all rows of
        the other one.

    Returns uint16[m].

    Raises ValueError for arrays of other shapes.
    """

def near_pairs(
    a: NDArray[np.uint8], b: NDArray[np.uint8], least: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint16]]:
    """Return the pairs of a row of `a` and a row of `b` that have at least `least` equal slots.

    a: uint8[m, slots]. b: uint8[n, slots]. slots: from 1 to 65,535.

    Returns three arrays [k]: the rows of `a`, ascending, those of `b`, and the equal slots.

    Raises ValueError for arrays of other shapes.
    """

def signatures(
    hashes: NDArray[np.uint64], starts: NDArray[np.int64], slots: int
) -> NDArray[np.uint64]:
    """Return the MinHash signatures of n texts from their shingle hashes.

    hashes: uint64[total]. starts: int64[n + 1]. slots: from 1 to 4,096.

    Returns uint64[n, slots]; zeros for a text without shingles.

    Raises ValueError if the starts don't lead through all hashes, or for another number of slots.
    """

def text_keys(encoded: Sequence[bytes], key: bytes) -> NDArray[np.uint64]:
    """Return 64 bits of BLAKE2b, little-endian, of each of n texts: uint64[n].

    encoded: normal forms in UTF-8. key: 32 bytes.
    """

def read_payloads(
    payloads: Sequence[bytes | None], id_name: str, text_name: str
) -> tuple[list[bytes | None], list[str | None]]:
    """Return what two members say in each of n plain JSON objects.

    An id is UTF-8. A text is None if the payload isn't an object with strings there, or not a plain
    one: nothing is said of it then. An id is also None if only that is missing.
    """

def decode(data: bytes, label: str) -> str | None:
    """Return a text in the encoding that a label names in the WHATWG's Encoding Standard.

    None if the text isn't in it. A byte order mark stays. Raises LookupError for other labels, and
    for those of encodings that browsers don't read, such as iso-2022-kr.
    """

class Damaged(ValueError):
    """Something that is stored contradicts itself; the message says what."""

def check(key: bytes, value: bytes) -> bytes:
    """Return a stored value of a shard without its checksum.

    Raises Damaged if it isn't what was written under this key.
    """

@final
class Contents:
    """What a store has of a shard, value by value, for whoever checks or counts it.

    All methods raise Damaged for a value that isn't what was written under its key, or that can't
    be the shard's.
    """

    def __new__(cls, runs: bytes | None, inserted: int) -> Contents:
        """Take the value of the key ``ff72756e73`` ("runs"), and `Writes.inserted`."""

    @property
    def columns(self) -> list[int]:
        """The columns, ascending, without that of ids."""
    @property
    def runs(self) -> list[tuple[int, int, int]]:
        """The runs, oldest first: number, tier, cells."""
    @property
    def tables(self) -> list[int]:
        """The runs that must have tables."""
    @property
    def eras(self) -> list[tuple[int, int]]:
        """The eras that are kept, oldest first: number, first document."""

    def cells(
        self, key: bytes, value: bytes
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint64], NDArray[np.int64], int]:
        """Return the cells of a page of a run, or of a write of the memtable.

        Returns their columns uint8[c], keys uint64[c] and documents int64[c], and how many more
        there are: those of ids, and marks.
        """

    def bucket(self, key: bytes, value: bytes) -> tuple[int, int, int, list[int], bool]:
        """Return what a bucket has grown to.

        Returns: era, column, key, documents, whether it has overflow buckets.
        """

    def records(self, key: bytes, value: bytes) -> list[tuple[int, int, int, bytes, bytes] | None]:
        """Return the records of a page; None of a document that was forgotten.

        A record is: sequence number, time in ms or a mark of the clock, number of shingles, sketch
        (empty if no bucket names the document), id.
        """

@final
class Opening:
    """A shard, while its store is read.

    Give the values of `keys`, in their order. Drop the tables that `tables` doesn't name. Take all
    keys of each of `ranges`, ascending, with their values. Then `finish`.

    A method raises Damaged if what is stored contradicts itself. After that, and after `finish`,
    there is nothing to go on with: ValueError.
    """

    def __new__(
        cls, *, run_documents: int, window_ms: int | None, inserted: int, clock: bytes | None
    ) -> Opening:
        """Begin.

        run_documents: how many documents a run of tier 0 has; it counts for a new shard.
        window_ms: how long entries live; None: for ever.
        inserted, clock: those of the last `Writes` in the store; 0 and None of a new shard.

        Raises Damaged if the clock is none, and ValueError for fewer documents than one, or a
        negative window.
        """

    def keys(self) -> list[bytes]:
        """Return the keys whose values must be given first: three."""

    def give(self, values: Sequence[bytes | None]) -> None:
        """Take the values of `keys`; None where there is none.

        Raises ValueError for another number of values.
        """

    def tables(self) -> tuple[list[int], list[int]]:
        """Return the runs that must have tables, and those that may.

        What is left of others is of a write that failed. Drop it before anything is written.
        """

    def ranges(self) -> list[tuple[bytes, bytes, int]]:
        """Return the half-open ranges of keys to take, each with how many cells it speaks for.

        The time to take a range is about in proportion to its cells.
        """

    def take(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Take some keys of a range, ascending, with their values."""

    def finish(self) -> Shard:
        """Return the shard."""

@final
class Shard:
    """One shard of an index, without its store.

    It names the keys that must be read, takes their values, and returns what to write. Any number
    of threads may ask at once. Whoever has the store keeps them out from before a write is in the
    store until `apply` has returned.

    All that reads raises Damaged if what is stored contradicts itself, and RuntimeError if the core
    fails. After either, or if a write fails, open the shard again.
    """

    def plan(self, batch: DocumentBatch, rules: BucketRules) -> Plan:
        """Look a batch up in memory; return what judges it.

        The first write sets the columns of a shard; a batch of others raises Damaged. The rules
        must always be the same.

        Raises ValueError if the lengths of the batch's arrays don't fit, and TypeError if their
        types or dimensions don't.
        """

    def query(self, batch: DocumentBatch, rules: BucketRules) -> Query:
        """Look documents up in memory that are only asked about, each as if it came next, alone.

        Their sequence numbers and ids don't count. Raises what `plan` raises.
        """

    def apply(self, plan: Plan) -> None:
        """Continue after a plan's write, which is in the store.

        Raises ValueError if the plan has no write, or is of another state of the shard.
        """

    def may_have(self, column: int, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which of some buckets of a column may exist: bool[n]. Looks at memory alone.

        keys: uint64[n].
        """

    def limit(self, records: int, buckets: int, candidates: int = ...) -> None:
        """Keep about so many bytes of records, and of grown buckets, that were used lately.

        candidates: about how many bytes a plan holds of what documents are compared with.
        """

    def sizes(self) -> _Sizes:
        """Return what it has, and the bytes that it keeps in memory."""

    @property
    def inserted(self) -> int:
        """How many documents were inserted so far: the number that the next one gets."""
    @property
    def room(self) -> int:
        """How many more documents can be inserted before an era is given back."""
    @property
    def now(self) -> int | None:
        """The index's time, in ms; None until there is one."""
    @property
    def clock(self) -> bytes:
        """What the documents so far say about the time, as it is stored."""

class _Sizes(TypedDict):
    """documents: that are kept. eras, expired_eras: that are kept, and were given back so far.

    oldest_since: what was now when the oldest era began, in ms; None: not known yet.
    tiers: how many runs of each tier there are, and how many cells they have.
    """

    documents: int
    eras: int
    expired_eras: int
    oldest_since: int | None
    open_cells: int
    tiers: dict[int, tuple[int, int]]
    open_bytes: int
    filter_bytes: int
    record_bytes: int
    bucket_bytes: int

_Keys: TypeAlias = list[tuple[int | None, list[bytes]]]
"""Keys by the run in whose tables they are (None: they are among all others), ascending."""

@final
class Plan:
    """A batch on its way through a shard.

    Read what `keys` names, and `give` it, until there are no keys; then `judge`. Do the same once
    more, then `writes`. Put these into the store, and `Shard.apply` the plan. A plan that isn't
    applied has changed nothing.

    It is of the state that the shard was in. After another `apply`, it raises ValueError.
    """

    def keys(self) -> _Keys:
        """Return the keys that must be read next; the same ones until their values are given."""

    def give(self, values: Sequence[bytes | None]) -> None:
        """Take the values of the keys, in their order; None where there is none.

        Raises ValueError for another number of values.
        """

    def judge(self) -> Decision:
        """Return the decision. From now on, `keys` are those that its write needs.

        Raises ValueError while there are keys.
        """

    def writes(self) -> Writes:
        """Return what to write, once. Raises ValueError while there are keys."""

@final
class Matches:
    """The matches of n documents: m in all, those of a document best first.

    Those of row i are at ``starts[i]`` to ``starts[i + 1]``.
    """

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where those of each row begin, and the end: int64[n + 1]."""
    @property
    def sequences(self) -> NDArray[np.uint64]:
        """The sequence numbers of the earlier documents: uint64[m]."""
    @property
    def similarities(self) -> NDArray[np.float64]:
        """The estimated similarities: float64[m]."""
    @property
    def containments(self) -> NDArray[np.float64]:
        """The estimated shares of the documents that are in the earlier ones: float64[m].

        0 where that isn't enough to match by.
        """
    @property
    def ids(self) -> list[bytes]:
        """The ids of the earlier documents, m; b"" of one that was forgotten meanwhile."""

@final
class Decision:
    """What is decided about a batch of n documents."""

    @property
    def matches(self) -> Matches: ...
    @property
    def candidates(self) -> int:
        """How many comparisons with candidates were made."""
    @property
    def absorbed(self) -> int:
        """How many cells were not inserted because an entry stands for them."""
    @property
    def covered(self) -> int:
        """How many of these are less similar to it than `BucketRules.absorb`."""
    @property
    def divided(self) -> int:
        """How many buckets were full, and have overflow buckets from now on."""
    @property
    def dropped(self) -> int:
        """How many entries were removed from the finest buckets, which were full."""
    @property
    def repeated(self) -> int:
        """How many documents were ignored because they were sent again."""
    @property
    def older(self) -> int:
        """How many documents came more than a window older than now."""
    @property
    def leap(self) -> tuple[int, int] | None:
        """The last time when now went forward by more than a window: from and to, in ms."""
    @property
    def now(self) -> int | None:
        """What is now after the batch, in ms; None: not known yet."""
    @property
    def dated(self) -> int:
        """How many of the last documents have a time, of those that have a vote on what is now."""
    @property
    def inserted(self) -> int:
        """How many documents are inserted."""
    @property
    def forgotten(self) -> int:
        """How many documents of the shard are forgotten."""
    @property
    def known(self) -> list[bytes]:
        """The ids that the batch forgets and of which the shard had a document."""

_Pairs: TypeAlias = list[tuple[bytes, bytes]]

@final
class Writes:
    """What is written, in this order: tables, then in one atomic write ranges, deletes, puts."""

    @property
    def tables(self) -> list[tuple[int, _Pairs, bool, bool]]:
        """Pages of runs: the run, keys and pages, whether the file is finished, and is the last.

        The keys of a run's file ascend over its writes. A finished file must be on disk before the
        atomic write.
        """
    @property
    def ranges(self) -> _Pairs:
        """Half-open ranges of keys that are deleted."""
    @property
    def deletes(self) -> list[bytes]: ...
    @property
    def puts(self) -> _Pairs: ...
    @property
    def replaced(self) -> list[int]:
        """The runs whose tables are dropped once the atomic write is on disk."""
    @property
    def erased(self) -> list[int]:
        """The pages of records whose former bytes have to leave the store's files."""
    @property
    def inserted(self) -> int:
        """How many documents were inserted so far; kept for the next opening."""
    @property
    def clock(self) -> bytes:
        """The clock after the batch; kept for the next opening."""

@final
class Query:
    """Documents that are asked about; see `Plan`. They change nothing."""

    def keys(self) -> _Keys:
        """Return the keys that must be read next; see `Plan.keys`."""

    def give(self, values: Sequence[bytes | None]) -> None:
        """Take the values of the keys; see `Plan.give`."""

    def answers(self) -> tuple[Matches, list[list[tuple[int, int, int, list[int]]]], list[int]]:
        """Return the matches, the buckets that each met, and with how many it was compared.

        A bucket is: its column, its level (0: that of the key; from 1: overflow), how many live
        entries it has, and the sequence numbers of the matches in it, ascending.

        Raises ValueError while there are keys.
        """

_Found: TypeAlias = tuple[
    NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]
]
"""m matches, document by document, the best first: documents, rows, similarity, containment.

documents: int64[m], ascending. rows: int64[m], the rows of what they match. similarity: float64[m].
containment: float64[m], that of the document in what it matches; 0 where it isn't enough.
"""

@final
class MemoryIndex:
    """All columns of an index without a window, and all its documents, by rows.

    It also has those that no bucket names because an entry stands for them. So it can also remove
    one: see `remove`. A method that changes it raises RuntimeError if another thread is in any
    method, and all do while it works.
    """

    def __new__(cls, rules: BucketRules, columns: int, slots: int) -> Self:
        """Begin empty.

        rules: without a window. Documents have no ids, so ``same_id`` doesn't count.
        columns: how many keys a document has, from 1 to 256. slots: of a sketch.

        Raises ValueError for anything else.
        """

    def __len__(self) -> int:
        """Return the number of rows; the next document gets it. Removed ones keep theirs."""

    @property
    def compared(self) -> int:
        """How many comparisons `judge` has made."""

    def judge(
        self,
        keys: NDArray[np.uint64],
        sketches: NDArray[np.uint8],
        shingles: NDArray[np.uint32],
        blank: NDArray[np.bool_],
    ) -> _Found:
        """Add n documents in order, each as if it came alone; return what they match.

        keys: uint64[n, columns]. sketches: uint8[n, slots]. shingles: uint32[n].
        blank: bool[n], the documents that have no fingerprint. They come to no bucket.

        The documents of the matches are given by rows.

        Raises ValueError for arrays of other shapes.
        """

    def matches(
        self,
        keys: NDArray[np.uint64],
        sketches: NDArray[np.uint8],
        shingles: NDArray[np.uint32],
    ) -> _Found:
        """Return what n queries match, and change nothing. See `judge`.

        The documents of the matches are the places of the queries.
        """

    def remove(self, rows: NDArray[np.int64], others: NDArray[np.int64]) -> None:
        """Remove documents that aren't blank: the buckets become as if they had never come.

        rows: int64[k]. others: int64[m], those of all other documents that aren't blank, ascending.
        """

    def keys(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the keys of some documents: uint64[columns, m]."""

    def sketches(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the sketches of some documents: uint8[m, slots]."""

    def shingles(self, rows: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Return how many shingles some documents have: uint32[m]."""

    def with_key(self, column: int, key: int) -> NDArray[np.int64]:
        """Return the rows whose key in a column is this one, ascending: int64[m]."""

    def similarity(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the estimated similarities of p pairs of documents: float64[p].

        left: int64[p] or int64[1], rows. right: int64[p].
        """
