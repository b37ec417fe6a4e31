"""Describes the API in OpenAPI 3.1. All follows from the routes and their types."""

from __future__ import annotations

from functools import cache
from inspect import cleandoc
from typing import Any

import msgspec

from worker.serve.asking import Body, Query
from worker.serve.comparisons import Right, Side
from worker.serve.correcting import Correct
from worker.serve.parameters import SOUGHT, Parameter, Sought
from worker.serve.routes import EVENTS, ROUTES, Failure, Route

_JSON = "application/json"
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
    types = [kind for one in ROUTES for kind in (one.answer, one.takes) if kind is not None]
    _, schemas = msgspec.json.schema_components(
        [*types, Sought, Failure], ref_template="#/components/schemas/{name}"
    )
    for schema in schemas.values():
        if "description" in schema:
            schema["description"] = cleandoc(schema["description"])
    for kind in _ONE_MEMBER:
        schemas[kind.__name__] |= {"minProperties": 1, "maxProperties": 1}
    paths: dict[str, dict[str, Any]] = {}
    for one in ROUTES:
        paths.setdefault(one.path.replace(":path}", "}"), {})[one.method.lower()] = _operation(one)
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


def _operation(route: Route) -> dict[str, Any]:
    if route.answer is None:
        answers: dict[str, Any] = {"204": {"description": "Done"}}
    else:
        content = _content(route.answer, EVENTS if route.events else _JSON)
        answers = {"200": {"description": route.text, "content": content}}
    for status in route.refuses:
        answers[str(status)] = {"description": _REASONS[status], "content": _content(Failure)}
    found: dict[str, Any] = {"summary": route.text, "responses": answers}
    if route.takes is not None:
        found["requestBody"] = {"required": True, "content": _content(route.takes)}
    parameters = [_parameter(one, "query", required=one is SOUGHT) for one in route.parameters]
    if route.id:
        ident = Parameter("id", str, route.id, "", str, "")
        parameters.insert(0, _parameter(ident, "path", required=True))
    if parameters:
        found["parameters"] = parameters
    return found


def _parameter(one: Parameter[object], place: str, *, required: bool) -> dict[str, Any]:
    return {
        "name": one.name,
        "in": place,
        "required": required,
        "description": one.text,
        "schema": _schema(one.kind),
    }


def _content(kind: type, media: str = _JSON) -> dict[str, Any]:
    return {media: {"schema": _schema(kind)}}


def _schema(kind: object) -> dict[str, Any]:
    """Return the schema of a type, or of one with bounds."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return {"$ref": f"#/components/schemas/{kind.__name__}"}
    return msgspec.json.schema(kind)
