"""What the image is built from, and how a container's health is asked, without an engine."""

import fnmatch
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path

import pytest

from tests.support.command_line import ROOT
from tools.crates import NOTICES, linked, notices
from worker.probes.probes import answer
from worker.probes.server import serving

HEALTH = ROOT / "deploy" / "health"
LICENCES = ("LICENSE", "LICENSE-UNICODE", "LICENSES-CRATES")


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [Path(name) for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def sent(path: Path) -> bool:
    """Return whether a build sends a file, by the last line of .dockerignore that names it."""
    kept = True
    names = [str(path), *map(str, path.parents[:-1])]
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern = line.removeprefix("!").removeprefix("**/")
            if any(fnmatch.fnmatch(name, pattern) for name in names):
                kept = line.startswith("!")
    return kept


def source_distribution(files: list[Path], folder: Path) -> dict[str, str]:
    """Return what is packed if only some files are there, with digests. Nothing is compiled."""
    source = folder / "source"
    for path in files:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, source / path)
    pack = [str(ROOT / "tools" / "rust.py"), "maturin", "sdist", "--out", str(folder)]
    subprocess.run([sys.executable, *pack], cwd=source, check=True, capture_output=True)
    (packed,) = folder.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        return {
            member.name.partition("/")[2]: sha256(content.read()).hexdigest()
            for member in archive
            if (content := archive.extractfile(member))
        }


def test_the_image_is_built_from_the_whole_source_distribution(tmp_path: Path) -> None:
    files = tracked()
    there = [path for path in files if sent(path)]
    assert len(there) < len(files)

    packed = source_distribution(there, tmp_path / "image")
    assert packed == source_distribution(files, tmp_path / "whole")
    expected = {str(path) for path in files if path.parts[0] in {"lsh", "neardup", "worker"}}
    expected |= {str(path) for path in files if path.is_relative_to("core/src")}
    expected |= {"core/Cargo.lock", *LICENCES}
    of_lsh_alone = {f"lsh/{name}" for name in ("pyproject.toml", *LICENCES)}
    assert expected - {*packed} == of_lsh_alone


def test_what_is_compiled_here_is_not_sent() -> None:
    assert not sent(Path("core/target/release/lib_core.so"))
    assert not sent(Path("lsh/_core.abi3.so"))


def test_the_image_has_what_the_dockerfile_copies() -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text()
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    assert "deploy/health" in copied
    for source in copied:
        assert source == "." or sent(Path(source)), source


def test_all_name_the_same_licence() -> None:
    here, alone = (
        tomllib.loads((ROOT / path).read_text())["project"]["license"]
        for path in ("pyproject.toml", "lsh/pyproject.toml")
    )
    core = tomllib.loads((ROOT / "core" / "Cargo.toml").read_text())["package"]["license"]
    (label,) = re.findall(
        r'image\.licenses="([^"]+)"', (ROOT / "deploy" / "Dockerfile").read_text()
    )
    (unicode_data,) = re.findall(r"SPDX: ([\w.-]+)", (ROOT / "LICENSE-UNICODE").read_text())
    assert core == f"Apache-2.0 AND {unicode_data}"
    # What is compiled has the crates in it. Of their choices, Apache-2.0 is taken, or else MIT.
    terms = [term for crate in linked() for term in crate.licence.split(" AND ")]
    choices = [set(term.strip("()").split(" OR ")) for term in terms]
    taken = {next(iter(one & {"Apache-2.0"} or one & {"MIT"} or one)) for one in choices}
    assert here == alone == label
    assert here.startswith(f"{core} AND ")
    assert set(here.split(" AND ")) == {*core.split(" AND "), *taken}


def test_the_texts_of_all_licences_are_those_of_the_crates() -> None:
    assert NOTICES.read_text(encoding="utf-8") == notices(), "run: make notices"
    for project in ("pyproject.toml", "lsh/pyproject.toml"):
        named = tomllib.loads((ROOT / project).read_text())["project"]["license-files"]
        assert named == list(LICENCES)
        assert all((ROOT / project).with_name(name).is_file() for name in named)


def test_no_health_check_has_an_argument_with_a_space() -> None:
    """Podman joins the arguments of a check and splits them again at spaces."""
    text = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", " ")
    compose = (ROOT / "docker-compose.yml").read_text()
    checks = re.findall(r"^HEALTHCHECK .*CMD (\[.+\])$", text, re.MULTILINE)
    checks += re.findall(r"^ +test: (\[.+\])$", compose, re.MULTILINE)
    assert len(checks) == 4
    for check in checks:
        assert not any(" " in argument for argument in json.loads(check)), check


def ask(port: int, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-IS", HEALTH, path],
        env={"NEARDUP_WORKER__HTTP_PORT": str(port)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (404, 1)])
def test_a_container_is_as_healthy_as_its_worker_says(status: int, code: int) -> None:
    asked: list[bytes] = []

    def respond(head: bytes) -> bytes:
        asked.append(head)
        return answer(HTTPStatus(status))

    with serving("127.0.0.1", 0, respond) as port:
        done = ask(port, "/readyz")
    assert done.returncode == code, done.stderr
    assert [head.splitlines()[0] for head in asked] == [b"GET /readyz HTTP/1.1"]
    assert (str(status) in done.stderr) == bool(code)


def test_a_worker_that_does_not_answer_is_unhealthy() -> None:
    with serving("127.0.0.1", 0, lambda _: answer(HTTPStatus.OK)) as port:
        assert ask(port, "/healthz").returncode == 0
    done = ask(port, "/healthz")
    assert done.returncode == 1
    assert done.stderr.startswith(f"127.0.0.1:{port}: ")


def test_health_is_asked_with_little_of_python() -> None:
    """A check runs every few seconds; http.client alone would take four times as long."""
    done = subprocess.run(
        [sys.executable, "-IS", "-X", "importtime", HEALTH, "/healthz"],
        env={"NEARDUP_WORKER__HTTP_PORT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "socket" in imported
    assert not imported & {"email", "http.client", "ssl", "urllib.request"}
