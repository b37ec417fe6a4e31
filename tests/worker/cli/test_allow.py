"""`neardup allow` on the in-process log, with an application that runs in the pauses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import neardup
from tests.support.embedded import Run, by_id
from worker.bus.memory.bus import MemoryBus
from worker.cli.allow import requested, send_corrections
from worker.cli.errors import CommandError
from worker.cli.forget import forget_documents, restore_documents
from worker.corrections.request import Allow, Forget, decoded
from worker.corrections.service import Corrector
from worker.files.errors import FileError
from worker.generations.plan import Plan
from worker.settings.errors import ConfigurationError
from worker.wire.corrections import MOST_CHARACTERS
from worker.wire.headers import ALLOWED_BY, CORRECTION

SONG = "I love this song!!! It is the best thing that I have heard in all these years."
FOOTER = "This message and its attachments are confidential, and for the addressee alone."


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = Run(tmp_path, partitions=2, shards=2)
    run.feed([("a", SONG), ("b", SONG)], one_by_one=True)
    return run


def idle(run: Run) -> Callable[[float], None]:
    """Return a pause in which the application does all that is to be done."""

    def pause(seconds: float) -> None:
        del seconds
        run.embedded.run_until_idle()

    return pause


def allow(run: Run, *, wait: bool = True, as_json: bool = False, **wanted: Any) -> None:  # noqa: ANN401 -- options
    with corrector(run) as sending:
        send_corrections(
            sending,
            requested(sending, **wanted),
            exact=wanted.get("exact", False),
            from_file="file" in wanted,
            wait=wait,
            as_json=as_json,
            pause=idle(run),
        )


def corrector(run: Run) -> Corrector:
    return Corrector.of(run.settings, Plan.of(run.settings), run.bus)


def corrections(run: Run) -> list[Any]:
    """Return what was sent, in the order of the topic."""
    return [
        decoded(value)
        for record in run.bus.all_of(run.topology.documents)
        for name, value in record.headers
        if name == CORRECTION
    ]


def duplicates(run: Run) -> set[str]:
    return {ident for ident, matches in by_id(run.finish()).items() if matches}


def test_a_text_is_allowed_and_that_is_withdrawn(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    allow(run, text=SONG, why="a song")
    (request,) = corrections(run)
    assert request.why == "a song"
    assert request.by
    assert capsys.readouterr().err.splitlines() == [
        "1 text allowed: what is near to it is unique from here on.",
        f"Undo: neardup allow --remove {request.id}",
    ]
    run.feed([("c", SONG), ("d", SONG + " Yes.")], one_by_one=True)
    assert duplicates(run) == {"b"}
    named = [
        value
        for record in run.bus.all_of(run.topology.unique)
        for name, value in record.headers
        if name == ALLOWED_BY
    ]
    assert named == [request.id.encode()] * 2
    allow(run, remove=request.id)
    assert capsys.readouterr().err.splitlines()[0].startswith(f"{request.id} withdrawn")
    run.feed([("e", SONG)], one_by_one=True)
    assert duplicates(run) == {"b", "e"}


def test_one_more_than_may_hold_is_refused_and_so_is_what_does_not_hold(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("worker.corrections.state.MOST_ALLOWANCES", 2)
    for number in range(3):
        run.correct(Allow(f"flood{number}", f"{FOOTER} {number}", exact=True))
    run.embedded.run_until_idle()
    with pytest.raises(CommandError, match=r"the text is not allowed: .* is the most") as refused:
        allow(run, text=SONG)
    assert refused.value.status == 1
    with pytest.raises(CommandError, match="there is no allowance 'nobody', so nothing"):
        allow(run, remove="nobody")
    allow(run, remove="flood0")
    with pytest.raises(CommandError, match="there is no allowance 'flood0'"):
        allow(run, remove="flood0")
    allow(run, text=SONG)
    allow(run, text=SONG)
    said = capsys.readouterr().err
    assert said.count("unique from here on") == 2
    assert "not allowed" not in said
    run.feed([("c", SONG)], one_by_one=True)
    assert duplicates(run) == {"b"}


def test_the_text_of_a_document_is_allowed(run: Run) -> None:
    allow(run, ident="b", exact=True)
    assert [(one.id, one.text, one.exact) for one in corrections(run)] == [("b", SONG, True)]
    run.feed([("same", SONG.upper()), ("near", SONG + " Yes.")], one_by_one=True)
    assert duplicates(run) == {"b", "near"}
    with pytest.raises(CommandError, match=r"no document with this id, as far .*nothing was sent"):
        allow(run, ident="nobody")


def test_a_file_of_texts_can_be_sent_again(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "allowed.txt"
    path.write_text(f"{SONG}\n\n{FOOTER}\n")
    allow(run, file=path, why="known", as_json=True)
    allow(run, file=path, why="known", as_json=True)
    first, second = capsys.readouterr().out.split("}\n{")
    ids = json.loads(first + "}")["ids"]
    assert json.loads("{" + second)["ids"] == ids
    assert len(set(ids)) == 2
    allow(run, file=path)
    said = capsys.readouterr().err
    assert "near to one of them (or the same, where the file says so) is unique" in said
    assert "--remove ALLOWANCE, for each that neardup allow --list names" in said
    assert {one.text for one in corrections(run)} == {SONG, FOOTER}
    run.feed([("f", FOOTER), ("g", FOOTER)], one_by_one=True)
    assert duplicates(run) == {"b"}


def test_lines_in_json_say_more(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "allowed.jsonl"
    lines = [{"text": SONG, "id": "song", "exact": True}, {"text": FOOTER, "why": "legal"}]
    path.write_text("\n".join(map(json.dumps, lines)))
    allow(run, file=path, why="known")
    found = {one.text: (one.exact, one.why) for one in corrections(run)}
    assert found == {SONG: (True, "known"), FOOTER: (False, "legal")}
    assert "song" in {one.id for one in corrections(run)}


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"text": ""}, "the text is empty; nothing was sent"),
        ({"text": " \n\t"}, "the text is empty"),
        ({"text": "\u200b\u200b"}, "nothing is left of the text once it is normalised"),
        ({"text": "x" * (MOST_CHARACTERS + 1)}, "50,001 characters; one that is allowed may"),
        ({"text": "\udcff"}, "not UTF-8"),
        ({"remove": ""}, "--remove: '' is no id"),
        ({"remove": "\udcff"}, "--remove: .* is no id"),
    ],
)
def test_what_cannot_be_allowed_is_refused_before_anything_is_sent(
    run: Run, wanted: dict[str, Any], reason: str
) -> None:
    with pytest.raises(CommandError, match=reason) as caught:
        allow(run, **wanted)
    assert caught.value.status == 2
    assert corrections(run) == []


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", b"", "has no text"),
        ("a.txt", b"fine\n\xff\n", r"a\.txt:2: .*nothing was sent"),
        ("a.txt", "fine\n\u200b\u200b\n".encode(), r"a\.txt:2: nothing is left"),
        ("a.jsonl", b'{"text": "fine"}\n{"txet": "x"}\n', r"a\.jsonl:2: .*nothing was sent"),
        ("a.jsonl", b'{"text": "fine"}\nno JSON\n', r"a\.jsonl:2: .*nothing was sent"),
    ],
)
def test_a_wrong_line_of_a_file_is_named(
    run: Run, tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(CommandError, match=reason):
        allow(run, file=path)
    with pytest.raises(FileError, match="No such file"):
        allow(run, file=tmp_path / "nowhere")
    assert corrections(run) == []


def test_with_a_window_it_says_how_long_that_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(tmp_path, partitions=1, shards=1, window="30d")
    allow(run, text=SONG, wait=False)
    said = capsys.readouterr().err
    assert "1 text sent to be allowed: what is near to it is unique once the shards have" in said
    assert "That holds for 30d (index.window); allow again to renew it." in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["allow"], "TEXT, --id, --file, --remove, --list: give one of them"),
        (["allow", "a text", "--list"], "TEXT, --id, --file, --remove, --list: give one of them"),
        (["allow", __file__], "test_allow.py is a file; --file allows the texts in it"),
        (["forget"], "ID, --group, --text: give one of them"),
        (["forget", "a", "--text", "b"], "ID, --group, --text: give one of them"),
        (["forget", "--group", "1", "--undo"], "--undo takes ids"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments: list[str], said: str) -> None:
    done = neardup(*arguments)
    assert done.returncode == 2
    assert said in done.stderr.decode()


def test_without_the_topic_nothing_is_sent(run: Run) -> None:
    with pytest.raises(ConfigurationError, match=r"no topic neardup\.documents; run `neardup to"):
        Corrector.of(run.settings, Plan.of(run.settings), MemoryBus())


def test_who_had_a_document_forgotten_is_noted_and_that_is_undone(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    pause = idle(run)
    with corrector(run) as sending:
        forget_documents(sending, ["a"], why="mine", wait=True, as_json=False, pause=pause)
    assert capsys.readouterr().err.endswith(": neardup forget --undo a\n")
    (note,) = corrections(run)
    assert isinstance(note, Forget)
    assert (note.id, note.why) == ("a", "mine")
    with corrector(run) as sending:
        restore_documents(sending, ["a"], wait=True, as_json=False, pause=pause)
    assert capsys.readouterr().err.splitlines() == [
        "1 document sent to neardup.documents again: judged and published anew"
    ]
    run.finish()
    published = [json.loads(one.value or b"{}") for one in run.bus.all_of(run.topology.unique)]
    assert [one.get("id") for one in published].count("a") == 2
    with (
        corrector(run) as sending,
        pytest.raises(CommandError, match=r"'nobody': .*nothing was sent"),
    ):
        restore_documents(sending, ["a", "nobody"], wait=False, as_json=False)
