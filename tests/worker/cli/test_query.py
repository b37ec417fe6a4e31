"""What the command shows of a directory and of a server, and how it fails."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.support.command_line import ROOT, dedupe, jsonl, neardup
from tests.worker.serve.parts import Site
from worker.app import Application
from worker.cli import query
from worker.metrics.metrics import Metrics
from worker.probes.probes import Health, Pages
from worker.probes.server import serving
from worker.serve.answers import Answer, Found, Reply
from worker.serve.server import Limits, answering
from worker.serve.service import QueryService
from worker.settings.sections import ServeSection

TEXT = "The quick brown fox jumps over the lazy dog, and then it jumps back again."
NEAR = TEXT + " So there!"
DOCUMENTS = [{"id": "a", "text": TEXT}, {"id": "b\x1b[2J", "text": NEAR}, {"id": "c", "text": "?!"}]

OPTIONS = ("--threshold", "0.7", "--shards", "2", "--window", "9000d")


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory of two shards, of a threshold that isn't the default."""
    place = tmp_path_factory.mktemp("state")
    dedupe("--state", place / "index", *OPTIONS, stdin=jsonl(DOCUMENTS))
    return place / "index"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a server that has the same documents."""
    with ExitStack() as stack:
        directory = tmp_path_factory.mktemp("server")
        site = stack.enter_context(Site(directory))
        for document in DOCUMENTS:
            site.judge(document)
        service = stack.enter_context(QueryService(site.settings, Metrics(), threading.Event()))
        following = service.begin(
            Application(site.settings, site.topology, site.bus, directory / "server"),
            lambda: 0.0,
        )
        for _ in range(4):
            following.step()
        port = stack.enter_context(
            answering(ServeSection(port=0), service.query, service.most_bytes, Limits(seconds=300))
        )
        yield f"http://127.0.0.1:{port}"


def asked(*arguments: str | Path, stdin: bytes = b"") -> Any:  # noqa: ANN401 -- JSON
    done = neardup("query", *arguments, "--json", stdin=stdin)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def contents(state: Path) -> dict[Path, bytes]:
    """Return all files but RocksDB's own log, which it begins anew whenever it is opened."""
    files = (path for path in state.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files if not path.name.startswith("LOG")}


def refused(*arguments: str | Path, status: int = 1, stdin: bytes = b"") -> str:
    done = neardup("query", *arguments, stdin=stdin)
    assert (done.returncode, done.stdout) == (status, b"")
    return done.stderr.decode()


def test_a_directory_answers_by_the_parameters_it_was_made_with(state: Path) -> None:
    before = contents(state)
    said = asked(NEAR, "--state", state)
    assert (said["threshold"], said["behind"]) == (0.7, None)
    (answer,) = said["answers"]
    assert [one["id"] for one in answer["matches"]] == ["b\x1b[2J", "a"]
    assert answer["first"]["id"] == "a"
    assert contents(state) == before


def test_a_directory_answers_what_a_run_on_it_then_says(state: Path, tmp_path: Path) -> None:
    document = {"id": "d", "text": TEXT.replace("lazy", "busy")}
    path = tmp_path / "one.json"
    path.write_text(json.dumps(document))
    (answer,) = asked("--file", path, "--state", state)["answers"]
    copy = shutil.copytree(state, tmp_path / "index")
    (verdict,) = dedupe("--state", copy, *OPTIONS, stdin=path.read_bytes())
    assert verdict["verdict"] == answer["verdict"] == "duplicate"
    assert verdict["duplicate_of"] == [
        {name: one[name] for name in ("id", "similarity")} for one in answer["matches"]
    ]


def test_a_server_answers_about_texts_documents_and_standard_input(
    server: str, tmp_path: Path
) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps(DOCUMENTS[0]))
    ways = [
        asked(TEXT, "--server", server),
        asked("-", "--server", server, stdin=TEXT.encode()),
        asked("--file", path, "--server", server),
        asked("--file", "-", "--server", server + "/", stdin=path.read_bytes()),
        asked("--file", "-", "--format", "text", "--server", server, stdin=TEXT.encode()),
    ]
    for said in ways:
        (answer,) = said["answers"]
        assert (said["behind"], answer["matches"][0]["id"]) == (0, "a")


