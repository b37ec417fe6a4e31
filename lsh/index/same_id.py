"""What a document is whose id the index already has: `BucketRules.same_id`.

duplicate: a document like any other. It may match the earlier one.
replace: the earlier one is forgotten just before, as by a tombstone. So they never match.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from lsh.index.batch import Forgotten

if TYPE_CHECKING:
    from lsh.index.batch import DocumentBatch

__all__ = ["replacing"]


def replacing(batch: DocumentBatch) -> DocumentBatch:
    """Return a batch in which each document forgets its id just before it comes."""
    own = map(Forgotten, range(len(batch.ids)), batch.ids)
    both = sorted([*batch.forgotten, *own], key=attrgetter("row"))
    return replace(batch, forgotten=both)
