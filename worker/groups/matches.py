"""The matches that shards find for the documents of a frame, and those that are published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lsh._core import Matches
from worker.corrections.state import Allowed
from worker.stages.answers import listed
from worker.stages.order import Placed
from worker.wire.corrections import ALLOWED
from worker.wire.ids import nameable

Found = list[tuple[int, list[tuple[float, int, bytes]]]]
"""The matches that a shard has for some rows of a frame: similarity, negative, sequence, id.

The sequence number `ALLOWED` says that the document is allowed.
"""


class Matched(NamedTuple):
    """A document that was matched."""

    sequence: int
    id: bytes


def by_rows(
    frames: Sequence[Placed], matches: Matches, allowed: Mapping[int, Allowed]
) -> list[Found]:
    """Return the matches of each frame's rows; ``allowed`` are the rows through all frames."""
    every = listed(matches)
    starts = matches.starts
    found, first = [], 0
    for placed in frames:
        here = starts[first : first + placed.count + 1]
        rows = np.flatnonzero(np.diff(here)).tolist()
        bounds = here.tolist()
        found.append(
            [
                (
                    row,
                    [
                        # Shards send similarities with 32 bits.
                        (-float(np.float32(one.similarity)), one.sequence, one.id)
                        for one in every[bounds[row] : bounds[row + 1]]
                    ],
                )
                for row in rows
            ]
        )
        for row in allowed.keys() & set(range(first, first + placed.count)) if allowed else ():
            ident, similarity = allowed[row]
            found[-1].append((row - first, [(-similarity, ALLOWED, ident)]))
        first += placed.count
    return found


def merged(of_shards: Iterable[Found], most: int) -> Mapping[int, list[Matched]]:
    """Return the matches of each row, as *route* publishes them: the best ``most``."""
    every: dict[int, set[tuple[float, int, bytes]]] = {}
    for found in of_shards:
        for row, some in found:
            every.setdefault(row, set()).update(some)
    rows = {}
    for row, different in every.items():
        if any(at == ALLOWED for _, at, _ in different):
            continue
        # What was forgotten after a verdict that is given again has no id.
        kept = sorted(different)[:most]
        kept = kept[: nameable(len(kept), (ident for _, _, ident in kept))]
        named = [Matched(at, ident) for _, at, ident in kept if ident]
        if named:
            rows[row] = named
    return rows
