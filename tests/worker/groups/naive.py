"""Groups in lists and loops: what documents make of their published matches, one after another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lsh.index import BucketRules
from tests.oracle.clock import Came, NaiveClock

HOUR = 3_600_000


class Published(NamedTuple):
    """A document with its verdict: its number in the order, its time, and whom it matches."""

    sequence: int
    id: str
    time: int
    matches: tuple[str, ...]


class View(NamedTuple):
    """A group, as whoever asks sees it."""

    name: int
    size: int
    growth: int
    members: tuple[tuple[int, str, int | None], ...]


def components(documents: Iterable[Published], gone: Iterable[str] = ()) -> list[list[str]]:
    """Return the connected components of all matches, without those that are gone."""
    near: dict[str, set[str]] = {}
    for one in documents:
        for other in one.matches:
            near.setdefault(one.id, set()).add(other)
            near.setdefault(other, set()).add(one.id)
    found = []
    left = set(near)
    while left:
        reached, todo = set[str](), [left.pop()]
        while todo:
            reached.add(node := todo.pop())
            todo += near[node] & left
            left -= near[node]
        found.append(sorted(reached - set(gone)))
    return sorted(one for one in found if one)


@dataclass
class _Member:
    sequence: int
    id: str
    time: int
    came: Came
    matched: list[Came] = field(default_factory=list)


class NaiveGroups:
    """Groups with a window, frame by frame. All documents have times, and ids of their own."""

    def __init__(self, rules: BucketRules, window: int) -> None:
        self._clock = NaiveClock(rules)
        self._window = window
        self._groups: list[tuple[int, list[_Member]]] = []
        self._came: dict[str, _Member] = {}

    def frame(self, documents: Sequence[Published]) -> None:
        """Let the documents of a frame come; then those whose time is over leave."""
        for one in documents:
            came = self._clock.come(one.time)
            self._came[one.id] = own = _Member(one.sequence, one.id, one.time, came)
            if one.matches:
                self._join(own, [self._came[ident] for ident in one.matches])
        for _, members in self._groups:
            members[:] = [member for member in members if self._stays(member)]
        self._groups = [group for group in self._groups if group[1]]

    def _join(self, own: _Member, matches: Sequence[_Member]) -> None:
        sequences = {one.sequence for one in matches}

        def meets(group: tuple[int, list[_Member]]) -> bool:
            name, members = group
            return name in sequences or any(one.sequence in sequences for one in members)

        met = [group for group in self._groups if meets(group)]
        apart = [group for group in self._groups if not meets(group)]
        members = {one.sequence: one for group in met for one in group[1]}
        members |= {one.sequence: one for one in [*matches, own]}
        for one in matches if own.came.now is not None else ():
            one.matched.append(own.came)
        name = min(*members, *(group[0] for group in met))
        self._groups = [*apart, (name, [members[number] for number in sorted(members)])]

    def _counted(self, came: Came) -> int:
        counted = self._clock.counts_as_of(came)
        assert counted is not None
        return counted

    def _stays(self, member: _Member) -> bool:
        now = self._clock.now
        if now is None:
            return True
        latest = max(self._counted(one) for one in [member.came, *member.matched])
        grain = max(1, self._window // 64)
        return -(-(latest + self._window) // grain) * grain >= now

    def views(self) -> list[View]:
        """Return the groups, by their names."""
        now = self._clock.now
        found = []
        for name, members in sorted(self._groups, key=lambda group: group[0]):
            fresh = [now is None or self._counted(one.came) + HOUR >= now for one in members]
            rows = tuple((one.sequence, one.id, one.time) for one in members)
            found.append(View(name, len(members), sum(fresh), rows))
        return found
