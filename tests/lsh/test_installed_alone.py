"""The library installs by itself, and imports numpy, its core and the standard library alone."""

from __future__ import annotations

import os
import subprocess
import sys
from email import message_from_string
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import lsh
from tests.support.command_line import ROOT

SOURCES = Path(lsh.__file__).parent

LICENCES = ["LICENSE", "LICENSE-UNICODE", "LICENSES-CRATES"]

USE = """
import sys

class OnlyNumpy:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names | {"lsh", "numpy", "mmh3"}:
            raise ImportError(f"barred: {name}")

sys.meta_path.insert(0, OnlyNumpy())
sys.path[:0] = sys.argv[1:]
import lsh
index = lsh.Index()
index.add("a", "The quick brown fox jumps over the lazy dog.")
from lsh import _core
assert _core.__file__.startswith(sys.argv[1])
print(lsh.__file__, *index.query("the quick brown FOX jumps over the lazy dog!")[0])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    """Return the wheel of the library: the one that ships, if CI has built it, or one from here."""
    ships = os.environ.get("NEARDUP_TEST_WHEEL")
    if ships is not None:
        return ZipFile(ships)
    folder = tmp_path_factory.mktemp("wheel")
    build = ["maturin", "build", "--release", "--compatibility", "off"]
    build += ["--out", str(folder), "--interpreter", sys.executable]
    command = [sys.executable, str(ROOT / "tools" / "rust.py"), *build]
    subprocess.run(command, cwd=SOURCES, check=True, capture_output=True)
    (path,) = folder.glob("neardup_lsh-*.whl")
    return ZipFile(path)


def test_the_wheel_has_all_of_the_library_and_nothing_else(wheel: ZipFile) -> None:
    names = set(wheel.namelist())
    expected = {f"lsh/{path.relative_to(SOURCES)}" for path in SOURCES.rglob("*.py")}
    expected |= {"lsh/py.typed", "lsh/_core.pyi", "lsh/_core.abi3.so"}
    expected |= {f"lsh/{name}" for name in LICENCES}
    assert {name for name in names if ".dist-info/" not in name} == expected
    (metadata,) = (name for name in names if name.endswith("/METADATA"))
    fields = message_from_string(wheel.read(metadata).decode())
    assert fields["Name"] == "neardup-lsh"
    assert fields.get_all("License-File") == LICENCES
    assert {f"{metadata.rpartition('/')[0]}/licenses/{name}" for name in LICENCES} <= names
    assert fields.get_all("Requires-Dist") == ["numpy>=2.0", "narwhals>=2 ; extra == 'frames'"]
    assert "from lsh import Index" in str(fields.get_payload())


def test_what_is_installed_works_with_numpy_alone(wheel: ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    libraries = Path(np.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", USE, tmp_path, libraries],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.split() == [
        str(tmp_path / "lsh" / "__init__.py"),
        "a",
        "0.9686274509803922",
        "None",
    ]
