"""Which rules an index can have that is built from the fingerprints that are there."""

from __future__ import annotations

import msgspec
import pytest

from worker.admin.reindex.checking import check_bands, check_sizes
from worker.generations.generation import Generation
from worker.generations.plan import Plan
from worker.settings.errors import ConfigurationError
from worker.settings.loading import load

SETTINGS = load(None, {"similarity.containment": 0.9})
WITH = Generation.of(SETTINGS)
WITHOUT = Generation.of(load(None, {}))


def changed(generation: Generation, **rules: float | None) -> Generation:
    return msgspec.structs.replace(generation, **rules)


@pytest.mark.parametrize(
    ("current", "following"),
    [
        (WITH, changed(WITH, containment=None)),
        (changed(WITH, containment=None), WITH),
        (WITH, changed(WITH, containment=0.95)),
        (WITH, changed(WITH, threshold=0.7)),
        (WITHOUT, changed(WITHOUT, threshold=0.9)),
    ],
)
def test_what_the_bands_find_can_be_looked_for(current: Generation, following: Generation) -> None:
    check_sizes(Plan(WITH, WITH), following, "a")
    check_bands(current, following, SETTINGS.similarity, "a")


def test_a_containment_needs_fingerprints_that_have_sizes() -> None:
    with pytest.raises(ConfigurationError, match=r"--containment: got 0\.9, but the fingerprints"):
        check_sizes(Plan(WITHOUT, WITHOUT), changed(WITHOUT, containment=0.9), "a")
    check_sizes(Plan(WITHOUT, WITHOUT), changed(WITHOUT, threshold=0.9), "a")


def test_another_log_may_have_sizes_whatever_the_application_began_with() -> None:
    sized = Generation.fingerprinted(SETTINGS)
    later = msgspec.structs.replace(sized, number=1, log=1, containment=None)
    check_sizes(Plan(WITHOUT, later), changed(later, containment=0.9), "a")
    unsized = Generation.fingerprinted(load(None, {}))
    later = msgspec.structs.replace(unsized, number=1, log=1)
    with pytest.raises(ConfigurationError, match="--containment"):
        check_sizes(Plan(WITH, later), changed(later, containment=0.9), "a")


@pytest.mark.parametrize(
    ("following", "said"),
    [
        (changed(WITH, containment=0.7), r"--containment: got 0\.7, .* 64 bands of 4 rows, by"),
        (changed(WITH, threshold=0.4), r"--threshold: got 0\.4, .* 64 bands of 4 rows, by"),
    ],
)
def test_what_the_bands_do_not_find_is_refused(following: Generation, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        check_bands(WITH, following, SETTINGS.similarity, "a")
