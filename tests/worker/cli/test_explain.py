import json
import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from lsh import Parameters
from tests.support.command_line import jsonl, neardup
from worker.cli.comparison import compared, explained
from worker.cli.errors import CommandError
from worker.documents.pair import Side
from worker.visible import visible

TEXT = "The council has voted to close the old ferry line, after two years of debate. " * 4
A = {"id": "a", "text": f"{TEXT}Nobody objected."}
B = {"id": "b", "text": f"{TEXT}Nobody has objected."}
C = {"id": "c", "text": "Rivers and mountains, which is something else entirely."}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for document in (A, B, C):
        (tmp_path / f"{document['id']}.json").write_text(json.dumps(document, indent=1))
    (tmp_path / "docs.jsonl").write_bytes(jsonl([A, {"text": A["text"]}, B, C]))
    return tmp_path


def test_two_files_are_shown_side_by_side_with_all_that_decides(folder: Path) -> None:
    done = neardup("explain", "a.json", "b.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert text.startswith("a and b are near duplicates at threshold 0.8.\n")
    assert "{+has" in text
    assert "distinct shingles are in both" in text
    assert "128 slots; error ±0.0" in text
    assert "of 18 (of 7 slots each): " in text
    assert "yes: the index compares them" in text
    assert re.search(r"duplicate: estimate 0\.[89]", text)
    assert "\x1b" not in text


def test_only_what_counts_is_marked(folder: Path) -> None:
    (folder / "loud.json").write_text(json.dumps({"id": "loud", "text": B["text"].upper()}))
    text = neardup("explain", "a.json", "loud.json", cwd=folder).stdout.decode()
    assert text.count("{+") == 1
    assert "{+HAS" in text


def test_the_normal_forms_are_compared_if_asked(folder: Path) -> None:
    (folder / "loud.json").write_text(json.dumps({"id": "loud", "text": B["text"].upper()}))
    command = ("explain", "--normal", "a.json", "loud.json")
    text = neardup(*command, cwd=folder).stdout.decode()
    assert "{+has" in text
    assert "HAS" not in text
    found = json.loads(neardup(*command, "--json", cwd=folder).stdout)
    assert found["normal_forms"] == [one["text"].lower() for one in (A, B)]


def test_json_has_the_same_numbers(folder: Path) -> None:
    done = neardup("explain", "--json", "--in", "docs.jsonl", "a", "b", cwd=folder)
    found = json.loads(done.stdout)
    assert [side["id"] for side in found["documents"]] == ["a", "b"]
    assert found["verdict"] == "duplicate"
    assert found["candidates"]
    union = sum(side["distinct_shingles"] for side in found["documents"]) - found["common_shingles"]
    assert found["similarity"] == found["common_shingles"] / union
    assert abs(found["estimate"] - found["similarity"]) < 5 * found["standard_error"] + 1e-9
    assert set(found["shared_bands"]) <= set(range(found["bands"]))
    assert not found["same_text"]


def test_the_numbers_are_those_of_dedupe(folder: Path) -> None:
    (folder / "two.jsonl").write_bytes(jsonl([A, B]))
    lines = neardup("dedupe", "two.jsonl", cwd=folder).stdout.splitlines()
    (match,) = json.loads(lines[1])["duplicate_of"]
    done = neardup("explain", "--json", "--in", "two.jsonl", "b", "a", cwd=folder)
    assert round(json.loads(done.stdout)["estimate"], 4) == match["similarity"]


def test_documents_that_share_no_band_are_no_candidates(folder: Path) -> None:
    done = neardup("explain", "a.json", "c.json", cwd=folder)
    text = done.stdout.decode()
    assert "a and c are not near duplicates" in text
    assert "no: without a band in common, the index never compares them" in text


def test_a_document_without_an_id_is_named_by_its_line(folder: Path) -> None:
    done = neardup("explain", "--json", "--in", "docs.jsonl", "docs.jsonl:2", "a", cwd=folder)
    found = json.loads(done.stdout)
    assert found["documents"][0]["id"] == "docs.jsonl:2"
    assert found["same_text"]


def test_the_same_id_twice_is_its_first_two_documents(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(jsonl([A, C, {**A, "text": "Another text."}, A]))
    done = neardup("explain", "--json", "--in", "x.jsonl", "a", "a", cwd=tmp_path)
    assert json.loads(done.stdout)["documents"][1]["characters"] == len("Another text.")


def test_plain_text_and_standard_input(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("a few words\n")
    line = ("explain", "--json", "--format", "text", "one.txt", "-")
    found = json.loads(neardup(*line, stdin=b"A few  words", cwd=tmp_path).stdout)
    assert [side["id"] for side in found["documents"]] == ["one.txt", "stdin"]
    assert found["same_normalised_text"]


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("a.json", 2, "A B: got 1, takes two files"),
        ("a.json missing.json", 2, "missing.json: No such file or directory"),
        ("- -", 2, "-: standard input has one document"),
        ("--in docs.jsonl a zz", 1, "'zz' is not in these files"),
        ("--in docs.jsonl a a", 1, "'a' is not in these files twice"),
        ("--in docs.jsonl --kafka a b", 2, "--in and --kafka: choose one"),
        ("a.json b.json --since 1h", 2, "--since, --bootstrap and --app: only with --kafka"),
        ("a.json docs.jsonl", 1, "for a file with a document on each line: --in FILE ID ID"),
        ("a.json b.json --text-field body", 1, "a.json can't be judged: no-text"),
        ("a.json b.json --threshold 2", 2, "similarity.threshold"),
    ],
)
def test_what_is_wrong_is_one_line(folder: Path, line: str, status: int, message: str) -> None:
    done = neardup("explain", *line.split(), cwd=folder)
    assert done.returncode == status
    assert done.stderr.decode().count("\n") == 1
    assert message in done.stderr.decode()
    assert done.stdout == b""


def test_a_file_above_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_text("x" * 40_000)
    (tmp_path / "settings.toml").write_text("[limits]\nrecord_bytes = 32768\n")
    done = neardup("explain", "big.txt", "big.txt", "--config", "settings.toml", cwd=tmp_path)
    assert b"too-large: the file has 40000 bytes, above limits.record_bytes" in done.stderr


def test_a_text_of_which_nothing_is_left_is_refused() -> None:
    with pytest.raises(CommandError, match="'z' can't be judged: empty-text"):
        explained(Parameters(), Side("a", "words"), Side("z", " "), as_json=False)


@pytest.mark.parametrize("width", [80, 160])
def test_a_document_s_text_is_inert_and_fits(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    hostile = "[bold red]x[/] \x1b[2J\x1b]0;title\x07 \x9b31m" + TEXT
    left, right = Side("a\x1b[2Jb\r\n", hostile), Side("[blink]c", TEXT + "界" * 300)
    explained(Parameters(), left, right, recorded=0.91, as_json=False)
    text = capsys.readouterr().out
    assert not any(ord(c) < 32 and c != "\n" for c in text)
    assert not any(0x7F <= ord(c) < 0xA0 for c in text)
    assert "[blink]c" in text
    assert "[bold red]x[/]" in text or "[-[bold red]x[/]" in text
    assert "0.9100, in the duplicate's header; it differs" in " ".join(text.split())
    assert max(cell_len(line) for line in text.splitlines()) <= width


def test_long_texts_are_aligned_around_their_first_difference() -> None:
    same = "the same words again " * 40_000
    console = Console(width=160, color_system=None)
    with console.capture() as shown:
        one, other = f"{same}one two {same}", f"{same}four five {same}"
        console.print(compared(("a", one), ("b", other), str.casefold, marked=True))
    assert "[-one two-]" in shown.get()
    assert "{+four five+}" in shown.get()


def listed(folder: Path, *lines: str) -> Path:
    """Write settings with a list of lines that are left out; return their file."""
    (folder / "lines.txt").write_text("\n".join(lines))
    settings = folder / "neardup.toml"
    settings.write_text('[similarity]\nboilerplate = "lines.txt"\n')
    return settings


def test_the_lines_that_are_left_out_are_shown(folder: Path) -> None:
    lines = [f"Menu {number} \x1b[2J" + "." * 99 for number in range(6)]
    config = listed(folder, *lines)
    text = "\n".join([lines[0], *lines, A["text"]])
    (folder / "framed.json").write_text(json.dumps({"id": "framed", "text": text}))
    command = ("explain", "framed.json", "a.json", "--config", str(config))
    done = neardup(*command, cwd=folder)
    assert done.returncode == 0, done.stderr
    said = "".join(done.stdout.decode().split())
    shown = "".join(f'"{visible(line[:60])}"' for line in lines[:4])
    assert "".join(f"left out of first 7 lines of the list: {shown} …".split()) in said
    assert "leftoutofsecondnoline" in said
    assert "sametextyes,oncenormalised" in said
    found = json.loads(neardup(*command, "--json", cwd=folder).stdout)
    assert [one["lines_left_out"] for one in found["documents"]] == [7, 0]
    assert [one["left_out"] for one in found["documents"]] == [lines[:4], []]


def test_without_a_list_nothing_is_said_of_one(folder: Path) -> None:
    done = neardup("explain", "a.json", "b.json", cwd=folder)
    assert b"left out" not in done.stdout
    done = neardup("explain", "--json", "a.json", "b.json", cwd=folder)
    assert b"left_out" not in done.stdout
