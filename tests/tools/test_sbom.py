"""The bill of materials: valid, complete, and the same each time."""

from __future__ import annotations

import json
import tomllib

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.support.command_line import ROOT
from tools.crates import linked
from tools.sbom import bom
from worker import __version__


def test_it_is_valid_and_says_the_same_each_time() -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bom()) is None
    assert bom() == bom()


def test_it_names_the_wheel_its_crates_and_what_it_needs() -> None:
    made = json.loads(bom())
    assert made["metadata"]["component"]["purl"] == f"pkg:pypi/neardup@{__version__}"
    parts = {(part["purl"].partition("/")[0], part["name"]): part for part in made["components"]}
    crates = {("pkg:cargo", crate.name) for crate in linked()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {("pkg:pypi", one.partition(">")[0]) for one in project["dependencies"]}
    assert crates | needed <= parts.keys()
    for (kind, _), part in parts.items():
        assert part["hashes"] if kind == "pkg:pypi" else part["licenses"]
    depends = {one["ref"]: one.get("dependsOn", []) for one in made["dependencies"]}
    everything = {part["bom-ref"] for part in made["components"]}
    assert set(depends[f"pkg:pypi/neardup@{__version__}"]) == everything
