"""An allowance holds for what comes after it, until it is withdrawn, and for nothing else."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.oracle.normal_form import normalise
from tests.support.checker.forgetting import Order, Place
from tests.support.checker.history import (
    History,
    is_tombstone,
    requested,
    source,
    verdict_of,
)
from tests.support.checker.similarity import jaccard, shingles
from worker.corrections.request import Allow, Withdraw

_NEVER = 0.25
"""No text that is so far below the threshold is near to an allowed one; see `similarity`."""


class _Said(NamedTuple):
    """What was said about one id, and where in the one order."""

    at: Place
    request: Allow | Withdraw


def allowances(history: History) -> Iterator[str]:
    """A document is allowed by what was in force before it, and whatever has its text.

    A text that is not near to the allowed one isn't allowed.
    """
    if history.frames is None:
        return
    order = Order(history.frames)
    said: dict[str, list[_Said]] = defaultdict(list)
    for record in history.inputs:
        request = requested(record)
        place = order.place((record.partition, record.offset))
        if isinstance(request, Allow | Withdraw) and place is not None:
            said[request.id].append(_Said(place, request))
    for record in (*history.unique, *history.duplicate) if said else ():
        if is_tombstone(record) or record.value is None:
            continue
        place = order.place(source(record))
        if place is not None:
            text = json.loads(record.value).get("text") or ""
            held = _held(said, place)
            yield from _judged(history, source(record), text, verdict_of(record).allowed, held)


def _held(said: Mapping[str, Sequence[_Said]], place: Place) -> dict[str, Allow]:
    """Return the allowances in force at a place, by id."""
    held = {}
    for ident, every in said.items():
        before = [one for one in every if one.at < place]
        if before and isinstance(last := max(before).request, Allow):
            held[ident] = last
    return held


def _judged(
    history: History,
    at: tuple[int, int],
    text: str,
    named: str | None,
    held: Mapping[str, Allow],
) -> Iterator[str]:
    normal = normalise(text, history.parameters)
    same = {
        ident for ident, one in held.items() if normalise(one.text, history.parameters) == normal
    }
    if named is None:
        if same and not history.expires:
            yield f"{at} has the text that {sorted(same)} allow, and isn't allowed"
        return
    if named not in held:
        yield f"{at} is allowed by {named}, which isn't in force there"
    elif named not in same:
        one, other = (shingles(each, history.parameters) for each in (text, held[named].text))
        if held[named].exact:
            yield f"{at} is allowed by {named}, which allows another text"
        elif one and other and jaccard(one, other) < history.parameters.threshold - _NEVER:
            yield f"{at} is allowed by {named}, and their similarity is {jaccard(one, other):.3f}"
