"""An application, and a follower of its log that can be killed at any of its writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from lsh.index import NO_TIME
from tests.support.embedded import NOW
from tests.support.killed_disk import left_by_kill, settle
from tests.worker.groups.naive import Published, View
from worker.app import Application, Environment
from worker.bus import Outgoing
from worker.bus.memory.bus import MemoryBus
from worker.closing import Closing
from worker.corrections.request import Request, encoded
from worker.groups.reading import GroupsReader
from worker.offline.embedded import Embedded, create_topics
from worker.probe import Files, Point, Probe
from worker.serve.following import Following
from worker.settings.model import Settings
from worker.wire.headers import CORRECTION

WORDS = 40
ROUNDS = 100
_STEPS = 6


class Died(BaseException):
    """The process was killed."""


class Killer(Probe):
    """Kills a follower at one of its points; ``at`` counts them from the next one."""

    def __init__(self) -> None:
        self.opened_files: list[Files] = []
        self.left: int | None = None
        self.passed = 0

    def before(self, point: Point) -> None:
        self._arrive(point)

    def after(self, point: Point) -> None:
        self._arrive(point)

    def _arrive(self, point: Point) -> None:
        if point not in {"write", "flush", "open"}:
            return
        self.passed += 1
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise Died

    def opened(self, files: Files) -> None:
        self.opened_files.append(files)

    def closed(self, files: Files) -> None:
        self.opened_files.remove(files)


class Followed(Closing):
    """An application on an in-process log, and whoever keeps its groups. The clock stands still."""

    def __init__(self, directory: Path, **sections: Mapping[str, Any]) -> None:
        sections["index"] = {"cache_bytes": 1 << 20, **sections.get("index", {})}
        self.settings = Settings.model_validate(sections)
        self.topology = self.settings.topology(1)
        self.bus = MemoryBus(clock=lambda: NOW)
        create_topics(self.bus, self.topology)
        self.embedded = Embedded(self.settings, self.topology, self.bus, directory / "worker")
        self.rules = self.embedded.application.settings.rules()
        self.killer = Killer()
        self._directory = directory
        self._lives = 0
        self.following = self._follow(self.settings)

    def _follow(self, settings: Settings) -> Following:
        environment = Environment(probe=lambda _stage: self.killer)
        return Following(
            Application(settings, self.topology, self.bus, self.state, environment=environment),
            lambda: 0.0,
        )

    @property
    def state(self) -> Path:
        return self._directory / f"life-{self._lives}"

    def frame(self, documents: Sequence[Mapping[str, object]]) -> None:
        """Have some documents judged that come together."""
        for one in documents:
            value = None if one.get("forget") else json.dumps(one).encode()
            self.bus.append(Outgoing(self.topology.documents, 0, str(one["id"]).encode(), value))
        self.embedded.run_until_idle()

    def correct(self, request: Request) -> None:
        """Have a correction judged."""
        header = (CORRECTION, encoded(request))
        key = request.id.encode()
        self.bus.append(Outgoing(self.topology.documents, 0, key, None, (header,)))
        self.embedded.run_until_idle()

    def catch_up(self) -> None:
        """Let the follower come to the end of the log."""
        for _ in range(ROUNDS):
            self.following.step()
            behind = self.following.reached().furthest_behind
            if behind == 0 and not self.following.reached().warming:
                return
        raise AssertionError("the follower comes to no end")

    def restart(self, settings: Settings | None = None) -> None:
        """End the follower well, and begin again, maybe with other settings."""
        self.following.close()
        self.following = self._follow(settings or self.settings)

    def kill(self) -> None:
        """Have the follower find what it left on the disk when it was killed."""
        settle(self.killer.opened_files)
        before = self.state
        self._lives += 1
        left_by_kill(before, self.state)
        self.following.close()
        self.following = self._follow(self.settings)

    def published(self) -> list[Published]:
        """Return all verdicts, in the order of the documents."""
        found = []
        for topic in (self.topology.unique, self.topology.duplicate):
            for record in self.bus.read(topic, 0, 0, 1 << 20):
                headers = dict(record.headers)
                if "neardup-sequence" not in headers:
                    continue
                value = json.loads(record.value or b"")
                matches = json.loads(headers.get("neardup-matches") or b"[]")
                number = int(headers["neardup-sequence"] or b"")
                ids = tuple(one["id"] for one in matches)
                found.append(Published(number, value["id"], value.get("t", NOW), ids))
        return sorted(found)

    def views(self) -> list[View]:
        """Return all groups, by their names."""
        return self.following.groups(views)

    def close(self) -> None:
        self.following.close()
        self.embedded.close()


def views(reader: GroupsReader) -> list[View]:
    """Return all groups, by their names, which each order must list."""
    found: dict[str, list[View]] = {}
    for sort in ("size", "growth", "newest"):
        listed = list(_all(reader, sort))
        ranks = [
            {"size": group.size, "growth": group.growth, "newest": members[-1][0]}[sort]
            for group, members in listed
        ]
        assert ranks == sorted(ranks, reverse=True), sort
        found[sort] = sorted(
            View(group.name, group.size, group.growth, tuple(members)) for group, members in listed
        )
    assert found["size"] == found["growth"] == found["newest"]
    assert reader.progress.groups == len(found["size"])
    return found["size"]


def _all(reader: GroupsReader, sort: Any) -> Iterator[Any]:  # noqa: ANN401 -- a literal, and pairs
    after: bytes | None = b""
    while after is not None:
        some, after = reader.listed(sort, 3, after=after)
        for one in some:
            members: list[tuple[int, str, int | None]] = []
            at: bytes | None = b""
            while at is not None:
                page, at = reader.members(one.at, 2, at)
                members += [
                    (sequence, member.id.decode(), None if member.time == NO_TIME else member.time)
                    for sequence, member in page
                ]
            assert one.first[0] == members[0][0]
            assert one.last[0] == members[-1][0] == one.group.last
            assert one.group.size == len(members)
            yield one.group, members


def stream(chance: Random, number: int) -> Iterator[dict[str, object]]:
    """Yield documents of a few themes, each a walk from one text to another.

    Neighbours on a walk match, and the ends don't: so documents between them join groups.
    """
    themes = [
        [" ".join(str(chance.random()) for _ in range(2)) for _ in range(WORDS)] for _ in range(4)
    ]
    for count in range(number):
        theme = chance.randrange(len(themes))
        words = list(themes[theme])
        at = chance.randrange(_STEPS)
        for place in range(3 * at):
            words[place] = f"{theme} and {place} instead of it"
        yield {"id": f"d{count}", "text": " ".join(words)}
