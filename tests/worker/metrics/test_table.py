"""The table of metrics, the code that counts, and the page say the same."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import worker
from tools.monitoring import reference
from worker.loop.transactions import Outcome
from worker.metrics import table
from worker.stages.replacement import LeftOut
from worker.topology import STAGES

CODE = Path(worker.__file__).parent
DOCS = Path(__file__).parents[3] / "docs"
TABLE = table.TABLE
NAMES = {metric.name for metric in TABLE}


def counted() -> Iterator[str]:
    """Yield the names by which the worker counts."""
    for path in CODE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if re.search(r"^from worker\.metrics import .*\btable$", text, re.MULTILINE):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "table":
                    yield node.attr


def test_every_metric_is_counted_by_its_name() -> None:
    names = {name.removeprefix("neardup_").removesuffix("_total").upper() for name in NAMES}
    assert {"TABLE", *names} == set(counted())
    assert len(names) == len(TABLE)
    for name in names:
        assert getattr(table, name) in TABLE


def test_all_outcomes_are_exported_from_the_start() -> None:
    outcomes = table.TRANSACTIONS.labels["outcome"]
    assert set(outcomes) == set(get_args(Outcome))
    assert table.TRANSACTIONS.labels["stage"] == STAGES
    assert set(table.REWRITING_DOCUMENTS.labels["outcome"]) == {"signed", *get_args(LeftOut)}


def test_the_page_is_current() -> None:
    page = DOCS / "reference" / "metrics.md"
    assert page.read_text() == reference(), f"run: python -m tools.monitoring > {page}"


def test_every_metric_has_a_meaning_and_a_remedy() -> None:
    for metric in TABLE:
        assert metric.meaning.endswith("."), metric.name
        assert metric.remedy.endswith("."), metric.name


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_a_metric_that_a_page_names_exists(page: Path) -> None:
    columns = {"neardup_verdict", "neardup_match"}  # Of tables that `dedupe` writes.
    for name in {*re.findall(r"\bneardup_[a-z_]*[a-z]\b(?!-)", page.read_text())} - columns:
        assert name in NAMES or re.sub(r"_(bucket|count|sum)$", "", name) in NAMES, name


def test_a_heading_that_a_remedy_points_to_exists() -> None:
    for metric in TABLE:
        for page, anchor in re.findall(r"\]\(([a-z./-]+\.md)#([^)]+)\)", metric.remedy):
            headings = re.findall(
                r"^#+ (.+)$", (DOCS / "reference" / page).read_text(), re.MULTILINE
            )
            anchors = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in headings}
            assert anchor in anchors, (metric.name, page, anchor)
