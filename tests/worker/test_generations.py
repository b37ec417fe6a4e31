"""Which generations of the index workers run, and with which settings."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from worker.generations import Generation, Part, Plan, parts
from worker.settings import load
from worker.topology import STAGES

SETTINGS = load(None, {"app": "a", "index.shards": 2})
FIRST = Generation.of(SETTINGS)
SECOND = msgspec.structs.replace(FIRST, number=1, shards=5, threshold=0.9, window="30d")


def test_a_generation_is_what_its_settings_say() -> None:
    changed = SECOND.settings(SETTINGS)
    assert Generation.of(changed, 1) == SECOND
    assert (changed.index.window_ms, changed.absorb) == (30 * 86_400_000, FIRST.absorb)


def test_bands_are_those_of_the_fingerprints_whatever_the_threshold() -> None:
    own, other = SETTINGS.parameters(), SECOND.settings(SETTINGS).parameters()
    assert (own.slots, own.bands, own.rows) == (other.slots, other.bands, other.rows)
    chosen = load(None, {"similarity.threshold": 0.9}).parameters()
    assert (chosen.bands, chosen.rows) != (own.bands, own.rows)


def test_a_reindex_goes_from_one_generation_to_the_next() -> None:
    begun = Plan.of(SETTINGS).building(SECOND)
    assert begun.generations() == (FIRST, SECOND)
    ended = begun.done()
    assert (ended.current, ended.following, ended.left) == (SECOND, None, (FIRST,))
    again = ended.building(FIRST)
    assert again.following == msgspec.structs.replace(FIRST, number=2)
    given_up = again.aborted()
    assert (given_up.current, given_up.following, given_up.used) == (SECOND, None, 2)
    assert given_up.building(FIRST).used == 3


def test_a_worker_runs_the_index_of_both_and_routes_from_both() -> None:
    plan = Plan.of(SETTINGS).building(SECOND)
    assert parts(STAGES, plan) == [
        Part("fingerprint"),
        Part("index", (FIRST,)),
        Part("index", (SECOND,)),
        Part("route", (FIRST, SECOND)),
    ]
    assert [part.name for part in parts(["index"], plan)] == ["index", "index-g1"]


@pytest.mark.parametrize(("generation", "name"), [(FIRST, ""), (SECOND, "g1")])
def test_stores_of_generations_lie_apart(generation: Generation, name: str) -> None:
    assert generation.directory(Path("state")) == Path("state") / name


def test_the_topology_of_the_generation_in_use_goes_with_its_settings() -> None:
    plan = Plan.of(SETTINGS).building(SECOND).done()
    topology = plan.settings(load(None, {"app": "a", "index.shards": 5})).topology(3)
    assert topology == SECOND.topology(SETTINGS.topology(3))
    assert topology.layout.id == SETTINGS.topology(3).layout.id


def test_a_generation_names_its_containment_only_if_it_has_one() -> None:
    """So plans stay readable for workers that know none."""
    assert b"containment" not in msgspec.json.encode(FIRST)
    settings = load(None, {"app": "a", "similarity.containment": 0.9})
    own = Generation.of(settings)
    assert msgspec.json.decode(msgspec.json.encode(own), type=Generation) == own
    without = msgspec.structs.replace(own, number=1, containment=None)
    assert without.settings(settings).rules().containment is None
    assert without.topology(settings.topology(2)).layout.parameters.containment is None
    assert own.settings(load(None, {"app": "a"})).parameters() == settings.parameters()
