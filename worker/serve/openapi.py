"""Describes the API in OpenAPI 3.1. Schemas are made from the types; `described` is served."""

from __future__ import annotations

from collections.abc import Sequence as Several
from functools import cache
from inspect import cleandoc
from typing import Annotated, Any, NamedTuple

import msgspec

from worker.documents.published import Documents
from worker.groups.reading import Sort
from worker.serve.answers import Reply
from worker.serve.correcting import Correct, Corrected, MadeList
from worker.serve.group_pages import Group, Groups
from worker.serve.outlines import Outline
from worker.serve.questions import Body, Query
from worker.serve.views import (
    Compare,
    Comparison,
    Duplicates,
    Failure,
    Flow,
    Granted,
    News,
    Right,
    Session,
    Side,
    Sought,
)
from worker.settings.units import LENGTH

_JSON, _EVENTS = "application/json", "text/event-stream"


class _Parameter(NamedTuple):
    name: str
    kind: Any
    text: str
    place: str = "query"
    required: bool = False


class _Operation(NamedTuple):
    method: str
    path: str
    text: str
    answer: type | None
    takes: type | None = None
    parameters: Several[_Parameter] = ()
    media: str = _JSON
    refuses: Several[int] = (400, 401, 503)


_LIMIT = _Parameter("limit", Annotated[int, msgspec.Meta(ge=1, le=100)], "how many")
_CURSOR = _Parameter(
    "cursor", Annotated[str, msgspec.Meta(pattern="^[0-9]{1,18}$")], "`next` of the answer before"
)
_Least = Annotated[int, msgspec.Meta(ge=1, le=999_999_999)]
_MOST = _Parameter("limit", Annotated[int, msgspec.Meta(ge=1, le=1_000)], "how many at most")
_AFTER, _AFTER_MEMBER = (
    _Parameter(
        "cursor",
        Annotated[str, msgspec.Meta(pattern=f"^[A-Za-z0-9_-]{{{length}}}$")],
        "`next` of the answer before",
    )
    for length in (22, 11)
)
_Length = Annotated[str, msgspec.Meta(pattern=f"^{LENGTH.pattern}$")]
_OPERATIONS = (
    _Operation(
        "post", "/v1/query", "What a text or a document would match", Reply, Body,
        refuses=(400, 401, 403, 413, 415, 421, 503),
    ),
    _Operation(
        "get", "/v1/duplicates", "The latest duplicates", Duplicates,
        parameters=(_LIMIT, _CURSOR),
    ),
    _Operation(
        "get", "/v1/duplicates/stream", "Duplicates as they are committed", News, media=_EVENTS
    ),
    _Operation(
        "get", "/v1/documents", "Documents by id, by header, or by sequence number", Documents,
        parameters=(
            _Parameter(
                "sought", Sought, "one of `id`, `header`, `sequence`: the latest documents with"
                " an id or a header, or the one with a number, with its whole text",
                required=True,
            ),
        ),
        refuses=(400, 401, 404, 503),
    ),
    _Operation(
        "post", "/v1/comparison", "Two documents side by side", Comparison, Compare,
        refuses=(400, 401, 403, 413, 415, 503),
    ),
    _Operation(
        "get", "/v1/groups", "Groups of documents that match each other", Groups,
        parameters=(
            _Parameter("sort", Sort, "the order"),
            _Parameter("since", _Length, "only those with a member since: `24h`, `30m`"),
            _Parameter("min", _Least, "only those of at least so many members"),
            _MOST, _AFTER,
        ),
        refuses=(400, 401, 404, 503),
    ),
    _Operation(
        "get", "/v1/groups/{id}", "A group with its members", Group,
        parameters=(
            _Parameter("id", str, "`id` of a group, or the number of a member", "path"),
            _MOST, _AFTER_MEMBER,
        ),
        refuses=(400, 401, 404, 503),
    ),
    _Operation(
        "get", "/v1/groups/{id}/outline", "Of what a group consists: clusters, or a chain of them",
        Outline,
        parameters=(_Parameter("id", str, "`id` of a group, or the number of a member", "path"),),
        refuses=(401, 404, 503),
    ),
    _Operation(
        "get", "/v1/documents/{id}/group", "The group of the latest document with an id", Group,
        parameters=(_Parameter("id", str, "its id, in which `/` may be `%2F`", "path"),),
        refuses=(400, 401, 404, 503),
    ),
    _Operation("get", "/v1/flow", "Stages, shards and rejections", Flow, refuses=(401, 503)),
    _Operation(
        "get", "/v1/corrections", "What people have corrected", MadeList,
        parameters=(_LIMIT, _CURSOR),
    ),
    _Operation(
        "post", "/v1/corrections", "Correct, or undo a correction", Corrected, Correct,
        refuses=(400, 401, 403, 404, 409, 413, 415, 503),
    ),
    _Operation("get", "/v1/session", "What you may do", Granted, refuses=()),
    _Operation(
        "post", "/v1/session", "Trade a token for a cookie", None, Session,
        refuses=(400, 403, 413, 415),
    ),
    _Operation("delete", "/v1/session", "Take the cookie away", None, refuses=()),
)  # fmt: skip
_ONE_MEMBER = (Body, Correct, Query, Side, Right, Sought)
"""They have exactly one of their members."""
_REASONS = {
    400: "The request isn't of this form, or its only document can't be judged",
    401: "A token is missing, or is another one",
    403: "`Origin` is of another server, the token is wrong, or it may not correct",
    404: "The document is gone or forgotten, or there is no such group, document or allowance",
    409: "1,000 texts are allowed, which is the most",
    413: "The body is too long",
    415: "The body isn't declared as JSON",
    421: "`Host` is of another server",
    503: "Not ready, or busy",
}


