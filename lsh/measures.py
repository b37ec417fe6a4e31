"""The likeness of two things, computed in full: no hashes, no estimates.

For sets A and B, the Jaccard similarity is |A & B| / |A | B|, and the containment of A in B is
|A & B| / |A|. With weights, the generalised ones are sum(min(a, b)) / sum(max(a, b)) and
sum(min(a, b)) / sum(a), over all tokens; whole weights are counts. A text counts as the set of
its shingles, once normalised.

`compare` sets beside them what an index would see of two texts: estimates, and shared bands.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from lsh.columns import shown, text_of
from lsh.containment import MOST_ERROR, containment_of, error_of
from lsh.parameters import Parameters, normaliser
from lsh.sketch import SKETCH_BITS, similarity
from lsh.tuning import candidate_chance, standard_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.fingerprint import Fingerprinter

Thing: TypeAlias = str | Iterable[Hashable] | Mapping[Hashable, float]
"""A text, a set of tokens, or tokens with their weights."""

Slots: TypeAlias = "NDArray[np.uint64] | NDArray[np.uint8]"


def normalise(text: str, parameters: Parameters) -> str:
    """Return the normal form of one text.

    Raises TypeError if it is none.
    """
    return normaliser(parameters).normalise(text_of(text))


def exact_jaccard(a: Thing, b: Thing, parameters: Parameters | None = None) -> float:
    """Return the Jaccard similarity of two texts, two sets, or two mappings to weights.

    parameters: how texts become shingles; None means the default ones.

    Two empty things have similarity 0. With weights, this is the generalised similarity.

    Raises TypeError if the two differ in kind, and ValueError for a weight below 0.
    """
    one, other = _weights(a, b, parameters)
    common = _common(one, other)
    union = sum(one.values()) + sum(other.values()) - common
    return common / union if union else 0.0


def exact_containment(a: Thing, b: Thing, parameters: Parameters | None = None) -> float:
    """Return how much of `a` is in `b`, in [0, 1]; 0 if `a` is empty.

    The arguments and errors are those of `exact_jaccard`.
    """
    one, other = _weights(a, b, parameters)
    whole = sum(one.values())
    return _common(one, other) / whole if whole else 0.0


def shingle_set(
    text: str, parameters: Parameters | None = None
) -> frozenset[str] | frozenset[tuple[str, ...]]:
    """Return the different shingles of a text, once normalised: strings, or tuples of words.

    A text shorter than a shingle is one shingle. A blank one has none.
    """
    parameters = parameters or Parameters()
    return windows(normalise(text, parameters), parameters)


def windows(normal: str, parameters: Parameters) -> frozenset[str] | frozenset[tuple[str, ...]]:
    """Return the different shingles of a normal form, like `shingle_set`."""
    size = parameters.shingle_size
    if parameters.shingle == "char":
        last = max(1, len(normal) - size + 1) if normal else 0
        return frozenset(normal[at : at + size] for at in range(last))
    words = normal.split()
    last = max(1, len(words) - size + 1) if words else 0
    return frozenset(tuple(words[at : at + size]) for at in range(last))


def shared_bands(a: Slots, b: Slots, bands: int, rows: int) -> tuple[int, ...]:
    """Return the numbers of the bands that two signatures share in an index, ascending.

    a, b: uint64[slots] with slots >= bands * rows, or sketches, uint8[slots]. Of a slot of a
        signature, the 8 bits count that a sketch keeps.

    Raises ValueError if there are fewer slots than bands * rows.
    """
    if len(a) != len(b) or bands < 1 or rows < 1:
        got = f"{len(a)} and {len(b)} slots, {bands} bands of {rows} rows"
        raise ValueError(f"a, b: got {got}, takes as many slots, and one band and row or more")
    if bands * rows > len(a):
        message = f"bands * rows: got {bands} * {rows}, takes at most the number of slots, {len(a)}"
        raise ValueError(message)
    differ = (a[: bands * rows] ^ b[: bands * rows]).astype(np.uint8)
    agree = (differ.reshape(bands, rows) == 0).all(axis=1)
    return tuple(np.flatnonzero(agree).tolist())


def is_candidate(a: Slots, b: Slots, bands: int, rows: int) -> bool:
    """Return whether two signatures share a band, so that an index compares the two.

    The arguments and errors are those of `shared_bands`.
    """
    return bool(shared_bands(a, b, bands, rows))


def _weights(
    a: Thing, b: Thing, parameters: Parameters | None
) -> tuple[Mapping[Hashable, float], Mapping[Hashable, float]]:
    """Return two things of one kind as mappings from tokens to weights."""
    kinds = {_kind(a), _kind(b)}
    if len(kinds) > 1:
        message = f"a, b: got {' and '.join(sorted(kinds))}, takes two of one kind"
        raise TypeError(message)
    return _weighed(a, parameters), _weighed(b, parameters)


def _kind(thing: Thing) -> str:
    if isinstance(thing, (bytes, bytearray)):
        raise TypeError("a, b: got bytes, takes texts (str), sets of tokens, or weights by token")
    if isinstance(thing, str):
        return "a text"
    if not isinstance(thing, Iterable):
        raise TypeError(f"a, b: got {shown(thing)}, takes texts, sets of tokens, or weights")
    return "weights" if isinstance(thing, Mapping) else "a set"


def _weighed(thing: Thing, parameters: Parameters | None) -> Mapping[Hashable, float]:
    if isinstance(thing, Mapping):
        for token, weight in thing.items():
            if not weight >= 0:
                message = f"weight of {token!r}: got {weight!r}, takes a number of at least 0"
                raise ValueError(message)
        return thing
    if isinstance(thing, str):
        return dict.fromkeys(shingle_set(thing, parameters), 1)
    return dict.fromkeys(thing, 1)


def _common(a: Mapping[Hashable, float], b: Mapping[Hashable, float]) -> float:
    """Return the sum of the lesser weight of each token."""
    if len(b) < len(a):
        a, b = b, a
    return sum(min(weight, b[token]) for token, weight in a.items() if token in b)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts, compared.

    shingles: how many shingles each has, including repeats.
    distinct: how many distinct shingles each has; `common` of them are in both.
    similarity: the Jaccard similarity of the shingles, computed without hashes.
    estimate: the same, as the sketches estimate it; an index knows only this.
    error: the standard error of an estimate at this similarity.
    bands: the numbers of the bands that the texts share.
    chance: the probability that texts of this similarity share a band.
    same_text: the texts are equal once they are normalised.
    threshold: the similarity from which texts are near duplicates.
    contained: the share of each text that is in the other one, computed without hashes.
    contained_estimates: the same, as the sketches estimate it. contained_errors: the standard
        errors of these estimates.
    left_out: the lines of each text that were left out because they are listed, in their order.
    containment: the share from which a text is a duplicate of one that came before; None: it
        doesn't count.
    """

    shingles: tuple[int, int]
    distinct: tuple[int, int]
    common: int
    similarity: float
    estimate: float
    error: float
    bands: tuple[int, ...]
    chance: float
    same_text: bool
    threshold: float
    contained: tuple[float, float]
    contained_estimates: tuple[float, float]
    contained_errors: tuple[float, float]
    left_out: tuple[tuple[str, ...], tuple[str, ...]]
    containment: float | None

    @property
    def candidates(self) -> bool:
        """Return whether an index compares the two: they share a band, or are the same text."""
        return bool(self.bands) or self.same_text

    @property
    def duplicates(self) -> bool:
        """Return whether an index that holds one of them finds that the other is a duplicate.

        With a containment, it may do so in one order only; see `duplicate_of_the_other`.
        """
        return any(self.duplicate_of_the_other)

    @property
    def duplicate_of_the_other(self) -> tuple[bool, bool]:
        """Return of each text whether it is a duplicate if it comes after the other one."""
        similar, least = self.estimate >= self.threshold, self.containment
        one, other = (
            self.candidates
            and (similar or (least is not None and share >= least and error <= MOST_ERROR))
            for share, error in zip(self.contained_estimates, self.contained_errors, strict=True)
        )
        return one, other


