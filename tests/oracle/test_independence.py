"""The oracle shares nothing with what it judges but parameters and rules."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

DEFINITION = (
    *("clock", "fingerprint", "hashing", "html_names", "index", "markup", "normal_form"),
    "unicode_tables",
)
SHARED = {"BucketRules", "Parameters"}


@pytest.mark.parametrize("module", DEFINITION)
def test_a_part_of_the_definition_imports_nothing_that_computes(module: str) -> None:
    source = Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8")
    taken, packages = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            packages |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            packages.add(node.module)
            if node.module.startswith("lsh"):
                taken |= {alias.name for alias in node.names}
    assert taken <= SHARED
    assert not any(name.startswith(("numpy", "mmh3", "worker")) for name in packages)
    assert all(name.startswith("tests.oracle.") for name in packages if name.startswith("tests"))
