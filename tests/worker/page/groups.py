"""Groups as the server has them, for a page whose server keeps none."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Route

__all__ = ["MEMBERS", "groups"]

MEMBERS = 130
_START = 1_700_000_000_000


def groups(sequence: int) -> Callable[[Route], None]:
    """Return what answers about one group; all its members are the document with a number."""
    whole = {
        "id": "g/1",
        "size": MEMBERS,
        "first": _START,
        "last": _START + 60_000 * MEMBERS,
        "growth": 60.0,
        "representative": {"id": "<b>first</b>", "sequence": sequence},
    }

    def answer(route: Route) -> None:
        asked = urlsplit(route.request.url)
        given = parse_qs(asked.query)
        if asked.path == "/v1/groups":
            few = int(given["min"][0]) > MEMBERS
            said: dict[str, object] = {"groups": [] if few else [whole], "next": None}
        else:
            begin, limit = int(given.get("cursor", ["0"])[0]), int(given["limit"][0])
            members = [
                {"id": f"m{n}", "time": _START + 60_000 * n, "sequence": sequence + (n > 0)}
                for n in range(begin, min(begin + limit, MEMBERS))
            ]
            end = begin + len(members)
            said = {**whole, "members": members, "next": str(end) if end < MEMBERS else None}
        route.fulfill(content_type="application/json", body=json.dumps(said))

    return answer
