"""What the page and other clients read, as it is in JSON. `worker.serve.openapi` describes it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from worker.differences import Span
from worker.documents.published import Duplicate


class Failure(msgspec.Struct, frozen=True):
    """Why there is no answer."""

    error: str


class Session(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a page sends to sign in: the content of a token's file."""

    token: str


class Granted(msgspec.Struct, frozen=True):
    """What a client may do with the token or the cookie that it sends."""

    may_read: bool
    may_correct: bool


class News(msgspec.Struct, frozen=True):
    """The data of an event of the stream: the latest of ``of`` duplicates since the last event."""

    duplicates: list[Duplicate]
    of: int


Sequence = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
"""The number of a document."""


class Side(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One side of a comparison: a text, or the document with a sequence number."""

    text: str | msgspec.UnsetType = msgspec.UNSET
    sequence: Sequence | msgspec.UnsetType = msgspec.UNSET


class Right(Side, frozen=True, forbid_unknown_fields=True):
    """The right side; also the document with the id ``match`` that the left one matches."""

    match: str | msgspec.UnsetType = msgspec.UNSET


class Compare(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two texts to compare."""

    left: Side
    right: Right


class Compared(msgspec.Struct, frozen=True):
    """One of two documents. ``gone`` says why there is no text of it."""

    id: str | None
    sequence: int | None
    source: str | None
    time: int | None
    characters: int
    gone: str | None = None


class Comparison(msgspec.Struct, frozen=True):
    """Two documents side by side.

    ``spans`` are the two texts, or nothing if one is gone or can't be judged; ``reason`` says why
    then. ``cut``: they are parts of longer texts. ``coarse``: there are so many differences that
    neighbours were judged together: each of them counts if one does. ``similarity`` is exact, and
    None for texts that are too long for that; ``estimate`` is what the index knows, and ``error``
    its standard error. ``shared`` are the numbers of the bands that both have, of ``bands`` of
    ``rows`` slots each.
    ``left_out``: how many listed lines (`similarity.boilerplate`) of each weren't compared.
    """

    left: Compared
    right: Compared
    spans: list[Span]
    cut: bool
    coarse: bool
    reason: str | None
    verdict: Literal["unique", "duplicate"] | None
    threshold: float
    similarity: float | None
    estimate: float | None
    error: float | None
    shared: list[int]
    bands: int
    rows: int
    same_text: bool
    left_out: tuple[int, int] = (0, 0)


class Sought(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What documents are asked for by: an id, a header (``name`` or ``name=value``), or a number.

    These are parameters of their own in the address.
    """

    id: str | msgspec.UnsetType = msgspec.UNSET
    header: str | msgspec.UnsetType = msgspec.UNSET
    sequence: Sequence | msgspec.UnsetType = msgspec.UNSET
