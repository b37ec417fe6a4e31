"""MinHash signatures by one-permutation hashing, compact sketches, and their similarity.

One hash h serves all k slots: its high bits assign a shingle to a slot, and the
slot takes its least shingle (Li, Owen, Zhang, "One permutation hashing", NIPS
2012). Its value is h with its low half mixed: only the high bits of h decide, so
only winners need the last step of mixing. A slot without any shingle of the
document takes the minimum, over all shingles, of a hash g_i of its own, which is
made of 16 bits of that value.

P(slot i of A = slot i of B) is the Jaccard similarity for every size of A and
B. Proof: slot i ranks every shingle x by f_i(x) = (0, h(x)) if x belongs to i,
and (1, g_i(x)) if not. A document's slot is its least shingle in that order,
because g_i is used only if no shingle belongs to i. f_i is one fixed order of
all shingles, random in h. So the least shingle of the union of A and B is
equally likely to be any shingle of the union, and the slots agree if and only
if it is in both. If a slot is filled from h in A and from g_i in B, the least
shingle of A belongs to i and isn't in B. The shingles differ, and the values
are unrelated words that agree only by a 64-bit collision (in a sketch of 8
bits, with probability 1/256, like any two values; `similarity` corrects for it).

Of 16 bits, two shingles may have the same. If these are the least of A and B, the
slot agrees: of n shingles with probability below n / 2^16, and only slots that n
shingles leave empty, a share of exp(-n / k). That lifts estimates by less than
0.001 where k = 128, and by as much for each 128 slots more. A third of the slots
have the same 16 bits of a shingle, so two texts of one shingle each, which have
nothing in common, are estimated at a third once in 20,000 times.

Slots filled from h are drawn without replacement, so the variance is below
that of k independent hashes, J (1 - J) / k, and approaches it for very long and
very short documents.

An index has a key for each band of a sketch, and one for the exact text.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from lsh import _core
from lsh.columns import is_integer, shown
from lsh.mixing import derived

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

SKETCH_BITS = 8
"""The bits of each slot that a sketch keeps."""


def signatures(
    hashes: NDArray[np.uint64], starts: NDArray[np.int64], slots: int
) -> NDArray[np.uint64]:
    """Return the MinHash signature of each document of a batch.

    hashes: uint64[total], shingle hashes, document by document; the high half of each must
        be uniform on 32 bits, and so must the exclusive or of both halves. Repeats change
        nothing.
    starts: int64[n + 1], where each document begins, then `total`.
    slots: length of a signature, from 1 to 4,096.

    Returns uint64[n, slots]; zeros for a document without shingles.

    Raises ValueError if the starts don't lead through all hashes, or there is no slot.
    """
    require_starts(hashes, starts)
    if not is_integer(slots) or slots < 1:
        raise ValueError(f"slots: got {slots!r}, takes an integer of at least 1")
    hashes, starts = np.ascontiguousarray(hashes), np.ascontiguousarray(starts, np.int64)
    return _core.signatures(hashes, starts, int(slots))


def require_starts(hashes: NDArray[np.uint64], starts: NDArray[np.int64]) -> None:
    """Check that starts divide hashes. Raises ValueError if they don't; see `signatures`."""
    if getattr(hashes, "dtype", None) != np.uint64 or hashes.ndim != 1:
        raise ValueError("hashes: takes uint64[total]")
    if getattr(starts, "ndim", 0) != 1 or not len(starts) or starts.dtype.kind not in "iu":
        raise ValueError("starts: takes int64[n + 1]")
    if starts[0] != 0 or starts[-1] != len(hashes) or (starts[1:] < starts[:-1]).any():
        raise ValueError(
            f"starts: takes ascending numbers from 0 to the number of hashes, {len(hashes)}"
        )


def require_sketches(sketches: NDArray[np.uint8], slots: int) -> None:
    """Check that an array has sketches. Raises ValueError if it isn't uint8[n, slots]."""
    given = getattr(sketches, "dtype", None), np.shape(sketches)
    if given[0] != np.uint8 or len(given[1]) != 2 or given[1][1] != slots:  # noqa: PLR2004
        raise ValueError(f"sketches: got {given[0]}{list(given[1])}, takes uint8[n, {slots}]")


