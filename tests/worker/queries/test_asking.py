"""The answers of several shards, merged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lsh import Parameters
from lsh.index import NO_TIME, BucketRules, Match
from worker.index.store_reader import MetBucket, ShardAnswer, StoreReader
from worker.queries.answers import First, Met
from worker.queries.asking import Asker
from worker.queries.questions import Question
from worker.wire import Layout

LATER, FIRST, BEST = Match(5, 0.9, b"e"), Match(1, 0.8, b"a"), Match(9, 0.95, b"i")
BANDS = Parameters().bands


class Told:
    """Shards whose answers are given."""

    def __init__(self, answers: Sequence[ShardAnswer]) -> None:
        self._answers = answers

    def read(self, shard: int, ask: Callable[[StoreReader], Any]) -> Any:  # noqa: ANN401 -- whatever is asked
        del ask
        return [self._answers[shard]]


def test_the_best_of_all_shards_are_told_once_with_all_their_bands() -> None:
    shards = Told(
        [
            ShardAnswer([LATER, FIRST], [MetBucket(2, 0, 3, [1, 5]), MetBucket(2, 1, 4, [5])], 7),
            ShardAnswer([BEST, LATER], [MetBucket(1, 0, 2, [9]), MetBucket(BANDS, 0, 1, [5])], 3),
        ]
    )
    layout = Layout.of("app", 1, 2, Parameters())
    asker = Asker(layout, BucketRules(threshold=0.8, max_matches=2))
    (answer,) = asker.answers(shards, [Question("a text", NO_TIME)])
    assert [(one.id, one.bands, one.same_text) for one in answer.matches] == [
        ("i", [1], False),
        ("e", [2], True),
    ]
    assert answer.first == First("e", 5)  # The first of those that are published.
    assert answer.compared == 10
    assert answer.buckets == [Met(1, [2]), Met(2, [3, 4]), Met(None, [1])]
