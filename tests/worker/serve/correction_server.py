"""A server about an in-process log, where people correct."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from queue import Empty, SimpleQueue
from threading import Event
from typing import Any
from urllib.parse import quote, urlsplit

from localkafka.broker import wait_until
from worker.cli.demo_page import page_of
from worker.settings.model import Settings

SONG = "I love this song!!! It is the best thing that I have heard in all these years."
Reply = tuple[int, Any]


ONE = (
    "The ministers of seven nations met on Thursday evening to discuss grain, tin and the price of"
    " natural rubber. Nobody agreed with the proposal, and all of them went home before winter."
)
OTHER = (
    "Buy cheap watches now!!! Our shop has the lowest offers on earth, delivered by night; click"
    " the link in the profile and win a telephone, a journey to the islands and forty free spins."
)
LINKS = 30


def between(number: int) -> str:
    """Return one of the texts that lead from one to another, from 0 to `LINKS`."""
    cut = len(OTHER) * number // LINKS
    return OTHER[:cut] + ONE[cut:]


class Server:
    """A server about an in-process log, and what is fed to it."""

    def __init__(self) -> None:
        self.fed: SimpleQueue[bytes] = SimpleQueue()
        self.port = 0

    def later(self) -> Iterator[bytes | None]:
        while True:
            try:
                yield self.fed.get_nowait()
            except Empty:
                yield None

    def feed(self, ident: str, text: str) -> dict[str, Any]:
        """Feed a document, and return how it was published."""
        self.fed.put(json.dumps({"id": ident, "text": text}).encode())
        return self.published(ident, 1)[0]

    def published(self, ident: str, times: int) -> list[dict[str, Any]]:
        """Return how a document was published, the latest first, once it was so often."""
        found: list[dict[str, Any]] = []

        def there() -> bool:
            status, said = self.get(f"/v1/documents?id={quote(ident)}")
            assert status == 200
            found[:] = said["documents"]
            return len(found) >= times

        wait_until(there, 60, f"{ident} to be published")
        return found

    def republished(self, before: dict[str, Any]) -> dict[str, Any]:
        """Return how a document was published after it had been forgotten."""
        found: list[dict[str, Any]] = []

        def there() -> bool:
            found[:] = self.get(f"/v1/documents?id={quote(before['id'])}")[1]["documents"]
            return any(one["sequence"] > before["sequence"] for one in found)

        wait_until(there, 60, f"{before['id']} to be published anew")
        return found[0]

    def texts(self, document: dict[str, Any]) -> dict[str, Reply]:
        """Return every answer that could have the text of a document."""
        sequence = document["sequence"]
        pair = {"left": {"sequence": sequence}, "right": {"text": "another text, to compare"}}
        return {
            "by number": self.get(f"/v1/documents?sequence={sequence}"),
            "by id": self.get(f"/v1/documents?id={quote(document['id'])}"),
            "by header": self.get("/v1/documents?header=neardup-verdict"),
            "compared": self._asked("POST", "/v1/comparison", json.dumps(pair), {}, None),
            "latest": self.get("/v1/duplicates?limit=100"),
            "rejected": self.get("/v1/flow"),
            "corrected": self.get("/v1/corrections"),
        }

    def query(self, text: str, token: str | None = None) -> dict[str, Any]:
        """Return what a text would get."""
        _, said = self._asked("POST", "/v1/query", json.dumps({"text": text}), {}, token)
        found: dict[str, Any] = said["answers"][0]
        return found

    def get(self, path: str, token: str | None = None) -> Reply:
        return self._asked("GET", path, None, {}, token)

    def correct(self, asked: object, token: str | None = None, **headers: str) -> Reply:
        body = json.dumps(asked)
        return self._asked("POST", "/v1/corrections", body, headers, token)

    def _asked(
        self, method: str, path: str, body: str | None, headers: dict[str, str], token: str | None
    ) -> Reply:
        given = {"Content-Type": "application/json", **headers}
        if token is not None:
            given["Authorization"] = f"Bearer {token}"
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def listed(self, count: int) -> list[dict[str, Any]]:
        """Return the corrections once there are so many."""
        found: list[dict[str, Any]] = []

        def there() -> bool:
            found[:] = self.get("/v1/corrections")[1]["corrections"]
            return len(found) == count

        wait_until(there, 60, f"{count} corrections")
        return found


@contextmanager
def served(**sections: Any) -> Iterator[Server]:  # noqa: ANN401 -- sections of settings
    settings = Settings.model_validate(
        {
            "app": "correct",
            "index": {"cache_bytes": 1 << 20, "shards": 2},
            "corrections": {"by": "Maria"},
            **sections,
            "serve": {"port": 0, **sections.get("serve", {})},
        }
    )
    one = Server()
    values = [json.dumps({"id": f"s{number}", "text": SONG}).encode() for number in range(2)]
    with page_of(settings, values, one.later(), Event()) as address:
        one.port = urlsplit(address).port or 0
        yield one
