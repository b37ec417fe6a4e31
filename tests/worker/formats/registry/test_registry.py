"""The client of a registry: what it asks for, and what follows from each answer."""

from __future__ import annotations

import json
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler
from itertools import repeat
from pathlib import Path
from ssl import CERT_REQUIRED, PROTOCOL_TLS_SERVER, SSLContext
from typing import Any

import pytest
from psutil import Process

from localkafka.ports import free_ports
from tests.support.registry_server import RegistryServer, registry_server
from tests.worker.formats.registry.parts import GUID, document_file, serialized
from worker.bus import Away, Denied
from worker.formats.registry.client import Fetched, Registry
from worker.formats.registry.exchange import RegistryOptions
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
        (7, 200, b'{"schema": "\\ud800"}', Unreadable, "can't be read"),
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


def chunked(handler: BaseHTTPRequestHandler, parts: Iterable[bytes], **headers: str) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    for part in parts:
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
    handler.wfile.write(b"0\r\n\r\n")


def endless(handler: BaseHTTPRequestHandler) -> None:
    chunked(handler, repeat(b" " * 65_536))


def large(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 404 No\r\nContent-Length: 9999999999\r\n\r\n")
    for _ in range(10_000):
        handler.wfile.write(b" " * 65_536)


def bomb(handler: BaseHTTPRequestHandler) -> None:
    packer = zlib.compressobj(wbits=31)
    body = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(100)) + packer.flush()
    chunked(handler, [body], Content_Encoding="gzip")


def dripping(handler: BaseHTTPRequestHandler) -> None:
    pause = threading.Event()
    chunked(handler, (b" " for _ in range(100) if not pause.wait(0.1)))


def dripping_headers(handler: BaseHTTPRequestHandler) -> None:
    pause = threading.Event()
    for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100:
        handler.wfile.write(bytes((byte,)))
        pause.wait(0.1)


