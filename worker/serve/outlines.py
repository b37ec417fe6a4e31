"""Of what a group consists: clusters of members that match one another, or a chain of them.

A group is what matches connect, so its members need not be alike: documents that stand between two
texts join them. Whoever forgets a group should see that before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from time import monotonic

import msgspec
import numpy as np
import numpy.typing as npt

from lsh.sketch import similarity
from worker.documents.lookup import Gone, Lookup
from worker.groups.reading import Found, GroupsReader
from worker.groups.rows import Member
from worker.serve.following import Following
from worker.serve.group_pages import GroupMember, member_of
from worker.wire.frame import POSITION_BITS

_MEMBERS = 10_000
"""The most members that are looked at."""
_FRAMES = 200
_SECONDS = 4.0
_CLUSTERS = 10
_SHOWN = 3
"""Members of a cluster."""


class Cluster(msgspec.Struct, frozen=True):
    """Members that match the first one of them; ``members`` are a few of its ``size``."""

    size: int
    members: list[GroupMember]


class Outline(msgspec.Struct, frozen=True):
    """Of what a group consists.

    ``compared`` of its ``size`` members were compared by their sketches, as far as the log of
    fingerprints has these, and a bounded number of them. ``least`` is the least similarity of one
    of them to the representative; null if none could be compared. ``clusters`` are the largest of
    ``count``. The group is a chain if there are several.
    """

    id: str
    size: int
    compared: int
    least: float | None
    count: int
    clusters: list[Cluster]


def outline(
    following: Following,
    lookup: Lookup,
    ident: int,
    threshold: float,
    clock: Callable[[], float] = monotonic,
) -> Outline | None:
    """Return the outline of the group that is called by a document, or has it; None without one.

    Raises:
        Warming: the groups can't be read yet.
        GroupsUnusable: they can't be read.
        BusError: the log of fingerprints can't be read.
    """

    def members(groups: GroupsReader) -> tuple[Found, list[tuple[int, Member]]] | None:
        found = groups.named(ident)
        return None if found is None else (found, groups.members(found.at, _MEMBERS)[0])

    known = following.groups(members)
    if known is None:
        return None
    found, listed = known
    first, *others = listed
    deadline = clock() + _SECONDS
    frames = [list(some) for _, some in groupby(others, lambda one: one[0] >> POSITION_BITS)]
    # Those between are left out of a group with more.
    chosen = frames[:: -(-len(frames) // _FRAMES) or 1]
    compared: list[tuple[int, Member]] = []
    sketches: list[npt.NDArray[np.uint8]] = []
    for some in ([first], *chosen):
        if clock() > deadline:
            break
        for one, sketch in _sketched(lookup, some):
            compared.append(one)
            sketches.append(sketch)
    has_first = bool(compared) and compared[0][0] == first[0]
    least = None
    clusters: list[list[int]] = []
    if compared:
        stacked = np.stack(sketches)
        if has_first and len(compared) > 1:
            least = round(float(similarity(stacked[0], stacked[1:]).min()), 4)
        clusters = sorted(_clusters(stacked, threshold), key=len, reverse=True)
    return Outline(
        str(found.group.name),
        found.group.size,
        len(compared),
        least,
        len(clusters),
        [
            Cluster(len(some), [member_of(*compared[at]) for at in some[:_SHOWN]])
            for some in clusters[:_CLUSTERS]
        ],
    )


def _sketched(
    lookup: Lookup, members: Sequence[tuple[int, Member]]
) -> Iterator[tuple[tuple[int, Member], npt.NDArray[np.uint8]]]:
    """Yield some members of one frame with their sketches; nothing if the frame is gone."""
    with suppress(Gone):
        frame, _ = lookup.frame(members[0][0] >> POSITION_BITS)
        for one in members:
            row = one[0] & ((1 << POSITION_BITS) - 1)
            if row < len(frame.sketches):
                yield one, frame.sketches[row]


def _clusters(sketches: npt.NDArray[np.uint8], threshold: float) -> list[list[int]]:
    """Return the rows that match the first one of their cluster, cluster by cluster.

    What is in none of the first 100 is a cluster of its own each.
    """
    left = np.arange(len(sketches))
    found: list[list[int]] = []
    while len(left) and len(found) < 100:  # noqa: PLR2004 -- as said
        near = similarity(sketches[left[0]], sketches[left]) >= threshold
        near[0] = True
        found.append(left[near].tolist())
        left = left[~near]
    return [*found, *([at] for at in left.tolist())]
