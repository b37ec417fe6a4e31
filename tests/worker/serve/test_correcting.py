"""Corrections over HTTP, about an application on the in-process log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from localkafka.broker import wait_until
from tests.worker.serve.correction_server import SONG, Server, served
from worker.corrections.state import erasure_name
from worker.serve.answers import coarse
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
    answer = server.query(SONG)
    assert (answer["verdict"], answer["allowed_by"]) == ("unique", sent["id"])
    assert answer["matches"], "it says what would have matched"
    assert "allowed_by" not in server.query("Something else entirely, of which there is no copy.")

    assert server.correct({"withdraw": {"id": sent["id"]}})[0] == 200
    assert server.listed(0) == []
    assert server.feed("s4", SONG)["verdict"] == "duplicate"
    assert server.query(SONG)["verdict"] == "duplicate"


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
    again = server.republished(first)
    assert again["verdict"] == "duplicate"
    assert [match["id"] for match in again["matches"]] == ["next"]


def test_without_a_noted_place_a_document_is_found_by_its_id(server: Server) -> None:
    first = server.feed("alone", "A text of its own that nobody else would write about this day.")
    assert server.correct({"forget": {"id": "alone", "sequence": 1 << 40}})[0] == 200
    assert server.listed(1)[0]["source"] == ""
    assert server.correct({"restore": {"id": "alone"}}) == (200, ANY)
    assert server.republished(first)["verdict"] == "unique"
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


NOTHING = {
    "corrections": [],
    "count": 0,
    "allowances": 0,
    "most_allowances": 1_000,
    "next": None,
}


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
    assert uncorrected.get("/v1/corrections")[1] == NOTHING


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"withdraw": {"id": "allow-0"}}, "no text is allowed as 'allow-0'"),
        ({"forget": {"id": "nobody"}}, "no document with the id 'nobody'"),
        ({"forget": {"id": "nobody", "sequence": 1}}, "no document with the id 'nobody'"),
        ({"restore": {"id": "nobody"}}, "no document with this id"),
    ],
)
def test_nothing_is_sent_about_what_never_was(
    uncorrected: Server, asked: object, reason: str
) -> None:
    status, said = uncorrected.correct(asked)
    assert status == 404
    assert reason in said["error"]
    assert uncorrected.get("/v1/corrections")[1] == NOTHING


PRIVATE = "Jane Roe of 12 Elm Street wrote this about her illness, and nobody else should read it."


@pytest.mark.parametrize("groups", [True, False])
def test_nothing_shows_the_text_of_a_forgotten_document(*, groups: bool) -> None:
    with served(serve={"groups": groups}) as server:
        server.feed("other", PRIVATE + " Copied.")
        jane = server.feed("jane", PRIVATE)
        allow = {"allow": {"of": {"sequence": jane["sequence"]}}}
        assert server.correct(allow)[0] == 200
        server.listed(1)
        shown = {name for name, (_, said) in server.texts(jane).items() if '"jane"' in dumped(said)}
        assert shown >= {"by number", "by id", "by header", "compared", "latest", "corrected"}
        other = server.published("other", 1)[0]
        for one in (other, jane):
            forget = {"id": one["id"], "sequence": one["sequence"]}
            assert server.correct({"forget": forget})[0] == 200
        server.listed(3)
        for name, (status, said) in server.texts(jane).items():
            assert "Jane Roe" not in dumped(said), name
            assert status == (404 if name == "by number" else 200)
        assert server.correct(allow)[0] == 404
        assert server.correct({"restore": {"id": "jane"}})[0] == 200
        again = server.republished(jane)
        assert server.get(f"/v1/documents?sequence={again['sequence']}")[0] == 200


def dumped(said: object) -> str:
    return json.dumps(said, ensure_ascii=False)


def test_no_more_texts_are_allowed_than_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.serve.correcting.MOST_ALLOWANCES", 2)
    with served() as server:

        def allow(text: str) -> tuple[int, dict[str, Any]]:
            return server.correct({"allow": {"of": {"text": text}}})

        ids = [allow(f"{SONG} {number}")[1]["id"] for number in range(2)]
        status, said = allow(SONG)
        assert status == 409
        assert "2 texts are allowed" in said["error"]
        assert allow(f"{SONG} 0")[0] == 200, "it replaces its own"
        assert server.correct({"withdraw": {"id": ids[0]}})[0] == 200, "though it may not hold yet"
        server.listed(1)
        assert allow(SONG)[0] == 200


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
        exact, less = (
            server.query(SONG + " Yes.", token)["matches"][0]["similarity"]
            for token in (CORRECTING, READING)
        )
        assert less == round(exact, 2)
        assert less != exact


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ('{"similarity":0.8349,"error":0.0317}', '{"similarity":0.83,"error":0.03}'),
        ('{"similarity":1.0,"containment":0.9051}', '{"similarity":1,"containment":0.91}'),
        ('{"estimate":9.5e-3,"similarity":null}', '{"estimate":0.01,"similarity":null}'),
        ('{"least":0.0275,"threshold":0.8125}', '{"least":0.03,"threshold":0.8125}'),
        (r'{"text":"\"similarity\":0.8349"}', r'{"text":"\"similarity\":0.8349"}'),
        ('{"error":"similarity: got 0.12345"}', '{"error":"similarity: got 0.12345"}'),
    ],
)
def test_similarities_have_two_decimals_for_readers(answer: str, shown: str) -> None:
    assert coarse(answer.encode()).decode() == shown


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
