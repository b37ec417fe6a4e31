"""A server of groups on a real socket, beside an application on an in-process log."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from tests.support.embedded import NOW
from tests.worker.serve.parts import Site
from worker.app import Application, Environment
from worker.metrics.metrics import Metrics
from worker.serve.server import Limits, answering
from worker.serve.service import QueryService

TEXTS = {
    "fox": "The quick brown fox jumps over the lazy dog, and then it jumps back again.",
    "song": "I love this song!!! It is the best thing that I have heard in all these years.",
    "odd/id ü": "A page of its own about nothing that anybody else would write about today.",
}
HOUR = 3_600_000
TIME = NOW - 1_000 * HOUR
Reply = tuple[int, Any]


class Server:
    """A server beside an application whose documents have times."""

    def __init__(self, directory: Path, stack: ExitStack, **sections: Any) -> None:  # noqa: ANN401 -- sections of settings
        sections = {"documents": {"time_field": "t"}, **sections}
        self.site = site = stack.enter_context(Site(directory, **sections))
        service = QueryService(site.settings, Metrics(), threading.Event())
        self.service = stack.enter_context(service)
        self._application = Application(
            site.settings, site.topology, site.bus, directory / "server", environment=Environment()
        )
        asked = answering(
            site.settings.serve.model_copy(update={"port": 0}),
            service.query,
            service.most_bytes,
            Limits(60),
            groups=service.groups,
        )
        self.port = stack.enter_context(asked)

    def begin(self) -> None:
        self.site.following.close()
        self.site.following = self.service.begin(self._application, lambda: 0.0)
        for _ in range(10):
            self.site.catch_up()

    def get(self, path: str, **headers: str) -> Reply:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            assert answer.headers["Content-Type"] == "application/json"
            assert answer.headers["Cache-Control"] == "no-store"
            return answer.status, json.loads(answer.read())


@contextmanager
def serving(directory: Path, **sections: Any) -> Iterator[Server]:  # noqa: ANN401 -- as above
    """Yield a server that has groups of 5, 3 and 2 documents, one of each for half an hour."""
    with ExitStack() as stack:
        server = Server(directory, stack, **sections)
        time = TIME
        for name, number in zip(TEXTS, (5, 3, 2), strict=True):
            for count in range(number):
                ident = f"{name}{count}"
                server.site.judge({"id": ident, "text": TEXTS[name], "t": time})
                time += HOUR // 2
        yield server
