"""Single runs of ``neardup dedupe``: what is given, what is written, and what is said."""

from __future__ import annotations

import gzip
import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

import pytest
import zstandard

from tests.support.breadth import slow
from tests.support.command_line import ROOT, SAMPLES, dedupe, environment, jsonl, neardup

FOX = "The quick brown fox jumps over the lazy dog, and then it does so again and again."
SHIP = "A ship in harbour is safe, but that is not what ships are built for, as they say."
THREE = jsonl([{"id": "a", "text": FOX}, {"id": "b", "text": SHIP}, {"id": "c", "text": FOX + "."}])
JUDGED: Final = ("a unique", "b unique", "c duplicate a")


def brief(line: Mapping[str, Any]) -> str:
    """Return a document's id and verdict, and its matches or the code of its reason.

    The earliest match is behind a bar if it isn't the best one.
    """
    matches = [match["id"] for match in line.get("duplicate_of", ())]
    first = line.get("duplicate_first", {}).get("id")
    more = [] if first in {None, *matches[:1]} else [f"| {first}"]
    code = [line["reason"].partition(":")[0]] if "reason" in line else []
    return " ".join([line["id"], line["verdict"], *matches, *more, *code])


def good(count: int) -> bytes:
    return jsonl(
        {"id": f"{n}", "text": f"{n} is the number of this document"} for n in range(count)
    )


def latin(count: int) -> bytes:
    documents = ({"id": n, "text": f"voil\xe0 {n**5} cr\xe8me"} for n in range(count))
    lines = (json.dumps(document, ensure_ascii=False) for document in documents)
    return "".join(f"{line}\n" for line in lines).encode("latin-1")


OTHER = b'{"title": "a", "body": "b"}\n'
BAD = {
    "stdin:1 rejected not-json": b"{nonsense",
    "stdin:3 rejected not-an-object": b'["a list"]',
    "x rejected no-text": b'{"id": "x", "body": "elsewhere"}',
    "x rejected text-wrong-type": b'{"id": "x", "text": 17}',
    "x rejected empty-text": b'{"id": "x", "text": "  "}',
    "x rejected invalid-utf8": b'{"id": "x", "text": "\xff\xfe"}',
    "stdin:13 rejected too-large": b'{"id": "x", "text": "' + b"a" * 10_000_000 + b'"}',
    "stdin:15 rejected too-deep": b'{"id": "x", "text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "stdin:17 rejected id-wrong-type": b'{"id": ["x"], "text": "fine"}',
}
WRONG_IDS = [
    *(b'"%s"' % (b"i" * 97), b"9" * 97, f'"{"ä" * 48}a"'.encode(), b'""'),
    *(b"1.5", b"true", b'["x"]', b'{"x": 1}'),
    *(b'"\xff"', b'"\\ud800"'),
]
WRONG = ["bad-id"] * 4 + ["id-wrong-type"] * 4 + ["invalid-utf8", "not-json"]
LONGEST = "0123456789abcdef" * 6
MARKED = b'\xef\xbb\xbf{"text": "%s" ,  "id":1}\r\n' % FOX.encode()
LAST = b'{"text": "%s"}' % SHIP.encode()
LINES_AS_READ = MARKED + b"\n" + b'{"text": "%s"}\n' % FOX.encode() + LAST
ELSE = b'{"text": "Something else altogether, for a change"}'

