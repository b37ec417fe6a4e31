"""The client of a registry: what it asks for, and what follows from each answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from localkafka.ports import free_ports
from tests.support.registry_server import RegistryServer, registry_server
from tests.worker.formats.registry.parts import GUID, document_file, serialized
from worker.bus import Away, Denied
from worker.formats.registry.client import Fetched, Registry, RegistryOptions
from worker.formats.registry.wire_format import Ident
from worker.formats.unreadable import Unreadable

UNKNOWN = b'{"error_code": 40403, "message": "Schema not found"}'


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with registry_server() as made:
        yield made


def fetch(server: RegistryServer, ident: Ident, **options: Any) -> Fetched:  # noqa: ANN401 -- of each option's type
    return fetched(Registry(RegistryOptions(server.url, **options)), ident)


def fetched(registry: Registry, ident: Ident) -> Fetched:
    (found,) = registry.fetch([ident])
    if isinstance(found, Exception):
        raise found
    return found


def test_schemas_are_found_by_id_and_by_guid(server: RegistryServer) -> None:
    server.put(7, "AVRO", '"string"')
    server.put(GUID, "JSON", "{}")
    assert fetch(server, 7) == Fetched("AVRO", '"string"', [])
    assert fetch(server, GUID) == Fetched("JSON", "{}", [])
    assert server.authorizations == [None, None]


def test_protobuf_is_asked_for_as_a_descriptor_with_its_imports(server: RegistryServer) -> None:
    text = serialized(document_file(("text", 9)))
    server.put(7, "PROTOBUF", text, ("a.proto", "a-subject", text))
    assert fetch(server, 7) == Fetched("PROTOBUF", text, [("a.proto", text)])
    assert [one for one in server.asked if "format=serialized" in one] == server.asked[1:]


def test_the_password_is_sent_and_never_said(server: RegistryServer) -> None:
    server.failure = 401, b"{}"
    with pytest.raises(Denied, match=r"answered 401 .*: see registry\.credentials_file") as raised:
        fetch(server, 7, credentials="user:secret")
    assert server.authorizations == ["Basic dXNlcjpzZWNyZXQ="]
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("ident", "status", "body", "error", "why"),
    [
        (7, 404, UNKNOWN, Unreadable, "doesn't have schema 7"),
        (7, 422, b'{"error_code": 42201, "message": "no"}', Unreadable, "doesn't have schema 7"),
        (GUID, 404, b"", Unreadable, f"doesn't have the schema with GUID {GUID}"),
        (7, 404, b"<html>nginx</html>", Denied, "see registry.url"),
        (7, 404, b"", Denied, "see registry.url"),
        (7, 403, b"{}", Denied, "answered 403"),
        (7, 503, b"{}", Away, "answered 503"),
        (7, 429, b"{}", Away, "answered 429"),
        (7, 302, b"", Away, "answered 302"),
        (7, 200, b"<html>proxy</html>", Away, "is away"),
        (7, 200, b"{}", Unreadable, "no schema"),
        (7, 200, b'{"schema": 7}', Unreadable, "no schema"),
        (7, 200, b"[" * 100_000, Away, "is away"),
        (7, 200, b"[]", Away, "is away"),
        (7, 200, b"", Away, "is away"),
    ],
)
def test_what_follows_from_each_answer(
    server: RegistryServer,
    ident: int | str,
    status: int,
    body: bytes,
    error: type[Exception],
    why: str,
) -> None:
    server.failure = status, body
    with pytest.raises(error, match=why):
        fetch(server, ident)


def test_nobody_there_is_away() -> None:
    options = RegistryOptions(f"http://127.0.0.1:{next(free_ports(1))}")
    with pytest.raises(Away, match=r"the schema registry http://127\.0\.0\.1:\d+ is away"):
        fetched(Registry(options), 7)
