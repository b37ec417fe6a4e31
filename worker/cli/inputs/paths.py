"""The files that arguments name: files, directories and patterns."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from worker.cli.errors import CommandError
from worker.cli.inputs.compressed import COMPRESSIONS
from worker.cli.inputs.csv_rows import DELIMITERS
from worker.cli.inputs.parquet_rows import PARQUET_SUFFIXES

__all__ = ["Named", "named_files", "suffix_of"]

_KNOWN = {
    "json": {".jsonl", ".ndjson", ".json", *DELIMITERS, *PARQUET_SUFFIXES},
    "text": {".txt"},
}
"""The suffixes of files in directories, by the format of documents."""
_COMPRESSED = {each.suffix for each in COMPRESSIONS}


class Named(NamedTuple):
    """A file, and the name that its documents without id have."""

    path: Path
    base: str


def suffix_of(name: str) -> str:
    """Return the suffix of a file's name without that of its compression, in lower case."""
    path = Path(name)
    if path.suffix in _COMPRESSED:
        path = path.with_suffix("")
    return path.suffix.lower()


def named_files(arguments: Sequence[Path], format_: str) -> list[Named]:
    """Return the files to read, in order.

    A directory stands for all files in and below it whose suffix is known, sorted by path, without
    hidden ones. A pattern stands for the files that match it, sorted.

    Raises:
        CommandError: a directory or a pattern stands for no file.
    """
    return [named for argument in arguments for named in _expanded(argument, _KNOWN[format_])]


def _expanded(argument: Path, known: Collection[str]) -> list[Named]:
    if argument.is_dir():
        below = sorted(_below(argument, known))
        if not below:
            listed = ", ".join(sorted(known))
            raise CommandError(f"{argument}: no file in it has a known suffix ({listed})")
        return [Named(path, path.relative_to(argument).as_posix()) for path in below]
    pattern = str(argument)
    if pattern == "-" or not glob.has_magic(pattern) or argument.exists():
        return [Named(argument, argument.name)]
    found = sorted(map(Path, glob.glob(pattern, recursive=True)))  # noqa: PTH207 -- of any root
    files = [path for path in found if not path.is_dir()]
    if not files:
        raise CommandError(f"{argument}: no file matches this pattern")
    return [Named(path, path.name) for path in files]


def _below(directory: Path, known: Collection[str]) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise CommandError(f"{error.filename}: {error.strerror}")

    for folder, folders, names in os.walk(directory, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in names:
            if not name.startswith((".", "_")) and suffix_of(name) in known:
                yield Path(folder, name)
