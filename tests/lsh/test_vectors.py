"""Known answers: what a stored index relies on.

A change here means that no index in the field can be read any more: raise
`SCHEME_VERSION` or `NORMALISER_VERSION` with it, and say so in the changelog.
Nothing writes `vectors.json`. Its values follow from `tests/oracle`, and a
failing test shows the values that it found.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from lsh import NORMALISER_VERSION, SCHEME_VERSION, Fingerprinter, Parameters
from tests.oracle.fingerprint import fingerprint
from tests.support.breadth import slow

PINNED = json.loads(Path(__file__).with_name("vectors.json").read_text(encoding="utf-8"))
VECTORS = PINNED["vectors"]
NAMES = [vector["name"] for vector in VECTORS]


def parameters_of(vector: dict[str, Any]) -> Parameters:
    fields = dict(vector["parameters"])
    if "seed" in fields:
        fields["seed"] = fields["seed"].encode()
    return Parameters(**fields)


def text_of(vector: dict[str, Any]) -> str:
    text: str = vector["text"] * vector["times"]
    return text


def found(keys: list[int], sketch: bytes, count: int) -> dict[str, object]:
    """Return an answer as `vectors.json` writes it: keys as 16 hexadecimal digits, end to end."""
    columns = "".join(f"{key:016x}" for key in keys)
    return {
        "first_band": columns[:16],
        "last_band": columns[-32:-16],
        "text_key": columns[-16:],
        "keys_sha256": sha256(columns.encode()).hexdigest(),
        "sketch_sha256": sha256(sketch).hexdigest(),
        "shingles": count,
    }


def test_the_versions_are_those_of_the_vectors() -> None:
    assert PINNED["scheme"] == SCHEME_VERSION
    assert PINNED["normaliser"] == NORMALISER_VERSION


@pytest.mark.parametrize("vector", VECTORS, ids=NAMES)
def test_fingerprints_are_as_pinned(vector: dict[str, Any]) -> None:
    fingerprinter = Fingerprinter(parameters_of(vector))
    text = text_of(vector)
    assert fingerprinter.normalise(text) == vector["normal"] * vector["normal_times"]
    # Between others, so that a seam of the batch would show.
    prints = fingerprinter.fingerprint(["before", text, "behind \u00e9"])
    if vector["expected"] is None:
        assert prints.blank.tolist() == [False, True, False]
        return
    got = found(
        prints.keys[1].tolist(), prints.sketches[1].tobytes(), int(prints.shingle_counts[1])
    )
    assert got == vector["expected"]


@pytest.mark.parametrize(
    "vector",
    [slow(one) if one["name"].startswith("long ") else one for one in VECTORS],
    ids=NAMES,
)
def test_the_definition_gives_what_is_pinned(vector: dict[str, Any]) -> None:
    if vector["expected"] is not None:
        answer = fingerprint(text_of(vector), parameters_of(vector))
        assert answer is not None
        assert found(*answer) == vector["expected"]
