"""The page of ``neardup serve``: its files, and the headers that browsers get with every answer.

The page is one document with modules in JavaScript. It reads the same API as other clients. Texts
are hostile: nothing but `textContent` shows them, and the policy below lets a browser run only what
is served from here.
"""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src"
    " 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
VIEWS = (
    "/",
    "/pair",
    "/campaigns",
    "/ask",
    "/search",
    "/flow",
    "/corrections",
)
"""The addresses of the page's views. They are beside one another, so relative ones lead to them."""

_KINDS = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class _File:
    """A file of the page, as it is sent."""

    def __init__(self, name: str, content: bytes) -> None:
        self._content = content
        self._kind = _KINDS[name.rpartition(".")[2]]
        self._tag = f'"{sha256(content).hexdigest()[:32]}"'

    def sent(self, request: Request) -> Response:
        headers = {"ETag": self._tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == self._tag:
            return Response(status_code=304, headers=headers)
        return Response(self._content, headers=headers, media_type=self._kind)


def page_routes() -> list[BaseRoute]:
    """Return what serves the page and its files. They are read once."""
    folder = files("worker.page") / "static"
    known = {
        one.name: _File(one.name, one.read_bytes())
        for one in folder.iterdir()
        if one.name.rpartition(".")[2] in _KINDS
    }

    async def view(request: Request) -> Response:
        return known["page.html"].sent(request)

    async def static(request: Request) -> Response:
        found = known.get(request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        return found.sent(request)

    return [
        *(Route(path, view, methods=["GET"]) for path in VIEWS),
        Route("/static/{name}", static, methods=["GET"]),
    ]
