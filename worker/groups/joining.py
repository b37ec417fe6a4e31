"""Documents join groups here, and leave them.

A group is a tree of height one: each member's row names its group. If a document matches members of
several groups, the largest absorbs the others. So a member moves at most log2 n times, and a merge
costs the size of the smaller groups.

A member is kept for a window after the time as of which it counts, or after that of the latest
document that it matched, as an entry of the index is. That end is rounded up to a 64th of a window,
so a text that is posted all day renews its first copies a few times a day. Before there is a now,
matches renew nothing.

All follows from the documents in their order and from where frames end, however frames are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from lsh.index import NO_TIME, SameId
from worker.groups.clock import DocumentTimes, IndexClock
from worker.groups.matches import Matched
from worker.groups.rows import (
    BY_GROUP,
    BY_GROWTH,
    BY_LAST,
    BY_SIZE,
    FOREVER,
    FORGOTTEN,
    GROUPS,
    IDS,
    MEMBERS,
    NAMES,
    QUEUE,
    UNKNOWN,
    Changes,
    Group,
    Member,
    descending,
    key,
    moment,
    number,
)
from worker.stages.order import Placed
from worker.wire.frame import POSITION_BITS

HOUR_MS = 3_600_000
_GRAINS = 64


@dataclass(frozen=True, slots=True)
class Kept:
    """For how long, in ms; None: for ever.

    member: a member, after the latest document that it matched. times: what is known of all
    documents, as long as the index may match them.
    """

    member: int | None
    times: int | None

    def until(self, counted: int) -> int:
        """Return until when a member is kept that was matched by a document of a time."""
        if self.member is None:
            return FOREVER
        grain = max(1, self.member // _GRAINS)
        return -(-(counted + self.member) // grain) * grain


def digest(ident: bytes) -> bytes:
    """Return what members are found by from an id."""
    return blake2b(ident, digest_size=16).digest()


class Joining:
    """Applies frames to the groups in ``changes``. `finish` must be called in the end.

    ``forgot`` is whether a member was forgotten.
    """

    def __init__(
        self, changes: Changes, clock: IndexClock, kept: Kept, same_id: SameId = "duplicate"
    ) -> None:
        """Take the rows as they are before the first frame, and the index's clock there.

        ``same_id`` is what a document is whose id came before: it takes the place of that one, or
        is the same again, which has joined its group already.
        """
        self._changes = changes
        self._clock = clock
        self._kept = kept
        self._times = DocumentTimes(changes, kept.times)
        self._same_id = same_id
        self._groups: dict[int, Group | None] = {}
        self._before: dict[int, Group | None] = {}
        self._now: int | None = clock.now
        self._first: int | None = None
        self.forgot = False

    def apply(self, placed: Placed, matches: Mapping[int, Sequence[Matched]]) -> None:
        """Let the documents of a frame join groups; ``matches`` are those of some rows."""
        times: list[int] = placed.times.tolist()
        before = self._clock.now
        nows = self._clock.come(times)
        self._first = (
            next((now for now in nows if now is not None), None) if before is None else None
        )
        self._times.note(placed, nows, self._first)
        frame = placed.frame
        rows = np.searchsorted(frame.offsets, frame.tombstones.offsets).tolist()
        forgotten = list(zip(rows, frame.tombstones.ids.unpack(), strict=True))
        replaces = self._same_id == "replace"
        ids = frame.ids.unpack() if matches or replaces else []
        first = placed.number << POSITION_BITS
        for row in range(placed.count) if replaces else sorted(matches):
            while forgotten and forgotten[0][0] <= row:
                self._erase(first, *forgotten.pop(0))
            self._now = nows[row]
            if replaces:
                self._forget(ids[row])
            if row in matches and not self._is_again(ids[row]):
                self._join(first + row, ids[row], times[row], matches[row])
        for before_row, ident in forgotten:
            self._erase(first, before_row, ident)
        self._now = self._clock.now
        if self._now is not None:
            self._let_go(UNKNOWN if before is None else before, self._now)

    def _is_again(self, ident: bytes) -> bool:
        """Return whether a document was sent again whose id is that of a member."""
        if self._same_id != "ignore":
            return False
        return next(self._changes.of(IDS + digest(ident)), None) is not None

    def _join(self, sequence: int, ident: bytes, time: int, matches: Sequence[Matched]) -> None:
        """Have a document join the groups of those that it matches, and these join one another."""
        counted = UNKNOWN if self._now is None else self._clock.counts_as_of(time, self._now)
        found = [self._group_of(one.sequence) for one in matches]
        at = self._joined(dict.fromkeys(one for one in found if one is not None), sequence)
        for one in matches:
            if self._changes.get(MEMBERS, key(one.sequence)) is None:
                self._add(at, one.sequence, self._came(one), counted)
            else:
                self._renew(at, one.sequence, counted)
        self._add(at, sequence, Member(time, counted, 0, 0, fresh=True, id=ident), counted)

    def _group_of(self, sequence: int) -> int | None:
        """Return the group of a document: that of which it is a member, or called by it."""
        found = self._changes.get(MEMBERS, key(sequence)) or self._changes.get(NAMES, key(sequence))
        return None if found is None else number(found)

    def _came(self, one: Matched) -> Member:
        """Return a document that is no member yet, as it came."""
        came = self._times.of(one.sequence)
        if came is None:
            now = UNKNOWN if self._now is None else self._now
            return Member(NO_TIME, now, 0, 0, fresh=False, id=one.id)
        time, now = came
        counted = UNKNOWN if self._now is None else self._clock.counts_as_of(time, now)
        return Member(time, counted, 0, 0, fresh=True, id=one.id)

    def _joined(self, groups: Iterable[int], new: int) -> int:
        """Return the largest of some groups, which has absorbed the others; or a new one."""
        pairs = ((one, self._load(one)) for one in groups)
        known = [(one, group) for one, group in pairs if group is not None]
        if not known:
            self._before.setdefault(new, None)
            self._groups[new] = Group(new, 0, 0, 0, 0)
            self._changes.put(NAMES, key(new), key(new))
            return new
        ordered = sorted(known, key=lambda pair: (-pair[1].size, pair[1].name))
        (at, group), *others = ordered
        for other, absorbed in others:
            for rest, row in list(self._changes.of(BY_GROUP + key(other))):
                self._changes.put(BY_GROUP + key(other), rest, None)
                self._changes.put(BY_GROUP + key(at), rest, row)
                self._changes.put(MEMBERS, rest, key(at))
            later = max(group, absorbed, key=lambda one: one.last)
            self._changes.put(NAMES, key(absorbed.name), None)
            self._groups[other] = None
            group = self._named(at, group, absorbed.name)._replace(
                size=group.size + absorbed.size,
                growth=group.growth + absorbed.growth,
                last=later.last,
                counted=later.counted,
            )
        self._groups[at] = group
        return at

    def _named(self, at: int, group: Group, name: int) -> Group:
        """Return a group called by a document that is in it, if that is the earliest."""
        if name >= group.name:
            return group
        self._changes.put(NAMES, key(group.name), None)
        self._changes.put(NAMES, key(name), key(at))
        return group._replace(name=name)

    def _add(self, at: int, sequence: int, member: Member, matched: int) -> None:
        """Add a member, which a document matched that counts as of ``matched``, or is itself."""
        group = self._named(at, self._existing(at), sequence)
        member = self._dated(member, matched)
        rest = key(sequence)
        self._changes.put(BY_GROUP + key(at), rest, member.packed())
        self._changes.put(MEMBERS, rest, key(at))
        self._changes.put(IDS + digest(member.id), rest)
        self._queue(sequence, member)
        if sequence > group.last:
            group = group._replace(last=sequence, counted=member.counted)
        growth = group.growth + member.fresh
        self._groups[at] = group._replace(size=group.size + 1, growth=growth)

    def _dated(self, member: Member, matched: int) -> Member:
        """Return a member with what follows from its times."""
        if self._now is None:
            return member._replace(due=UNKNOWN)
        until = max(member.until, self._kept.until(max(member.counted, matched)))
        fresh = member.fresh and member.counted + HOUR_MS >= self._now
        due = min(until, member.counted + HOUR_MS) if fresh else until
        return member._replace(until=until, fresh=fresh, due=due)

    def _renew(self, at: int, sequence: int, counted: int) -> None:
        """Keep a member for longer. It stays in the queue where it is, and is looked at there."""
        if counted == UNKNOWN:
            return
        part, rest = BY_GROUP + key(at), key(sequence)
        row = self._changes.get(part, rest)
        assert row is not None  # noqa: S101 -- it is a member of this group
        member, until = Member.unpacked(row), self._kept.until(counted)
        if until > member.until:
            self._changes.put(part, rest, member._replace(until=until).packed())

    def _queue(self, sequence: int, member: Member) -> None:
        if member.due != FOREVER:
            self._changes.put(QUEUE, moment(member.due) + key(sequence))

    def _erase(self, first: int, row: int, ident: bytes) -> None:
        """Forget the documents with an id that came before a row of the frame, members or not."""
        self._changes.put(FORGOTTEN, digest(ident), key(first + row))
        self._forget(ident)

    def _forget(self, ident: bytes) -> None:
        """Remove the members that have an id."""
        for rest in [rest for rest, _ in self._changes.of(IDS + digest(ident))]:
            self.forgot = True
            self._remove(number(rest))

    def _remove(self, sequence: int) -> None:
        """Remove a member, and its group if that was the last one."""
        at, group, member = self._member(sequence)
        rest = key(sequence)
        self._changes.put(BY_GROUP + key(at), rest, None)
        self._changes.put(MEMBERS, rest, None)
        self._changes.put(IDS + digest(member.id), rest, None)
        self._changes.put(QUEUE, moment(member.due) + rest, None)
        if group.size == 1:
            self._changes.put(NAMES, key(group.name), None)
            self._groups[at] = None
            return
        if group.last == sequence:
            found = self._changes.last(BY_GROUP + key(at))
            assert found is not None  # noqa: S101 -- it has members left
            group = group._replace(last=number(found[0]), counted=Member.unpacked(found[1]).counted)
        growth = group.growth - member.fresh
        self._groups[at] = group._replace(size=group.size - 1, growth=growth)

    def _member(self, sequence: int) -> tuple[int, Group, Member]:
        at = self._changes.get(MEMBERS, key(sequence))
        row = None if at is None else self._changes.get(BY_GROUP + at, key(sequence))
        if at is None or row is None:
            raise ValueError(f"document {sequence} is in no group")
        return number(at), self._existing(number(at)), Member.unpacked(row)

    def _let_go(self, before: int, now: int) -> None:
        """Remove the members whose time is over, and let those cool down that are an hour old.

        ``before`` is what was now when this was last done.
        """
        due = [rest for rest, _ in self._changes.of(QUEUE, moment(before), moment(now))]
        first = self._first
        for rest in due:
            self._changes.put(QUEUE, rest, None)
            sequence = number(rest[8:])
            at, group, member = self._member(sequence)
            was = member.fresh
            if member.due == UNKNOWN:
                counted = self._clock.counts_as_of(member.time, now if first is None else first)
                member = self._dated(member._replace(counted=counted), counted)
                if group.last == sequence:
                    group = group._replace(counted=counted)
            else:
                member = self._dated(member, UNKNOWN)
            self._groups[at] = group._replace(growth=group.growth - (was and not member.fresh))
            self._changes.put(BY_GROUP + key(at), key(sequence), member.packed())
            if member.until < now:
                self._remove(sequence)
            else:
                self._queue(sequence, member)

    def _existing(self, at: int) -> Group:
        group = self._load(at)
        if group is None:
            raise ValueError(f"there is no group {at}")
        return group

    def _load(self, at: int) -> Group | None:
        if at not in self._groups:
            row = self._changes.get(GROUPS, key(at))
            self._groups[at] = self._before[at] = None if row is None else Group.unpacked(row)
        return self._groups[at]

    def finish(self) -> int:
        """Put the groups and their order into the changes; return how many more there are."""
        more = 0
        for at, after in self._groups.items():
            before, rest = self._before[at], key(at)
            if before == after:
                continue
            more += (after is not None) - (before is not None)
            self._changes.put(GROUPS, rest, None if after is None else after.packed())
            for part, field in ((BY_SIZE, 1), (BY_GROWTH, 2), (BY_LAST, 3)):
                was = None if before is None else before[field]
                now = None if after is None else after[field]
                if was == now:
                    continue
                if was is not None:
                    self._changes.put(part, descending(was) + rest, None)
                if now is not None:
                    self._changes.put(part, descending(now) + rest)
        return more
