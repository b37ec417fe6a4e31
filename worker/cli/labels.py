"""Pairs of documents that somebody calls duplicates, in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from worker.cli.errors import EXIT_FAILED, CommandError
from worker.files.inputs import Inputs
from worker.files.reading import Reading
from worker.settings.documents import DocumentsSection
from worker.visible import counted, tell


def labelled_pairs(path: Path) -> list[tuple[str, str]]:
    """Return the pairs of ids in a file: a line for each, with a tab between them.

    Raises:
        CommandError: the file can't be read, or a line has no tab.
    """
    found = []
    with Inputs([path], DocumentsSection(format="text"), Reading("lines")) as inputs:
        for chunk in inputs.chunks(1 << 20):
            for line in chunk:
                try:
                    ids = line.value.decode().split("\t")
                except UnicodeDecodeError:
                    raise CommandError(f"{line.key.decode()}: is not UTF-8", EXIT_FAILED) from None
                if len(ids) < 2:  # noqa: PLR2004 -- a pair
                    raise CommandError(
                        f"{line.key.decode()}: takes two ids, separated by a tab", EXIT_FAILED
                    )
                found.append((ids[0], ids[1]))
    return found


def numbered(
    labels: Sequence[tuple[str, str]], numbers: Mapping[str, int]
) -> list[tuple[int, int]]:
    """Return the numbers of the pairs of which both documents are known; tell of the others."""
    pairs = [(numbers.get(one), numbers.get(other)) for one, other in labels]
    known = [(a, b) for a, b in pairs if a is not None and b is not None and a != b]
    if len(known) < len(labels):
        tell(
            f"neardup: {len(labels) - len(known):,} of {counted(len(labels), 'pair')} don't name"
            " two of the documents"
        )
    return known
