"""Execute a notebook's cells of code in order, and write what they put out into it.

    python -m tools.notebook docs/how-to/library.ipynb

As Jupyter does: one namespace, the notebook's folder as the working directory, what is
printed, and the value of a last expression. Nothing else is supported, nor needed: no Jupyter.
"""

from __future__ import annotations

import ast
import io
import json
import sys
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any


def main() -> None:
    """Rewrite the notebooks that the arguments name."""
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(text_of(executed(path)), encoding="utf-8")


def executed(path: Path) -> dict[str, Any]:
    """Return a notebook with the outputs that its cells have now."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    with chdir(path.parent):
        for number, cell in enumerate(codes, 1):
            cell["execution_count"] = number
            cell["outputs"] = outputs("".join(cell["source"]), namespace, number)
    return notebook


def outputs(source: str, namespace: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Execute a cell, and return what it puts out, as a notebook has it."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        run = compile(ast.Module(body, []), f"cell {number}", "exec")
        exec(run, namespace)  # noqa: S102 -- a notebook of this repository
        if isinstance(last, ast.Expr):
            end = compile(ast.Expression(last.value), f"cell {number}", "eval")
            value = eval(end, namespace)  # noqa: S307 -- the same
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
    if value is not None:
        found.append(
            {
                "data": {"text/plain": lines(repr(value))},
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return found


def lines(text: str) -> list[str]:
    """Return the lines of a text, as notebooks have them."""
    return text.splitlines(keepends=True)


def text_of(notebook: dict[str, Any]) -> str:
    """Return the text of a notebook's file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    main()
