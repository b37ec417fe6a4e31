"""`neardup forget` on the in-process log, with an application that runs in the pauses."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.checker.history import verdict_of
from tests.support.embedded import Run
from tests.support.ids_of_keys import ODD_KEYS
from worker.bus import Outgoing
from worker.bus.memory.bus import MemoryBus
from worker.cli.errors import CommandError, status_of
from worker.cli.forget import forget_documents
from worker.corrections.service import Corrector, NotJudged
from worker.generations.plan import Plan
from worker.settings.errors import ConfigurationError

TEXT = "a text that is long enough to be told from all others"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = Run(tmp_path, partitions=2, shards=2)
    for number in range(10):
        ident = f"d{number}"
        value = json.dumps({"id": ident, "text": f"{TEXT} {number}" * 3}).encode()
        run.put(Outgoing(run.topology.documents, None, ident.encode(), value))
    return run


def forget(run: Run, ids: Sequence[str], *, bus: MemoryBus | None = None, **options: Any) -> None:  # noqa: ANN401 -- those of the command
    with Corrector.of(run.settings, Plan.of(run.settings), bus or run.bus) as corrector:
        forget_documents(corrector, ids, **{"as_json": False, **options})


def keys(bus: MemoryBus, topic: str) -> list[bytes | None]:
    """Return the keys of a topic's tombstones."""
    return [
        record.key
        for number in range(bus.partitions([topic])[topic] or 0)
        for record in bus.read(topic, number, 0, 100)
        if record.value is None
    ]


def test_it_returns_when_every_shard_has_judged_them(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            run.embedded.run_until_idle()

    forget(run, ["d3", "d7", "d3"], wait=True, pause=pause)
    assert len(pauses) == 3
    assert sorted(map(str, keys(run.bus, run.topology.unique))) == ["b'd3'", "b'd7'"]
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "2 ids forgotten by all shards",
        (
            "What the files of running workers hold of them is gone at most 86,400 s from now"
            " (index.erasure_seconds)"
        ),
        "This does not reach",
        (
            "  a worker or a server that is off: its state directory keeps them until you delete it"
            " or start it: then for at most 86,400 s"
        ),
        (
            "  neardup.documents, neardup.unique, neardup.duplicate, neardup.rejected,"
            " neardup.fingerprints, neardup.matches-…: the retention of each, set on the brokers"
        ),
        "Undo, as long as neardup.documents has them: neardup forget --undo d3 d7",
    ]


def idle(run: Run) -> Callable[[float], None]:
    """Return a pause in which the application does all that is to be done."""

    def pause(seconds: float) -> None:
        del seconds
        run.embedded.run_until_idle()

    return pause


def told(run: Run, capsys: pytest.CaptureFixture[str], *ids: str) -> list[str]:
    """Forget documents, and return what is said of that, without what is left where."""
    forget(run, ids, wait=True, pause=idle(run))
    lines = capsys.readouterr().err.splitlines()
    return lines[: [line.startswith("What the files") for line in lines].index(True)]


