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
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from lsh.arguments import is_integer
from lsh.mixing import constants, finalise, fold, odd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

SKETCH_BITS = 8
"""The bits of each slot that a sketch keeps."""

_CHUNK = 1 << 15  # shingles at a time: the arrays of a step stay in the L2 cache
_SHORT = 256  # documents of up to this many shingles are filled together, longer ones alone
_FEWEST = 24  # documents that are filled together: fewer take less time one by one
_TOGETHER = 1 << 16  # slots that are filled together
_STEPS = 32  # shingles of such documents at a time
_EMPTY = np.uint64((1 << 64) - 1)
_WORDS = 3  # words of 16 bits that fill slots
_GREATEST = np.uint16((1 << 16) - 1)
_OWN_FACTOR_STATE = 0x736C6F74  # "slot"
_OWN_OFFSET_STATE = 0x66696C6C  # "fill"
_HALF = np.uint64(32)
_WORD_BYTES = 8
_MOST_IN_WORDS = 255  # slots whose sum fits into a byte


def signatures(
    hashes: NDArray[np.uint64], starts: NDArray[np.int64], slots: int
) -> NDArray[np.uint64]:
    """Return the MinHash signature of each document of a batch.

    hashes: uint64[total], shingle hashes, document by document; the high half of each must
        be uniform on 32 bits, and so must the exclusive or of both halves. Repeats change
        nothing.
    starts: int64[n + 1], where each document begins, then `total`.
    slots: length of a signature, at least 1.

    Returns uint64[n, slots]; zeros for a document without shingles.

    Raises ValueError if the starts don't lead through all hashes, or there is no slot.
    """
    require_starts(hashes, starts)
    if not is_integer(slots) or slots < 1:
        raise ValueError(f"slots: got {slots!r}, takes an integer of at least 1")
    documents = len(starts) - 1
    table = np.full((documents, slots), _EMPTY, dtype=np.uint64)
    _scatter(table.reshape(-1), hashes, starts, slots)
    empty = table == _EMPTY
    table = fold(table)
    _fill(table, empty, hashes, starts)
    return table


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


def _scatter(
    flat: NDArray[np.uint64], hashes: NDArray[np.uint64], starts: NDArray[np.int64], slots: int
) -> None:
    """Set slot `bin(h)` of each document to the least h that belongs to it."""
    total = len(hashes)
    power_of_two = slots & (slots - 1) == 0
    shift = np.uint64(65 - slots.bit_length())
    for low in range(0, total, _CHUNK):
        high = min(low + _CHUNK, total)
        part = hashes[low:high]
        if slots == 1:
            bins = np.zeros(high - low, dtype=np.int64)
        elif power_of_two:
            bins = (part >> shift).view(np.int64)
        else:  # the same division of the range into equal intervals, for any number of slots
            bins = (((part >> _HALF) * np.uint64(slots)) >> _HALF).view(np.int64)
        first = int(np.searchsorted(starts, low, side="right")) - 1
        last = int(np.searchsorted(starts, high, side="left"))
        edges = np.clip(starts[first : last + 1], low, high)
        bins += np.repeat(np.arange(first, last, dtype=np.int64) * slots, np.diff(edges))
        np.minimum.at(flat, bins, part)