def compact(signatures: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Return the low 8 bits of each slot: uint8[n, slots] from uint64[n, slots].

    Source: Li and König, "b-bit minwise hashing", WWW 2010.

    Raises ValueError for an array of another type.
    """
    if getattr(signatures, "dtype", None) != np.uint64:
        raise ValueError("signatures: takes uint64[n, slots]")
    return signatures.astype(np.uint8)


def similarity(sketch: NDArray[np.uint8], others: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the estimated Jaccard similarity of one sketch with each of m others.

    sketch: uint8[slots]. others: uint8[m, slots], or one sketch, uint8[slots].

    Returns float64[m], or one number, in [0, 1]: the share of equal slots, corrected for
    chance agreement, R = (share - 2^-8) / (1 - 2^-8). Equal sketches give exactly 1.0.

    Raises ValueError for arrays of another type or shape.
    """
    sketch, others = np.asarray(sketch), np.asarray(others)
    if others.ndim == 1:
        return pairwise_similarity(sketch[None], others[None])[0]  # type: ignore[no-any-return]
    require_sketches(sketch[None], sketch.shape[-1] if sketch.ndim else 0)
    require_sketches(others, sketch.shape[0])
    return _estimated(sketch[None], others)


def pairwise_similarity(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the estimated Jaccard similarity of each row of `a` with the same row of `b`.

    a, b: uint8[m, slots]; one of them may have a single row, for all of the other one.
    Returns float64[m], like `similarity`.

    Raises ValueError for arrays of another type or shape.
    """
    slots = np.shape(a)[-1] if np.shape(a) else 0
    for sketches in (a, b):
        require_sketches(sketches, slots)
    if len(a) != len(b) and 1 not in {len(a), len(b)}:
        raise ValueError(f"b: got {len(b)} sketches, takes as many as a, {len(a)}")
    return _estimated(a, b)


def _estimated(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.float64]:
    equal = _core.equal_slots(np.ascontiguousarray(a), np.ascontiguousarray(b))
    found: NDArray[np.float64] = estimates(a.shape[1]).take(equal)
    return found


def agreement(similarity: ArrayLike) -> NDArray[np.float64]:
    """Return the probability that a slot of two sketches is equal: s + (1 - s) / 2^8.

    similarity: true Jaccard similarities s in [0, 1], of any shape; the result is float64 of
        that shape.
    """
    chance = 2.0**-SKETCH_BITS
    return np.asarray(chance + (1.0 - chance) * np.asarray(similarity, dtype=np.float64))


@cache
def estimates(slots: int) -> NDArray[np.float64]:
    """Return float64[slots + 1], the similarity for each number of equal slots."""
    chance = 2.0**-SKETCH_BITS
    share = np.arange(slots + 1) / np.float64(slots)
    return np.clip((share - chance) / (1.0 - chance), 0.0, 1.0)


def band_keys(
    sketches: NDArray[np.uint8], bands: int, rows: int, columns: Sequence[int] | None = None
) -> NDArray[np.uint64]:
    """Return the keys of the bands of each sketch.

    sketches: uint8[n, slots] with slots >= bands * rows; the slots after
        bands * rows are ignored.
    columns: the numbers of the bands whose keys are wanted, each from 0 to bands - 1.
        None: all, in order.

    Returns uint64[n, bands], or uint64[n, len(columns)]. Equal rows in the same band
    give equal keys. Otherwise, even for equal rows in different bands, keys are equal
    only by a 64-bit collision; in a band of up to 8 rows, never.

    Raises ValueError if there are fewer slots than bands * rows, or these are no sketches.
    """
    require_sketches(sketches, np.shape(sketches)[-1])
    if columns is not None and not set(columns) <= set(range(bands)):
        raise ValueError(f"columns: takes numbers from 0 to {bands - 1}")
    if bands < 1 or rows < 1:
        raise ValueError(f"bands, rows: got {bands} and {rows}, takes integers of at least 1")
    slots = sketches.shape[1]
    if bands * rows > slots:
        message = f"bands * rows: got {bands} * {rows}, takes at most the number of slots, {slots}"
        raise ValueError(message)
    which = None if columns is None else list(map(int, columns))
    return _core.band_keys(np.ascontiguousarray(sketches), int(bands), int(rows), which)


def text_keys(encoded: Iterable[bytes], seed: bytes) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each whole text.

    encoded: n normalised texts in UTF-8, with surrogates passed through.
    seed: the site's secret.

    Returns uint64[n]: 64 bits of BLAKE2b, little-endian, keyed by the seed. Without the
    seed, nobody can construct two texts with one key. For a faster hash such as
    MurmurHash3 one can, whatever its seed.

    Raises TypeError, which names the row, for what isn't bytes.
    """
    if not isinstance(seed, bytes):
        raise TypeError(f"seed: got a value of type {type(seed).__name__}, takes bytes")
    if isinstance(encoded, (str, bytes)):
        raise TypeError("encoded: got a single text, takes a sequence of texts in UTF-8")
    texts = list(encoded)
    for row, text in enumerate(texts):
        if not isinstance(text, bytes):
            raise TypeError(f"encoded: row {row} has {shown(text)}, takes bytes; encode texts")
    return _core.text_keys(texts, derived(seed, b"neardup text", 32))
