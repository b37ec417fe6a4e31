"""The rules that decide which entries a bucket keeps, and which candidates match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lsh.containment import MOST_ERROR

__all__ = ["BucketRules", "SameId"]


SameId = Literal["duplicate", "replace", "ignore"]
"""What a document is whose id the index already has; see `lsh.index.same_id`."""

_MOST_MARKED = 63
"""A mark of `lsh.index.clock` has a bit for each time before the first now."""
_MOSTLY = 0.8
"""The similarity of two texts of which each has eight ninths of the other."""


@dataclass(frozen=True, slots=True)
class BucketRules:
    """The settings of an index. An index is valid only for the rules that it was made with.

    threshold: least estimated similarity at which a candidate is a match.
    absorb: least estimated similarity to an entry at which a document isn't
        inserted, because the entry stands for it.
    capacity: most entries in a bucket; later ones go to finer buckets, see `lsh.index.finer`.
    max_matches: most matches that are reported for a document, best first.
    window_ms: how long an entry lives after its own time, or after the latest of those of the
        documents that it absorbed; None: for ever.
    same_id: what a document is whose id the index already has.
    containment: least estimated share of a document that is in a candidate at which that is a
        match, whatever their similarity; None: only the similarity counts.
    containment_error: largest standard error of an estimated share that counts. The error grows
        with the ratio of the sizes: for a share of 0.9 and 256 slots, it is 0.1 at 4.8 times
        the size, and at 3.1 times with 128.
    bands, rows: the keys of each column below ``bands`` follow from ``rows`` slots of the sketch,
        as `lsh.band_keys` makes them. So who knows two sketches knows in which of these columns
        they share a bucket. 0: they don't follow from sketches.
    crowded: how many entries make a bucket crowded; a full one always is. See `lsh.index.walk`.
    now_rank, now_of, now_least: now is the ``now_rank``-th latest of the last ``now_of`` times,
        once there are ``now_least``; see `lsh.index.clock`.

    Raises ValueError unless 1 <= now_rank <= now_least <= now_of, and now_least <= 63.
    """

    threshold: float
    absorb: float = 0.95
    capacity: int = 32
    max_matches: int = 64
    window_ms: int | None = None
    same_id: SameId = "duplicate"
    containment: float | None = None
    containment_error: float = MOST_ERROR
    bands: int = 0
    rows: int = 0
    crowded: int = 8
    now_rank: int = 16
    now_of: int = 64
    now_least: int = 32

    def __post_init__(self) -> None:
        if not 1 <= self.now_rank <= self.now_least <= min(self.now_of, _MOST_MARKED):
            numbers = f"now_rank {self.now_rank}, now_least {self.now_least}, now_of {self.now_of}"
            raise ValueError(f"got {numbers}: takes 1 <= now_rank <= now_least <= now_of, 63")

    @property
    def covers(self) -> float:
        """Return the least estimated similarity at which an entry of a crowded bucket stands.

        Such an entry matches, and most of its text is that of the document. With a containment,
        only what is all but identical stands, because a document may match by its share alone.
        """
        if self.containment is not None:
            return self.absorb
        return min(self.absorb, max(self.threshold, _MOSTLY))

    @property
    def heads(self) -> int:
        """Return how many first entries of a crowded bucket a document is compared with at first.

        With a containment, it is compared with all of them: no bucket counts as crowded.
        """
        return (
            self.capacity + 1 if self.containment is not None else min(self.crowded, self.capacity)
        )