def compare(fingerprinter: Fingerprinter, left: str, right: str) -> Pair:
    """Return the comparison of two texts.

    Raises ValueError if nothing is left of a text once it is normalised.
    """
    parameters = fingerprinter.parameters
    prints = fingerprinter.fingerprint([left, right])
    if prints.blank.any():
        raise ValueError("nothing is left of a text once it is normalised")
    texts = fingerprinter.normalise(left), fingerprinter.normalise(right)
    one, other = windows(texts[0], parameters), windows(texts[1], parameters)
    common = len(one & other)
    exact = common / (len(one) + len(other) - common)
    estimate = float(similarity(prints.sketches[0], prints.sketches[1:])[0])
    sizes = np.array([len(one), len(other)])
    pairs = np.full(2, estimate), sizes, sizes[::-1], parameters.slots
    within, errors = containment_of(*pairs).tolist(), error_of(*pairs).tolist()
    counts = np.diff(fingerprinter.shingles([left, right]).starts).tolist()
    shared = np.flatnonzero(prints.keys[0, :-1] == prints.keys[1, :-1])
    return Pair(
        shingles=(counts[0], counts[1]),
        distinct=(len(one), len(other)),
        common=common,
        similarity=exact,
        estimate=estimate,
        error=float(standard_error(exact, parameters.slots, SKETCH_BITS)),
        bands=tuple(shared.tolist()),
        chance=float(candidate_chance(exact, parameters.bands, parameters.rows)),
        same_text=texts[0] == texts[1],
        threshold=parameters.threshold,
        contained=(common / len(one), common / len(other)),
        contained_estimates=(within[0], within[1]),
        contained_errors=(errors[0], errors[1]),
        left_out=(
            tuple(normaliser(parameters).left_out(text_of(left))),
            tuple(normaliser(parameters).left_out(text_of(right))),
        ),
        containment=parameters.containment,
    )