def test_an_id_that_was_never_there_is_said_to_be_unknown(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = "1 id unknown to the index: {}. No such document came before it, or it is forgotten"
    run.embedded.run_until_idle()
    before = run.bus.end_offset(run.topology.documents, 0)
    never = "no document with this id was ever published: typo"
    with pytest.raises(CommandError, match=f"{never}; nothing was sent") as caught:
        told(run, capsys, "typo")
    assert caught.value.status == 1
    assert run.bus.end_offset(run.topology.documents, 0) == before
    assert told(run, capsys, "d3", "typo") == [never, "1 id forgotten by all shards"]
    (line,) = told(run, capsys, "d3")
    assert line.startswith(unknown.format("d3")), "it is forgotten already"
    (line,) = told(run, capsys, *(f"x{number}" for number in range(12)))
    assert line.startswith("12 ids unknown to the index: x0, x1, x2, ")
    assert "x9 and 2 more. No such document" in line


def test_a_document_that_comes_just_before_is_known(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(run, capsys, "d3", "d4") == ["2 ids forgotten by all shards"]


def test_an_id_that_one_shard_knows_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(tmp_path, partitions=1, shards=18)
    run.feed([("a", TEXT), ("b", f"{TEXT} indeed"), ("copy", TEXT)], one_by_one=True)
    assert told(run, capsys, "a", "b") == ["2 ids forgotten by all shards"]
    (line,) = told(run, capsys, "copy")
    assert "or is a copy for which another stands." in line


def test_snapshots_are_named_with_what_replaces_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshots = {"url": "memory://me:hush@kept", "keep": 2, "every_seconds": 900}
    run = Run(tmp_path, partitions=1, snapshots=snapshots)
    run.feed([("a", TEXT)])
    forget(run, ["a"], wait=False, pause=no_pause)
    said = capsys.readouterr().err
    assert (
        "  snapshots in memory://****@kept: until 2 newer ones of the shard replace them, one every"
        " 900 s while documents come\n"
    ) in said


def test_if_the_answers_are_gone_it_says_that_it_does_not_know(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    def pause(seconds: float) -> None:
        del seconds
        run.embedded.run_until_idle()
        for shard in range(2):
            for number in range(2):
                topic = run.topology.matches(shard)
                run.bus.trim(topic, number, run.bus.end_offset(topic, number))

    forget(run, ["d3"], wait=True, pause=pause)
    assert capsys.readouterr().err.splitlines()[:2] == [
        "1 id forgotten by all shards",
        "Whether the index had them is not known: not all answers of shards are there",
    ]


def test_it_need_not_wait(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    forget(run, ["d3"], wait=False, pause=no_pause)
    assert keys(run.bus, run.topology.documents) == [b"d3"]
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert first == (
        "1 id sent to neardup.documents to be forgotten. Whether the index has them is not known"
        " before all shards have judged them"
    )
    assert second.endswith("is gone at most 86,400 s after that (index.erasure_seconds)")


@pytest.mark.parametrize("wait", [True, False])
def test_programs_get_where_the_tombstones_are(
    run: Run, capsys: pytest.CaptureFixture[str], *, wait: bool
) -> None:
    run.embedded.run_until_idle()
    ids = ["d3", "typo"]
    forget(run, ids, wait=wait, as_json=True, pause=idle(run))
    said = json.loads(capsys.readouterr().out)
    (tombstone,) = said.pop("tombstones")
    assert [set(one) for one in said.pop("not_reached")] == [{"what", "until"}] * 2
    unknown = ["typo"] if wait else None
    expected = {"ids": ids, "judged": wait, "unknown": unknown, "erasure_seconds": 86_400}
    assert said == expected
    assert tombstone["topic"] == "neardup.documents"
    (record,) = run.bus.read(tombstone["topic"], tombstone["partition"], tombstone["offset"], 1)
    assert (record.key, record.value) == (b"d3", None)


def test_while_nothing_happens_it_says_what_it_waits_for(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 121:
            run.embedded.run_until_idle()

    forget(run, ["d3"], wait=True, pause=pause)
    lines = capsys.readouterr().err.splitlines()
    assert lines[2] == "1 id forgotten by all shards"
    assert lines[0] == lines[1]
    assert lines[0].startswith("waiting: neardup.documents[")
    assert "is judged up to offset 0, the tombstone is at " in lines[0]


def test_who_interrupts_the_wait_learns_that_they_were_sent(run: Run) -> None:
    def pause(seconds: float) -> None:
        del seconds
        raise KeyboardInterrupt

    with pytest.raises(NotJudged, match="interrupted: the tombstones were sent") as caught:
        forget(run, ["d3"], wait=True, pause=pause)
    assert status_of(caught.value) == 130


@pytest.mark.parametrize("wrong", ["", "i" * 1_025, "\udcff"])
def test_what_can_be_no_id_is_refused_before_anything_is_sent(run: Run, wrong: str) -> None:
    with pytest.raises(CommandError, match=r"bad-id: .*; nothing was sent") as caught:
        forget(run, ["d3", wrong], wait=False)
    assert caught.value.status == 2
    assert keys(run.bus, run.topology.documents) == []


def test_without_the_topic_nothing_is_sent(run: Run) -> None:
    with pytest.raises(ConfigurationError, match=r"no topic neardup\.documents; run `neardup to"):
        forget(run, ["d3"], wait=True, bus=MemoryBus())


def test_a_wait_that_fails_says_that_they_were_sent(run: Run) -> None:
    bus = MemoryBus()
    bus.create_topic(run.topology.documents, 2)
    with pytest.raises(NotJudged, match="; the tombstones were sent") as caught:
        forget(run, ["d3"], wait=True, pause=no_pause, bus=bus)
    assert status_of(caught.value) == 1


def no_pause(seconds: float) -> None:
    raise AssertionError(seconds)


@pytest.mark.parametrize("key", ODD_KEYS)
def test_an_id_is_taken_as_it_is_published(tmp_path: Path, key: bytes) -> None:
    run = Run(tmp_path, partitions=1, shards=1)
    value = json.dumps({"text": TEXT}).encode()
    run.put(Outgoing(run.topology.documents, 0, key, value))
    run.put(Outgoing(run.topology.documents, 0, b"copy", value))
    run.embedded.run_until_idle()
    (record,) = run.bus.read(run.topology.duplicate, 0, 0, 10)
    ((published, _),) = verdict_of(record).matches
    forget(run, [published, "copy"], wait=False)
    run.put(Outgoing(run.topology.documents, 0, b"again", value))
    run.embedded.run_until_idle()
    assert [record.key for record in run.bus.read(run.topology.unique, 0, 0, 10)][-1] == b"again"
    cut = "~sha256:" in published and not published.startswith("hex:6b7e")
    assert keys(run.bus, run.topology.unique)[0] == (published.encode() if cut else key)


@pytest.mark.parametrize(
    ("kind", "ident", "key"),
    [
        ("long", "-1", b"\xff" * 8),
        ("int", "128", b"\0\0\0\x80"),
        ("ignore", "neardup.documents-0-0", b"neardup.documents-0-0"),
        ("long", "of a value", b"of a value"),
    ],
)
def test_whatever_keys_are_an_id_is_forgotten(
    tmp_path: Path, kind: str, ident: str, key: bytes
) -> None:
    run = Run(tmp_path, partitions=1, shards=1, documents={"key": kind})
    named = {"text": TEXT} | ({"id": ident} if ident == "of a value" else {})
    run.put(Outgoing(run.topology.documents, 0, key, json.dumps(named).encode()))
    forget(run, [ident], wait=False)
    run.put(Outgoing(run.topology.documents, 0, None, json.dumps({"text": TEXT}).encode()))
    run.embedded.run_until_idle()
    assert len(run.bus.read(run.topology.unique, 0, 0, 10)) == 3
    assert keys(run.bus, run.topology.unique) == [key]
