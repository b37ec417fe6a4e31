"""What a tombstone forgets is matched by nothing after it, whatever happens meanwhile."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Literal

import pytest

from tests.support.breadth import mostly_slow, slow
from tests.support.corpus import scaled
from tests.support.embedded import Run, by_id
from tests.support.texts import near_copies
from worker.bus import Outgoing

TEXT = "a text that says nothing much, but is long enough to be told from all of the others"


def matched(run: Run) -> dict[str, list[str]]:
    """Return the ids that each document matches."""
    return {ident: [other for other, _ in found] for ident, found in by_id(run.finish()).items()}


@pytest.mark.parametrize("shards", [1, 2, 18])
@pytest.mark.parametrize("one_by_one", [True, slow(False)])
def test_a_copy_of_what_was_forgotten_is_unique(
    tmp_path: Path, shards: int, *, one_by_one: bool
) -> None:
    run = Run(tmp_path, partitions=1, shards=shards)
    run.feed([("a", TEXT), ("b", TEXT + " indeed")], one_by_one=one_by_one)
    run.forget("a", 0)
    run.forget("b", 0)
    run.feed([("c", TEXT), ("d", TEXT)], one_by_one=one_by_one)
    assert matched(run) == {"a": [], "b": ["a"], "c": [], "d": ["c"]}
    run.prove(tmp_path / "replay", shards=4)


def test_a_tombstone_forgets_what_is_before_it_and_nothing_after_it(tmp_path: Path) -> None:
    run = Run(tmp_path, partitions=1)
    run.forget("a", 0)
    run.feed([("a", TEXT), ("b", TEXT)])
    run.forget("c", 0)
    run.feed([("c", TEXT)])
    assert matched(run) == {"a": [], "b": ["a"], "c": ["a"]}


def test_an_id_that_comes_again_is_a_document_like_any_other(tmp_path: Path) -> None:
    run = Run(tmp_path, partitions=1)
    run.feed([("a", TEXT)])
    run.forget("a", 0)
    run.feed([("a", TEXT), ("b", TEXT)])
    assert matched(run) == {"a": [], "b": ["a"]}


def test_every_document_with_the_id_is_forgotten(tmp_path: Path) -> None:
    run = Run(tmp_path, partitions=1)
    other = "an altogether different text, which shares next to nothing with what came before it"
    run.feed([("a", TEXT), ("a", other)])
    run.forget("a", 0)
    run.feed([("b", TEXT), ("c", other)])
    assert matched(run) == {"a": [], "b": [], "c": []}


def test_a_document_without_an_id_is_forgotten_by_its_key_or_its_position(tmp_path: Path) -> None:
    run = Run(tmp_path, partitions=1)
    value = b'{"text": "%s"}' % TEXT.encode()
    run.put(Outgoing(run.topology.documents, 0, b"key", value))
    run.forget("key", 0)
    run.put(Outgoing(run.topology.documents, 0, None, value))
    run.forget(f"{run.topology.documents}-0-2", 0)
    run.feed([("a", TEXT)])
    history = run.finish()
    assert [record.offset for record in history.duplicate if record.value is not None] == []


@pytest.mark.parametrize("how", [slow("restart"), "crash"])
@pytest.mark.parametrize("seed", mostly_slow(range(scaled(2, 12)), 0))
def test_whatever_is_forgotten_in_between_all_shards_agree(
    tmp_path: Path, seed: int, how: Literal["restart", "crash"]
) -> None:
    random = Random(seed)
    run = Run(tmp_path, partitions=random.choice((1, 3)), batch=random.choice((1, 7, 4_000)))
    sent: list[str] = []
    for number, (ident, text) in enumerate(near_copies(120, seed)):
        run.feed([(ident, text)])
        sent.append(ident)
        if random.random() < 0.3:
            run.forget(random.choice(sent), random.randrange(run.topology.layout.partitions))
        if random.random() < 0.05:
            run.finish()
        if number in {40, 80}:
            run.finish()
            getattr(run, how)()
    run.prove(tmp_path / "replay", shards=random.choice((1, 2, 18)))
