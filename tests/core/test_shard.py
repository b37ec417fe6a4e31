"""The shard of the compiled core, driven from Python over a store in dictionaries."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from lsh._core import Damaged, Matches, Opening, Query, check
from lsh.index import BucketRules, DocumentBatch
from tests.core.dictionaries import DictionaryStore, Driven
from tests.oracle.feeds import BANDS, COLUMNS, ROWS, WINDOW, long_feed
from tests.oracle.feeds import Query as Asked
from tests.oracle.subjects import batch_of
from tests.support.corpus import scaled
from tests.support.sealing import sealed

RUN_DOCUMENTS = 8
PLAIN = BucketRules(
    threshold=0.6, absorb=0.9, capacity=4, crowded=2, max_matches=4,
    now_rank=5, now_of=16, now_least=8, bands=BANDS, rows=ROWS,
)  # fmt: skip
WINDOWED = replace(PLAIN, window_ms=WINDOW, same_id="ignore")


def batches(seed: int, size: int = 12) -> Iterator[DocumentBatch]:
    feed = long_feed(seed, 400, alike=False)
    events = [event for event in feed if not isinstance(event, Asked)]
    for start in range(0, len(events), size):
        yield batch_of(events[start : start + size], COLUMNS)


def driven(rules: BucketRules = WINDOWED, seed: int = 1, count: int = 100) -> Driven:
    """Return a shard that has judged some batches."""
    made = Driven(rules, run_documents=RUN_DOCUMENTS)
    for some, _ in zip(batches(seed), range(count), strict=False):
        made.judge(some)
    return made


Row = list[tuple[int, float, bytes, float]]


def rows(found: Matches) -> list[Row]:
    columns = found.sequences.tolist(), found.similarities.tolist(), found.ids
    each: Row = list(zip(*columns, found.containments.tolist(), strict=True))
    edges = found.starts.tolist()
    return [each[low:high] for low, high in pairwise(edges)]


def answers(query: Query) -> tuple[list[Row], Any, list[int]]:
    matches, met, compared = query.answers()
    return rows(matches), met, compared


@pytest.mark.parametrize("rules", [PLAIN, WINDOWED])
def test_what_is_opened_anew_decides_the_same(rules: BucketRules) -> None:
    kept, opened = driven(rules, count=0), driven(rules, count=0)
    for some in batches(2):
        one, other = kept.judge(some), opened.judge(some)
        assert rows(one.matches) == rows(other.matches)
        assert (one.candidates, one.known) == (other.candidates, other.known)
        opened.reopen()
        assert opened.shard.inserted == kept.shard.inserted == kept.store.inserted
        assert opened.shard.clock == kept.shard.clock == kept.store.clock
    sizes = kept.shard.sizes()
    assert sizes["documents"] == opened.shard.sizes()["documents"]
    assert len(sizes["tiers"]) > 1 or sizes["expired_eras"] > 1


@pytest.mark.parametrize("size", [1, 3])
def test_runs_are_merged_however_often_the_shard_is_closed(size: int) -> None:
    """A merge takes six documents and more, and what has no finished file is lost."""
    shard, most = driven(PLAIN, count=0), 0
    for some in batches(7, size):
        shard.judge(some)
        tiers = shard.shard.sizes()["tiers"]
        most = max(most, *(count for count, _ in tiers.values()), 0)
        shard.reopen()
    assert 8 <= most <= 9
    assert len(tiers) > 1


def recent(of: Driven) -> dict[str, int]:
    """Return what a shard has kept in memory of what was read lately."""
    sizes = of.shard.sizes()
    return {name: sizes[name] for name in ("record_bytes", "bucket_bytes")}


def test_a_crash_leaves_the_state_before_or_after_a_write() -> None:
    """Also one after some of its tables."""
    shard, random = driven(count=0), Random(1)
    for some in batches(3):
        before = deepcopy(shard.store)
        plan, decision = shard.decide(some)
        writes = shard.prepare(plan)
        shard.store.write_tables(writes)
        if random.random() < 0.4:
            shard.reopen()
            assert shard.store.inserted == before.inserted
            again, same = shard.decide(some)
            assert rows(same.matches) == rows(decision.matches)
            shard.store.write(shard.prepare(again))
            shard.reopen()
            continue
        shard.store.write_keys(writes)
        if random.random() < 0.4:
            shard.reopen()
        else:
            shard.shard.apply(plan)
        assert shard.shard.inserted == shard.store.inserted


def flipped(store: DictionaryStore, random: Random) -> DictionaryStore:
    """Return a copy of a store of which one bit differs."""
    made = deepcopy(store)
    parts = [made.keys, *made.tables.values()]
    part, key = random.choice([(part, key) for part in parts for key in part])
    value = bytearray(part[key])
    bit = random.randrange(8 * len(value))
    value[bit // 8] ^= 1 << bit % 8
    part[key] = bytes(value)
    return made


@pytest.mark.parametrize("rules", [WINDOWED, PLAIN])
def test_a_flipped_bit_gives_an_error_and_never_another_verdict(rules: BucketRules) -> None:
    random, found = Random(2), 0
    feed = list(batches(4))
    sound = driven(rules, count=0)
    for some in feed[:-6]:
        sound.judge(some)
    start = deepcopy(sound.store)
    expected = [rows(sound.judge(some).matches) for some in feed[-6:]]
    for _ in range(scaled(150, 2_000)):
        store = flipped(start, random)
        try:
            shard = Driven(rules, store, run_documents=RUN_DOCUMENTS)
            assert [rows(shard.judge(some).matches) for some in feed[-6:]] == expected
        except Damaged:
            found += 1
    assert found > 30


def forged(store: DictionaryStore, random: Random) -> DictionaryStore:
    """Return a copy of a store with a value, of any kind, that nobody could have written."""
    made = deepcopy(store)
    kinds: dict[bytes, list[tuple[dict[bytes, bytes], bytes]]] = {}
    for part in (made.keys, *made.tables.values()):
        for key in part:
            kinds.setdefault(key if key[0] == 0xFF else key[:1], []).append((part, key))
    part, key = random.choice(kinds[random.choice(sorted(kinds))])
    value = bytearray(check(key, part[key]))
    for _ in range(random.choice([1, 1, 2, 5])):
        at = random.randrange(len(value) + 1)
        match random.randrange(4):
            case 0:
                del value[at:]
            case 1:
                value += random.randbytes(random.randrange(20))
            case 2:
                value[at : at + 1] = random.randbytes(1)
            case _:
                value[at : at + 8] = random.choice([b"\xff", b"\0", b"\x7f"]) * 8
    part[key] = sealed(key, bytes(value))
    return made


@pytest.mark.parametrize("rules", [WINDOWED, PLAIN])
def test_forged_values_are_damage_or_have_other_verdicts(rules: BucketRules) -> None:
    """They have sound checksums. Nothing else comes of them: no panic, no endless work."""
    random, found = Random(3), 0
    feed = list(batches(4))
    start = driven(rules, seed=4, count=len(feed) - 6).store
    for _ in range(scaled(120, 4_000)):
        store = forged(start, random)
        try:
            shard = Driven(rules, store, run_documents=RUN_DOCUMENTS)
            for some in feed[-6:]:
                shard.query(some)
                shard.judge(some)
        except Damaged:
            found += 1
    assert found > 20


def test_queries_are_answered_beside_a_plan() -> None:
    """Whoever has a store keeps queries out of `apply`; nothing else is kept apart."""
    shard, feed = driven(count=10), list(batches(1))[10:]
    questions = [question for question in feed if len(question.ids)]
    alone = driven(count=10)
    expected = {alone.shard.inserted: [answers(alone.query(one)) for one in questions]}
    for some in feed:
        alone.judge(some)
        expected[alone.shard.inserted] = [answers(alone.query(one)) for one in questions]
    writing, done = threading.Lock(), threading.Event()

    def ask(seed: int) -> int:
        random, asked = Random(seed), 0
        while not done.is_set():
            at = random.randrange(len(questions))
            with writing:
                inserted = shard.shard.inserted
                found = answers(shard.query(questions[at]))
            assert found == expected[inserted][at]
            asked += 1
        return asked

    with ThreadPoolExecutor(2) as pool:
        asking = [pool.submit(ask, seed) for seed in range(2)]
        try:
            for some in feed:
                plan, _ = shard.decide(some)
                writes = shard.prepare(plan)
                with writing:
                    shard.store.write(writes)
                    shard.shard.apply(plan)
        finally:
            done.set()
        assert all(one.result() > 0 for one in asking)


def test_a_plan_belongs_to_the_state_that_it_was_made_of() -> None:
    shard = driven(count=5)
    one, other = list(batches(1))[5:7]
    first, _ = shard.decide(one)
    second, _ = shard.decide(other)
    query = shard.query(other)
    shard.store.write(shard.prepare(first))
    with pytest.raises(ValueError, match="the plan has no write"):
        shard.shard.apply(second)
    shard.shard.apply(first)
    with pytest.raises(ValueError, match="the shard has changed since"):
        second.keys()
    with pytest.raises(ValueError, match="the shard has changed since"):
        query.keys()
    with pytest.raises(ValueError, match="the plan was applied"):
        first.judge()
    with pytest.raises(ValueError, match="the shard has changed since"):
        driven(count=5).shard.apply(first)


def test_a_plan_goes_on_when_its_values_were_given() -> None:
    shard = driven(count=20)
    shard.reopen()
    plan = next(
        plan
        for plan in (shard.shard.plan(some, WINDOWED) for some in list(batches(1))[:10])
        if plan.keys()
    )
    keys = plan.keys()
    assert plan.keys() == keys, "they are the same until their values are given"
    with pytest.raises(ValueError, match="there are keys left to read"):
        plan.judge()
    with pytest.raises(ValueError, match=r"values: got 0, takes \d+"):
        plan.give([])
    with pytest.raises(TypeError):
        plan.give([1])  # type: ignore[list-item]
    shard.read(plan)
    plan.judge()


def changed(some: DocumentBatch, **parts: Any) -> DocumentBatch:  # noqa: ANN401 -- of any type
    return replace(some, **parts)


def wrong_batches() -> Iterator[tuple[DocumentBatch, type[Exception], str]]:
    some = next(batches(1))
    rows = len(some.ids)
    yield changed(some, ids=some.ids[:-1]), ValueError, f"ids: got {rows - 1}, takes {rows}"
    yield changed(some, times=some.times[:-1]), ValueError, "times: got"
    yield changed(some, shingles=some.shingles[1:]), ValueError, "shingles: got"
    yield changed(some, keys=some.keys[1:]), ValueError, "keys: got"
    yield changed(some, sketches=some.sketches[1:]), ValueError, "sketches: got"
    yield changed(some, columns=[0, 1, 1, 3]), ValueError, "columns: takes different numbers"
    yield changed(some, columns=[0, 1, 2, 300]), OverflowError, "u8|integral|too large"
    yield changed(some, times=some.times.astype(np.uint64)), TypeError, "type"
    yield changed(some, keys=some.keys.reshape(-1)), TypeError, "dimension"
    yield changed(some, ids=["text"] * rows), TypeError, "bytes"


@pytest.mark.parametrize(("some", "kind", "message"), list(wrong_batches()))
def test_a_batch_whose_parts_do_not_fit_is_refused(
    some: DocumentBatch, kind: type[Exception], message: str
) -> None:
    shard = driven(count=0).shard
    for begin in (shard.plan, shard.query):
        with pytest.raises(kind, match=message):
            begin(some, WINDOWED)


def test_a_batch_of_another_shard_is_refused() -> None:
    shard, some = driven(count=5).shard, next(batches(1))
    with pytest.raises(Damaged, match="column"):
        shard.plan(replace(some, columns=[0, 1, 2, 9]), WINDOWED)


def test_the_order_of_arrays_does_not_matter() -> None:
    one, other = driven(count=0), driven(count=0)
    for some in batches(5):
        turned = replace(
            some, keys=np.asfortranarray(some.keys), sketches=np.asfortranarray(some.sketches)
        )
        one.judge(some)
        other.judge(turned)
    assert one.store == other.store


def test_ids_that_are_forgotten_are_known_if_a_document_had_them() -> None:
    shard = driven(count=0)
    known: list[bytes] = []
    for some in batches(1):
        decision = shard.judge(some)
        known += decision.known
        assert set(decision.known) <= {one.id for one in some.forgotten}
    assert known


def test_a_panic_is_an_ordinary_error() -> None:
    shard, some = driven(PLAIN, count=1), next(batches(1))
    with pytest.raises(RuntimeError, match=r"the core has failed: .*overflow"):
        shard.read(shard.shard.plan(some, replace(PLAIN, rows=1 << 63)))
    shard.judge(some)


def test_an_opening_says_what_is_missing() -> None:
    sound = driven(count=30).store
    with pytest.raises(Damaged, match="not a clock"):
        opening(sound, clock=b"123")
    with pytest.raises(ValueError, match="got run_documents 0"):
        opening(sound, run_documents=0)
    with pytest.raises(Damaged, match="its last page has"):
        opened(sound, inserted=sound.inserted + 1)
    begun = opening(sound)
    with pytest.raises(ValueError, match="values: got 1, takes 3"):
        begun.give([None])
    begun.give(list(map(sound.keys.get, begun.keys())))
    with pytest.raises(Damaged, match="the filter of run"):
        begun.finish()
    with pytest.raises(ValueError, match="the opening has ended"):
        begun.keys()


def opening(store: DictionaryStore, **more: Any) -> Opening:  # noqa: ANN401 -- of any type
    given = {"run_documents": RUN_DOCUMENTS, "window_ms": WINDOW, "inserted": store.inserted}
    return Opening(**{**given, "clock": store.clock, **more})


def opened(store: DictionaryStore, **more: Any) -> None:  # noqa: ANN401 -- of any type
    begun = opening(store, **more)
    begun.give(list(map(store.keys.get, begun.keys())))


def test_values_are_checked_with_their_keys() -> None:
    store = driven(count=30).store
    pages = [pair for table in store.tables.values() for pair in table.items()]
    assert pages
    for key, value in [*store.keys.items(), *pages]:
        plain = check(key, value)
        assert value.startswith(plain)
        with pytest.raises(Damaged, match=key.hex()):
            check(key, value + b"\0")


@pytest.mark.parametrize("rules", [PLAIN, WINDOWED, replace(PLAIN, same_id="replace")])
def test_what_is_judged_in_small_pieces_is_judged_the_same(rules: BucketRules) -> None:
    whole, pieces = driven(rules, count=0), driven(rules, count=0)
    for some in batches(4, size=40):
        pieces.shard.limit(0, 0, 0)
        one, other = whole.judge(some), pieces.judge(some)
        assert rows(one.matches) == rows(other.matches)
        assert (one.candidates, one.absorbed) == (other.candidates, other.absorbed)
        assert (one.divided, one.dropped) == (other.divided, other.dropped)


def test_a_finalizer_may_wait_for_a_thread_that_uses_the_plan() -> None:
    """Python runs it while objects are made: no lock of the plan may be held then."""
    shard, [first, second] = driven(PLAIN, count=0), list(batches(5))[:2]
    shard.judge(first)
    plan = shard.shard.plan(second, PLAIN)
    shard.read(plan)
    begun, ended = threading.Event(), threading.Event()

    class Cycle:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            begun.set()
            ended.wait(60)

    def use() -> None:
        begun.wait(60)
        plan.keys()
        ended.set()

    thresholds = gc.get_threshold()
    with ThreadPoolExecutor() as threads:
        used = threads.submit(use)
        gc.collect()
        gc.disable()
        Cycle()
        gc.set_threshold(1, 1, 1)
        gc.enable()
        try:
            plan.judge()
            gc.collect()
        finally:
            gc.set_threshold(*thresholds)
        used.result(60)


def test_limits_bound_what_is_kept_in_memory() -> None:
    shard = driven(count=30)
    assert sum(recent(shard).values())
    shard.shard.limit(0, 0)
    sizes = shard.shard.sizes()
    assert sizes["record_bytes"] + sizes["bucket_bytes"] < 10_000
