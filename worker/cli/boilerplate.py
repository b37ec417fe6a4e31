"""``neardup boilerplate``: the lines that stand in many documents, to be left out of texts."""

from __future__ import annotations

import math
import sys
from typing import Annotated

import typer

from lsh import format_lines, repeated_lines
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.options import (
    Config,
    Encoding,
    FileFormat,
    Files,
    FollowLinks,
    IdField,
    TextField,
    Threshold,
)
from worker.cli.reading import Texts, for_files
from worker.cli.screen import byte_progress
from worker.visible import counted, tell


def boilerplate(
    files: Files,
    *,
    share: Annotated[
        float,
        typer.Option(
            metavar="S",
            min=0,
            max=1,
            help="Least share of the different documents that have a listed line.",
        ),
    ] = 0.001,
    least: Annotated[
        int,
        typer.Option(metavar="N", min=2, help="Least number of them that have it."),
    ] = 5,
    sample: Annotated[
        int, typer.Option(metavar="N", min=2, help="Look at the first N documents.")
    ] = 100_000,
    threshold: Threshold = None,
    config: Config = None,
    format_: FileFormat = None,
    encoding: Encoding = None,
    follow_links: FollowLinks = False,
    id_field: IdField = None,
    text_field: TextField = None,
) -> None:
    """List the lines that stand in many documents: footers, menus, cookie banners.

    Look the list over, delete what is no boilerplate, and set similarity.boilerplate to its file.

    Documents that nearly repeat an earlier one don't count: a story that many sites
    print is no boilerplate.
    """
    settings, reading = for_files(
        config,
        format_,
        encoding,
        follow_links=follow_links,
        similarity__threshold=threshold,
        documents__id_field=id_field,
        documents__text_fields=text_field or None,
    )
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
