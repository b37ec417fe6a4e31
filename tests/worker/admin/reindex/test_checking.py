"""Which rules and fingerprints the next generation can have."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.plans import taken_over
from worker.admin.agreement import agreed
from worker.admin.reindex.checking import (
    check_anew,
    check_bands,
    check_sizes,
    generation_of,
    numbered,
    numbers_follow,
    signing_of,
)
from worker.generations.generation import Generation, Signing
from worker.generations.plan import Plan
from worker.settings.errors import ConfigurationError
from worker.settings.loading import load
from worker.settings.model import Settings

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


PLAIN = load(None, {"app": "a", "index.window": "9d"})
WORDS = load(None, {"app": "a", "similarity.shingle": "word", "similarity.threshold": 0.7})
BASE = PLAIN.topology(2)
FIRST = Plan.of(PLAIN).signed(Signing.of(PLAIN.parameters()))
ANEW = numbered(FIRST, Generation.fingerprinted(WORDS), 100)


class TestItsOwnFingerprints:
    @pytest.mark.parametrize(
        "settings", [PLAIN, WORDS, load(None, {"similarity.containment": 0.9})]
    )
    def test_what_an_application_began_with_is_on_record(self, settings: Settings) -> None:
        facts = agreed(settings, settings.topology(2))
        own = Generation.fingerprinted(settings)
        assert signing_of(facts) == own.signing
        assert generation_of(facts) == msgspec.structs.replace(own, signing=None)

    def test_its_number_is_that_of_its_log_whose_frames_come_after_all_others(self) -> None:
        assert (ANEW.number, ANEW.log) == (1, 1)
        assert ANEW.numbered_from > 100 + (1 << 29)
        later = taken_over(FIRST, ANEW)
        again = numbered(later, Generation.fingerprinted(PLAIN), 7)
        assert (again.number, again.log) == (2, 2)
        assert again.numbered_from > ANEW.numbered_from + 7 + (1 << 29)

    def test_a_log_that_has_grown_too_much_is_not_followed(self) -> None:
        assert numbers_follow(ANEW, BASE, 1 << 28)
        assert not numbers_follow(ANEW, BASE, 1 << 30)
        own = ANEW.topology(BASE)
        later = numbered(taken_over(FIRST, ANEW), ANEW, 5)
        assert numbers_follow(later, own, 5)
        assert not numbers_follow(ANEW, own, 5)

    def test_other_fingerprints_are_needed_for_it(self) -> None:
        check_anew(FIRST, ANEW)
        rules = load(None, {"app": "a", "index.shards": 5, "index.window": "1d"})
        with pytest.raises(ConfigurationError, match="run it without"):
            check_anew(FIRST, Generation.fingerprinted(rules))

    def test_sizes_are_a_reason_and_their_loss_is_none(self) -> None:
        sized = load(None, {"app": "a", "similarity.containment": 0.9, "similarity.slots": 256,
                            "similarity.bands": 64, "similarity.rows": 4})  # fmt: skip
        one = Generation.fingerprinted(sized)
        without = msgspec.structs.replace(
            one,
            containment=None,
            signing=msgspec.structs.replace(one.signing, sized=False),  # type: ignore[type-var]
        )
        plain = Plan(without, without).signed(without.signing)  # type: ignore[arg-type]
        check_anew(plain, one)
        with pytest.raises(ConfigurationError, match="run it without"):
            check_anew(Plan(one, one).signed(one.signing), without)  # type: ignore[arg-type]
