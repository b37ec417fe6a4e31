"""docs/reference/dependencies.md has the reason for each dependency."""

import re
import tomllib

import pytest

from tests.support.command_line import ROOT


def named(requirement: object) -> str:
    """Return the name of a requirement, empty for a group that is included."""
    found = re.match(r"[\w-]+", requirement) if isinstance(requirement, str) else None
    return found[0] if found else ""


def needed() -> set[str]:
    """Return the names of all packages and crates that are asked for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    crate = tomllib.loads((ROOT / "core" / "Cargo.toml").read_text(encoding="utf-8"))
    fuzz = tomllib.loads((ROOT / "core" / "fuzz" / "Cargo.toml").read_text(encoding="utf-8"))
    lists = [
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project["dependency-groups"].values(),
        crate["dependencies"],
        crate.get("dev-dependencies", {}),
        crate.get("build-dependencies", {}),
        fuzz["dependencies"],
    ]
    return {name for listed in lists for name in map(named, listed)} - {"", "neardup-core"}


@pytest.mark.parametrize("name", sorted(needed()))
def test_each_dependency_has_a_reason(name: str) -> None:
    page = (ROOT / "docs" / "reference" / "dependencies.md").read_text(encoding="utf-8")
    rows = {
        cell
        for row in re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE)
        for cell in re.findall(r"[\w-]+", row)
    }
    assert name in rows