def _fill(
    table: NDArray[np.uint64],
    empty: NDArray[np.bool_],
    hashes: NDArray[np.uint64],
    starts: NDArray[np.int64],
) -> None:
    """Set every empty slot to the minimum of its own hash, w * factor mod 2^16.

    w is the slot's word of a hash, as in `_words`. The factor is odd, so the slot's own
    hash is a permutation of w, and uniform like it. Only the minimum is mixed, which
    distinguishes two shingles as well as mixing each of them.
    """
    slots = table.shape[1]
    factors = odd(constants(_OWN_FACTOR_STATE, slots)).astype(np.uint16)
    offsets = constants(_OWN_OFFSET_STATE, slots)
    lengths = np.diff(starts)
    table[lengths == 0] = 0
    partial = np.flatnonzero(empty.any(axis=1) & (lengths > 0))
    partial = partial[np.argsort(lengths[partial], kind="stable")]
    count = int(np.searchsorted(lengths[partial], _SHORT, side="right"))
    if count < _FEWEST:
        count = 0
    step = max(1, _TOGETHER // slots)
    for low in range(0, count, step):
        rows = partial[low : min(low + step, count)]
        own = finalise(_least_together(hashes, starts[rows], lengths[rows], factors) ^ offsets)
        np.copyto(own, table[rows], where=~empty[rows])
        table[rows] = own
    step = max(1, _CHUNK // int(lengths.max(initial=1)))
    for low in range(count, len(partial), step):
        rows = partial[low : low + step]
        which, wanted = np.nonzero(empty[rows])
        sets = [_few(hashes[starts[row] : starts[row + 1]]) for row in rows.tolist()]
        edges = np.searchsorted(which, np.arange(len(rows) + 1))
        least = _least_alone(sets, wanted, edges, factors)
        table[rows[which], wanted] = finalise(least ^ offsets[wanted])


def _least_together(
    hashes: NDArray[np.uint64],
    begins: NDArray[np.int64],
    lengths: NDArray[np.int64],
    factors: NDArray[np.uint16],
) -> NDArray[np.uint64]:
    """Return uint64[m, slots], the least own hash of each slot for m short documents.

    hashes: uint64[total]. begins, lengths: int64[m]. factors: uint16[slots].

    Step n takes the n-th shingles of all documents. A document without an n-th
    shingle repeats its last one, which changes no minimum.
    """
    by_word = np.zeros((-(-len(factors) // _WORDS), _WORDS, 1), dtype=np.uint16)
    by_word.reshape(-1)[: len(factors)] = factors
    # Documents come last, because numpy is fast along a long last axis.
    least = np.full((*by_word.shape[:2], len(begins)), _GREATEST, dtype=np.uint16)
    own = np.empty_like(least)
    longest = int(lengths.max(initial=0))
    for low in range(0, longest, _STEPS):
        positions = np.arange(low, min(low + _STEPS, longest))[:, None]
        words = _words(hashes[begins + np.minimum(positions, lengths - 1)])
        for step in range(len(positions)):
            np.multiply(by_word, words[:, step], out=own)
            np.minimum(least, own, out=least)
    return least.reshape(-1, len(begins))[: len(factors)].T.astype(np.uint64)


def _least_alone(
    sets: Sequence[NDArray[np.uint64]],
    wanted: NDArray[np.int64],
    edges: NDArray[np.int64],
    factors: NDArray[np.uint16],
) -> NDArray[np.uint64]:
    """Return the least own hash of each slot in `wanted`.

    sets: for each of m documents, uint64[n], its hashes.
    wanted: the empty slots; wanted[edges[i]:edges[i + 1]] are document i's.

    This is for documents with few empty slots, or few distinct shingles.
    """
    words = _words(np.concatenate(sets))
    which, own_factors = wanted % _WORDS, factors[wanted, None]
    least = np.full(len(wanted), _GREATEST, dtype=np.uint16)
    ends = np.cumsum([len(hashes) for hashes in sets]).tolist()
    begin = 0
    for end, low, high in zip(ends, edges.tolist(), edges[1:].tolist(), strict=False):
        step = max(1, _CHUNK // (high - low))
        for at in range(begin, end, step):
            own = words[:, at : min(at + step, end)].take(which[low:high], axis=0)
            own *= own_factors[low:high]
            np.minimum(least[low:high], own.min(axis=1), out=least[low:high])
        begin = end
    return least.astype(np.uint64)


def _words(hashes: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Return three words of each hash: uint16[3, ...], the lowest first, with 1 in place of 0.

    Slot i uses word i % 3, so if two shingles happen to have a word in common, most slots still
    tell them apart, and with 3 rows or more no band is shared for it. The highest word says
    into which slot a shingle falls, and is left out. 0 would be the least in every slot.
    """
    mixed = fold(hashes)
    words = np.empty((_WORDS, *hashes.shape), dtype=np.uint16)
    for place, word in enumerate(words):
        word[...] = mixed >> np.uint64(16 * place)
    return np.maximum(words, np.uint16(1), out=words)


def _few(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the hashes of a document with an empty slot, without most repeats if they are many.

    A slot of a long document is left empty only because most of its shingles are repeats.
    """
    if len(hashes) <= _CHUNK:
        return hashes
    chunks = [_distinct(hashes[at : at + _CHUNK]) for at in range(0, len(hashes), _CHUNK)]
    return _distinct(np.concatenate(chunks))


def _distinct(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    # numpy.unique takes several times as long.
    ordered = np.sort(hashes)
    first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered.compress(first)


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
    return _corrected(others == sketch)


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
    return _corrected(a == b)


def _corrected(agree: NDArray[np.bool_]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = estimates(agree.shape[1]).take(_counted(agree))
    return found


def _counted(agree: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many of each row are true: int64[m]. numpy's own ways take several times longer.

    agree: bool[m, slots], in rows.
    """
    slots = agree.shape[1]
    if slots % _WORD_BYTES or slots > _MOST_IN_WORDS or not agree.flags.c_contiguous:
        counted = np.einsum("ij->i", agree.view(np.uint8), dtype=np.uint16, casting="unsafe")
        return np.asarray(counted, np.int64)
    # Eight sums beside each other, a byte each; the multiplication adds them up in the highest.
    sums: NDArray[np.uint64] = np.einsum("ij->i", agree.view(np.uint64))
    sums *= np.uint64(0x0101010101010101)
    sums >>= np.uint64(56)
    return sums.view(np.int64)


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


def counts(similarity: NDArray[np.float64], slots: int) -> NDArray[np.int64]:
    """Return the number of equal slots of each of m estimates: int64[m]; see `estimates`.

    Where several numbers have one estimate, 0, it is one of these.
    """
    return np.rint(agreement(similarity) * slots).astype(np.int64)