def cookies(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 302 No\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize(
    ("writes", "error", "why"),
    [
        (endless, Unreadable, "no-schema: schema 7 can't be used: it takes more than 4 MiB"),
        (large, Unreadable, "no-schema: schema 7 can't be used: it takes more than 4 MiB"),
        (bomb, Unreadable, "no-schema: schema 7 can't be used: it takes more than 4 MiB"),
        (dripping, Away, "no answer within 0.5 s"),
        (dripping_headers, Away, "no answer within 0.5 s"),
        (cookies, Away, "answered 302"),
    ],
)
def test_an_answer_has_an_end(
    server: RegistryServer,
    writes: Callable[[BaseHTTPRequestHandler], None],
    error: type[Exception],
    why: str,
) -> None:
    server.writes = writes
    began = time.monotonic()
    before = Process().memory_info().rss
    seconds = 0.5 if error is Away else 15
    with pytest.raises(error, match=why):
        fetch(server, 7, timeout_seconds=seconds)
    assert time.monotonic() - began < 20
    assert Process().memory_info().rss - before < 64 << 20


def test_a_compressed_answer_is_read(server: RegistryServer) -> None:
    body = zlib.compress(b'{"schema": "\\"int\\""}', wbits=31)
    server.writes = lambda handler: chunked(handler, [body], Content_Encoding="gzip")
    assert fetch(server, 7).text == '"int"'


def referring(*references: tuple[str, str]) -> dict[str, object]:
    listed = [{"name": name, "subject": to, "version": 1} for name, to in references]
    return {"schema": '"string"', "references": listed}


def endless_chain(path: str) -> dict[str, object]:
    number = int(path.split("/")[2]) + 1 if "subjects" in path else 0
    return referring((f"n{number}", str(number)))


HOSTILE: list[tuple[Callable[[str], dict[str, object] | None], int, str]] = [
    (endless_chain, 66, "more than 64 references within one another"),
    (lambda _: referring(*((f"n{n}", "a") for n in range(1_500))), 1, "more than 256 references"),
    (lambda _: referring(("a", "a"), ("b", "b")), 3, "what it refers to refers to itself"),
    (lambda _: referring(("a", "..")), 1, "it refers to '..', which is no subject"),
    (
        lambda path: referring(("a", "a" * 300)) if "ids" in path else None,
        2,
        r"doesn't give \(404\)",
    ),
    (lambda path: {**endless_chain(path), "schema": "x" * (1 << 20)}, 5, "4 MiB"),
    (lambda _: {"schema": "x", "references": [{"name": 1}]}, 1, "is no schema"),
]


@pytest.mark.parametrize(("found", "most", "why"), HOSTILE)
def test_what_a_schema_refers_to_has_an_end(
    server: RegistryServer,
    found: Callable[[str], dict[str, object] | None],
    most: int,
    why: str,
) -> None:
    server.found = found
    with pytest.raises(Unreadable, match=f"no-schema: .*{why}") as raised:
        fetch(server, 7)
    assert len(server.asked) <= most
    assert len(str(raised.value)) < 500


def test_a_subject_that_may_not_be_read_is_no_setting(server: RegistryServer) -> None:
    """Whoever wrote the schema chose the subject."""

    def writes(handler: BaseHTTPRequestHandler) -> None:
        if "ids" in handler.path:
            body = json.dumps(referring(("a", "theirs"))).encode()
            chunked(handler, [body])
        else:
            handler.wfile.write(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")

    server.writes = writes
    with pytest.raises(Unreadable, match=r"refers to 'theirs', version 1, .* doesn't give \(403\)"):
        fetch(server, 7)


def test_several_are_asked_for_at_once(server: RegistryServer) -> None:
    """Each waits for the others."""
    together = threading.Barrier(8, timeout=20)

    def writes(handler: BaseHTTPRequestHandler) -> None:
        together.wait()
        chunked(handler, [b'{"schema": "\\"int\\""}'])

    server.writes = writes
    found = Registry(RegistryOptions(server.url, timeout_seconds=15)).fetch(range(1, 9))
    assert found == [Fetched("AVRO", '"int"', [])] * 8


def test_another_address_is_tried(server: RegistryServer) -> None:
    server.put(7, "AVRO", '"string"')
    away = f"http://127.0.0.1:{next(free_ports(1))}"
    assert fetched(Registry(RegistryOptions(f"{away}, {server.url}/")), 7).text == '"string"'


def test_a_client_gets_a_token_and_renews_it(server: RegistryServer) -> None:
    server.put(7, "AVRO", '"string"')
    registry = Registry(
        RegistryOptions(
            server.url,
            "client:secret",
            token_url=f"{server.url}/token",
            token_scope="registry",  # noqa: S106 -- no secret
            logical_cluster="lsrc-1",
            identity_pool="pool-1",
        )
    )
    for _ in range(2):
        assert fetched(registry, 7).text == '"string"'
    assert server.forms == ["grant_type=client_credentials&scope=registry"]
    assert server.authorizations == ["Bearer token-1"] * 2
    sent = {name.lower(): value for name, value in server.headers[0].items()}
    assert (sent["target-sr-cluster"], sent["confluent-identity-pool-id"]) == ("lsrc-1", "pool-1")
    server.token = "revoked"  # noqa: S105 -- no secret
    assert fetched(registry, 7).text == '"string"'
    assert server.authorizations[2:] == ["Bearer token-1", "Bearer token-2"]


def test_who_gets_no_token_is_told_the_setting(server: RegistryServer) -> None:
    url = f"{server.url}/token"
    with pytest.raises(Denied, match=r"answered 401: see registry\.credentials_file") as raised:
        fetch(server, 7, credentials="client:wrong", token_url=url)
    assert "wrong" not in str(raised.value)
    with pytest.raises(Away, match=r"the issuer of tokens .* is away"):
        fetch(server, 7, credentials="client:secret", token_url="http://127.0.0.1:1/")  # noqa: S106
    assert server.asked == []


def test_a_registry_may_ask_for_a_certificate(tmp_path: Path) -> None:
    for name in ("server", "client"):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
             str(tmp_path / f"{name}.key"), "-out", str(tmp_path / f"{name}.pem")],
            check=True, capture_output=True,
        )  # fmt: skip
    tls = SSLContext(PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    tls.load_verify_locations(tmp_path / "client.pem")
    tls.verify_mode = CERT_REQUIRED
    own = {"certificate_file": tmp_path / "client.pem", "key_file": tmp_path / "client.key"}
    with registry_server(tls) as server:
        server.put(7, "AVRO", '"string"')
        assert fetch(server, 7, ca_file=tmp_path / "server.pem", **own).text == '"string"'
        for less in ({"ca_file": tmp_path / "server.pem"}, own):
            with pytest.raises(Away, match="is away"):
                fetch(server, 7, **less)
