"""Notebooks have the outputs that their cells have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.notebook import executed, text_of

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs").rglob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_has_the_outputs_of_its_cells(path: Path) -> None:
    current = text_of(executed(path))
    assert path.read_text(encoding="utf-8") == current, f"run: python -m tools.notebook {path}"


def test_there_is_a_notebook() -> None:
    assert [path.name for path in NOTEBOOKS] == ["library.ipynb"]


def test_cells_share_names_print_and_end_with_a_value(tmp_path: Path) -> None:
    path = tmp_path / "some.ipynb"
    sources = [
        "x = 2\nprint('a')\nprint(x)\nx * 3",
        "x += 1",
        "None",
        "from pathlib import Path\nPath.cwd().name",
    ]
    cells = [
        {"cell_type": "code", "source": source.splitlines(keepends=True)} for source in sources
    ]
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "x"}, *cells]}))
    found = [cell.get("outputs") for cell in executed(path)["cells"]]
    assert found == [
        None,
        [
            {"name": "stdout", "output_type": "stream", "text": ["a\n", "2\n"]},
            {
                "data": {"text/plain": ["6"]},
                "execution_count": 1,
                "metadata": {},
                "output_type": "execute_result",
            },
        ],
        [],
        [],
        [
            {
                "data": {"text/plain": [repr(tmp_path.name)]},
                "execution_count": 4,
                "metadata": {},
                "output_type": "execute_result",
            }
        ],
    ]


def test_an_error_in_a_cell_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "some.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": ["1 / 0"]}]}))
    with pytest.raises(ZeroDivisionError):
        executed(path)
