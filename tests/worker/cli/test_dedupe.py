from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import zstandard

from tests.support.breadth import slow
from tests.support.command_line import SAMPLES, dedupe, jsonl, neardup

FOX = "The quick brown fox jumps over the lazy dog, and then it does so again and again."
SHIP = "A ship in harbour is safe, but that is not what ships are built for, as they say."
THREE = jsonl([{"id": "a", "text": FOX}, {"id": "b", "text": SHIP}, {"id": "c", "text": FOX + "."}])


def test_each_document_has_its_line_in_input_order() -> None:
    done = neardup("dedupe", stdin=THREE)
    first, second, third = done.stdout.splitlines()
    assert first == b'{"id":"a","verdict":"unique"}'
    assert second == b'{"id":"b","verdict":"unique"}'
    assert third.startswith(b'{"id":"c","verdict":"duplicate","duplicate_of":[{"id":"a","simil')
    assert b"3 documents" in done.stderr
    assert b"2 unique, 1 duplicate, 0 rejected" in done.stderr


def test_one_document_is_one() -> None:
    assert b"neardup: 1 document in " in neardup("dedupe", stdin=jsonl([{"text": FOX}])).stderr


BAD = {
    "not-json": b"{nonsense",
    "not-an-object": b'["a list"]',
    "no-text": b'{"id": "x", "body": "elsewhere"}',
    "text-wrong-type": b'{"id": "x", "text": 17}',
    "empty-text": b'{"id": "x", "text": "  "}',
    "invalid-utf8": b'{"id": "x", "text": "\xff\xfe"}',
    "too-large": b'{"id": "x", "text": "' + b"a" * 10_000_000 + b'"}',
    "too-deep": b'{"id": "x", "text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "id-wrong-type": b'{"id": ["x"], "text": "fine"}',
}


@pytest.fixture
def lenient(tmp_path: Path) -> Path:
    """Return settings in which any share of documents may be rejected."""
    config = tmp_path / "lenient.toml"
    config.write_text("[limits]\nreject_share = 1\nid_bytes = 96\n")
    return config


def test_bad_lines_are_rejected_each_with_its_reason(lenient: Path) -> None:
    lines = [line for bad in BAD.values() for line in (bad, b"\0\0\0")]
    verdicts = dedupe("--config", lenient, stdin=b"\n".join([*lines, THREE]))
    assert [verdict["verdict"] for verdict in verdicts[-3:]] == ["unique", "unique", "duplicate"]
    rejected = verdicts[:-3]
    assert {verdict["verdict"] for verdict in rejected} == {"rejected"}
    assert [v["reason"].partition(":")[0] for v in rejected[::2]] == list(BAD)
    assert list(rejected[0]) == ["id", "verdict", "reason"]
    readable = {"no-text", "text-wrong-type", "empty-text", "invalid-utf8"}
    for number, (code, verdict) in enumerate(zip(BAD, rejected[::2], strict=True)):
        place = f"stdin:{2 * number + 1}"
        assert verdict["id"] == ("x" if code in readable else place)
    assert "10000024 bytes" in next(v["reason"] for v in rejected if "too-large" in v["reason"])


def test_documents_without_id_are_named_after_their_place(tmp_path: Path) -> None:
    file = tmp_path / "docs.jsonl"
    file.write_bytes(jsonl([{"text": FOX}]) + b"\n   \n" + jsonl([{"id": None, "text": FOX}]))
    first, second = dedupe(file)
    assert first["id"] == "docs.jsonl:1"
    assert second["id"] == "docs.jsonl:4"
    assert second["duplicate_of"] == [{"id": "docs.jsonl:1", "similarity": 1.0}]


WRONG_IDS = [
    b'"%s"' % (b"i" * 97),
    b"9" * 97,
    f'"{"ä" * 48}a"'.encode(),
    b'""',
    b"1.5",
    b"true",
    b'["x"]',
    b'{"x": 1}',
    b'"\xff"',
    b'"\\ud800"',
]


def test_documents_with_a_wrong_id_are_named_after_their_place(
    lenient: Path, tmp_path: Path
) -> None:
    file = tmp_path / "docs.jsonl"
    file.write_bytes(b"".join(b'{"id": %s, "text": "fine"}\n' % wrong for wrong in WRONG_IDS))
    verdicts = dedupe("--config", lenient, file)
    assert [v["id"] for v in verdicts] == [f"docs.jsonl:{n + 1}" for n in range(len(WRONG_IDS))]
    reasons = [verdict["reason"].partition(":")[0] for verdict in verdicts]
    wrong = ["bad-id"] * 4 + ["id-wrong-type"] * 4
    assert reasons == [*wrong, "invalid-utf8", "not-json"]
    assert "97 bytes; limits.id_bytes is 96" in verdicts[0]["reason"]


def test_an_id_may_be_as_long_as_the_limit(tmp_path: Path) -> None:
    config = tmp_path / "neardup.toml"
    config.write_text("[limits]\nid_bytes = 96\n")
    longest = "0123456789abcdef" * 6
    lines = jsonl([{"id": longest, "text": FOX}, {"id": "b", "text": FOX}])
    first, second = dedupe("--config", config, stdin=lines)
    assert first == {"id": longest, "verdict": "unique"}
    assert second["duplicate_of"] == [{"id": longest, "similarity": 1.0}]


