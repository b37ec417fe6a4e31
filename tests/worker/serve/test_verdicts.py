"""A query tells the verdict that its document then gets, with the same matches."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from tests.support.breadth import slow
from tests.support.checker.history import reason, verdict_of
from tests.support.embedded import NOW
from tests.support.texts import near_copies
from tests.worker.serve.parts import Site, body
from worker.bus import Record
from worker.serve.answers import Answer

TEXTS = near_copies(45, 3)
MANY = near_copies(110, 3)
SECOND = 1_000


def agree(answer: Answer, published: Record) -> None:
    verdict = verdict_of(published)
    assert tuple((one.id, one.similarity) for one in answer.matches) == verdict.matches
    first = None if answer.first is None else (answer.first.id, answer.first.sequence)
    assert first == verdict.first
    assert answer.verdict == dict(published.headers)["neardup-verdict"].decode()  # type: ignore[union-attr]


@pytest.mark.parametrize("shards", [slow(1), 4])
def test_a_query_before_a_document_tells_its_verdict_and_matches(
    tmp_path: Path, shards: int
) -> None:
    """Buckets overflow, entries expire and are renewed, and documents are forgotten.

    The first of them come before there is a now; some dates are wrong, and some are missing.
    """
    random = Random(shards)
    duplicates = expired = 0
    with Site(
        tmp_path,
        index={"shards": shards, "bucket_capacity": 2, "max_matches": 2, "window": "60s"},
        documents={"time_field": "time", "time_format": "milliseconds"},
        similarity={"threshold": 0.5, "recall": 0.8},
    ) as site:
        for number, (ident, text) in enumerate(MANY):
            time = NOW - 1_200 * SECOND + (10 * number + random.randrange(-50, 50)) * SECOND
            wrong = random.choice([None, 1, NOW - 10**10, NOW + 10**10])
            document = {"id": ident, "text": text, "time": wrong if number % 7 == 3 else time}
            if number in {20, 50}:
                site.following.close()
                site.following = site.follow("follower")
            site.catch_up()
            (answer,) = site.answers(body(document))
            site.judge(document)
            agree(answer, site.last())
            duplicates += answer.verdict == "duplicate"
            expired += text in [before for _, before in MANY[:number]] and not answer.matches
            if random.random() < 0.1:
                site.put(random.choice(MANY[: number + 1])[0], None)
    assert duplicates > 5
    assert expired > 0


def test_a_query_gives_the_reason_of_a_rejection(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        site.catch_up()
        for payload in (b'{"id": "a"}', b'{"text": 7}', b'{"text": "\\u200b"}', b'{"text": " "}'):
            (answer,) = site.answers(b'{"document": %s}' % payload)
            site.put("k", payload)
            assert answer.verdict == "rejected"
            assert answer.reason is not None
            headers = dict(site.last().headers)
            assert headers["neardup-error-reason"] == answer.reason.encode()
            assert reason(site.last()) == answer.reason.partition(":")[0]


def test_nothing_is_written(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        for ident, text in TEXTS[:10]:
            site.judge({"id": ident, "text": text})
        site.catch_up()
        before = {topic: site.bus.end_offset(topic, 0) for topic in site.topology.internal()}
        contents: list[bytes] = []
        for _ in range(2):
            dumps: list[object] = []
            site.following.use(
                lambda stores, dumps=dumps: dumps.extend(  # type: ignore[misc]
                    (shard, store.offset, store.inserted, list(store.contents().records()))
                    for shard, store in stores.items()
                )
            )
            contents.append(repr(dumps).encode())
            site.answers(json.dumps({"queries": [{"text": text} for _, text in TEXTS]}).encode())
        assert contents[0] == contents[1]
        assert {topic: site.bus.end_offset(topic, 0) for topic in before} == before
