"""One version: that of the crate is that of the packages, the program and the compiled core."""

import importlib.metadata
import re
import tomllib
from typing import Any

import lsh
import lsh._core
import neardup
import worker
from tests.support.command_line import ROOT


def crate() -> dict[str, Any]:
    manifest = tomllib.loads((ROOT / "core" / "Cargo.toml").read_text(encoding="utf-8"))
    found: dict[str, Any] = manifest["package"]
    return found


def test_all_have_the_version_of_the_crate() -> None:
    version = crate()["version"]
    assert lsh._core.__version__ == version
    assert lsh.__version__ == version
    assert worker.__version__ == version
    assert neardup.__version__ == version
    assert importlib.metadata.version("neardup") == version


def test_the_image_has_a_rust_that_compiles_the_core() -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text()
    (image,) = re.findall(r"^FROM rust:([\d.]+)-", text, re.MULTILINE)
    assert image.startswith(crate()["rust-version"])
