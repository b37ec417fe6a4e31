"""An application on the in-process log, and shards that follow it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.embedded import NOW
from worker.app import Application
from worker.bus import Outgoing, Record
from worker.bus.memory.bus import MemoryBus
from worker.closing import Closing
from worker.offline.embedded import Embedded, create_topics
from worker.serve.answers import Answer
from worker.serve.asking import Asker, Questions
from worker.serve.following import Following
from worker.settings.model import Settings


def body(document: Mapping[str, object]) -> bytes:
    """Return a request about a document."""
    return json.dumps({"document": document}).encode()


class Site(Closing):
    """An application with all its stages, and whoever follows its log; all in one thread.

    The clock stands still.
    """

    def __init__(self, directory: Path, **sections: Mapping[str, Any]) -> None:
        sections["index"] = {"cache_bytes": 1 << 20, **sections.get("index", {})}
        self.settings = Settings.model_validate(sections)
        self.topology = self.settings.topology(1)
        self.bus = MemoryBus(clock=lambda: NOW)
        create_topics(self.bus, self.topology)
        self.embedded = Embedded(self.settings, self.topology, self.bus, directory / "worker")
        self.directory = directory
        self.following = self.follow("follower")
        self.asker = Asker(self.topology.layout, self.embedded.application.settings.rules())
        self.questions = Questions(self.settings, clock=lambda: NOW / 1_000)

    def follow(self, name: str) -> Following:
        """Return another follower, with a directory of its own."""
        application = Application(self.settings, self.topology, self.bus, self.directory / name)
        return Following(application, lambda: 0.0)

    def judge(self, document: Mapping[str, object]) -> None:
        """Feed a document, and have all stages judge it."""
        self.put(str(document["id"]), json.dumps(document).encode())

    def put(self, key: str, value: bytes | None) -> None:
        """Feed a record, and have all stages judge it."""
        self.bus.append(Outgoing(self.topology.documents, 0, key.encode(), value))
        self.embedded.run_until_idle()

    def catch_up(self) -> None:
        """Let the follower come to the end of the log."""
        for _ in range(4):
            self.following.step()

    def answers(self, request: bytes) -> list[Answer]:
        """Return the answers to a request."""
        return self.asker.answers(self.following, self.questions.read(request))

    def last(self) -> Record:
        """Return the record that was published last."""
        topics = (self.topology.unique, self.topology.duplicate, self.topology.rejected)
        found = [record for topic in topics for record in self.bus.read(topic, 0, 0, 1 << 20)]
        return max(found, key=_source)

    def close(self) -> None:
        """Close everything."""
        self.following.close()
        self.embedded.close()


def _source(record: Record) -> int:
    """Return the offset of the document that a record publishes."""
    headers = dict(record.headers)
    given = headers.get("neardup-source") or headers.get("neardup-error-offset") or b"0"
    return int(given.rpartition(b"-")[2])
