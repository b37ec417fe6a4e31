"""How commands ask a ``neardup serve``: where settings say, and only the application's own."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TypeVar
from urllib.parse import SplitResult, quote, urlencode, urlsplit

import msgspec

from worker.cli.errors import EXIT_FAILED, CommandError
from worker.probes.server import url as url_of
from worker.serve.answers import Reply
from worker.serve.groups import GROUPS_PATH, Group, GroupMember, Outline
from worker.serve.queries import PATH
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings
from worker.settings.secrets import token_in
from worker.settings.sections import ServeSection
from worker.untrusted import NOT_READ, why

T = TypeVar("T")

APPLICATION = "neardup-application"
"""The header with the application's name that each answer of a server has."""
_WHO = "/v1/session"
"""What a server answers without a token, and without any data."""
PAGE = 1_000
"""The most groups or members in an answer."""
_ALL = 1 << 62
_SECONDS = 10.0
_MOST_BYTES = 64 << 20
_SAME_MACHINE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 -- what a server may listen on
_PEM_END = "-----END CERTIFICATE-----"


class Client:
    """Asks the server of one application. Nothing is sent to any other, nor shown of it."""

    def __init__(
        self,
        url: str,
        app: str,
        token: bytes | None = None,
        certificate: Path | None = None,
    ) -> None:
        """Take the address, and the application whose server must answer there.

        With ``certificate``, a chain in PEM, the server must have the first one of it; otherwise
        one that the system trusts.

        Raises:
            CommandError: this is no address.
        """
        self.url = url
        self._app = app
        self._token = token
        self._place = _place(url)
        self._certificate = certificate
        self._known = False

    @classmethod
    def of(cls, settings: Settings, url: str | None) -> Client:
        """Return one that asks at ``url``, by default where the settings have a server listen.

        Raises:
            ConfigurationError: the settings don't say where that is, or a file can't be read.
        """
        at = settings.serve
        token = token_in(at.token_file, "serve.token_file")
        if url is not None:
            return cls(url, settings.app, token)
        return cls(_address(at), settings.app, token, at.tls_cert_file)

    def get(self, path: str, asked: Mapping[str, object], kind: type[T]) -> T:
        """Return what the server answers.

        Raises:
            CommandError: it can't be reached, is another application's, or refuses.
        """
        return self._decoded(self._asked("GET", f"{path}?{urlencode(asked)}"), kind)

    def post(self, path: str, body: bytes, kind: type[T]) -> T:
        """Return what the server answers to a JSON document; see `get`."""
        return self._decoded(self._asked("POST", path, body), kind)

    def group(self, name: str, limit: int) -> Group:
        """Return a group with its members, of as many pages as it takes; see `get`."""
        asked: dict[str, object] = {}
        members: list[GroupMember] = []
        while True:
            asked["limit"] = min(PAGE, limit - len(members))
            page = self.get(_group_path(name), asked, Group)
            members += page.members or ()
            if not page.next or len(members) >= limit:
                return msgspec.structs.replace(page, members=members)
            asked["cursor"] = page.next

    def members_of(self, group: str) -> tuple[list[str], Outline]:
        """Return the ids of all members of a group, and of what it consists; see `get`."""
        members = [one.id for one in self.group(group, _ALL).members or ()]
        return members, self.get(f"{_group_path(group)}/outline", {}, Outline)

    def matches_of(self, text: str) -> list[str]:
        """Return the ids of the documents that a text matches, the best first; see `post`."""
        reply = self.post(PATH, json.dumps({"text": text}).encode(), Reply)
        return [match.id for answer in reply.answers for match in answer.matches]

    def _decoded(self, said: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(said, type=kind)
        except NOT_READ as error:
            raise self._failed(f"not an answer of neardup serve: {why(error)}") from None

    def _asked(self, method: str, path: str, body: bytes | None = None) -> bytes:
        if not self._known:
            self._send("GET", _WHO)
            self._known = True
        headers = {} if body is None else {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token.decode()}"
        status, said = self._send(method, path, body, headers)
        if status != http.client.OK:
            raise CommandError(f"{self.url}: {_reason_of(status, said)}", EXIT_FAILED)
        return said

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """Return the status and the body of an answer of the application's server."""
        try:
            with closing(self._connection()) as connection:
                connection.request(method, self._place.path.rstrip("/") + path, body, headers or {})
                with closing(connection.getresponse()) as answer:
                    self._check(answer)
                    return answer.status, answer.read(_MOST_BYTES)
        except ConnectionRefusedError:
            raise self._failed(
                "nothing answers there. Start a `neardup serve`, or name its address"
                " (serve.host and serve.port, or --server URL)"
            ) from None
        except (OSError, UnicodeError, http.client.HTTPException) as error:
            raise self._failed(
                getattr(error, "strerror", None) or str(error) or type(error).__name__
            ) from None

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._place.hostname or "", self._place.port
        if self._place.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=_SECONDS)
        context = ssl.create_default_context()
        if self._certificate is None:
            return http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=context)
        # It is known, whatever names it has and whoever has signed it.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        expected = _first_certificate(self._certificate)
        connection = http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=context)
        connection.connect()
        if connection.sock.getpeercert(binary_form=True) != expected:
            connection.close()
            raise self._failed("has another certificate than serve.tls_cert_file")
        return connection

    def _check(self, answer: http.client.HTTPResponse) -> None:
        app = answer.getheader(APPLICATION)
        if app is None:
            raise self._failed(_not_a_server(answer.status))
        if app != self._app:
            raise self._failed(
                f"is the server of the application {app}, not of {self._app}. Name another server"
                " (serve.host and serve.port, or --server URL), or another application (--app)"
            )

    def _failed(self, why: str) -> CommandError:
        return CommandError(f"{self.url}: {why}", EXIT_FAILED)


