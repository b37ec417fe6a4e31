"""Which parameters of a test `make test` leaves out."""

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet


def slow(*values: object, ci: bool = True) -> ParameterSet:
    """Return a parameter that shows more of what another one shows already, for CI or not."""
    return pytest.param(*values, marks=pytest.mark.slow if ci else pytest.mark.slow(ci=False))


def mostly_slow(values: Iterable[object], *plain: object) -> list[object]:
    """Return all values, in their order: these few as they are, the others as slow ones."""
    found = list(values)
    unknown = [one for one in plain if one not in found]
    if unknown:
        raise ValueError(f"not among the values: {unknown}")
    return [one if one in plain else slow(one) for one in found]


def thinned(values: Iterable[object], step: int = 3) -> list[object]:
    """Return all values: the first of each so many as it is, the others as slow ones."""
    return [slow(one) if place % step else one for place, one in enumerate(values)]
