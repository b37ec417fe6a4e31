"""What stops a worker before a topic goes to *rejected*, and what must not."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import worker.formats
import worker.stages
from tests.support.stages import DOCS, document, fingerprint, no_watermarks, process
from worker.bus import Record
from worker.formats.base import DocumentOptions
from worker.formats.unreadable import CAUSES
from worker.stages.base import StageError
from worker.stages.fingerprint import Fingerprint
from worker.stages.reject_limit import RejectLimit

LIMIT = RejectLimit(share=0.5, window=1_000)

BY_CONFIGURATION = {
    "not-json": b"plain text",
    "not-an-object": b"[1]",
    "schema-registry": b'\0\0\0\0\x07{"text": "x"}',
    "no-text": b'{"body": "x"}',
    "text-wrong-type": b'{"text": ["x"]}',
    "id-wrong-type": b'{"id": {}, "text": "x"}',
    "bad-id": json.dumps({"id": "i" * 2_000, "text": "x"}).encode(),
}
BY_CONTENT = {
    "empty-text": b'{"text": " \\u00a0"}',
    "null": b'{"text": null}',
    "invisible": b'{"text": "\\u0000\\u200b"}',
    "text-too-long": json.dumps({"text": "x" * 2_000_001}).encode(),
    "too-deep": b'{"text":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "null on the way": b"null",
    "invalid-utf8": b'{"text": "\xff"}',
}


TIMES = DocumentOptions(time_field="at")
CALENDAR = b'{"text": "a text", "at": 20240101}'
GARBAGE = b'{"text": "a text", "at": "noon"}'
DATED = b'{"text": "a text", "at": "2024-01-01"}'
UNDATED = b'{"text": "a text", "at": null}'


def stage(options: DocumentOptions | None = None) -> Fingerprint:
    made = fingerprint(LIMIT, options=options)
    made.adopt({DOCS: 0}, no_watermarks)
    return made


def all_of(value: bytes, count: int = 200) -> list[Record]:
    return [Record("documents", 0, n, 1, None, value) for n in range(count)]


@pytest.mark.parametrize("code", BY_CONFIGURATION)
def test_documents_that_do_not_fit_the_settings_stop_the_worker(code: str) -> None:
    with pytest.raises(StageError, match=rf"200 of the last 200 .* {code} \(200\): "):
        process(stage(), all_of(BY_CONFIGURATION[code]))


@pytest.mark.parametrize("code", BY_CONTENT)
def test_what_is_on_web_pages_does_not(code: str) -> None:
    burst = process(stage(), all_of(BY_CONTENT[code], 110 if code == "text-too-long" else 200))
    assert burst.offsets[DOCS] >= 110


@pytest.mark.parametrize("value", [CALENDAR, GARBAGE])
def test_a_time_field_that_no_document_can_be_read_by_stops_the_worker(value: bytes) -> None:
    mixed = [*all_of(value, 120), *all_of(UNDATED, 80)]
    with pytest.raises(StageError, match=r"120 of the last 200 .* bad-time \(120\): ") as caught:
        process(stage(TIMES), [r._replace(offset=n) for n, r in enumerate(mixed)])
    assert "field 'at' is " in str(caught.value)
    assert "documents.time_format (--time-format)" in str(caught.value)


def test_wrong_times_are_content_as_long_as_there_are_right_ones() -> None:
    made = stage(TIMES)
    mixed = [*all_of(DATED, 1), *all_of(GARBAGE, 999)]
    assert process(made, [r._replace(offset=n) for n, r in enumerate(mixed)]).offsets
    # That one is in the window no more.
    with pytest.raises(StageError, match=r"^1000 of the last 1000 .* bad-time \(1000\): "):
        process(made, [r._replace(offset=1_000 + n) for n, r in enumerate(all_of(GARBAGE, 1_000))])


def test_without_a_time_field_times_are_those_of_the_records() -> None:
    wrong = [record._replace(timestamp=1 << 50) for record in all_of(DATED, 199)]
    assert process(stage(), [*wrong, *all_of(DATED)[199:]]).offsets
    with pytest.raises(StageError, match=r"bad-time \(200\): 1125899906842624 ms is not between"):
        process(stage(), [record._replace(timestamp=1 << 50) for record in all_of(DATED)])


def test_content_dilutes_but_does_not_count() -> None:
    """Of a hundred documents, 51 are blank pages and 49 lack the field."""
    mixed = [*all_of(BY_CONTENT["empty-text"], 51), *all_of(BY_CONFIGURATION["no-text"], 49)]
    made = stage()
    assert process(made, [r._replace(offset=n) for n, r in enumerate(mixed)]).offsets
    more = all_of(BY_CONFIGURATION["no-text"], 3)
    with pytest.raises(StageError, match=r"52 of the last 103 .* no-text \(52\)"):
        process(made, [r._replace(offset=100 + n) for n, r in enumerate(more)])


def test_the_message_names_the_fields_that_documents_have() -> None:
    value = b'{"published_at": 1, "id": "a", "body": "b"}'
    with pytest.raises(StageError) as caught:
        process(stage(), all_of(value))
    assert str(caught.value).startswith(
        "200 of the last 200 documents can't be read: no-text (200): no field 'text'."
        " They have: 'published_at', 'id', 'body'. Nothing of this burst was published."
    )


def test_names_of_fields_are_bounded_and_harmless() -> None:
    names = ["\x1b[2J\n\u202e" + "n" * 10_000, *(f"field-{n}" for n in range(5_000))]
    value = json.dumps(dict.fromkeys(names, 1)).encode()
    with pytest.raises(StageError) as caught:
        process(stage(), all_of(value))
    message = str(caught.value)
    assert len(message) < 1_500
    assert message.isprintable()
    assert r"\x1b[2J\n\u202ennn" in message


def test_a_limit_of_one_is_none() -> None:
    made = fingerprint(RejectLimit(share=1))
    made.adopt({DOCS: 0}, no_watermarks)
    assert process(made, all_of(BY_CONFIGURATION["no-text"])).offsets


def test_only_the_last_documents_count() -> None:
    made = stage()
    process(made, [document(n) for n in range(1_000)])
    wrong = all_of(BY_CONFIGURATION["no-text"], 600)
    process(made, [r._replace(offset=1_000 + n) for n, r in enumerate(wrong)])
    with pytest.raises(StageError, match=r"^1200 of the last 1200 "):
        process(made, [r._replace(offset=1_600 + n) for n, r in enumerate(wrong)])


def test_every_code_has_a_cause() -> None:
    found = {
        call.args[0].value
        for package in (worker.formats, worker.stages)
        for file in Path(package.__path__[0]).rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "Unreadable"
        and isinstance(call.args[0], ast.Constant)
    }
    assert found == CAUSES.keys()
