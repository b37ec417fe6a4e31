"""The crates that are linked into the core, and their licences (``make notices``)."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTICES = ROOT / "LICENSES-CRATES"
PLATFORM = "x86_64-unknown-linux-gnu"
TEXTS = ("LICEN", "COPYING", "NOTICE", "UNLICENSE")
HEAD = """\
These crates are linked into the compiled core, lsh._core. So is the standard library of Rust, which
is MIT OR Apache-2.0, (c) the Rust project's contributors. The data of Unicode in the crates icu_*
are under Unicode-3.0. Each licence stands once, below the crates that have it.
"""


@dataclass(frozen=True, slots=True, order=True)
class Crate:
    """A crate: its SPDX expression, and the texts of its licences, or what stands for them."""

    name: str
    version: str
    licence: str
    texts: tuple[str, ...]


def linked() -> list[Crate]:
    """Return the crates that are linked, by name: neither macros nor what builds them."""
    metadata = _metadata()
    packages = {one["id"]: one for one in metadata["packages"]}
    nodes = {one["id"]: one for one in metadata["resolve"]["nodes"]}
    root = metadata["resolve"]["root"]
    found, left = set[str](), [root]
    while left:
        for dependency in nodes[left.pop()]["deps"]:
            package = packages[dependency["pkg"]]
            macro = any("proc-macro" in target["kind"] for target in package["targets"])
            normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if normal and not macro and dependency["pkg"] not in found:
                found.add(dependency["pkg"])
                left.append(dependency["pkg"])
    return sorted(_crate(packages[one]) for one in found)


def _metadata() -> dict[str, Any]:
    line = [sys.executable, str(ROOT / "tools" / "rust.py"), "cargo", "metadata", "--locked"]
    line += ["--format-version", "1", "--filter-platform", PLATFORM]
    line += ["--manifest-path", str(ROOT / "core" / "Cargo.toml")]
    done = subprocess.run(line, capture_output=True, check=True)  # noqa: S603 -- our own program
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _crate(package: dict[str, Any]) -> Crate:
    folder = Path(package["manifest_path"]).parent
    paths = sorted(path for path in folder.iterdir() if path.name.upper().startswith(TEXTS))
    texts = tuple(path.read_text(encoding="utf-8").strip() for path in paths if path.is_file())
    licence = package["license"].replace("/", " OR ")
    authors = ", ".join(package["authors"])
    missing = f"The package has no text of its licence. It is {licence}, (c) {authors}."
    return Crate(package["name"], package["version"], licence, texts or (missing,))


def notices() -> str:
    """Return the file: each text of a licence once, below the crates that have it."""
    crates: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for crate in linked():
        for text in crate.texts:
            same = texts.setdefault(" ".join(text.split()), text)  # They differ in white space.
            crates.setdefault(same, []).append(f"{crate.name} {crate.version} ({crate.licence})")
    parts = [HEAD, *("\n".join([*names, "", text, ""]) for text, names in crates.items())]
    return f"{'-' * 80}\n".join(parts)


if __name__ == "__main__":
    NOTICES.write_text(notices(), encoding="utf-8")