LENIENT = "[limits]\nreject_share = 1\nid_bytes = 96\n"
FIELDS = '[documents]\ntext_fields = "payload.after.text"\nid_field = "payload.after.id"\n'
FORGETS = FIELDS + 'deletes = "forget"\ndeleted_id_field = "payload.before.id"\n'
PAGE = f"<p>{FOX}</p>\n<p>{SHIP}</p>\n"
HTML = '<!DOCTYPE html>\n<html><body><p class="x">{}</p></body></html>\n'
SENTENCES = f"{FOX}\n{SHIP}\n{FOX}\n"
IDS = b"".join(b'{"id": %s, "text": "fine"}\n' % wrong for wrong in WRONG_IDS)
NO_IDS = jsonl([{"text": FOX}]) + b"\n   \n" + jsonl([{"id": None, "text": FOX}])
FILES: Final[Mapping[str, str | bytes]] = {
    "lenient.toml": LENIENT,
    "049.toml": "limits = { reject_share = 0.49 }",
    "050.toml": "limits = { reject_share = 0.5 }",
    "news.toml": "similarity = { preset = 'news' }",
    "plain.toml": "documents = { format = 'text' }",
    "rejects.toml": FIELDS,
    "forgets.toml": FORGETS,
    "body.toml": FIELDS.replace("after.text", "after.body"),
    "none.jsonl": NO_IDS,
    "wrong.jsonl": IDS,
    "latin.jsonl": latin(300),
    "crlf": LINES_AS_READ,
    "else": ELSE,
    "two": f"{FOX}\n{SHIP}\n",
    "s.txt": SENTENCES,
    "docs.csv": "key,data.text\n1,a first text\n,a first text\n",
    "large.txt": f"{FOX}\n" * 20_000,
    "pages/part-2.html": PAGE,
    "pages/part-10.txt": PAGE,
    "pages/part-11.md": f"# Ships\n\n{SHIP}\n",
    "pages/photo.png": b"\x89PNG\0",
    "html/a.html": HTML.format("one"),
    "html/b.html": HTML.format(FOX),
    "long/a.txt": "".join(f"a {n}\n" for n in range(2_500)),
    "long/b.txt": "".join(f"b {n}\n" for n in range(2_500)),
    "mails/a.eml": f"Date: Wed, 31 Jan 2024 12:00:00 +0000\n\n{FOX}\n",
    "mixed/a.txt": "plain",
    "mixed/b.txt": "größer".encode("latin-1"),
    "mixed/c.txt": "größer".encode("latin-1"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all files, in which no run leaves any."""
    folder = tmp_path_factory.mktemp("given")
    for name, data in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    return folder


def created(number: int) -> bytes:
    row = {"id": number, "text": SHIP}
    return json.dumps({"payload": {"before": None, "after": row, "op": "c"}}).encode()


def deleted(number: int) -> bytes:
    return json.dumps({"payload": {"before": {"id": number}, "after": None, "op": "d"}}).encode()


FEED = b"\n".join([created(1), created(2), deleted(1), deleted(2), created(3), *[deleted(9)] * 9])
DAMAGED = [
    deleted(1).replace(b'"d"', b'"\xff"'),
    created(1).replace(b"A ship", b"\xff"),
    deleted(1).replace(b'{"id"', b'{"\xff": 0, "id"'),
    b"\xff\xfe",
    deleted(1) + b"\r" * 2_000_000,
    created(8) + b"\r" * 2_000_000,
]

EGGS = [
    {"m": [{"content": "How do I boil an egg?"}, {"content": f"Six minutes in boiling water{end}"}]}
    for end in ".!"
]
NEAR = jsonl({"id": n, "text": text} for n, text in enumerate([SHIP, FOX + " So on.", FOX, FOX]))
TITLES = jsonl([{"title": FOX, "body": SHIP}, {"title": SHIP, "body": SHIP}])
LONGEST = "0123456789abcdef" * 6
LONG = jsonl([{"id": LONGEST, "text": FOX}, {"id": "b", "text": FOX}])
BAD_LINES = b"\n".join([*(line for bad in BAD.values() for line in (bad, b"\0\0\0")), THREE])
IN_PLACE = [f"stdin:{n} rejected not-json" for n in range(2, 2 * len(BAD) + 1, 2)]
NULL = "rejected null-text"


@pytest.mark.parametrize(
    ("arguments", "stdin", "verdicts"),
    [
        ("", b'{"id": 17, "text": "some text"}', ["17 unique"]),
        ("", b"\n\n", []),
        ("", NEAR, ["0 unique", "1 unique", "2 duplicate 1", "3 duplicate 2 1 | 1"]),
        ("none.jsonl", b"", ["none.jsonl:1 unique", "none.jsonl:4 duplicate none.jsonl:1"]),
        ("--config lenient.toml", LONG, [f"{LONGEST} unique", f"b duplicate {LONGEST}"]),
        (
            "--config lenient.toml wrong.jsonl",
            b"",
            [f"wrong.jsonl:{n} rejected {code}" for n, code in enumerate(WRONG, 1)],
        ),
        (
            "--config lenient.toml",
            BAD_LINES,
            [*(line for pair in zip(BAD, IN_PLACE, strict=True) for line in pair), *JUDGED],
        ),
        (
            "--threshold 1",
            THREE * 2,
            ["a unique", "b unique", "c unique", *(f"{n} duplicate {n}" for n in "abc")],
        ),
        (
            "--text-field m[].content",
            jsonl(EGGS),
            ["stdin:1 unique", "stdin:2 duplicate stdin:1"],
        ),
        ("--text-field title --text-field body", TITLES, ["stdin:1 unique", "stdin:2 unique"]),
        ("--strict", THREE, JUDGED),
        # Files.
        (
            "--text-field data.text --id-field key docs.csv",
            b"",
            ["1 unique", "docs.csv:3 duplicate 1"],
        ),
        (
            "pages",
            b"",
            ["part-2.html unique", "part-10.txt duplicate part-2.html", "part-11.md unique"],
        ),
        ("s.txt", b"", ["s.txt unique"]),
        ("--format text", SENTENCES.encode(), ["stdin unique"]),
        (
            "--format lines s.txt",
            b"",
            ["s.txt:1 unique", "s.txt:2 unique", "s.txt:3 duplicate s.txt:1"],
        ),
        (
            "--format lines",
            SENTENCES.replace("\n", "\r\n", 1).encode(),
            ["stdin:1 unique", "stdin:2 unique", "stdin:3 duplicate stdin:1"],
        ),
        ("--config plain.toml two", b"", ["two unique"]),
        ("--config plain.toml two --format lines", b"", ["two:1 unique", "two:2 unique"]),
        ("--encoding latin-1", latin(3), ["0 unique", "1 unique", "2 unique"]),
        # A change feed: deletes are no documents.
        (
            "--config rejects.toml",
            FEED,
            [
                *("1 unique", "2 duplicate 1", f"stdin:3 {NULL}", f"stdin:4 {NULL}"),
                *("3 duplicate 1", *(f"stdin:{n} {NULL}" for n in range(6, 15))),
            ],
        ),
        (
            "--config forgets.toml",
            FEED,
            [
                *("1 unique", "2 duplicate 1", "1 deleted", "2 deleted", "3 unique"),
                *["9 deleted"] * 9,
            ],
        ),
    ],
)
def test_each_document_gets_its_verdict(
    arguments: str, stdin: bytes, verdicts: Sequence[str], folder: Path
) -> None:
    done = neardup("dedupe", *arguments.split(), stdin=stdin, cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    assert [brief(json.loads(line)) for line in done.stdout.splitlines()] == [*verdicts]


CALENDAR = jsonl({"text": f"{n} is the number of this text", "at": 20240101} for n in range(9))
BLANK = jsonl([{"text": FOX}, *[{"text": "\x01"}] * 2])
BY_LINE = "neardup: 1 file is one document, with 3 lines; --format lines judges each line"
ENCODING = (
    "in another encoding than UTF-8; name it with --encoding, such as cp1252, iso8859-15 or utf-16"
)
LACK = (
    "neardup: warning: none of the first 5 documents has a value in field {}; the fields they have:"
    " 'id', 'text'"
)
BAD_TIMES = (
    "neardup: 9 of 9 documents can't be read (the first: stdin:1, bad-time: field 'at' is 20240101:"
    " no time from 1990 to 2031 in seconds, milliseconds, microseconds or nanoseconds; it looks"
    " like a date: set documents.time_format (--time-format) to %Y%m%d), and limits.reject_share is"
    " 0.5"
)


@pytest.mark.parametrize(
    ("arguments", "stdin", "status", "says"),
    [
        ("", jsonl([{"text": FOX}]), 0, "neardup: 1 document in "),
        ("", jsonl([{"text": FOX}, {"text": SHIP}]), 0, []),
        ("--strict", THREE + b"{\n", 1, ["neardup: rejected: not-json 1"]),
        # The settings don't fit the documents.
        ("", OTHER, 1, "the first document has 'title', 'body'; choose with --text-field and --id"),
        ("--config 049.toml", good(5) + OTHER * 5, 1, "5 of 10 documents can't be read"),
        ("--config 050.toml", good(5) + OTHER * 5, 0, "rejected: no-text 5"),
        ("", OTHER * 4_000 + good(9_000), 1, "4,000 of 4,000 documents can't be read"),
        ("", b"a text\n", 1, "the first document is not JSON; use --format lines if"),
        slow("", b"[1]\n", 1, "a JSON array; write one document per line: … | jq -c"),
        slow("", b"1\n", 1, "the first document is not a JSON object; use --format"),
        slow("", b"{}\n", 1, "the first document has no fields; choose with --text-field"),
        ("", b'{"a\\u001b[2J": 1}\n', 1, r"the first document has 'a\x1b[2J'; choose with"),
        (
            "--format lines",
            b"\x01\n" * 3 + b"a text\n" * 4,
            0,
            ["neardup: rejected: empty-text 3"],
        ),
        ("", BLANK, 1, "2 of 3 documents can't be read (the first: stdin:2, empty-text: "),
        ("", BLANK.replace(b"\\u0001", b" "), 1, "(the first: stdin:2, empty-text: "),
        ("", jsonl([{"text": ["a"]}]), 1, "text-wrong-type: field 'text' is an array, not a"),
        slow("--text-field text --text-field head", good(5), 0, [LACK.format("'head'")]),
        slow("--id-field key", good(5), 0, [LACK.format("'key'")]),
        ("--time-field at --id-field key", good(5), 0, [LACK.format("'key', 'at'")]),
        ("--time-field at", CALENDAR, 1, ["neardup: rejected: bad-time 9", BAD_TIMES]),
        # Files of text, mails and other encodings.
        ("pages", b"", 0, "\nneardup: left out: .png 1\n"),
        ("html", b"", 0, "warning: 2 of the first 2 documents look like HTML"),
        ("html --config news.toml", b"", 0, []),
        ("s.txt", b"", 0, [BY_LINE]),
        ("--format text", SENTENCES.encode(), 0, [BY_LINE]),
        ("long", b"", 0, "2 files are one document each, with 5,000 lines; --format lines judges"),
        ("mails --window 30d", b"", 0, "the dates of 1 document are not read, so all count as of"),
        ("mails --window 30d --time-field date", b"", 0, []),
        ("large.txt", b"", 1, "1 file is too large for one document; --format lines judges each"),
        ("latin.jsonl", b"", 1, f"invalid-utf8 300\nneardup: 300 documents are {ENCODING}\n"),
        ("latin.jsonl -o out", b"", 1, "reject_share is 0.5; -o out is unchanged\n"),
        ("--encoding latin-1", latin(3), 0, []),
        ("", good(3) + latin(1), 0, f"1 document is {ENCODING}"),
        ("mixed", b"", 1, "--encoding, such as"),
        # A change feed.
        ("--config forgets.toml", FEED, 0, "2 unique, 1 duplicate, 0 rejected; 11 deleted"),
        ("--config body.toml", FEED, 1, "3 of 3 documents can't be read (the first: stdin:1, no-"),
    ],
)
def test_a_run_says_what_settings_may_miss(
    arguments: str, stdin: bytes, status: int, says: str | list[str], folder: Path
) -> None:
    """A list is all that is said below the summary."""
    done = neardup("dedupe", *arguments.split(), stdin=stdin, cwd=folder)
    error = done.stderr.decode()
    assert done.returncode == status, error
    assert error.splitlines()[1:] == says if isinstance(says, list) else says in error
    assert "--text-field" not in error or arguments != "mixed"
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [("crlf", MARKED + LAST), ("crlf else", MARKED + LAST + b"\n" + ELSE)],
)
def test_unique_only_gives_the_lines_as_they_were(
    arguments: str, lines: bytes, folder: Path
) -> None:
    assert neardup("dedupe", "--unique-only", *arguments.split(), cwd=folder).stdout == lines


def test_each_document_has_its_line_in_input_order(tmp_path: Path) -> None:
    given, out = THREE + b"{\n" + THREE.splitlines()[0], tmp_path / "out"
    done = neardup("dedupe", "--strict", "-o", out, stdin=given)
    assert (done.returncode, done.stdout) == (1, b"")
    first, second, third, fourth, fifth = out.read_bytes().splitlines()
    assert first == b'{"id":"a","verdict":"unique"}'
    assert second == b'{"id":"b","verdict":"unique"}'
    assert third.startswith(b'{"id":"c","verdict":"duplicate","duplicate_of":[{"id":"a","simil')
    assert fourth.startswith(b'{"id":"stdin:4","verdict":"rejected","reason":"not-json: ')
    assert b'"duplicate_of":[{"id":"a","similarity":1.0}' in fifth
    assert fifth.endswith(b',"duplicate_first":{"id":"a"}}')
    assert b"5 documents" in done.stderr
    assert b"2 unique, 2 duplicate, 1 rejected" in done.stderr


@pytest.mark.parametrize(
    ("line", "part"),
    [
        (BAD["stdin:13 rejected too-large"], "10000023 bytes"),
        (b'{"id": %s, "text": "fine"}' % WRONG_IDS[0], "97 bytes; limits.id_bytes is 96"),
        (deleted(1), "null-text: 'payload.after' is null"),
    ],
)
def test_a_reason_has_figures(line: bytes, part: str, tmp_path: Path) -> None:
    (tmp_path / "n.toml").write_text(f"{LENIENT}{FIELDS if b'payload' in line else ''}")
    (verdict,) = dedupe("--config", tmp_path / "n.toml", stdin=line)
    assert part in verdict["reason"]


def test_what_is_not_utf8_or_not_whole_is_rejected_and_forgets_nothing(tmp_path: Path) -> None:
    (tmp_path / "n.toml").write_text(FORGETS + "[limits]\nreject_share = 1.0\n")
    feed = b"\n".join([created(1), *DAMAGED, created(2)])
    verdicts = [brief(line) for line in dedupe("--config", tmp_path / "n.toml", stdin=feed)]
    assert verdicts[0] == "1 unique"
    codes = [line.partition(" rejected ")[2] for line in verdicts[1:-1]]
    assert codes == [*["invalid-utf8"] * 3, "not-json", *["too-large"] * 2]
    assert verdicts[-1] == "2 duplicate 1"


@pytest.mark.parametrize("compress", [slow(gzip.compress), zstandard.compress, slow(bytes)])
def test_compression_is_seen_by_content(compress: object, tmp_path: Path) -> None:
    assert callable(compress)
    data = compress(THREE) + compress(THREE)  # members, frames
    file = tmp_path / "documents"
    file.write_bytes(data)
    assert [v["id"] for v in dedupe(file)] == list("abcabc")
    assert dedupe("-", stdin=data) == dedupe(file)


@pytest.mark.parametrize(
    ("suffix", "expand"),
    [
        slow("", bytes),
        slow(".gz", gzip.decompress),
        (".zst", lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data)),
    ],
)
def test_output_is_compressed_by_suffix(suffix: str, expand: object, tmp_path: Path) -> None:
    assert callable(expand)
    for given in (THREE, b""):
        out = tmp_path / f"out.jsonl{suffix}"
        assert dedupe("-o", out, stdin=given) == []
        assert expand(out.read_bytes()) == neardup("dedupe", stdin=given).stdout
        assert [path.name for path in tmp_path.iterdir()] == [out.name]


@pytest.mark.parametrize(
    ("sample", "unique", "duplicate"),
    [slow("onestop", 562, 5), slow("pypa_advisories", 1992, 669), ("youtube_spam", 1688, 268)],
)
def test_verdicts_on_real_text_stay_the_same(sample: str, unique: int, duplicate: int) -> None:
    kinds = [v["verdict"] for v in dedupe(SAMPLES / f"{sample}.jsonl.gz")]
    assert (kinds.count("unique"), kinds.count("duplicate")) == (unique, duplicate)


@pytest.mark.parametrize("command", ["evaluate", "tune", "boilerplate"])
def test_other_commands_read_files_alike(command: str, folder: Path) -> None:
    done = neardup(command, "pages", "mixed/b.txt", cwd=folder)
    assert done.returncode == 0
    assert b"neardup: left out: .png 1" in done.stderr
    assert b"neardup: rejected: invalid-utf8 1" in done.stderr
    done = neardup(command, "latin.jsonl", cwd=folder)
    assert done.returncode == 1
    assert b"300 of 300 documents can't be read (the first: latin.jsonl:1, inv" in done.stderr
    assert neardup(command, "--encoding", "latin-1", "latin.jsonl", cwd=folder).returncode == 0


def test_explain_reads_files_alike(folder: Path, tmp_path: Path) -> None:
    ids = ("part-2.html", "part-10.txt")
    for line in (("--in", "pages", *ids), tuple(f"pages/{name}" for name in ids)):
        done = neardup("explain", "--json", *line, cwd=folder)
        assert done.returncode == 0, done.stderr.decode()
        assert json.loads(done.stdout)["same_text"]
    (tmp_path / "d.txt").write_bytes(FOX.encode("utf-16"))
    done = neardup("explain", "--json", tmp_path / "d.txt", "pages/part-11.md", cwd=folder)
    assert json.loads(done.stdout)["documents"][0]["characters"] == len(FOX)


MANY = jsonl({"id": n, "text": f"{n * 7919 % 10_007} is document {n}"} for n in range(10_000))
LINES = b"".join(MANY.splitlines(keepends=True)[:2_000])
GIVEN: Final = {
    "good": LINES,
    "cut.gz": gzip.compress(LINES)[:-100],
    "cut.zst": zstandard.compress(LINES)[:-20],
    "cut-nameless": gzip.compress(LINES)[:-100],
    "damaged.gz": gzip.compress(LINES)[:200] + b"\0" * 50 + gzip.compress(LINES)[250:],
    "named.gz": LINES,
    "empty.gz": b"",
    "wrong.toml": b"[similarity]\nthreshhold = 0.5\n",
    "forgets.toml": FIELDS.encode() + b'deletes = "forget"\n',
    "plain.toml": b'[documents]\nformat = "text"\ndeletes = "forget"\n',
}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("missing", "missing: No such file"),
        slow(".", ".: no file in it has a known suffix (.csv, .eml, .htm, .html, .json, .jsonl"),
        ("good cut.gz", "cut.gz: the gzip data ends too early"),
        ("- good -", "-: standard input can be read only once"),
        slow("cut.zst", "cut.zst: the zstd data ends too early"),
        slow("cut-nameless", "cut-nameless: the gzip data ends too early"),
        slow("damaged.gz", "damaged.gz: damaged gzip data"),
        ("named.gz", "named.gz: is not a gzip file"),
        slow("empty.gz", "empty.gz: is not a gzip file"),
        ("good -o good", "-o good is one of the inputs"),
        ("good --groups --unique-only", "--groups and --unique-only: choose one\n"),
        ("good --encoding base64", "--encoding: got 'base64', must be an encoding"),
        slow("good --encoding utf-9", "--encoding: got 'utf-9', must be an encoding"),
        slow("good -o nowhere/out", "-o nowhere/out: No such file"),
        ("good --threshold 1.5", "similarity.threshold: got 1.5"),
        slow("good --threshold 0", "similarity.threshold: got 0"),
        slow("good --shards 0", "index.shards: got 0"),
        ("good --window '1 day'", "index.window: got '1 day', must be none, or a length"),
        ("good --same-id forget", "index.same_id"),
        slow("good --format xml", "--format: got 'xml', must be json, text or lines"),
        slow("good --config missing.toml", "missing.toml is not a file"),
        ("good --config wrong.toml", "did you mean similarity.threshold?"),
        ("good --config forgets.toml", "documents.deletes: forget needs"),
        ("good --config plain.toml", "documents.deletes: got forget"),
        ("good --state .", "has other files"),
        slow("good --state good", "File exists"),
    ],
)
def test_an_error_is_one_line_and_leaves_nothing(arguments: str, says: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, data in GIVEN.items():
        (folder / name).write_bytes(data)
    extra = [] if "-o" in arguments else ["-o", "out"]
    done = neardup("dedupe", *shlex.split(arguments), *extra, cwd=folder)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith("neardup: ")
    assert done.stderr.count(b"\n") == 1
    assert says in done.stderr.decode()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == GIVEN


def test_an_error_leaves_the_earlier_output(tmp_path: Path) -> None:
    (tmp_path / "cut.gz").write_bytes(GIVEN["cut.gz"])
    out = tmp_path / "out"
    out.write_bytes(b"earlier")
    assert neardup("dedupe", tmp_path / "cut.gz", "-o", out).returncode == 2
    assert out.read_bytes() == b"earlier"


def run(
    *arguments: str | Path, stdout: int | IO[bytes] = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """Start the command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "worker.cli", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=environment(),
    )


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), slow(signal.SIGTERM, 143)])
def test_a_signal_cleans_up(number: signal.Signals, status: int, tmp_path: Path) -> None:
    with run("dedupe", "-o", tmp_path / "out", "--state", tmp_path / "state") as process:
        assert process.stdin is not None
        assert process.stderr is not None
        for _ in range(2):  # more than a pipe holds: it has begun to read when this returns
            process.stdin.write(LINES)
        process.stdin.flush()
        process.send_signal(number)
        assert process.wait(30) == status
        assert process.stderr.read().count(b"\n") == 1
        with suppress(BrokenPipeError):
            process.stdin.close()
    assert {path.name for path in tmp_path.iterdir()} == {"state"}
    assert {path.name for path in (tmp_path / "state").iterdir()} == {"lock"}


