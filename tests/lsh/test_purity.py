from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lsh

SOURCES = sorted(Path(lsh.__file__).parent.glob("**/*.py"))
CORE = sorted((Path(lsh.__file__).parents[1] / "core" / "src").glob("**/*.rs"))
ALLOWED = {
    "numpy",
    "lsh",
    "operator",
    "unicodedata",
    "re",
    "hashlib",
    "dataclasses",
    "typing",
}
ALLOWED |= {"__future__", "array", "collections", "functools", "itertools"}
ALLOWED |= {"math", "numbers", "reprlib", "struct", "types"}

ALSO_ALLOWED = {
    "saved.py": {"contextlib", "json", "os", "pathlib", "zipfile"},
    "frames.py": {"narwhals"},
}
"""What only one file may import: the one that reads and writes saved indexes, that of frames."""


def imported(source: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where a name comes from"
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_a_file_imports_nothing_that_reads_writes_or_tells_the_time(source: Path) -> None:
    assert imported(source) <= ALLOWED | ALSO_ALLOWED.get(source.name, set())


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_a_file_calls_neither_open_nor_print_nor_hash_nor_a_random_generator(source: Path) -> None:
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name):
            assert node.id not in {"open", "print", "input", "hash", "eval", "exec"}
        if isinstance(node, ast.Attribute):
            assert node.attr not in {"random", "default_rng", "fromfile", "tofile", "memmap"}


def test_the_core_uses_no_file_clock_thread_network_or_environment() -> None:
    assert CORE
    for source in CORE:
        code, _, _tests = source.read_text(encoding="utf-8").partition("#[cfg(test)]")
        used = set(re.findall(r"\bstd::(fs|net|time|thread|process|env)\b", code))
        used |= set(re.findall(r"\b(?:e?print(?:ln)?|dbg)!", code))
        assert not used, source


def test_importing_it_loads_neither_the_worker_nor_its_dependencies() -> None:
    program = "import sys, lsh; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(lsh.__file__).parent.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert "lsh" in loaded
    barred = {"worker", "confluent_kafka", "rocksdict", "msgspec", "pydantic", "typer"}
    assert not loaded & {*barred, "prometheus_client", "sqlite3", "http"}
