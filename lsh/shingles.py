"""Shingle hashes of texts, as arrays.

A shingle is a window of code points or of words. Its hash is a polynomial over
the window, mod 2^64, followed by a finaliser. All constants are derived from the seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal

import numpy as np

from lsh import _core
from lsh.arrays import same_arrays
from lsh.columns import shown, values_of
from lsh.mixing import derived, secret

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.columns import Column


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

    def distinct(self) -> Shingles:
        """Return the different hashes of each text, ascending."""
        return Shingles(*_core.distinct(self.hashes, self.starts))


def signer(  # noqa: PLR0913 -- what fingerprints are made of
    normaliser: _core.Normaliser,
    kind: Literal["char", "word"],
    size: int,
    seed: bytes,
    *,
    slots: int = 1,
    count_distinct: bool = False,
) -> _core.Signer:
    """Return what signs texts with the constants of a site."""
    return _core.Signer(
        normaliser,
        shingle=kind,
        shingle_size=size,
        slots=slots,
        count_distinct=count_distinct,
        shingle_state=secret(seed, b"neardup shingle"),
        word_key=derived(seed, b"neardup word", 32),
        text_key=derived(seed, b"neardup text", 32),
    )


class Shingler:
    """Hashes the shingles of texts that are in their normal forms, and of tokens."""

    def __init__(self, kind: Literal["char", "word"], size: int, seed: bytes) -> None:
        """Take the kind and the size of a shingle, and the site's secret.

        Raises ValueError for another kind, or a size that isn't from 1 to 64.
        """
        if kind not in {"char", "word"}:
            raise ValueError(f"kind: got {kind!r}, takes 'char' or 'word'")
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"size: got {size!r}, takes an integer of at least 1")
        if not isinstance(seed, bytes):
            raise TypeError(f"seed: got a value of type {type(seed).__name__}, takes bytes")
        self._made_with = kind, size, seed
        self._signer = signer(_core.Normaliser(), kind, size, seed)

    def __reduce__(self) -> tuple[type[Shingler], tuple[str, int, bytes]]:
        """Return how to make it anew."""
        return type(self), self._made_with

    def shingles(self, texts: Column) -> Shingles:
        """Return the shingle hashes of n texts as they are.

        texts: a sequence, or a column of numpy, pandas or Arrow; see `lsh.columns`.
        """
        return Shingles(*self._signer.shingles(values_of(texts)))

    def tokens(self, sequences: Iterable[Iterable[str | bytes]]) -> Shingles:
        """Return the shingle hashes of a batch of sequences of tokens, as if each were a word.

        A token given as str is its UTF-8, with surrogates passed through.

        Raises TypeError, which names the row, if a sequence is itself a text, or a token is
        neither str nor bytes.
        """
        if not isinstance(sequences, Iterable):
            raise TypeError(f"tokens: got {shown(sequences)}, takes sequences of tokens")
        rows = [_tokens_of(tokens, row) for row, tokens in enumerate(sequences)]
        starts = np.append(0, np.cumsum([len(tokens) for tokens in rows], dtype=np.int64))
        return Shingles(*self._signer.word_shingles([*chain.from_iterable(rows)], starts))


def _tokens_of(tokens: Iterable[str | bytes], row: int) -> list[str | bytes]:
    """Return tokens. row: the number of the sequence, for messages."""
    if isinstance(tokens, (str, bytes)):
        message = f"tokens: got a single text in row {row}, takes its tokens; see str.split"
        raise TypeError(message)
    if not isinstance(tokens, Iterable):
        raise TypeError(f"tokens: got {shown(tokens)} in row {row}, takes tokens")
    known = list(tokens)
    if not set(map(type, known)) <= {str, bytes}:
        for token in known:
            if not isinstance(token, (str, bytes)):
                message = f"tokens: got {shown(token)} in row {row}, takes str or bytes"
                raise TypeError(f"{message}; encode what is neither")
    return known
