"""What `neardup allow --list` and `neardup forget --group` and `--text` ask a server."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator

import pytest

from tests.worker.cli.strangers import listening
from tests.worker.serve.correction_server import SONG, Server, served
from worker.cli.allow import show_corrections
from worker.cli.client import Client
from worker.cli.errors import CommandError
from worker.cli.forget import confirmed
from worker.corrections.state import erasure_name

ESCAPE = "\x1b[31m"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with served() as one:
        yield one


@pytest.fixture
def asked(server: Server) -> Client:
    return Client(f"http://127.0.0.1:{server.port}", "correct")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_list_says_who_when_and_why(
    server: Server, asked: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    show_corrections(asked, as_json=False)
    assert capsys.readouterr().out == "nothing is corrected\n"
    footer = "This message is for the addressee alone, and confidential to all the others."
    allowed = {"of": {"text": f"{footer} {ESCAPE}"}, "exact": True, "why": "legal"}
    sent = server.correct({"allow": allowed})[1]
    server.listed(1)
    server.feed("gone", "A text that its author has asked us to forget, and that nobody else has.")
    server.correct({"forget": {"id": "gone", "why": "asked for"}})
    server.listed(2)
    named = erasure_name(b"gone").decode()
    show_corrections(asked, as_json=False)
    said = capsys.readouterr().out
    for part in (sent["id"] + ", exactly", footer, "Maria", "legal", named, "asked for"):
        assert part in said
    assert ESCAPE not in said
    assert re.search(r"\d\d [A-Z][a-z]{2} \d\d:\d\d", said)
    show_corrections(asked, as_json=True)
    first, second = json.loads(capsys.readouterr().out)
    assert (first["kind"], second["kind"]) == ("forget", "allow")


@pytest.mark.parametrize("by", ["group", "text"])
def test_what_would_be_forgotten_is_said_and_confirmed(
    asked: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    group = asked.get("/v1/documents/s0/group", {}, dict)["id"] if by == "group" else None
    text = SONG if by == "text" else None
    found = ["s0", "s1"] if by == "group" else ["s0"]
    assert confirmed(asked, group, text, yes=True) == found
    said = capsys.readouterr().err
    assert said.startswith(f"{len(found)} document")
    assert said.splitlines()[0].endswith(f": {', '.join(found)}")
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(CommandError, match="nothing was sent; --yes forgets them"):
        confirmed(asked, group, text, yes=False)
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert confirmed(asked, group, text, yes=False) == found
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    with pytest.raises(CommandError, match="nothing was sent"):
        confirmed(asked, group, text, yes=False)


def test_a_chain_is_shown_before_its_documents_are_forgotten(
    capsys: pytest.CaptureFixture[str],
) -> None:
    member = {"time": None, "sequence": 1}
    ids = [f"d{number}" for number in range(5)]
    members = [{"id": ident, **member} for ident in ids]
    group = {"id": "7", "size": 5, "first": None, "last": None, "growth": 0,
             "representative": members[0], "members": members, "next": None}  # fmt: skip
    clusters = [
        {"size": 4, "members": [{"id": one, **member} for one in ("d0", "d\x1b", "d2")]},
        {"size": 1, "members": members[4:]},
    ]
    outline = {"id": "7", "size": 5, "compared": 4, "least": 0.1234, "count": 3,
               "clusters": clusters}  # fmt: skip
    with listening("correct") as one:
        one.bodies["/v1/groups/7"] = json.dumps(group).encode()
        one.bodies["/v1/groups/7/outline"] = json.dumps(outline).encode()
        assert confirmed(Client(f"127.0.0.1:{one.port}", "correct"), "7", None, yes=True) == ids
    assert capsys.readouterr().err.splitlines() == [
        "5 documents of group 7: d0, d1, d2, d3, d4",
        "The least similarity of the 4 compared to the representative is 0.12",
        "It is a chain of 3 clusters of documents that match the first one of each:",
        r"  4 documents: d0, d\x1b, d2, …",
        "  1 document: d4",
        "  and 1 smaller one",
    ]


def test_if_there_is_nothing_it_says_so(asked: Client) -> None:
    with pytest.raises(CommandError, match="there is no document near to this text"):
        confirmed(asked, None, "Something else, of which there is no copy so far.", yes=True)
    with pytest.raises(CommandError, match="no group"):
        confirmed(asked, "987654321", None, yes=True)
    with pytest.raises(CommandError, match="nothing answers there"):
        confirmed(Client("http://127.0.0.1:9", "correct"), "1", None, yes=True)
