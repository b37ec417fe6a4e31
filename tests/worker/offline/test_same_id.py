"""An id that comes again, through all stages: by each rule, and whatever happens meanwhile."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Literal

import pytest

from lsh.index import SameId
from tests.support.breadth import slow
from tests.support.checker import check, differences
from tests.support.checker.history import verdicts
from tests.support.embedded import Run
from tests.support.replay import replay
from tests.support.texts import near_copies

TEXT = "a text that says nothing much, but is long enough to be told from all of the others"
OTHER = "an altogether different text, which shares next to nothing with what came before it"


def matched(run: Run) -> list[list[str]]:
    """Return the ids that each document matches, in the order of one partition."""
    found = verdicts(run.finish())
    return [[ident for ident, _ in found[place].matches] for place in sorted(found)]


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize(
    ("same_id", "expected"),
    [
        ("duplicate", [[], ["a"], [], ["a", "b"], ["a"], ["a", "b"]]),
        ("replace", [[], ["a"], [], [], ["a"], ["b"]]),
        ("ignore", [[], ["a"], [], ["a"], [], ["a", "b"]]),
    ],
)
def test_a_document_whose_id_came_before(
    tmp_path: Path, shards: int, same_id: SameId, expected: list[list[str]]
) -> None:
    run = Run(tmp_path, partitions=1, shards=shards, same_id=same_id)
    run.feed([("a", TEXT), ("b", TEXT + " indeed"), ("a", OTHER), ("b", TEXT)])
    run.feed([("c", OTHER), ("d", TEXT)])
    assert matched(run) == expected


def test_what_is_ignored_names_nothing_that_was_forgotten_meanwhile(tmp_path: Path) -> None:
    run = Run(tmp_path, partitions=1, same_id="ignore")
    run.feed([("a", TEXT), ("b", TEXT + " indeed"), ("c", TEXT)])
    assert matched(run) == [[], ["a"], ["a", "b"]]
    run.forget("a", 0)
    run.feed([("c", TEXT), ("b", TEXT)])
    assert matched(run)[3:] == [["b"], []]
    run.feed([("a", TEXT)])
    assert matched(run)[5:] == [["b"]]


def test_a_frame_names_a_document_before_it_is_forgotten_and_not_after(tmp_path: Path) -> None:
    run = Run(tmp_path, partitions=1, same_id="ignore")
    run.feed([("a", TEXT), ("b", TEXT), ("c", TEXT)])
    run.forget("a", 0)
    run.feed([("b", TEXT)])
    assert matched(run) == [[], ["a"], ["a"], []]


@pytest.mark.parametrize(
    ("same_id", "how"),
    [
        slow("replace", "restart"),
        ("replace", "crash"),
        ("ignore", "restart"),
        slow("ignore", "crash"),
    ],
)
def test_whatever_comes_again_all_shards_agree(
    tmp_path: Path, same_id: SameId, how: Literal["restart", "crash"]
) -> None:
    random = Random(f"{same_id} {how}")
    run = Run(tmp_path, batch=random.choice((1, 7, 4_000)), same_id=same_id)
    sent: list[str] = []
    texts: dict[str, str] = {}
    for number, (ident, text) in enumerate(near_copies(120, 1)):
        again = random.choice(sent) if sent and random.random() < 0.4 else ident
        if same_id == "replace" or again == ident:
            texts[again] = text
        run.feed([(again, texts[again])])
        sent.append(again)
        if random.random() < 0.1:
            run.forget(random.choice(sent), random.randrange(run.topology.layout.partitions))
        if random.random() < 0.05:
            run.finish()
        if number in {40, 80}:
            run.finish()
            getattr(run, how)()
    history = run.finish()
    assert not check(history, partial=True)  # Matches name ids that several documents have.
    frames = run.bus.all_of(run.topology.fingerprints)
    shards = random.choice((1, 2, 18))
    expected = replay(frames, run.settings, run.topology, shards, tmp_path / "replay")
    assert not differences(verdicts(history), expected)
    assert any(verdict.matches for verdict in expected.values())
