"""Shingle hashes of a batch of texts, as arrays.

A shingle is a window of code points or of words. Its hash is a polynomial over
the window, mod 2^64, followed by a finaliser. Polynomial hashes alone are at
best pairwise independent (Lemire and Kaser, "Recursive n-gram hashing is
pairwise independent, at best", 2010). All constants are derived from the seed.

In a window of up to 6 code points, those of ASCII are packed into one word instead,
a byte each, which is multiplied by a constant of its own. It is read from the text as
it is, in place of the many steps of a polynomial. The polynomial of the other code
points is added to it. With 7 or 8 bytes, the last ones would move too few bits of the
product: estimates for windows that differ in these alone would vary more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from lsh.arguments import shown
from lsh.equality import same_arrays
from lsh.mixing import constants, derived, mix_product, odd, secret

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from lsh.text import Normalised

Tokens: TypeAlias = "NDArray[np.uint8] | NDArray[np.uint32] | NDArray[np.uint64]"

_CHUNK = 1 << 15  # windows at a time: the arrays of a step stay in the L2 cache
_KEPT = 1 << 18  # hashes in the reused buffer; a larger batch gets a buffer of its own
_LONG = 1 << 16  # code points; the words of a longer text are found one by one
_MOST_WORDS = 1 << 16  # distinct words remembered at a time
_ASCII = 128  # the greatest code point of ASCII, plus one
_PACKED = 6  # code points of the longest windows that are packed
_WORD_BYTES = 8
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True, eq=False)
class Shingles:
    """The shingle hashes of n texts. Two are equal if both arrays are; they have no hash.

    hashes: uint64[total], text by text, each text's windows in order. Their high bits are
        uniform; `lsh.sketch` mixes the low ones.
    starts: int64[n + 1], where each text's hashes begin, then `total`. An empty
        text has none; a text shorter than a shingle has one, of the whole text.
    """

    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64]

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        """Return whether the other one has the same hashes of the same texts."""
        if not isinstance(other, Shingles):
            return NotImplemented
        return same_arrays((self.hashes, self.starts), (other.hashes, other.starts))


class Shingler:
    """Hashes the shingles of batches. Reuses buffers: one thread at a time."""

    def __init__(self, kind: Literal["char", "word"], size: int, seed: bytes) -> None:
        """Take the kind and the size of a shingle, and the site's secret.

        Raises ValueError for another kind, or a size below 1.
        """
        if kind not in {"char", "word"}:
            raise ValueError(f"kind: got {kind!r}, takes 'char' or 'word'")
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"size: got {size!r}, takes an integer of at least 1")
        if not isinstance(seed, bytes):
            raise TypeError(f"seed: got a value of type {type(seed).__name__}, takes bytes")
        self._made_with = kind, size, seed
        self._kind = kind
        self._size = size
        base, self._factor, self._packing = odd(constants(secret(seed, b"neardup shingle"), 3))
        self._word_key = derived(seed, b"neardup word", 32)
        self._powers = _powers(base, size)
        self._all = np.empty(_KEPT, dtype=np.uint64)
        self._scratch = np.empty((3, _CHUNK + size), dtype=np.uint64)
        self._packed = _Packed(size) if kind == "char" and size <= _PACKED else None

    def __reduce__(self) -> tuple[type[Shingler], tuple[str, int, bytes]]:
        """Return how to make it anew: its buffers are megabytes."""
        return type(self), self._made_with

    def shingles(self, texts: Normalised) -> Shingles:
        """Return the shingle hashes of a batch."""
        if self._kind == "char":
            # Zero is what fills up short texts, so no code point may be zero.
            codes = texts.codes + texts.codes.dtype.type(1)
            return self._windows(codes, texts.begins, texts.ends)
        words = _Words(self._word_key)
        return self._sequences([words.hashes(text) for text in texts.texts()])

    def tokens(self, sequences: Iterable[Iterable[str | bytes]]) -> Shingles:
        """Return the shingle hashes of a batch of sequences of tokens, as if each were a word.

        A token given as str is its UTF-8, with surrogates passed through.

        Raises TypeError, which names the row, if a sequence is itself a text, or a token is
        neither str nor bytes.
        """
        if not isinstance(sequences, Iterable):
            raise TypeError(f"tokens: got {shown(sequences)}, takes sequences of tokens")
        words = _Words(self._word_key)
        return self._sequences([words.hashes_of(tokens, at) for at, tokens in enumerate(sequences)])

    def _sequences(self, rows: list[NDArray[np.uint64]]) -> Shingles:
        """Hash the windows of sequences of hashed words."""
        ends = np.cumsum(np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)))
        begins = np.concatenate((np.zeros(1, np.int64), ends[:-1]))[: len(rows)]
        tokens = np.concatenate(rows) if rows else np.empty(0, np.uint64)
        return self._windows(tokens, begins, ends)

    def _windows(
        self,
        tokens: Tokens,
        begins: NDArray[np.int64],
        ends: NDArray[np.int64],
    ) -> Shingles:
        """Hash the windows of tokens[begins[i]:ends[i]] for every i."""
        size = self._size
        lengths = ends - begins
        counts = np.where(lengths > 0, np.maximum(lengths - (size - 1), 1), 0)
        starts = np.zeros(len(counts) + 1, dtype=np.int64)
        np.cumsum(counts, out=starts[1:])
        # First hash all windows of the buffer, including those that span two texts;
        # then write the hashes of short texts; then keep only what belongs to a text.
        if len(tokens) <= len(self._all):
            hashes = self._all[: len(tokens)]
        else:
            hashes = np.empty(len(tokens), dtype=np.uint64)
        for low in range(0, len(tokens) - size + 1, _CHUNK):
            high = min(low + _CHUNK, len(tokens) - size + 1)
            self._hash(tokens[low : high + size - 1], hashes[low:high])
        for length in np.unique(lengths[(lengths > 0) & (lengths < size)]).tolist():
            self._hash_short(tokens, begins[lengths == length], length, hashes)
        if len(counts) == 1 and len(tokens) > len(self._all):
            kept = hashes[begins[0] : begins[0] + counts[0]]
        else:
            spans = zip(begins.tolist(), (begins + counts).tolist(), strict=True)
            parts = [hashes[begin:end] for begin, end in spans]
            kept = np.concatenate(parts) if parts else hashes[:0]
        return Shingles(kept, starts)

    def _hash(self, tokens: Tokens, out: NDArray[np.uint64]) -> None:
        """Hash all windows of `tokens`, at most _CHUNK, into `out`."""
        if self._packed is None:
            out[:] = self._polynomials(tokens)
        elif tokens.itemsize == 1:
            words = self._packed.words(tokens.astype(np.uint8, copy=False))
            np.multiply(words, self._packing, out=out)
        else:
            narrow = tokens.astype(np.uint8) * (tokens <= _ASCII)
            np.multiply(self._packed.words(narrow), self._packing, out=out)
            out += self._polynomials(tokens - narrow)
        mix_product(out, self._factor, self._scratch[0, : len(out)])

    def _polynomials(self, tokens: Tokens) -> NDArray[np.uint64]:
        """Return the sum of token[j] * base^(size - j) for each window, in a reused buffer.

        The polynomial of 2m tokens is computed from two polynomials of m tokens,
        so the work grows with the logarithm of the size.
        """
        single, target, spare = self._scratch[:, : len(tokens)]
        np.multiply(tokens, self._powers[1], out=single, dtype=np.uint64)
        current, span = single, 1
        for bit in f"{self._size:b}"[1:]:
            target = target[: len(current) - span]
            np.multiply(current[:-span], self._powers[span], out=target)
            target += current[span:]
            current, target, spare, span = target, spare, target, 2 * span
            if bit == "1":
                current = current[:-1]
                current *= self._powers[1]
                current += single[span:]
                span += 1
        return np.asarray(current)

    def _hash_short(
        self,
        tokens: Tokens,
        begins: NDArray[np.int64],
        length: int,
        hashes: NDArray[np.uint64],
    ) -> None:
        """Hash whole texts of `length` tokens, shorter than the shingle, into hashes[begins].

        Each is filled up with zeros.
        """
        step = _CHUNK // self._size
        for low in range(0, len(begins), step):
            rows = begins[low : low + step]
            filled = np.zeros((len(rows), self._size), dtype=tokens.dtype)
            filled[:, :length] = tokens[rows[:, None] + np.arange(length)]
            windows = np.empty(filled.size - self._size + 1, dtype=np.uint64)
            self._hash(filled.reshape(-1), windows)
            hashes[rows] = windows[:: self._size]


class _Packed:
    """Reads windows of bytes as words. Reuses buffers."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._bytes = np.zeros(_CHUNK + _WORD_BYTES, dtype=np.uint8)
        # A word begins at every byte: they overlap, and most of them are not aligned.
        self._read: NDArray[np.uint64] = np.ndarray(
            (_CHUNK,), np.dtype("<u8"), self._bytes, strides=(1,)
        )
        self._words = np.empty(_CHUNK, dtype=np.uint64)
        self._mask = np.uint64((1 << 8 * size) - 1)

    def words(self, tokens: NDArray[np.uint8]) -> NDArray[np.uint64]:
        """Return the bytes of each window, the first one lowest, in a reused buffer."""
        self._bytes[: len(tokens)] = tokens
        words = self._words[: len(tokens) - self._size + 1]
        return np.bitwise_and(self._read[: len(words)], self._mask, out=words)


