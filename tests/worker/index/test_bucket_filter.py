"""The filter of absent buckets: never wrong about what is there, seldom about what isn't."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.index.bucket_filter import BucketFilter


def keys(count: int, seed: int) -> npt.NDArray[np.void]:
    """Give V9[n] with hashes drawn evenly, as band keys are."""
    drawn = np.random.default_rng(seed).integers(0, 256, (count, 9), np.uint8)
    return drawn.view("V9").reshape(-1)


@given(st.lists(st.binary(min_size=9, max_size=9), max_size=200), st.sampled_from([8, 64, 4_096]))
def test_what_was_added_may_be_there(added: list[bytes], size: int) -> None:
    """Also when keys share a word, or are added twice."""
    filter_ = BucketFilter(size)
    array = np.array(added, "V9")
    filter_.add(array)
    assert filter_.may_hold(array).all()


def test_an_empty_filter_holds_nothing() -> None:
    filter_ = BucketFilter(1_024)
    assert not filter_.may_hold(keys(1_000, 1)).any()
    assert filter_.may_hold(keys(0, 1)).shape == (0,)


def test_at_16_bits_a_key_one_absent_key_in_a_hundred_passes() -> None:
    filter_ = BucketFilter(200_000)
    filter_.add(keys(100_000, 1))
    assert filter_.may_hold(keys(100_000, 2)).mean() == pytest.approx(0.008, abs=0.002)


def test_a_full_filter_lets_everything_pass_and_grows_no_larger() -> None:
    filter_ = BucketFilter(1_024)
    filter_.add(keys(100_000, 1))
    assert filter_.may_hold(keys(1_000, 2)).all()
    assert filter_.size_bytes == 1_024
