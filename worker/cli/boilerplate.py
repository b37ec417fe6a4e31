"""``neardup boilerplate``: the lines that stand in many documents, to be left out of texts."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from lsh import format_lines, repeated_lines
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.progress_bar import byte_progress
from worker.cli.rejects import Texts
from worker.files.named_files import Argument
from worker.files.reading import Reading
from worker.settings.model import Settings
from worker.visible import counted, tell


def boilerplate(
    settings: Settings,
    files: Sequence[Argument],
    reading: Reading,
    *,
    share: float,
    least: int,
    sample: int,
) -> None:
    """Print the list, and a summary on standard error.

    Raises:
        CommandError: a file can't be read, too many documents can't, or none can be judged.
    """
    texts = Texts(settings, files, reading)
    with byte_progress(texts.total, shown=sys.stderr.isatty()) as advance:
        found = (text for _, text in texts.read(sample, advance))
        learnt = repeated_lines(found, settings.parameters(), share=share, least=least)
    texts.check()
    if not learnt.documents:
        raise CommandError("no document can be judged", EXIT_FAILED)
    different = counted(learnt.different, "different document")
    sys.stdout.write(
        f"# Lines of {different} ({learnt.documents:,} were read), and in how many each stands.\n"
        "# Delete what is no boilerplate; then set similarity.boilerplate to the name of this"
        " file.\n"
    )
    sys.stdout.write(format_lines(learnt.lines))
    enough = max(least, math.ceil(share * learnt.different))
    tell(
        f"neardup: {counted(len(learnt.lines), 'line stands', 'lines stand')} in at least"
        f" {enough:,} of {different}; {learnt.documents:,} were read"
    )
