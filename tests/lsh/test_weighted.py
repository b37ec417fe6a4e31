from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh import (
    Parameters,
    exact_jaccard,
    fingerprint_tokens,
    fingerprint_weights,
    pairwise_similarity,
    standard_error,
)
from lsh import (
    tokens as lsh_tokens,
)
from tests.oracle.hashing import MOST, derived, fmix64, keyed, splitmix64
from tests.support.corpus import examples

PARAMETERS = Parameters()
Bag = dict[str | bytes, float]
tokens = st.text(st.sampled_from("abc"), min_size=1, max_size=2)
bags = st.dictionaries(tokens, st.floats(1e-6, 1e6), max_size=6)


def pairs_of_bags(count: int, size: int, seed: int) -> list[tuple[Bag, Bag]]:
    """Return pairs of mappings whose weights spread over orders of magnitude."""
    rng = np.random.default_rng(seed)
    pairs: list[tuple[Bag, Bag]] = []
    for pair in range(count):
        one: Bag = {
            f"{pair} {n}": float(weight) for n, weight in enumerate(rng.gamma(0.5, 1, size))
        }
        other: Bag = {token: weight * float(rng.uniform(0.3, 1.7)) for token, weight in one.items()}
        if size > 1:
            del other[f"{pair} 0"]
        other[f"{pair} new"] = float(rng.gamma(0.5))
        pairs.append((one, other))
    return pairs


def deviations(pairs: list[tuple[Bag, Bag]]) -> tuple[float, float, float]:
    """Return bias, spread, and the spread that independent slots would have."""
    sketches = fingerprint_weights([bag for pair in pairs for bag in pair], PARAMETERS).sketches
    estimates = pairwise_similarity(sketches[0::2], sketches[1::2])
    true = np.array([exact_jaccard(one, other) for one, other in pairs])
    errors = standard_error(true, PARAMETERS.slots, sketch_bits=8)
    return (
        float((estimates - true).mean()),
        float((estimates - true).std()),
        float(np.sqrt((errors**2).mean())),
    )


@pytest.mark.parametrize("size", [1, 3, 20])
def test_estimates_are_unbiased_and_vary_as_independent_slots_do(size: int) -> None:
    count = 500
    bias, spread, error = deviations(pairs_of_bags(count, size, seed=size))
    assert abs(bias) <= 4.5 * error / count**0.5
    assert spread == pytest.approx(error, rel=4.5 / (2 * count) ** 0.5)


@pytest.mark.slow(ci=False)
@pytest.mark.parametrize("size", [1, 2, 5, 20, 100])
def test_the_bias_is_below_two_thousandths(size: int) -> None:
    bias, spread, error = deviations(pairs_of_bags(10_000, size, seed=100 + size))
    assert abs(bias) <= 0.002
    assert spread <= error * 1.035


def reference(bag: Mapping[str | bytes, float], slots: int) -> list[int]:
    """Return the low 8 bits of the samples of one mapping of words, by the definition."""
    base, factor = splitmix64(
        int.from_bytes(derived(b"neardup", b"neardup shingle", 8), "little"), 2
    )
    state = int.from_bytes(derived(b"neardup", b"neardup weights", 8), "little")
    drawn = splitmix64(state, 2 * slots + 3)
    sketch = []
    for slot in range(slots):
        found = []
        for token, weight in bag.items():
            word = keyed(str(token), derived(b"neardup", b"neardup word", 32)) * (base | 1)
            word &= MOST
            word = ((word ^ word >> 32) * (factor | 1)) & MOST
            mixed = (word * (drawn[slot] | 1) + drawn[slots + slot]) & MOST
            one, two, three = (fmix64(mixed), *(drawn[2 * slots :][:2]))
            words = one, fmix64(one ^ two), fmix64(one ^ three)
            halves = [((w >> 32) + 0.5, (w & 2**32 - 1) + 0.5) for w in words]
            unit = 2.0**-32
            r = -math.log(halves[0][0] * halves[0][1] * unit * unit)
            c = -math.log(halves[1][0] * halves[1][1] * unit * unit)
            beta = halves[2][0] * unit
            t = math.floor(math.log(weight) / r + beta)
            sample = fmix64(mixed ^ fmix64((t & MOST) * (drawn[-1] | 1) & MOST))
            found.append((math.log(c) - r * (t - beta + 1), sample & 0xFF))
        sketch.append(min(found)[1])
    return sketch


@settings(max_examples=examples(30), deadline=None)
@given(bags.filter(bool))
def test_samples_follow_the_definition(bag: Bag) -> None:
    parameters = Parameters(slots=16, bands=4, rows=4)
    sketches = fingerprint_weights([{"before": 1.0}, bag, {"behind": 2.0}], parameters).sketches
    assert sketches[1].tolist() == reference(bag, 16)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(bags, max_size=6), st.sampled_from([1, 300, 1 << 14]))
def test_the_size_of_a_step_does_not_matter(given: list[Bag], chunk: int) -> None:
    expected = fingerprint_weights(given, PARAMETERS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lsh_tokens, "_CHUNK", chunk)
        found = fingerprint_weights(given, PARAMETERS)
    np.testing.assert_array_equal(found.keys, expected.keys)
    np.testing.assert_array_equal(found.sketches, expected.sketches)
    assert found.blank.tolist() == [not bag for bag in given]


@settings(max_examples=examples(40), deadline=None)
@given(bags.filter(bool), st.randoms())
def test_neither_order_nor_absent_tokens_matter(bag: Bag, random: object) -> None:
    shuffled = dict(sorted(bag.items(), key=lambda _: random.random()))  # type: ignore[attr-defined]
    shuffled["absent"] = 0.0
    prints = fingerprint_weights([bag, shuffled], PARAMETERS)
    np.testing.assert_array_equal(prints.keys[0], prints.keys[1])
    assert prints.shingle_counts.tolist() == [len(bag)] * 2


def test_weights_tell_the_same_tokens_apart() -> None:
    prints = fingerprint_weights([{"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 3.0}], PARAMETERS)
    assert prints.keys[0, -1] != prints.keys[1, -1]
    alike = pairwise_similarity(prints.sketches[:1], prints.sketches[1:])[0]
    assert alike == pytest.approx(0.5, abs=0.2)


def test_a_mapping_has_neither_the_key_of_a_set_nor_its_samples() -> None:
    weights = fingerprint_weights([{"a": 1.0}], PARAMETERS)
    tokens = fingerprint_tokens([["a"]], PARAMETERS)
    assert not (weights.keys == tokens.keys).any()


@pytest.mark.parametrize("weight", [-0.5, float("nan"), float("inf")])
def test_what_is_no_weight_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="weight: got"):
        fingerprint_weights([{"a": weight}], PARAMETERS)


@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1e300])
def test_extreme_weights_are_weights(weight: float) -> None:
    prints = fingerprint_weights([{"a": weight}, {"a": 2 * weight}, {"a": weight}], PARAMETERS)
    np.testing.assert_array_equal(prints.sketches[0], prints.sketches[2])
    alike = pairwise_similarity(prints.sketches[:1], prints.sketches[1:2])[0]
    assert alike == pytest.approx(0.5, abs=0.2)
