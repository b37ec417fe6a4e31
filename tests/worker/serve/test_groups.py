"""Groups over HTTP: clients on real sockets, shards that follow an in-process log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.worker.serve.group_server import HOUR, TEXTS, TIME, Server, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("groups")) as made:
        assert made.get("/v1/groups")[0] == 503
        made.begin()
        yield made


def listed(server: Server, query: str = "") -> list[str]:
    status, found = server.get("/v1/groups" + query)
    assert status == 200, found
    return [one["representative"]["id"] for one in found["groups"]]


def test_groups_are_listed_by_size(server: Server) -> None:
    status, found = server.get("/v1/groups")
    assert status == 200
    assert (found["count"], found["next"], found["begun"]) == (3, None, 0)
    assert found["position"] > 0
    first = found["groups"][0]
    assert first == {
        "id": "0",
        "size": 5,
        "first": "2023-10-04T06:13:20.000Z",
        "last": "2023-10-04T08:13:20.000Z",
        "growth": 5,  # There is no now yet.
        "representative": {"id": "fox0", "time": "2023-10-04T06:13:20.000Z", "sequence": 0},
    }
    assert [one["size"] for one in found["groups"]] == [5, 3, 2]


def test_groups_are_listed_by_the_latest_member(server: Server) -> None:
    assert listed(server, "?sort=newest") == ["odd/id ü0", "song0", "fox0"]
    assert listed(server, "?sort=growth") == ["fox0", "song0", "odd/id ü0"]


def test_small_groups_are_left_out(server: Server) -> None:
    assert listed(server, "?min=3") == ["fox0", "song0"]
    assert listed(server, "?min=3&sort=newest") == ["song0", "fox0"]


def test_groups_come_by_page(server: Server) -> None:
    pages = []
    query = "?limit=2"
    while query:
        found = server.get("/v1/groups" + query)[1]
        pages.append([one["size"] for one in found["groups"]])
        query = f"?limit=2&cursor={found['next']}" if found["next"] else ""
    assert pages == [[5, 3], [2]]


def test_a_group_has_its_members_by_page(server: Server) -> None:
    found = server.get("/v1/groups/0?limit=3")[1]
    assert [one["id"] for one in found["members"]] == ["fox0", "fox1", "fox2"]
    assert found["size"] == 5
    rest = server.get(f"/v1/groups/0?limit=3&cursor={found['next']}")[1]
    assert [one["id"] for one in rest["members"]] == ["fox3", "fox4"]
    assert rest["next"] is None
    assert rest["members"][1]["time"] == "2023-10-04T08:13:20.000Z"


def test_a_document_leads_to_its_group(server: Server) -> None:
    status, found = server.get(f"/v1/documents/{quote('odd/id ü1', safe='')}/group")
    assert status == 200
    assert (found["size"], found["representative"]["id"]) == (2, "odd/id ü0")
    member = server.get("/v1/groups/0")[1]["members"][2]["sequence"]
    assert server.get(f"/v1/groups/{member}")[1]["id"] == "0"  # A member's number leads there, too.


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/groups/77777777777", "'77777777777' is no group"),
        ("/v1/groups/fox0", "'fox0' is no group"),
        ("/v1/groups/fox%2F0", "'fox/0' is no group"),
        ("/v1/groups/" + "9" * 40, "is no group"),
        ("/v1/documents/nobody/group", "'nobody' is in no group"),
        ("/v1/documents//group", "'' is in no group"),
        ("/v1/documents/%ff%00/group", "is in no group"),
    ],
)
def test_what_there_is_not_is_not_found(server: Server, path: str, said: str) -> None:
    status, found = server.get(path)
    assert status == 404
    assert said in found["error"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/groups?sort=age", "sort: got 'age', takes size, growth, newest"),
        ("/v1/groups?limit=0", "limit: got '0', takes 1 to 1000"),
        ("/v1/groups?limit=1001", "limit: got '1001', takes 1 to 1000"),
        ("/v1/groups?limit=%D9%A3", "limit: got '٣', takes 1 to 1000"),
        ("/v1/groups?limit=" + "1" * 5_000, "takes 1 to 1000"),
        ("/v1/groups?min=-1", "min: got '-1', takes 1 or more"),
        ("/v1/groups?since=24", "since: got '24', takes a length such as 24h"),
        ("/v1/groups?cursor=xyz", "cursor: got 'xyz', takes the `next` of an answer"),
        ("/v1/groups?cursor=%FF", "takes the `next` of an answer"),
        ("/v1/groups?size=3", "size: is no parameter"),
        ("/v1/groups/0?cursor=AAAA", "cursor: got 'AAAA'"),
        ("/v1/documents/fox0/group?limit=3", "limit: is no parameter; the request takes none"),
    ],
)
def test_a_wrong_parameter_is_named(server: Server, path: str, said: str) -> None:
    status, found = server.get(path)
    assert status == 400
    assert said in found["error"]


def test_pages_of_others_may_not_ask(server: Server) -> None:
    assert server.get("/v1/groups", Origin="http://evil.example")[0] == 403
    assert server.get("/v1/groups", Host="evil.example")[0] == 421


def test_groups_that_have_rested_for_long_are_left_out(tmp_path: Path) -> None:
    with ExitStack() as stack:
        made = Server(tmp_path, stack)

        def judge(name: str, number: int, text: str, hours: int) -> None:
            for count in range(number):
                time = TIME + hours * HOUR
                one = {"id": f"{name}{count}", "text": text.replace("#", str(count)), "t": time}
                made.site.judge(one)

        judge("first", 32, "# " * 20, 0)
        judge("fox", 3, TEXTS["fox"], 0)
        judge("later", 20, "#! " * 20, 100)
        judge("song", 2, TEXTS["song"], 100)
        made.begin()
        status, found = made.get("/v1/groups?sort=growth")
        assert (status, found["now"]) == (200, "2023-10-08T10:13:20.000Z")
        assert [one["growth"] for one in found["groups"]] == [2, 0]
        assert listed(made) == ["fox0", "song0"]
        for sort in ("size", "growth", "newest"):
            assert listed(made, f"?since=24h&sort={sort}") == ["song0"]


def test_a_server_that_keeps_no_groups_says_so(tmp_path: Path) -> None:
    with serving(tmp_path, serve={"groups": False}) as made:
        made.begin()
        status, found = made.get("/v1/groups")
        assert (status, found["error"]) == (404, "this server keeps no groups (serve.groups)")
