"""Corrections over HTTP, about an application on the in-process log."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from localkafka.broker import wait_until
from tests.worker.queries.correction_server import SONG, Server, served
from worker.stages.corrections import erasure_name
from worker.wire.corrections import MOST_CHARACTERS

READING, CORRECTING = "r" * 40, "c" * 40


@pytest.fixture
def server() -> Iterator[Server]:
    with served() as one:
        yield one


@pytest.fixture(scope="module")
def uncorrected() -> Iterator[Server]:
    """A server that refuses whatever it is asked for."""
    with served() as one:
        yield one


def query(server: Server, text: str) -> dict[str, Any]:
    body = json.dumps({"text": text})
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request("POST", "/v1/query", body, {"Content-Type": "application/json"})
        found = json.loads(connection.getresponse().read())["answers"][0]
    assert isinstance(found, dict)
    return found


def header(document: dict[str, Any], name: str) -> str | None:
    return dict(document["headers"]).get(name)


def test_an_allowed_text_is_unique_until_that_is_withdrawn(server: Server) -> None:
    assert server.feed("s2", SONG)["verdict"] == "duplicate"
    status, sent = server.correct({"allow": {"of": {"text": SONG}, "why": "a song"}})
    assert status == 200
    assert sent["id"].startswith("allow-")
    assert sent["place"].startswith("correct.documents-")
    (made,) = server.listed(1)
    assert (made["kind"], made["id"], made["by"], made["why"]) == (
        "allow", sent["id"], "Maria", "a song",
    )  # fmt: skip
    assert (made["text"], made["until"], made["exact"]) == (SONG, None, False)
    allowed = server.feed("s3", SONG + " Yes.")
    assert allowed["verdict"] == "unique"
    assert header(allowed, "neardup-allowed-by") == sent["id"]
    answer = query(server, SONG)
    assert (answer["verdict"], answer["allowed_by"]) == ("unique", sent["id"])
    assert answer["matches"], "it says what would have matched"
    assert "allowed_by" not in query(server, "Something else entirely, of which there is no copy.")

    assert server.correct({"withdraw": {"id": sent["id"]}})[0] == 200
    assert server.listed(0) == []
    assert server.feed("s4", SONG)["verdict"] == "duplicate"
    assert query(server, SONG)["verdict"] == "duplicate"


def test_the_text_of_a_document_is_allowed_exactly(server: Server) -> None:
    number = server.published("s0", 1)[0]["sequence"]
    status, sent = server.correct({"allow": {"of": {"sequence": number}, "exact": True}})
    assert (status, sent["id"]) == (200, "s0")
    (made,) = server.listed(1)
    assert (made["exact"], made["text"]) == (True, SONG)
    assert server.feed("same", SONG.upper())["verdict"] == "unique"
    assert server.feed("near", SONG + " Yes.")["verdict"] == "duplicate"
    again = {"allow": {"of": {"sequence": number}}}
    assert server.correct(again)[0] == 200
    wait_until(lambda: not server.listed(1)[0]["exact"], 60, "the later one to replace it")


def test_a_document_is_forgotten_and_sent_again(server: Server) -> None:
    first = server.published("s0", 1)[0]
    asked = {"id": "s0", "sequence": first["sequence"], "why": "not ours"}
    assert server.correct({"forget": asked})[0] == 200
    (made,) = server.listed(1)
    assert (made["kind"], made["source"]) == ("forget", first["source"])
    assert made["id"] == erasure_name(b"s0").decode()
    assert made["why"] == "not ours"
    assert server.feed("next", SONG)["verdict"] == "unique", "it stands for s0, and s1 matched that"
    assert server.correct({"restore": {"id": made["id"]}})[0] == 200
    again = server.published("s0", 2)[0]
    assert again["verdict"] == "duplicate"
    assert [match["id"] for match in again["matches"]] == ["next"]


def test_without_a_noted_place_a_document_is_found_by_its_id(server: Server) -> None:
    server.feed("alone", "A text of its own that nobody else would write about on this day.")
    assert server.correct({"forget": {"id": "alone", "sequence": 1 << 40}})[0] == 200
    assert server.listed(1)[0]["source"] == ""
    assert server.correct({"restore": {"id": "alone"}}) == (200, ANY)
    assert server.published("alone", 2)[0]["verdict"] == "unique"
    status, said = server.correct({"restore": {"id": "nobody"}})
    assert status == 404
    assert "no document with this id" in said["error"]


def test_the_list_has_pages(server: Server) -> None:
    for number in range(3):
        text = f"{SONG} {number}"
        assert server.correct({"allow": {"of": {"text": text}, "why": str(number)}})[0] == 200
        server.listed(number + 1)
    pages, cursor = [], ""
    for _ in range(3):
        said = server.get(f"/v1/corrections?limit=1{cursor}")[1]
        pages += said["corrections"]
        cursor = f"&cursor={said['next']}"
    assert said["next"] is None
    assert {one["why"] for one in pages} == {"0", "1", "2"}


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({}, "takes one of allow, withdraw, forget, restore"),
        ({"withdraw": {"id": "a"}, "restore": {"id": "a"}}, "takes one of"),
        ({"allow": {"of": {}}}, "of: takes one of text, sequence"),
        ({"allow": {"of": {"text": "x", "sequence": 1}}}, "of: takes one of"),
        ({"allow": {"of": {"text": " \n"}}}, "the text is empty"),
        ({"allow": {"of": {"text": "\u200b\u200b"}}}, "nothing is left of the text"),
        ({"allow": {"of": {"text": "x" * (MOST_CHARACTERS + 1)}}}, "50,001 characters"),
        ({"allow": {"of": {"text": "x"}, "why": "x" * 201}}, "why"),
        ({"withdraw": {"id": ""}}, "id"),
        ({"forget": {"id": "i" * 2_000}}, "limits.id_bytes"),
        ({"delete": {"id": "a"}}, "unknown field"),
    ],
)
def test_what_cannot_be_corrected_is_refused(
    uncorrected: Server, asked: object, reason: str
) -> None:
    status, said = uncorrected.correct(asked)
    assert status == 400
    assert reason in said["error"]
    assert uncorrected.get("/v1/corrections")[1] == {"corrections": [], "count": 0, "next": None}


def test_a_document_that_is_gone_is_not_found(uncorrected: Server) -> None:
    status, said = uncorrected.correct({"allow": {"of": {"sequence": 1 << 60}}})
    assert status == 404
    assert said["error"]


def test_only_who_may_correct_does(tmp_path: Path) -> None:
    files = {}
    for name, token in (("token_file", READING), ("correcting_token_file", CORRECTING)):
        files[name] = tmp_path / name
        files[name].write_text(token)
    asked = {"allow": {"of": {"text": SONG}}}
    with served(serve=files) as server:
        assert server.correct(asked)[0] == 401
        status, said = server.correct(asked, READING)
        assert status == 403
        assert "serve.correcting_token_file" in said["error"]
        assert server.get("/v1/corrections", READING)[1]["count"] == 0
        may = {"may_read": True, "may_correct": False}
        assert server.get("/v1/session", READING) == (200, may)
        assert server.get("/v1/session", CORRECTING) == (200, {**may, "may_correct": True})
        nothing = {"may_read": False, "may_correct": False}
        assert server.get("/v1/session") == (200, nothing)
        assert server.correct(asked, CORRECTING)[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
def test_pages_of_others_cannot_correct(
    uncorrected: Server, headers: dict[str, str], status: int
) -> None:
    assert uncorrected.correct({"allow": {"of": {"text": SONG}}}, **headers)[0] == status
    assert uncorrected.get("/v1/corrections")[1]["count"] == 0


def test_with_a_window_it_says_until_when() -> None:
    with served(index={"cache_bytes": 1 << 20, "shards": 2, "window": "30d"}) as server:
        assert server.correct({"allow": {"of": {"text": SONG}}})[0] == 200
        (made,) = server.listed(1)
        assert made["until"] - made["at"] == pytest.approx(30 * 86_400_000, abs=3_600_000)
