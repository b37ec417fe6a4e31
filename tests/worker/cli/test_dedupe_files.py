"""Files of text, mails and other encodings, as somebody at a terminal meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import dedupe, jsonl, neardup

STORY = "The second tram line opens in May, the council says. Tickets stay at two euros."
OTHER = "A flock of storks was seen above the harbour, and the children ran out to count them."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "part-2.html").write_text(f"<p>{STORY}</p>\n<p>{OTHER}</p>\n")
    (folder / "part-10.txt").write_text(f"<p>{STORY}</p>\n<p>{OTHER}</p>\n")
    (folder / "part-11.md").write_text(f"# Storks\n\n{OTHER}\n")
    (folder / "photo.png").write_bytes(b"\x89PNG\0")
    return folder


def test_each_file_of_a_folder_is_a_document(folder: Path) -> None:
    done = neardup("dedupe", folder)
    assert done.returncode == 0
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"id": "part-2.html", "verdict": "unique"},
        {
            "id": "part-10.txt",
            "verdict": "duplicate",
            "duplicate_of": [{"id": "part-2.html", "similarity": 1.0}],
            "duplicate_first": {"id": "part-2.html"},
        },
        {"id": "part-11.md", "verdict": "unique"},
    ]
    assert "neardup: left out: .png 1" in done.stderr.decode().splitlines()


def test_pages_that_are_compared_with_their_markup_are_told(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    for name in ("a.html", "b.html"):
        page = f'<!DOCTYPE html>\n<html><body><p class="x">{STORY} {name}</p></body></html>\n'
        (pages / name).write_text(page)
    done = neardup("dedupe", pages)
    assert b"warning: 2 of the first 2 documents look like HTML" in done.stderr
    (tmp_path / "settings.toml").write_text("[similarity]\npreset = 'news'\n")
    done = neardup("dedupe", pages, "--config", tmp_path / "settings.toml")
    assert b"HTML" not in done.stderr


def test_lines_of_a_file_are_judged_if_one_says_so(tmp_path: Path) -> None:
    file = tmp_path / "sentences.txt"
    file.write_text(f"{STORY}\n{OTHER}\n{STORY}\n")
    done = neardup("dedupe", file)
    assert json.loads(done.stdout) == {"id": "sentences.txt", "verdict": "unique"}
    hint = "neardup: 1 file is one document, with 3 lines; --format lines judges each line"
    assert done.stderr.decode().splitlines()[1:] == [hint]
    assert len(dedupe("--format", "lines", file)) == 3
    piped = neardup("dedupe", "--format", "text", stdin=file.read_bytes())
    assert json.loads(piped.stdout) == {"id": "stdin", "verdict": "unique"}
    assert piped.stderr.decode().splitlines()[1:] == [hint]


def test_files_of_very_many_lines_are_told(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("".join(f"{name} {n}\n" for n in range(2_500)))
    done = neardup("dedupe", tmp_path)
    hint = "neardup: 2 files are one document each, with 5,000 lines; --format lines judges each"
    assert hint in done.stderr.decode()


def test_dates_that_a_window_needs_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.eml").write_text(f"Date: Wed, 31 Jan 2024 12:00:00 +0000\n\n{STORY}\n")
    done = neardup("dedupe", tmp_path, "--window", "30d")
    assert b"warning: the dates of 1 document are not read, so all count as of now;" in done.stderr
    done = neardup("dedupe", tmp_path, "--window", "30d", "--time-field", "date")
    assert done.stderr.count(b"\n") == 1


def test_documents_of_plain_text_are_files_of_text(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("[documents]\nformat = 'text'\n")
    (tmp_path / "one").write_text(f"{STORY}\n{OTHER}\n")
    line = ("--config", tmp_path / "settings.toml", tmp_path / "one")
    assert dedupe(*line) == [{"id": "one", "verdict": "unique"}]
    assert len(dedupe(*line, "--format", "lines")) == 2


def test_a_file_that_is_too_large_for_a_text_says_how_to_read_it(tmp_path: Path) -> None:
    (tmp_path / "all.txt").write_text(f"{STORY}\n" * 20_000)
    done = neardup("dedupe", tmp_path / "all.txt")
    assert done.returncode == 1
    assert (
        "neardup: 1 file is too large for one document; --format lines judges each line, and"
        " limits.record_bytes allows larger ones"
    ) in done.stderr.decode().splitlines()


def latin(count: int) -> bytes:
    documents = ({"id": n, "text": f"voil\xe0 {n**5} cr\xe8me"} for n in range(count))
    lines = (json.dumps(document, ensure_ascii=False) for document in documents)
    return "".join(f"{line}\n" for line in lines).encode("latin-1")


def test_another_encoding_is_a_failure_that_says_what_to_do(tmp_path: Path) -> None:
    file, out = tmp_path / "docs.jsonl", tmp_path / "out"
    file.write_bytes(latin(300))
    done = neardup("dedupe", file, "-o", out)
    assert (done.returncode, out.exists()) == (1, False)
    *_, rejected, encoding, end = done.stderr.decode().splitlines()
    assert rejected == "neardup: rejected: invalid-utf8 300"
    assert encoding == (
        "neardup: 300 documents are in another encoding than UTF-8; name it with --encoding, such"
        " as cp1252, iso8859-15 or utf-16"
    )
    assert end.startswith(
        "neardup: 300 of 300 documents can't be read (the first: docs.jsonl:1, invalid-utf8: "
    )
    assert end.endswith(f"), and limits.reject_share is 0.5; -o {out} is unchanged")
    verdicts = {line["verdict"] for line in dedupe(file, "--encoding", "latin-1")}
    assert "rejected" not in verdicts


def test_a_few_lines_in_another_encoding_are_named_too() -> None:
    good = jsonl({"id": f"g{n}", "text": f"{n**5} is another one"} for n in range(3))
    done = neardup("dedupe", stdin=good + latin(1))
    assert done.returncode == 0
    assert b"1 document is in another encoding than UTF-8; name it with" in done.stderr


def test_fields_are_not_to_blame_for_an_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("plain")
    for name in ("b.txt", "c.txt"):
        (tmp_path / name).write_bytes("größer".encode("latin-1"))
    done = neardup("dedupe", tmp_path)
    assert done.returncode == 1
    assert b"--encoding, such as" in done.stderr
    assert b"--text-field" not in done.stderr


@pytest.mark.parametrize("text", [" ", "\x01"])
def test_any_reason_counts(text: str) -> None:
    done = neardup("dedupe", stdin=jsonl([{"text": STORY}, *[{"text": text}] * 2]))
    assert done.returncode == 1
    assert b"2 of 3 documents can't be read (the first: stdin:2, empty-text: " in done.stderr


@pytest.mark.parametrize("command", ["evaluate", "tune", "boilerplate"])
def test_other_commands_read_files_alike(command: str, folder: Path, tmp_path: Path) -> None:
    (folder / "part-12.txt").write_bytes("größer".encode("latin-1"))
    assert neardup(command, folder).returncode == 0
    done = neardup(command, folder)
    assert b"neardup: left out: .png 1" in done.stderr
    assert b"neardup: rejected: invalid-utf8 1" in done.stderr
    file = tmp_path / "docs.jsonl"
    file.write_bytes(latin(20))
    done = neardup(command, file)
    assert done.returncode == 1
    assert b"20 of 20 documents can't be read (the first: docs.jsonl:1, invalid-utf8" in done.stderr
    assert neardup(command, "--encoding", "latin-1", file).returncode == 0


def test_explain_reads_files_alike(folder: Path) -> None:
    ids = ("part-2.html", "part-10.txt")
    for line in (("--in", folder, *ids), tuple(folder / name for name in ids)):
        done = neardup("explain", "--json", *line)
        assert done.returncode == 0, done.stderr.decode()
        assert json.loads(done.stdout)["same_text"]
    (folder / "part-3.txt").write_bytes(STORY.encode("utf-16"))
    done = neardup("explain", "--json", folder / "part-3.txt", folder / "part-11.md")
    assert json.loads(done.stdout)["documents"][0]["characters"] == len(STORY)
