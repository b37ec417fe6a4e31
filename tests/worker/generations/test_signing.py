"""What makes fingerprints, as a plan of generations keeps it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from lsh import SWITCHES, Parameters
from worker.generations.generation import Generation, Signing
from worker.settings.loading import load


def parameters() -> st.SearchStrategy[Parameters]:
    """Give any parameters of fingerprints."""
    switches = {name: st.booleans() for name in SWITCHES if name != "join_letters"}
    return st.builds(
        Parameters,
        threshold=st.sampled_from((0.5, 0.8)),
        shingle=st.sampled_from(("char", "word")),
        shingle_size=st.integers(1, 9),
        slots=st.sampled_from((64, 128)),
        bands=st.integers(1, 9),
        rows=st.integers(1, 7),
        containment=st.sampled_from((None, 0.9)),
        **switches,
    )


@given(parameters(), st.binary(min_size=16, max_size=16))
def test_fingerprints_are_made_as_they_were(one: Parameters, seed: bytes) -> None:
    stored = msgspec.json.decode(msgspec.json.encode(Signing.of(one)), type=Signing)
    base = Parameters(seed=seed, boilerplate=frozenset({"a footer"}))
    again = stored.parameters(base, one.slots, one.bands, one.rows)
    sized = None if one.containment is None else 1.0
    wanted = replace(one, threshold=1.0, containment=sized, seed=seed, boilerplate=base.boilerplate)
    assert again == wanted


@given(parameters())
def test_settings_say_what_a_generation_says(one: Parameters) -> None:
    own: dict[str, Any] = {name: getattr(one, name) for name in ("shingle", "shingle_size")}
    own |= {name: getattr(one, name) for name in ("threshold", "slots", "bands", "rows")}
    own |= {name: getattr(one, name) for name in SWITCHES}
    settings = load(
        None, {f"similarity.{name}": value for name, value in own.items()} | {"index.shards": 1}
    )
    generation = Generation.fingerprinted(settings)
    other = load(None, {"similarity.preset": "comments", "similarity.shingle_size": 13})
    assert generation.settings(other).parameters() == settings.parameters()