def test_people_see_the_verdict_the_matches_and_why(state: Path, server: str) -> None:
    done = neardup("query", NEAR, "--state", state)
    shown = done.stdout.decode()
    assert "duplicate: 2 documents match at threshold 0.7" in shown
    assert re.search(r"the same text; \d+ bands: 0, 1, 2", shown)
    assert "keys have one; the largest have so many entries: 2 (band " in shown
    assert "earliest match  a, sequence " in shown
    assert "b\\x1b[2J" in shown
    assert "\x1b" not in shown
    shown = neardup("query", "nothing like it", "--server", server).stdout.decode()
    assert "unique: nothing matches at threshold 0.8" in shown
    assert "none of its keys has one" in shown
    assert "0 records behind, as of " in shown


@pytest.mark.parametrize("place", ["state", "server"])
def test_a_text_that_cannot_be_judged_is_refused_with_the_reason(
    place: str, request: pytest.FixtureRequest
) -> None:
    at = request.getfixturevalue(place)
    assert "empty-text: the text is empty or blank" in refused(" ", f"--{place}", at)
    said = refused("--file", "-", f"--{place}", at, stdin=b'{"id": "x"}')
    assert "no-text: no field 'text'" in said


@pytest.mark.parametrize("place", ["state", "server"])
def test_a_file_of_text_is_a_text_and_its_name_is_none(
    place: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    at = request.getfixturevalue(place)
    file = tmp_path / "one.txt"
    file.write_text(NEAR)
    assert asked("--file", file, f"--{place}", at)["answers"][0]["verdict"] == "duplicate"
    assert "JSON is malformed" in refused("--file", file, f"--{place}", at, "--format", "json")
    done = neardup("query", file, f"--{place}", at)
    assert done.stdout.startswith(b"unique")
    assert done.stderr.endswith(b"one.txt is a file; --file asks about what is in it\n")


def test_other_parameters_are_refused_with_the_difference(state: Path, tmp_path: Path) -> None:
    config = tmp_path / "other.toml"
    config.write_text('[similarity]\nseed = "another secret of many bytes"\n')
    said = refused(TEXT, "--state", state, "--config", config, status=2)
    assert "was made with other parameters (seed_digest: it has " in said


def test_what_is_no_state_or_no_server_is_an_error_in_one_line(tmp_path: Path) -> None:
    assert "has no state of neardup" in refused(TEXT, "--state", tmp_path, status=2)
    said = refused(TEXT, "--server", "127.0.0.1:1")
    assert "127.0.0.1:1: nothing answers there. Start a `neardup serve`" in said
    assert "must be like http://host:9465" in refused(TEXT, "--server", "ftp://x", status=2)
    assert "give one of them" in refused(status=2)
    assert "choose one" in refused(TEXT, "--server", "x", "--state", tmp_path, status=2)
    assert "no-such-file: No such file" in refused("--file", "no-such-file", status=2)


def test_a_worker_that_is_asked_is_named_as_one() -> None:
    pages = Pages(Metrics(), Health)
    with serving("127.0.0.1", 0, pages.answer) as port:
        said = refused(TEXT, "--server", f"127.0.0.1:{port}")
    assert "takes no queries (status 404); workers don't" in said
    assert "--server URL" in said


def test_a_server_is_never_in_the_directory_of_a_worker(tmp_path: Path) -> None:
    from worker.process.state_directory import locked  # noqa: PLC0415

    with locked(tmp_path):
        done = neardup("serve", "--bootstrap", "127.0.0.1:1", "--state-dir", tmp_path)
    assert done.returncode == 2
    assert b"is in use by another worker" in done.stderr


@pytest.mark.parametrize("package", ["h11", "starlette"])
def test_a_server_says_at_once_what_to_install(package: str, tmp_path: Path) -> None:
    hidden = (
        f"import sys; sys.modules[{package!r}] = None; from worker.cli.root import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", hidden, "serve", "--bootstrap", "127.0.0.1:1"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "pip install 'neardup[serve]'" in line
    assert not list(tmp_path.iterdir())


def test_an_id_is_whole_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = io.StringIO()
    monkeypatch.setattr(query, "screen", lambda: Console(file=printed, width=80))
    match = Found("apache-airflow/PYSEC-2023-232", 1.0, 0.0, 154, list(range(18)), same_text=True)
    answer = Answer("duplicate", matches=[match])
    query.print_answer(Reply(0.8, 5, None, None, [answer], None), answer)
    first = [line.split("  ")[0].strip() for line in printed.getvalue().splitlines()]
    assert match.id in "".join(first)
    assert "1.0000 ±0.0000" in printed.getvalue()
