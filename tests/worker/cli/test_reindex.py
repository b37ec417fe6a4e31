"""What ``neardup reindex`` says, and what it refuses before it asks Kafka."""

from __future__ import annotations

import json

import msgspec
import pytest

from tests.support.command_line import neardup
from worker.admin.reindex.progress import Progress
from worker.cli import reindex
from worker.generations.generation import Generation
from worker.generations.plan import Plan
from worker.settings.loading import load

SETTINGS = load(None, {"app": "a"})
WORDS = load(None, {"app": "a", "similarity.shingle": "word"})
FIRST = Plan.of(SETTINGS)
PLAIN = FIRST.start_build(msgspec.structs.replace(FIRST.current, shards=5))
ANEW = FIRST.start_build(msgspec.structs.replace(Generation.fingerprinted(WORDS), log=1))
CLOSING = ANEW.seal()
WIDE = FIRST.widen(4, 6)


def test_new_fingerprints_take_their_rules_from_the_settings() -> None:
    done = neardup("reindex", "--from-documents", "--bucket-capacity", "8")
    assert done.returncode == 2
    said = done.stderr.decode()
    assert "--from-documents: got --bucket-capacity as well; put that into the settings" in said


@pytest.mark.parametrize(
    ("progress", "state", "said"),
    [
        (Progress(FIRST, 9, {}), "idle", ["in use: generation 0 (2 shards"]),
        (
            Progress(PLAIN, 100, {0: 40, 1: 90}),
            "building",
            [
                "generation 1 (5 shards",
                "is being built: 60 of 100 offsets are left for",
            ],
        ),
        (
            Progress(ANEW, 10, {0: 10, 1: 10}, source=100, rewritten=60),
            "building",
            ["new fingerprints) is being built: 40 of 100 offsets of the earlier log are left to"],
        ),
        (
            Progress(ANEW, 10, {0: 10, 1: None}, source=100, rewritten=99),
            "building",
            ["is being built: no worker has begun shard 1 yet"],
        ),
        (
            Progress(CLOSING, 10, {0: 10, 1: 10}, source=100, rewritten=99),
            "taking over",
            ["new fingerprints) takes over"],
        ),
        (
            Progress(WIDE, 9, {}),
            "idle",
            ["in use: generation 0 (2 shards", "read: 6 partitions of the documents, at first 4"],
        ),
    ],
)
def test_the_state_in_words_and_for_programs(
    progress: Progress, state: str, said: list[str]
) -> None:
    text = "\n".join(reindex._lines(progress))
    assert all(part in text for part in said), text
    facts = json.loads(json.dumps(reindex._facts(progress)))
    assert facts["state"] == state
    earlier = {"end": progress.source, "rewritten": progress.rewritten}
    assert facts["earlier"] == (earlier if progress.plan.rewriting else None)
    partitions = {"read": 6, "begun_with": 4}
    assert facts["partitions"] == (partitions if progress.plan == WIDE else None)


@pytest.mark.parametrize("other", [("--shards", "3"), ("--from-documents",)])
def test_partitions_are_added_alone(other: tuple[str, ...]) -> None:
    done = neardup("reindex", "--partitions", "6", *other)
    assert done.returncode == 2
    said = done.stderr.decode()
    assert f"--partitions: got {other[0]} as well; run one after the other" in said


def test_who_waits_for_seals_hears_for_whom() -> None:
    progress = Progress(CLOSING, 10, {0: 10}, source=100, rewritten=99)
    assert "not all partitions of the documents are sealed" in progress.left()
