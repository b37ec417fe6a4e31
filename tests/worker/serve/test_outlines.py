"""Of what a group consists: one cluster, or a chain of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise

import pytest

from localkafka.broker import wait_until
from tests.worker.serve.correction_server import LINKS, Server, between, served


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with served() as one:
        for number in range(LINKS + 1):
            one.fed.put(json.dumps({"id": f"link{number}", "text": between(number)}).encode())
        one.feed("last", between(LINKS) + " Now!")
        yield one


def group_of(server: Server, ident: str) -> str:
    found = ""

    def there() -> bool:
        nonlocal found
        status, said = server.get(f"/v1/documents/{ident}/group")
        found = said.get("id", "")
        return status == 200

    wait_until(there, 60, f"{ident} to be in a group")
    return found


def test_a_campaign_is_one_cluster(server: Server) -> None:
    status, found = server.get(f"/v1/groups/{group_of(server, 's1')}/outline")
    assert status == 200
    assert (found["size"], found["compared"], found["count"], found["least"]) == (2, 2, 1, 1.0)
    assert [one["id"] for one in found["clusters"][0]["members"]] == ["s0", "s1"]


def test_a_chain_is_several_clusters_and_its_ends_are_not_alike(server: Server) -> None:
    group = group_of(server, "last")
    assert group == group_of(server, "link0")
    status, found = server.get(f"/v1/groups/{group}/outline")
    assert status == 200
    assert found["size"] == found["compared"] == LINKS + 2
    assert found["count"] > 2
    assert found["least"] < 0.1
    sizes = [one["size"] for one in found["clusters"]]
    assert all(one >= other for one, other in pairwise(sizes))
    assert sum(sizes) == LINKS + 2
    assert all(1 <= len(one["members"]) <= 3 for one in found["clusters"])
    # By the number of any member it is the same group.
    member = found["clusters"][0]["members"][0]["sequence"]
    assert server.get(f"/v1/groups/{member}/outline")[1]["id"] == group


@pytest.mark.parametrize("ident", ["999999999", "x", "-1", "9" * 30, "%e2%80%ae1"])
def test_what_is_no_group_has_none(server: Server, ident: str) -> None:
    status, said = server.get(f"/v1/groups/{ident}/outline")
    assert status == 404
    assert "is no group" in said["error"]