def different(shingles: Shingles) -> NDArray[np.int64]:
    """Return int64[n], how many different hashes each of n texts has. Sorts the hashes in place.

    It counts what `lsh.tokens.distinct` returns.
    """
    hashes, starts = shingles.hashes, shingles.starts
    for begin, end in pairwise(starts.tolist()):
        hashes[begin:end].sort()
    first = np.ones(len(hashes), dtype=np.bool_)
    np.not_equal(hashes[1:], hashes[:-1], out=first[1:])
    first[starts[:-1][np.diff(starts) > 0]] = True
    ends = np.append(0, np.cumsum(first))
    return np.diff(ends[starts])


class _Words(dict[str | bytes, int]):
    """Cached hashes of words: 64 bits of BLAKE2b, keyed, so that nobody constructs collisions."""

    def __init__(self, key: bytes) -> None:
        super().__init__()
        self._key = key

    def __missing__(self, word: str | bytes) -> int:
        if len(self) >= _MOST_WORDS:
            self.clear()
        encoded = word if isinstance(word, bytes) else word.encode("utf-8", "surrogatepass")
        digest = blake2b(encoded, digest_size=8, key=self._key).digest()
        hashed = int.from_bytes(digest, "little")
        self[word] = hashed
        return hashed

    def hashes(self, text: str) -> NDArray[np.uint64]:
        """Return the hash of each word of `text`, in the sense of `str.split`."""
        # All words of a long text at once would take many times its own memory.
        words: Iterable[str] = text.split() if len(text) <= _LONG else _each_word(text)
        return np.fromiter(map(self.__getitem__, words), dtype=np.uint64)

    def hashes_of(self, tokens: Iterable[str | bytes], row: int) -> NDArray[np.uint64]:
        """Return the hash of each token. row: the number of the sequence, for messages."""
        if isinstance(tokens, (str, bytes)):
            message = f"tokens: got a single text in row {row}, takes its tokens; see str.split"
            raise TypeError(message)
        if not isinstance(tokens, Iterable):
            raise TypeError(f"tokens: got {shown(tokens)} in row {row}, takes tokens")
        known = list(tokens)
        for token in known:
            if not isinstance(token, (str, bytes)):
                message = f"tokens: got {shown(token)} in row {row}, takes str or bytes"
                raise TypeError(f"{message}; encode what is neither")
        return np.fromiter(map(self.__getitem__, known), dtype=np.uint64, count=len(known))


def _each_word(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text):
        yield match[0]


def _powers(base: np.uint64, most: int) -> list[np.uint64]:
    """Return base^0 to base^most, mod 2^64."""
    powers = [pow(int(base), exponent, 1 << 64) for exponent in range(most + 1)]
    return [np.uint64(power) for power in powers]
