"""Computes from raw texts everything that an index needs: sketches, keys, and sizes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsh.arrays import same_arrays
from lsh.columns import shown, text_of, values_of
from lsh.parameters import Parameters, normaliser
from lsh.shingles import Shingles, signer
from lsh.sketch import band_keys, compact, signatures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from lsh._core import Signed
    from lsh.columns import Column
    from lsh.shingles import Shingles


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprints:
    """The fingerprints of n texts. Two are equal if all arrays are; they have no hash.

    keys: uint64[n, bands + 1]; the last column is the key of the exact text. The others follow
        from the sketches; see `band_keys`.
    sketches: uint8[n, slots].
    shingle_counts: uint32[n], the number of shingles, capped at 2^32 - 1. Repeats count, unless
        the parameters have a containment.
    blank: bool[n]; the text is empty after normalisation, or has no words when
        shingles are words. Its rows in the other arrays are zeros and must not
        be indexed.
    """

    keys: NDArray[np.uint64]
    sketches: NDArray[np.uint8]
    shingle_counts: NDArray[np.uint32]
    blank: NDArray[np.bool_]

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        """Return whether the other one has the same fingerprints in the same order."""
        if not isinstance(other, Fingerprints):
            return NotImplemented
        names = [field.name for field in fields(self)]
        return same_arrays(*([getattr(one, name) for name in names] for one in (self, other)))


def require_fingerprints(fingerprints: object) -> None:
    """Raise TypeError if these are no fingerprints."""
    if not isinstance(fingerprints, Fingerprints):
        raise TypeError(f"fingerprints: got {shown(fingerprints)}, takes Fingerprints")


def require_parameters(parameters: object) -> Parameters:
    """Return parameters. Raises TypeError if these are none."""
    if not isinstance(parameters, Parameters):
        raise TypeError(f"parameters: got {shown(parameters)}, takes Parameters")
    return parameters


class Fingerprinter:
    """Fingerprints batches of texts. Any number of threads may share one.

    It can be pickled, for other processes; a pickle holds the parameters, so it holds the seed.
    """

    def __init__(self, parameters: Parameters) -> None:
        """Derive all constants from the parameters."""
        self._parameters = require_parameters(parameters)
        self._normaliser = normaliser(parameters)
        made_of = (
            self._normaliser,
            parameters.shingle,
            parameters.shingle_size,
            parameters.seed,
        )
        self._set_signer = signer(*made_of, slots=parameters.slots, count_distinct=True)
        self._signer = (
            signer(*made_of, slots=parameters.slots)
            if parameters.containment is None
            else self._set_signer
        )

    def __reduce__(self) -> tuple[type[Fingerprinter], tuple[Parameters]]:
        """Return how to make it anew: tables and buffers are megabytes, and follow from these."""
        return type(self), (self._parameters,)

    @property
    def parameters(self) -> Parameters:
        """Return the parameters of the fingerprints."""
        return self._parameters

    def normalise(self, text: str) -> str:
        """Return the normal form of one text, as `fingerprint` sees it."""
        return self._normaliser.normalise(text_of(text))

    def fingerprint(self, texts: Column) -> Fingerprints:
        """Return the fingerprints of n texts.

        texts: a sequence, or a column of numpy, pandas or Arrow; see `lsh.columns`.

        A text's fingerprint depends only on the text and the parameters.
        Lone surrogates are treated like any other code point.

        Raises TypeError if a value is no text, such as a missing one; its row is named.
        """
        signed, bands = self.sign(texts), self._parameters.bands
        keys = np.empty((len(signed.texts), bands + 1), dtype=np.uint64)
        keys[:, :-1] = band_keys(signed.sketches, bands, self._parameters.rows)
        keys[:, -1] = signed.texts
        keys[signed.blank] = 0
        return Fingerprints(keys, signed.sketches, signed.shingles, signed.blank)

    def sign(self, texts: Column) -> Signed:
        """Return fingerprints of n texts without the keys of bands, which follow from the sketches.

        texts: as for `fingerprint`.

        In the result, `sketches` are uint8[n, slots], `texts` uint64[n], the keys of the exact
        texts, `shingles` uint32[n], the numbers of shingles, and `blank` bool[n]. See
        `Fingerprints`.
        """
        return self._signer.sign(values_of(texts))

    def sign_sets(self, texts: Column) -> Signed:
        """Return what `sign` does, but with the numbers of different shingles."""
        return self._set_signer.sign(values_of(texts))

    def shingles(self, texts: Column) -> Shingles:
        """Return the hashes of the shingles that the fingerprints of n texts are made of.

        texts: as for `fingerprint`. A blank text has none.
        """
        return Shingles(*self._signer.shingles(values_of(texts)))

    def sizes(self, texts: Column) -> NDArray[np.int64]:
        """Return int64[n], how many different shingles each of n texts has.

        texts: as for `fingerprint`. A blank text has none.
        """
        return self.sign_sets(texts).shingles.astype(np.int64)

    def forms(self, lines: Sequence[str]) -> list[str]:
        """Return the normal forms of n lines of text without markup, each as if it were a text.

        That is how lines are compared with `Parameters.boilerplate`.
        """
        return self._normaliser.forms(values_of(lines))


class Sized(NamedTuple):  # noqa: PLW1641 -- arrays have no hash
    """The sketches of n sets, uint8[n, slots], and their sizes, int64[n]; 0 for a blank text."""

    sketches: NDArray[np.uint8]
    sizes: NDArray[np.int64]

    def __eq__(self, other: object) -> bool:
        """Return whether the other one has the same sketches and sizes."""
        return isinstance(other, Sized) and same_arrays(self, other)

    def __ne__(self, other: object) -> bool:
        """Return whether it has not. Tuples would compare element by element."""
        return not self == other


def sizes_of(sizes: ArrayLike, count: int) -> NDArray[np.int64]:
    """Return the sizes of `count` sets: int64[count].

    Raises ValueError if there are more or fewer, or one is no integer of at least 0.
    """
    given = np.asarray(sizes)
    if given.shape != (count,) or (count and (given.dtype.kind not in "iu" or given.min() < 0)):
        raise ValueError(f"sizes: takes {count} integers of at least 0")
    return given.astype(np.int64)


def sized(fingerprinter: Fingerprinter, texts: Column) -> Sized:
    """Return the sketches of n texts, as `fingerprint` has them, and their different shingles."""
    signed = fingerprinter.sign_sets(texts)
    return Sized(signed.sketches, signed.shingles.astype(np.int64))


def sized_sets(sets: Shingles, slots: int) -> Sized:
    """Return the sketches and sizes of n sets of hashes; see `lsh.Shingles.distinct`."""
    return Sized(compact(signatures(sets.hashes, sets.starts, slots)), np.diff(sets.starts))
