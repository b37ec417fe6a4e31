"""The compiled core: `core/` in Rust. This stub is its whole face.

Arrays are given in C order, and nobody writes to them while a function reads them. Work on more
than some 30 kB lets other threads of Python run.
"""

from collections.abc import Sequence
from typing import Any, Literal, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from lsh.index import BucketRules, DocumentBatch

__all__ = [
    "NORMALISER_VERSION",
    "UNICODE_VERSION",
    "MemoryIndex",
    "Normaliser",
    "PlainIndex",
    "Signed",
    "Signer",
    "__version__",
    "band_keys",
    "distinct",
    "equal_slots",
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
    """Return the keys of the bands of n sketches; see `lsh.bands.band_keys`.

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

    def remove(self, row: int, others: NDArray[np.int64]) -> None:
        """Remove a document that isn't blank: the buckets become as if it had never come.

        others: int64[m], the rows of all other documents that aren't blank, ascending.
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

_Matches: TypeAlias = dict[int, list[tuple[int, float, bytes, float]]]

@final
class PlainIndex:
    # An index in hash maps, by which tests judge and ask; see `core/src/index/plain.rs`.
    rounds: int
    moved_below: int
    def __new__(cls, rules: BucketRules, columns: Sequence[int], slots: int) -> Self: ...
    def judge(self, batch: DocumentBatch, *, reluctant: bool = False) -> dict[str, Any]: ...
    def apply(self) -> None: ...
    def query(
        self, batch: DocumentBatch, *, reluctant: bool = False
    ) -> tuple[_Matches, list[list[tuple[int, int, int, list[int]]]], list[int]]: ...
    def buckets(self) -> dict[tuple[int, int], tuple[list[int], bool]]: ...
    def records(self) -> list[bytes]: ...
    def renewals(self) -> dict[int, dict[int, int]]: ...
    def verdicts(self) -> dict[int, bytes]: ...