@pytest.mark.slow
def test_a_reader_that_has_gone_is_no_error_to_speak_of(tmp_path: Path) -> None:
    file = tmp_path / "docs"
    file.write_bytes(LINES * 20)
    command = f"{sys.executable} -m worker.cli dedupe {file} --state {tmp_path / 'state'}"
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -n 1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env=environment(),
    )
    assert (done.stdout, done.stderr) == (b'{"id":"0","verdict":"unique"}\n', b"")
    assert done.returncode == 1
    assert not (tmp_path / "state" / "CURRENT").exists()


_FILLED = """
import resource, signal
# Files may grow to 200 kB and no further, as a quota would have it.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
from worker.cli.root import main
main()
"""


@pytest.mark.parametrize("kept", [True, slow(False)])
def test_a_full_disk_leaves_output_and_state_as_they_were(*, kept: bool, tmp_path: Path) -> None:
    out, state = tmp_path / "out", tmp_path / "state"
    out.write_bytes(b"earlier")
    options = ["-o", str(out), *(["--state", str(state)] if kept else [])]
    if kept:
        dedupe("--state", state, stdin=MANY[:100_000])
    before = {path: path.stat().st_size for path in tmp_path.rglob("*")}
    done = subprocess.run(
        [sys.executable, "-c", _FILLED, "dedupe", *options],
        check=False,
        input=MANY * 3,
        capture_output=True,
        timeout=120,
        cwd=ROOT,
        env=environment(),
    )
    (line,) = done.stderr.decode().splitlines()
    assert done.returncode == 1
    assert line.startswith(f"neardup: the index can't be read or written: {tmp_path}/")
    assert "File too large" in line
    assert line.endswith(
        "Check that disk's space, quota and permissions, then run the command again"
    )
    assert out.read_bytes() == b"earlier"
    assert {path: path.stat().st_size for path in tmp_path.rglob("*")} == before


def test_a_full_output_is_named_and_is_no_wrong_option() -> None:
    again = b"No space left on device. Give that disk space, then run the command again\n"
    done = neardup("dedupe", "-o", "/dev/full", stdin=LINES[:1_000])
    assert (done.returncode, done.stderr) == (1, b"neardup: /dev/full: " + again)
    with Path("/dev/full").open("wb") as full, run("config", "show", stdout=full) as other:
        _, error = other.communicate()
    assert (other.returncode, error) == (1, b"neardup: " + again)
