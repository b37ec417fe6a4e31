"""`neardup dedupe` of a change feed: deletes are no documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import dedupe, neardup

TEXT = "The harbour master of pier 39595 counted 56 ferries on the 5th morning of the month."
FIELDS = '[documents]\ntext_fields = "payload.after.text"\nid_field = "payload.after.id"\n'
FORGETS = FIELDS + 'deletes = "forget"\ndeleted_id_field = "payload.before.id"\n'


def created(number: int) -> bytes:
    row = {"id": number, "text": TEXT}
    return json.dumps({"payload": {"before": None, "after": row, "op": "c"}}).encode()


def deleted(number: int) -> bytes:
    return json.dumps({"payload": {"before": {"id": number}, "after": None, "op": "d"}}).encode()


FEED = b"\n".join([created(1), created(2), deleted(1), deleted(2), created(3), *[deleted(9)] * 9])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "neardup.toml"


def test_by_default_they_are_rejected_and_count_for_nothing(config: Path) -> None:
    config.write_text(FIELDS)
    verdicts = dedupe("--config", config, stdin=FEED)
    assert [one["verdict"] for one in verdicts] == [
        "unique", "duplicate", "rejected", "rejected", "duplicate", *["rejected"] * 9
    ]  # fmt: skip
    assert {one.get("reason") for one in verdicts} == {None, "null-text: 'payload.after' is null"}


def test_they_can_forget(config: Path) -> None:
    config.write_text(FORGETS)
    done = neardup("dedupe", "--config", config, stdin=FEED)
    assert done.returncode == 0
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["verdict"] for one in verdicts] == [
        "unique", "duplicate", "deleted", "deleted", "unique", *["deleted"] * 9
    ]  # fmt: skip
    assert [one["id"] for one in verdicts[:5]] == ["1", "2", "1", "2", "3"]
    assert b"2 unique, 1 duplicate, 0 rejected; 11 deleted" in done.stderr


def test_what_is_not_utf8_or_not_whole_is_rejected_and_forgets_nothing(config: Path) -> None:
    config.write_text(FORGETS + "[limits]\nreject_share = 1.0\n")
    bad = [
        deleted(1).replace(b'"d"', b'"\xff"'),
        created(1).replace(b"The harbour", b"\xff"),
        deleted(1).replace(b'{"id"', b'{"\xff": 0, "id"'),
        b"\xff\xfe",
        deleted(1) + b"\r" * 2_000_000,
        created(8) + b"\r" * 2_000_000,
    ]
    verdicts = dedupe("--config", config, stdin=b"\n".join([created(1), *bad, created(2)]))
    assert [one["verdict"] for one in verdicts] == ["unique", *["rejected"] * 6, "duplicate"]
    codes = [one["reason"].partition(":")[0] for one in verdicts[1:-1]]
    assert codes == [*["invalid-utf8"] * 3, "not-json", *["too-large"] * 2]
    assert [match["id"] for match in verdicts[-1]["duplicate_of"]] == ["1"]


def test_a_field_that_no_document_has_is_still_refused(config: Path) -> None:
    config.write_text(FIELDS.replace("after.text", "after.body"))
    done = neardup("dedupe", "--config", config, stdin=FEED)
    assert done.returncode == 1
    assert b"3 of 3 documents can't be read (the first: stdin:1, no-text: " in done.stderr


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (FIELDS + 'deletes = "forget"\n', "documents.deletes: forget needs"),
        ('[documents]\nformat = "text"\ndeletes = "forget"\n', "documents.deletes: got forget"),
    ],
)
def test_what_can_forget_nothing_is_refused(config: Path, settings: str, said: str) -> None:
    config.write_text(settings)
    done = neardup("dedupe", "--config", config, stdin=FEED)
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"neardup: {said}")
    assert len(done.stderr.decode().splitlines()) == 1