@cache
def described() -> bytes:
    """Return the description, as JSON."""
    types = [kind for one in _OPERATIONS for kind in (one.answer, one.takes) if kind is not None]
    types.append(Sought)
    _, schemas = msgspec.json.schema_components(
        [*types, Failure], ref_template="#/components/schemas/{name}"
    )
    for schema in schemas.values():
        if "description" in schema:
            schema["description"] = cleandoc(schema["description"])
    for kind in _ONE_MEMBER:
        schemas[kind.__name__] |= {"minProperties": 1, "maxProperties": 1}
    paths: dict[str, dict[str, Any]] = {}
    for one in _OPERATIONS:
        paths.setdefault(one.path, {})[one.method] = _operation(one)
    whole = {
        "openapi": "3.1.0",
        "info": {"title": "neardup serve", "version": "1"},
        # The folder above this description, whatever path a proxy has it under.
        "servers": [{"url": "../"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


def _operation(one: _Operation) -> dict[str, Any]:
    if one.answer is None:
        answers: dict[str, Any] = {"204": {"description": "Done"}}
    else:
        answers = {"200": {"description": one.text, "content": _content(one.answer, one.media)}}
    for status in one.refuses:
        answers[str(status)] = {"description": _REASONS[status], "content": _content(Failure)}
    found: dict[str, Any] = {"summary": one.text, "responses": answers}
    if one.takes is not None:
        found["requestBody"] = {"required": True, "content": _content(one.takes)}
    if one.parameters:
        found["parameters"] = [
            {
                "name": parameter.name,
                "in": parameter.place,
                "required": parameter.required or parameter.place == "path",
                "description": parameter.text,
                "schema": _schema(parameter.kind),
            }
            for parameter in one.parameters
        ]
    return found


def _content(kind: type, media: str = _JSON) -> dict[str, Any]:
    return {media: {"schema": _schema(kind)}}


def _schema(kind: Any) -> dict[str, Any]:  # noqa: ANN401 -- a type, or one with bounds
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return {"$ref": f"#/components/schemas/{kind.__name__}"}
    return msgspec.json.schema(kind)
