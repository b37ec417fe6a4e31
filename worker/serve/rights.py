"""Who may read from a server, and who may correct: tokens, and the cookie that a page has.

On loopback nobody needs a token, unless one is set. Every other address takes a token and TLS, so
that neither texts nor tokens cross a network in the clear.
"""

from __future__ import annotations

import ssl
from collections.abc import Collection
from enum import StrEnum
from hashlib import sha256
from hmac import compare_digest
from hmac import new as hmac
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import Response

from worker.settings.errors import ConfigurationError
from worker.settings.secrets import token_in
from worker.settings.sections import ServeSection

_PURPOSE = b"neardup page session\n"
_SESSION_SECONDS = 12 * 3_600


class Right(StrEnum):
    """What a client may do."""

    READ = "read"
    CORRECT = "correct"


_ALL = frozenset(Right)
_READING = frozenset({Right.READ})
_NONE: frozenset[Right] = frozenset()


class Rights:
    """Tells what a client may do by the token that it sends, or by the cookie that it got for it.

    The cookie has no token in it, and is void once the token is another one.
    """

    def __init__(
        self, reading: bytes | None, correcting: bytes | None, *, secure: bool, app: str = "neardup"
    ) -> None:
        """Take the tokens; ``secure``: browsers send the cookie over TLS alone.

        The cookie has the name of the application, so that several are beside one another on a
        host, on ports or paths of their own.
        """
        tokens = ((correcting, _ALL), (reading, _READING))
        self._tokens = [(token, rights) for token, rights in tokens if token is not None]
        self._without = _NONE if reading is not None else _READING if correcting else _ALL
        self._secure = secure
        self._cookie = f"__Host-neardup-{app}" if secure else f"neardup-{app}"

    @classmethod
    def of(cls, at: ServeSection, app: str) -> Rights:
        """Read the tokens that settings name, and check that they suffice for the address.

        Raises:
            ConfigurationError: a file can't be read, or the address takes a token or TLS.
        """
        has_tls = at.tls_cert_file is not None or at.tls_in_front
        if at.tls_in_front and at.tls_cert_file is not None:
            raise ConfigurationError("serve.tls_in_front: got true, must be false if the server has"
                                     " a certificate (serve.tls_cert_file)")  # fmt: skip
        if at.token_file is None and (at.tls_in_front or not _is_loopback(at.host)):
            what = "serve.tls_in_front" if at.tls_in_front else f"serve.host: {at.host!r}"
            raise ConfigurationError(
                f"{what}: others can reach the server, so it takes a token: set serve.token_file"
            )
        if not has_tls and not _is_loopback(at.host):
            raise ConfigurationError(
                f"serve.host: {at.host!r}: others can reach the server, so it takes TLS: set"
                " serve.tls_cert_file and serve.tls_key_file, or serve.tls_in_front if a proxy"
                " has it"
            )
        reading = token_in(at.token_file, "serve.token_file")
        correcting = token_in(at.correcting_token_file, "serve.correcting_token_file")
        if reading is not None and reading == correcting:
            raise ConfigurationError(
                "serve.correcting_token_file: has the token of serve.token_file, must have another"
            )
        return cls(reading, correcting, secure=has_tls, app=app)

    def given(self, headers: Headers) -> frozenset[Right]:
        """Return the rights of whoever sends these headers."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self._of_token(token.strip())
        session = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        return self._found(session, [(_session(one), rights) for one, rights in self._tokens])

    def _of_token(self, token: str) -> frozenset[Right]:
        return self._found(token, [(one.decode(), rights) for one, rights in self._tokens])

    def _found(
        self, said: str, known: Collection[tuple[str, frozenset[Right]]]
    ) -> frozenset[Right]:
        """Return the rights of what was said, compared in a time that doesn't depend on it."""
        given = self._without
        for one, rights in known:
            if compare_digest(one.encode(), said.encode(errors="surrogateescape")):
                given |= rights
        return given

    def signed_in(self, token: str) -> Response | None:
        """Return an answer with the cookie for a token; None if it is none."""
        rights = self._of_token(token)
        for one, _ in self._tokens:
            if compare_digest(one, token.encode(errors="surrogateescape")):
                answer = Response(status_code=204)
                self._set(answer, _session(one), _SESSION_SECONDS)
                return answer
        return Response(status_code=204) if not self._tokens and rights else None

    def signed_out(self) -> Response:
        """Return an answer that takes the cookie away."""
        answer = Response(status_code=204)
        self._set(answer, "", 0)
        return answer

    def _set(self, answer: Response, value: str, seconds: int) -> None:
        answer.set_cookie(
            self._cookie,
            value,
            max_age=seconds,
            path="/",
            secure=self._secure,
            httponly=True,
            samesite="strict",
        )


def _session(token: bytes) -> str:
    return hmac(token, _PURPOSE, sha256).hexdigest()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def checked_tls(at: ServeSection) -> tuple[str, str] | None:
    """Return the files with the certificate and its key; None if this server has no TLS.

    Raises:
        ConfigurationError: one is missing, or they can't be used.
    """
    if at.tls_cert_file is None and at.tls_key_file is None:
        return None
    if at.tls_cert_file is None or at.tls_key_file is None:
        missing = "tls_key_file" if at.tls_key_file is None else "tls_cert_file"
        raise ConfigurationError(
            f"serve.{missing}: is missing; a certificate and its key go together"
        )
    files = str(at.tls_cert_file), str(at.tls_key_file)
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(*files, password="")
    except (OSError, ValueError) as error:  # An `ssl.SSLError` is an `OSError`.
        why = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(
            f"serve.tls_cert_file: {files[0]} with serve.tls_key_file: {files[1]}: {why}"
        ) from None
    return files