def _group_path(name: str) -> str:
    return f"{GROUPS_PATH}/{quote(name, safe='')}"


def _address(at: ServeSection) -> str:
    """Return where settings have a server listen, as somebody on that machine asks it."""
    if not at.port:
        raise ConfigurationError(
            "serve.port: got 0, which is any port: name the server's address (--server URL)"
        )
    scheme = "http" if at.tls_cert_file is None else "https"
    return url_of(_SAME_MACHINE.get(at.host, at.host), at.port, scheme)


def _place(url: str) -> SplitResult:
    wrong = CommandError(f"--server: got {url!r}, must be like http://host:9465")
    try:
        place = urlsplit(url if "://" in url else f"http://{url}")
        known = place.scheme in {"http", "https"} and place.hostname and place.port != 0
    except ValueError:
        raise wrong from None
    if not known:
        raise wrong
    return place


def _first_certificate(path: Path) -> bytes:
    """Return the first certificate of a file, as it is sent.

    Raises:
        ConfigurationError: it can't be read, or has none.
    """
    try:
        pem = path.read_text("ascii").partition(_PEM_END)[0] + _PEM_END
        return ssl.PEM_cert_to_DER_cert(pem[pem.index("-----BEGIN CERTIFICATE-----") :])
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "has no certificate in PEM"
        raise ConfigurationError(
            f"serve.tls_cert_file: {path}: {why}; it names the server's certificate. From another"
            " machine, name the server's address (--server URL)"
        ) from None


def _reason_of(status: int, said: bytes) -> str:
    """Return why a server refuses."""
    try:
        return str(json.loads(said)["error"])
    except (*NOT_READ, TypeError, KeyError):
        return f"not an answer of neardup serve: status {status}"


def _not_a_server(status: int) -> str:
    if status in {http.client.NOT_FOUND, http.client.METHOD_NOT_ALLOWED}:
        return (
            f"takes no queries (status {status}); workers don't. Start a `neardup serve`, and name"
            " its address (serve.host and serve.port, or --server URL)"
        )
    return f"not an answer of neardup serve: status {status}"
