"""Who may read: tokens, cookies, and addresses that take them."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers

from worker.serve.queries import Said
from worker.serve.rights import Right, Rights
from worker.serve.server import Limits, answering
from worker.settings.errors import ConfigurationError
from worker.settings.sections import ServeSection

READING, CORRECTING = "r" * 32, "c" * 40
PATIENT = Limits(seconds=300)


@pytest.fixture
def tokens(tmp_path: Path) -> dict[str, Path]:
    files = {"token_file": tmp_path / "reading", "correcting_token_file": tmp_path / "correcting"}
    files["token_file"].write_text(READING + "\n")
    files["correcting_token_file"].write_text(CORRECTING)
    return files


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tls")
    files = {"tls_cert_file": folder / "cert.pem", "tls_key_file": folder / "key.pem"}
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
         str(files["tls_key_file"]), "-out", str(files["tls_cert_file"])],
        check=True, capture_output=True,
    )  # fmt: skip
    return files


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"host": "0.0.0.0"}, r"^serve\.host: '0\.0\.0\.0': .* takes a token: set serve\.token_fi"),  # noqa: S104
        ({"host": "::"}, r"^serve\.host: '::': .* token"),
        ({"host": "example.org"}, r"^serve\.host: 'example\.org': .* token"),
        ({"host": "192.0.2.1", "token_file": ""}, r"^serve\.host: '192\.0\.2\.1': .* takes TLS"),
        ({"tls_in_front": True}, r"^serve\.tls_in_front: .* token"),
        ({"token_file": "missing"}, r"^serve\.token_file: .*missing: No such file"),
        ({"token_file": "short"}, r"^serve\.token_file: .* must be 32 to 4096 characters"),
        ({"token_file": "spaces"}, r"^serve\.token_file: .* without spaces"),
        ({"tls_cert_file": "x"}, r"^serve\.tls_key_file: is missing"),
        ({"tls_key_file": "x"}, r"^serve\.tls_cert_file: is missing"),
        ({"tls_cert_file": "x", "tls_key_file": "x"}, r"^serve\.tls_cert_file: .* No such file"),
        ({"tls_cert_file": "short", "tls_key_file": "short"}, r"^serve\.tls_cert_file: .*short: "),
        ({"token_file": "", "correcting_token_file": ""}, r"^serve\.correcting_token_file: has th"),
    ],
)
def test_what_others_could_reach_takes_a_token_and_tls(
    tmp_path: Path, tokens: dict[str, Path], given: dict[str, Any], complaint: str
) -> None:
    (tmp_path / "short").write_text("x" * 31)
    (tmp_path / "spaces").write_text("x" * 20 + " " + "x" * 20)
    for name in given.keys() - {"host", "tls_in_front"}:
        given = {**given, name: tmp_path / (given[name] or tokens["token_file"])}
    with pytest.raises(ConfigurationError, match=complaint) as refused:
        answering(ServeSection(port=0, **given), echo, 1 << 20).__enter__()
    assert "\n" not in str(refused.value)


def echo(bodies: Any) -> list[Said]:  # noqa: ANN401 -- bytes
    return [*bodies]


def of(*, reading: bool, correcting: bool) -> Rights:
    return Rights(
        READING.encode() if reading else None,
        CORRECTING.encode() if correcting else None,
        secure=True,
    )


@pytest.mark.parametrize(
    ("reading", "correcting", "token", "rights"),
    [
        (False, False, None, {"read", "correct"}),
        (True, False, None, set()),
        (True, False, READING, {"read"}),
        (True, False, READING + "x", set()),
        (True, False, "", set()),
        (True, False, "\udcff", set()),
        (True, True, READING, {"read"}),
        (True, True, CORRECTING, {"read", "correct"}),
        (False, True, None, {"read"}),
        (False, True, CORRECTING, {"read", "correct"}),
    ],
)
def test_each_token_has_its_rights(
    *, reading: bool, correcting: bool, token: str | None, rights: set[str]
) -> None:
    made = of(reading=reading, correcting=correcting)
    given = {} if token is None else {"Authorization": f"Bearer {token}"}
    headers = Headers(raw=[(b"authorization", one.encode("utf-8", "surrogateescape"))
                           for one in given.values()])  # fmt: skip
    assert made.given(headers) == {Right(one) for one in rights}
    signed = None if token is None else made.signed_in(token)
    if token in {READING, CORRECTING}:
        assert signed is not None
        cookie = signed.headers["set-cookie"]
        assert token not in cookie
        for part in ("__Host-neardup-neardup=", "HttpOnly", "SameSite=strict", "Secure", "Path=/"):
            assert part in cookie
        assert made.given(Headers({"Cookie": cookie.partition(";")[0]})) == set(map(Right, rights))
    else:
        assert signed is None


def test_a_cookie_ends_with_its_token() -> None:
    answer = of(reading=True, correcting=False).signed_in(READING)
    assert answer is not None
    cookie = Headers({"Cookie": answer.headers["set-cookie"].partition(";")[0]})
    assert Rights(b"n" * 32, None, secure=True).given(cookie) == set()


@pytest.fixture
def port(tokens: dict[str, Path]) -> Iterator[int]:
    at = ServeSection(port=0, token_file=tokens["token_file"])
    with answering(at, echo, 1 << 20, PATIENT) as found:
        yield found


def asked(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: str | None = None,
    **headers: str,
) -> tuple[int, http.client.HTTPMessage, bytes]:
    with closing(connection):
        connection.request(method, path, body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def to(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=20)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/query", 401),
        ("GET", "/v1/duplicates", 401),
        ("GET", "/v1/duplicates/stream", 401),
        ("GET", "/v1/documents?id=a", 401),
        ("POST", "/v1/comparison", 401),
        ("GET", "/v1/flow", 401),
        ("GET", "/v1/groups", 401),
        ("GET", "/v1/groups/0", 401),
        ("GET", "/v1/documents/a%2Fb/group", 401),
        ("GET", "/v1/anything", 401),
        ("GET", "/v1/openapi.json", 200),
        ("GET", "/", 200),
        ("GET", "/static/app.js", 200),
        ("GET", "/static/../api.py", 404),
        ("GET", "/static/%2e%2e%2f__init__.py", 404),
    ],
)
def test_what_tells_of_documents_takes_a_token(
    port: int, method: str, path: str, status: int
) -> None:
    found, headers, said = asked(to(port), method, path, "{}" if method == "POST" else None)
    assert found == status
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    if status == 401:
        assert headers["WWW-Authenticate"] == "Bearer"
        assert "serve.token_file" in json.loads(said)["error"]


def test_a_token_is_traded_for_a_cookie(port: int) -> None:
    assert asked(to(port), "POST", "/v1/session", json.dumps({"token": "x"}))[0] == 403
    status, headers, _ = asked(to(port), "POST", "/v1/session", json.dumps({"token": READING}))
    assert status == 204
    cookie = headers["Set-Cookie"].partition(";")[0]
    assert asked(to(port), "POST", "/v1/query", "{}", Cookie=cookie)[0] == 200
    assert asked(to(port), "POST", "/v1/query", "{}", Authorization=f"Bearer {READING}")[0] == 200
    status, headers, _ = asked(to(port), "DELETE", "/v1/session")
    assert status == 204
    assert "Max-Age=0" in headers["Set-Cookie"]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_other_sites_get_nothing(port: int, site: str) -> None:
    given = {"Authorization": f"Bearer {READING}", "Sec-Fetch-Site": site}
    assert asked(to(port), "GET", "/v1/duplicates", **given)[0] == 403
    assert asked(to(port), "GET", "/", **{"Sec-Fetch-Site": site})[0] == 200


def test_handshakes_that_never_end_keep_nobody_out(
    certificate: dict[str, Path], tokens: dict[str, Path]
) -> None:
    trusted = ssl.create_default_context(cafile=certificate["tls_cert_file"])
    at = ServeSection(port=0, token_file=tokens["token_file"], **certificate)
    limits = Limits(seconds=300, connections=8)
    with ExitStack() as stack:
        port = stack.enter_context(answering(at, echo, 1 << 20, limits))
        silent = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            for _ in range(60)
        ]
        client = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=trusted)
        assert asked(client, "GET", "/v1/session")[0] == 200
        for one in silent[:40]:
            assert one.recv(1) == b""


def test_it_serves_tls(certificate: dict[str, Path], tokens: dict[str, Path]) -> None:
    trusted = ssl.create_default_context(cafile=certificate["tls_cert_file"])
    at = ServeSection(port=0, token_file=tokens["token_file"], **certificate)
    with answering(at, echo, 1 << 20, PATIENT) as port:
        client = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=trusted)
        status, _, said = asked(
            client, "POST", "/v1/query", "{}", Authorization=f"Bearer {READING}"
        )
        assert (status, said) == (200, b"{}")
        client = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=trusted)
        # A refusal before the request is read is read as well.
        assert asked(client, "POST", "/v1/query", "x" * (3 << 20))[0] == 401
