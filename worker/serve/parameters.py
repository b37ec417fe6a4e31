"""The parameters of requests: how each is read, checked and described."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Several
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, Generic, TypeVar

import msgspec
from starlette.requests import Request

from worker.groups.reading import SORTS, Sort
from worker.serve.answers import Refused, coarse
from worker.serve.comparisons import Sequence
from worker.serve.groups import (
    position_of,
)
from worker.serve.rights import Right
from worker.settings.units import LENGTH, duration_ms
from worker.untrusted import NOT_READ, why

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
P = TypeVar("P", bound=msgspec.Struct)

_NUMBER_DIGITS = 20
"""No number of 64 bits has more."""
_SHOWN = 40
"""The characters of a wrong parameter that the refusal repeats."""


class Sought(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What documents are asked for by: an id, a header (``name`` or ``name=value``), or a number.

    These are parameters of their own in the address.
    """

    id: str | msgspec.UnsetType = msgspec.UNSET
    header: str | msgspec.UnsetType = msgspec.UNSET
    sequence: Sequence | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True, eq=False)
class Parameter(Generic[T_co]):
    """A parameter in the address.

    Attributes:
        name: its name.
        kind: its type in the description.
        text: what it is.
        takes: what it may be, as a refusal says it.
        read: returns the value; raises `ValueError` if it is wrong.
        default: the value without it.
    """

    name: str
    kind: object
    text: str
    takes: str
    read: Callable[[str], T_co]
    default: T_co


def _number(  # noqa: PLR0913 -- a parameter, and its range
    name: str,
    text: str,
    least: int,
    most: int,
    default: int,
    *,
    kind: object = None,
    takes: str | None = None,
) -> Parameter[int]:
    def read(given: str) -> int:
        # `isdigit` alone takes digits of every script, and `int` any number of them.
        if not (given.isascii() and given.isdigit() and len(given) <= _NUMBER_DIGITS):
            raise ValueError(given)
        if not least <= int(given) <= most:
            raise ValueError(given)
        return int(given)

    bounds = Annotated[int, msgspec.Meta(ge=least, le=most)]
    return Parameter(name, kind or bounds, text, takes or f"{least} to {most}", read, default)


def _sort(given: str) -> Sort:
    for one in SORTS:
        if one == given:
            return one
    raise ValueError(given)


def _cursor(length: int, characters: int) -> Parameter[bytes]:
    kind = Annotated[str, msgspec.Meta(pattern=f"^[A-Za-z0-9_-]{{{characters}}}$")]
    read = partial(position_of, length=length)
    return Parameter("cursor", kind, _BEFORE, "the `next` of an answer", read, b"")


_BEFORE = "`next` of the answer before"
_DIGITS = Annotated[str, msgspec.Meta(pattern="^[0-9]{1,18}$")]
LIMIT = _number("limit", "how many", 1, 100, 50)
CURSOR = _number("cursor", _BEFORE, 0, 1 << 62, 1 << 62, kind=_DIGITS)
SKIPPED = _number("cursor", _BEFORE, 0, (1 << 63) - 1, 0, kind=_DIGITS)
SEQUENCE = _number("sequence", "the number of a document", 0, (1 << 63) - 1, 0)
SOUGHT = Parameter(
    "sought", Sought, "one of `id`, `header`, `sequence`: the latest documents with an id or a"
    " header, or the one with a number, with its whole text", "", str, "",
)  # fmt: skip
SORT: Parameter[Sort] = Parameter("sort", Sort, "the order", ", ".join(SORTS), _sort, "size")
SINCE: Parameter[int | None] = Parameter(
    "since", Annotated[str, msgspec.Meta(pattern=f"^{LENGTH.pattern}$")],
    "only those with a member since: `24h`, `30m`", "a length such as 24h",
    lambda given: duration_ms(given) if given else None, None,
)  # fmt: skip
LEAST = _number(
    "min", "only those of at least so many members", 1, 999_999_999, 2, takes="1 or more"
)
MOST = _number("limit", "how many at most", 1, 1_000, 100)
AFTER, AFTER_MEMBER = _cursor(16, 22), _cursor(8, 11)


class Call:
    """A request to a route."""

    def __init__(
        self, request: Request, parameters: Several[Parameter[object]], body: bytes = b""
    ) -> None:
        """Take the request, the parameters of its route, and its body, if the route takes one."""
        self.request = request
        self.body = body
        self._parameters = parameters

    @property
    def rights(self) -> frozenset[Right]:
        """Return what the client may do."""
        given: frozenset[Right] = self.request.scope["rights"]
        return given

    @property
    def id(self) -> str:
        """Return the id in the path."""
        given: str = self.request.path_params["id"]
        return given

    @property
    def given(self) -> list[tuple[str, str]]:
        """Return all parameters, as they were given."""
        return self.request.query_params.multi_items()

    def __getitem__(self, parameter: Parameter[T]) -> T:
        """Return the value of a parameter.

        Raises:
            Refused: it is wrong.
        """
        given = self.request.query_params.get(parameter.name)
        if given is None:
            return parameter.default
        try:
            return parameter.read(given)
        except ValueError:
            reason = f"{parameter.name}: got {given[:_SHOWN]!r}, takes {parameter.takes}"
            raise Refused(HTTPStatus.BAD_REQUEST, reason) from None

    def check_names(self) -> None:
        """Refuse a parameter that the route doesn't have.

        Raises:
            Refused: there is one.
        """
        known = [one.name for one in self._parameters]
        for name in self.request.query_params:
            if name not in known:
                takes = f"takes {', '.join(known) or 'none'}"
                reason = f"{name[:_SHOWN]}: is no parameter; the request {takes}"
                raise Refused(HTTPStatus.BAD_REQUEST, reason)

    def shown(self, answer: bytes) -> bytes:
        """Return an answer as the client may see it: without the right to correct, less exact."""
        return answer if Right.CORRECT in self.rights else coarse(answer)


def decoded(body: bytes, kind: type[P]) -> P:
    """Return what a body is.

    Raises:
        Refused: it isn't of this form.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except NOT_READ as error:
        raise Refused(HTTPStatus.BAD_REQUEST, why(error)) from None


def check_one(given: msgspec.Struct, name: str) -> None:
    """Refuse what has none of its members, or several.

    Raises:
        Refused: it does.
    """
    fields = given.__struct_fields__
    if sum(getattr(given, field) is not msgspec.UNSET for field in fields) != 1:
        raise Refused(HTTPStatus.BAD_REQUEST, f"{name}: takes one of {', '.join(fields)}")
