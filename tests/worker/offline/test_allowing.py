"""What a person allows is unique from there on, whatever happens meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from tests.support.breadth import mostly_slow, slow
from tests.support.checker.history import History, verdict_of
from tests.support.corpus import scaled
from tests.support.embedded import Run, by_id
from tests.support.texts import near_copies
from worker.bus import Outgoing
from worker.corrections.request import Allow, Forget, Request, Withdraw, encoded
from worker.corrections.state import erasure_name
from worker.wire.headers import CORRECTION

TEXT = "a text that says nothing much, but is long enough to be told from all of the others"
NEAR = TEXT + " indeed"
OTHER = "an altogether different text, which shares next to nothing with what came before it"


def allow(ident: str, text: str, *, exact: bool = False) -> Request:
    return Allow(ident, text, exact=exact, by="ada", why="a slogan")


def allowed(history: History) -> dict[str, str | None]:
    """Return the allowance that holds for each document on *unique*, by id."""
    return {
        json.loads(record.value)["id"]: verdict_of(record).allowed
        for record in history.unique
        if record.value is not None
    }


@pytest.mark.parametrize("shards", [1, 2, 7, 18])
@pytest.mark.parametrize("one_by_one", [True, slow(False)])
def test_a_copy_of_an_allowed_text_is_unique_until_that_is_withdrawn(
    tmp_path: Path, shards: int, *, one_by_one: bool
) -> None:
    run = Run(tmp_path, partitions=1, shards=shards)
    run.feed([("a", TEXT), ("b", NEAR)], one_by_one=one_by_one)
    run.correct(allow("slogan", TEXT))
    run.feed([("c", TEXT), ("d", NEAR), ("e", OTHER), ("f", OTHER)], one_by_one=one_by_one)
    run.correct(Withdraw("slogan"))
    run.feed([("g", TEXT)], one_by_one=one_by_one)
    history = run.prove(tmp_path / "replay", shards=4)
    assert allowed(history) == {"a": None, "c": "slogan", "d": "slogan", "e": None}
    found = {ident: [other for other, _ in matches] for ident, matches in by_id(history).items()}
    assert (found["b"], found["f"]) == (["a"], ["e"])
    assert found["g"] == ["a", "b"], "the index holds what it would without the allowance"


def test_exactly_means_the_normal_form(tmp_path: Path) -> None:
    run = Run(tmp_path, partitions=1)
    run.correct(allow("slogan", TEXT, exact=True))
    run.feed([("a", TEXT), ("b", NEAR), ("c", TEXT.upper()), ("d", NEAR)])
    history = run.prove(tmp_path / "replay")
    assert allowed(history) == {"a": "slogan", "c": "slogan"}


def test_a_later_allowance_with_the_id_replaces_the_earlier_one(tmp_path: Path) -> None:
    run = Run(tmp_path, partitions=1)
    run.feed([("a", TEXT), ("b", OTHER)])
    run.correct(allow("slogan", TEXT))
    run.correct(allow("slogan", OTHER))
    run.feed([("c", TEXT), ("d", OTHER)])
    assert allowed(run.prove(tmp_path / "replay")) == {"a": None, "b": None, "d": "slogan"}


def test_the_most_similar_allowance_counts_and_of_several_the_earliest(tmp_path: Path) -> None:
    run = Run(tmp_path, partitions=1)
    for ident, text in (("near", NEAR), ("same", TEXT), ("again", TEXT)):
        run.correct(allow(ident, text))
    run.feed([("a", TEXT)])
    assert allowed(run.prove(tmp_path / "replay")) == {"a": "same"}


def test_nothing_of_a_correction_is_published(tmp_path: Path) -> None:
    run = Run(tmp_path, partitions=1)
    run.correct(allow("slogan", TEXT))
    run.correct(Withdraw("another"))
    history = run.prove(tmp_path / "replay")
    assert (history.unique, history.duplicate, history.rejected) == ([], [], [])


def test_what_a_person_has_forgotten_is_forgotten_and_noted(tmp_path: Path) -> None:
    run = Run(tmp_path, partitions=1, shards=2)
    run.feed([("a", TEXT)])
    run.correct(Forget("a", by="ada", why="asked to"))
    run.feed([("b", TEXT)])
    history = run.prove(tmp_path / "replay")
    assert by_id(history) == {"a": (), "b": ()}
    assert [record.key for record in history.duplicate] == [b"a"]
    (erasure,) = run.corrections().erasures
    assert erasure.name == erasure_name(b"a")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"", "truncated"),
        (b"\xff{", "malformed"),
        (b'{"kind":"bless","id":"a"}', "Invalid value 'bless'"),
        (b'{"kind":"allow","id":"","text":"x"}', "its id is empty"),
        (b'{"kind":"allow","id":"a","text":"  "}', "the text that it allows is empty"),
        (b'{"kind":"allow","id":"a","text":"\\u200b"}', "nothing is left of the text"),
        (
            b'{"kind":"allow","id":"a","text":"%s"}' % (b"x" * 50_001),
            "has 50,001 characters; the limit is 50,000",
        ),
    ],
)
def test_what_corrects_nothing_is_rejected(tmp_path: Path, value: bytes, said: str) -> None:
    run = Run(tmp_path, partitions=1)
    run.put(Outgoing(run.topology.documents, 0, b"key", None, ((CORRECTION, value),)))
    run.feed([("a", TEXT), ("b", TEXT)])
    history = run.finish()
    assert by_id(history)["b"] == (("a", 1.0),)
    (rejected,) = history.rejected
    reason = dict(rejected.headers)["neardup-error-reason"] or b""
    assert reason.startswith(b"bad-correction: ")
    assert said in reason.decode()
    assert run.corrections().allowances == ()


def test_a_document_with_the_header_is_a_document(tmp_path: Path) -> None:
    run = Run(tmp_path, partitions=1)
    header = (CORRECTION, encoded(allow("a", TEXT)))
    for ident in ("a", "b"):
        value = json.dumps({"id": ident, "text": TEXT}).encode()
        run.put(Outgoing(run.topology.documents, 0, None, value, (header,)))
    assert by_id(run.finish()) == {"a": (), "b": (("a", 1.0),)}
    assert run.corrections().allowances == ()


@pytest.mark.parametrize("how", [slow("restart"), "crash"])
@pytest.mark.parametrize("seed", mostly_slow(range(scaled(2, 12)), 0))
def test_whatever_is_corrected_in_between_all_shards_agree(
    tmp_path: Path, seed: int, how: Literal["restart", "crash"]
) -> None:
    chance = Random(seed)
    run = Run(tmp_path, partitions=2, shards=chance.choice([1, 2, 7]), batch=chance.randint(1, 20))
    texts = near_copies(120, seed)
    for number, (ident, text) in enumerate(texts):
        run.feed([(ident, text)], one_by_one=chance.random() < 0.2)
        if chance.random() < 0.2:
            _, other = texts[chance.randint(0, number)]
            name = f"allowance {chance.randint(0, 5)}"
            drawn = allow(name, other, exact=chance.random() < 0.3)
            run.correct(drawn if chance.random() < 0.7 else Withdraw(name))
        if chance.random() < 0.05:
            getattr(run, how)()
    history = run.prove(tmp_path / "replay", shards=chance.choice([1, 3, 7]))
    assert any(allowed(history).values())