def test_ids_are_strings() -> None:
    assert dedupe(stdin=b'{"id": 17, "text": "some text"}')[0]["id"] == "17"


@pytest.mark.parametrize("compress", [slow(gzip.compress), zstandard.compress, slow(bytes)])
def test_compression_is_seen_by_content(compress: object, tmp_path: Path) -> None:
    assert callable(compress)
    data = compress(THREE) + compress(THREE)  # members, frames
    file = tmp_path / "documents"
    file.write_bytes(data)
    assert [v["id"] for v in dedupe(file)] == list("abcabc")
    assert dedupe("-", stdin=data) == dedupe(file)


@pytest.mark.parametrize("suffix", [slow(""), slow(".gz"), ".zst"])
def test_output_is_compressed_by_suffix(suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"out.jsonl{suffix}"
    assert dedupe("-o", out, stdin=THREE) == []
    data = out.read_bytes()
    if suffix == ".gz":
        data = gzip.decompress(data)
    if suffix == ".zst":
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    assert data == neardup("dedupe", stdin=THREE).stdout
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_unique_only_gives_the_lines_as_they_were(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    first = b'\xef\xbb\xbf{"text": "%s" ,  "id":1}\r\n' % FOX.encode()
    copy = b'{"text": "%s"}\n' % FOX.encode()
    last = b'{"text": "%s"}' % SHIP.encode()
    one.write_bytes(first + b"\n" + copy + last)
    assert neardup("dedupe", "--unique-only", one).stdout == first + last
    other = b'{"text": "Something else altogether, for a change"}'
    two.write_bytes(other)
    both = neardup("dedupe", "--unique-only", one, two)
    assert both.stdout == first + last + b"\n" + other


def test_strict_turns_rejections_into_a_status(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = neardup("dedupe", "--strict", "-o", out, stdin=THREE + b"{\n")
    assert done.returncode == 1
    assert len(out.read_bytes().splitlines()) == 4
    assert neardup("dedupe", "--strict", stdin=THREE).returncode == 0


def test_texts_in_lists_are_joined() -> None:
    chats = [
        {"m": [{"content": "How do I boil an egg?"}, {"content": end}]}
        for end in ("Six minutes in boiling water.", "Six minutes in boiling water!")
    ]
    assert [
        each["verdict"] for each in dedupe("--text-field", "m[].content", stdin=jsonl(chats))
    ] == [
        "unique",
        "duplicate",
    ]


def test_text_fields_are_joined_and_lines_may_be_texts() -> None:
    documents = jsonl([{"title": FOX, "body": SHIP}, {"title": SHIP, "body": SHIP}])
    arguments = ("--text-field", "title", "--text-field", "body")
    assert [v["verdict"] for v in dedupe(*arguments, stdin=documents)] == ["unique"] * 2
    lines = f"{FOX}\r\n{SHIP}\n{FOX}\n".encode()
    text = dedupe("--format", "lines", stdin=lines)
    assert [v["verdict"] for v in text] == ["unique", "unique", "duplicate"]
    assert text[2]["duplicate_of"][0] == {"id": "stdin:1", "similarity": 1.0}


def test_a_duplicate_names_the_earliest_of_its_matches() -> None:
    texts = [SHIP, FOX + " And so on.", FOX, FOX]
    lines = dedupe(stdin=jsonl([{"id": n, "text": text} for n, text in enumerate(texts)]))
    assert [match["id"] for match in lines[3]["duplicate_of"]] == ["2", "1"]
    assert [line.get("duplicate_first") for line in lines] == [None, None, {"id": "1"}, {"id": "1"}]
    assert list(lines[3]) == ["id", "verdict", "duplicate_of", "duplicate_first"]


@pytest.mark.slow
def test_shards_change_no_verdict() -> None:
    sample = SAMPLES / "pypa_advisories.jsonl.gz"
    assert dedupe(sample) == dedupe("--shards", "5", sample)


@pytest.mark.parametrize(
    ("sample", "unique", "duplicate"),
    [slow("onestop", 562, 5), slow("pypa_advisories", 1992, 669), ("youtube_spam", 1688, 268)],
)
def test_verdicts_on_real_text_stay_the_same(sample: str, unique: int, duplicate: int) -> None:
    kinds = [v["verdict"] for v in dedupe(SAMPLES / f"{sample}.jsonl.gz")]
    assert (kinds.count("unique"), kinds.count("duplicate")) == (unique, duplicate)


def test_a_high_threshold_takes_absorb_along() -> None:
    assert [v["verdict"] for v in dedupe("--threshold", "1", stdin=THREE * 2)][3:] == [
        "duplicate"
    ] * 3


def test_an_empty_input_gives_an_empty_output(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert neardup("dedupe", "-o", out, stdin=b"").returncode == 0
    assert out.read_bytes() == b""
    assert json.loads("[]") == dedupe(stdin=b"\n\n")
