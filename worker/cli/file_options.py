"""The options of all commands that read files."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["FIELDS", "Encoding", "FileFormat"]

FIELDS = "Documents"
FileFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="What is a document. json: lines and rows, with fields; text: each file; lines: each"
        " line, as text. Default: what the files' names say, else JSON Lines.",
        show_default=False,
        rich_help_panel=FIELDS,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Encoding of files that don't say theirs, such as cp1252. Default: UTF-8.",
        show_default=False,
        rich_help_panel=FIELDS,
    ),
]
