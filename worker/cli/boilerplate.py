"""``neardup boilerplate``: the lines that stand in many documents, to be left out of texts."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from lsh import format_lines, repeated_lines
from worker.bus import Record
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.inputs import Inputs
from worker.cli.progress import byte_progress
from worker.cli.screen import tell
from worker.formats.base import Unreadable
from worker.formats.choice import document_format
from worker.settings import Settings

__all__ = ["boilerplate"]


def boilerplate(
    settings: Settings, files: Sequence[Path], *, share: float, least: int, sample: int
) -> None:
    """Print the list, and a summary on standard error.

    Raises:
        CommandError: a file can't be read, or no document can be judged.
    """
    learnt = repeated_lines(
        islice(_texts(settings, files), sample), settings.parameters(), share=share, least=least
    )
    if not learnt.documents:
        raise CommandError("no document can be judged", EXIT_FAILED)
    sys.stdout.write(
        f"# Lines of {learnt.different:,} different documents ({learnt.documents:,} were read), and"
        " in how many each stands.\n"
        "# Delete what is no boilerplate; then set similarity.boilerplate to the name of this"
        " file.\n"
    )
    sys.stdout.write(format_lines(learnt.lines))
    enough = max(least, math.ceil(share * learnt.different))
    tell(
        f"neardup: {len(learnt.lines):,} lines stand in at least {enough:,}"
        f" of {learnt.different:,} different documents; {learnt.documents:,} were read"
    )


def _texts(settings: Settings, files: Sequence[Path]) -> Iterator[str]:
    """Yield the texts of the documents that can be read."""
    documents = document_format(settings)
    with (
        Inputs(files, settings.documents) as inputs,
        byte_progress(inputs.total, shown=sys.stderr.isatty()) as advance,
    ):
        done = 0
        for chunk in inputs.chunks(settings.limits.record_bytes):
            for line in chunk:
                if line.complete:
                    try:
                        record = Record("", 0, 0, -1, line.key, line.value)
                        yield documents.read(record).text
                    except Unreadable:
                        continue
            done += len(chunk)
            advance(inputs.position, done)
