"""The commands that measure the filter on documents in files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from worker.cli.options import (
    Config,
    Containment,
    Encoding,
    FileFormat,
    FollowLinks,
    IdField,
    Json,
    Picture,
    TextField,
    Threshold,
    for_files,
)

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE", help="Documents, as `neardup dedupe` reads them; -: standard input."
    ),
]


def evaluate(
    files: Files,
    *,
    pairs: Annotated[
        Path | None,
        typer.Option(
            metavar="PAIRS",
            help="Pairs of ids that somebody calls duplicates: a line for each, separated by a"
            " tab.",
        ),
    ] = None,
    picture: Picture = None,
    threshold: Threshold = None,
    containment: Containment = None,
    as_json: Json = False,
    config: Config = None,
    format_: FileFormat = None,
    encoding: Encoding = None,
    follow_links: FollowLinks = False,
    id_field: IdField = None,
    text_field: TextField = None,
) -> None:
    """Measure how right the filter is on your documents.

    Judge them as `neardup dedupe` does, compute the exact similarity of all pairs, and compare.
    """
    from worker.cli.evaluate import evaluate as run

    settings, reading = for_files(
        config,
        format_,
        encoding,
        follow_links=follow_links,
        similarity__threshold=threshold,
        similarity__containment=containment,
        documents__id_field=id_field,
        documents__text_fields=text_field or None,
    )
    run(settings, files, reading, pairs=pairs, picture=picture, as_json=as_json)


def tune(
    files: Files,
    *,
    sample: Annotated[
        int,
        typer.Option(metavar="N", min=2, help="Look at the first N documents."),
    ] = 5_000,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="18x7,16x8",
            help="Bands and rows to compare with the ones chosen for the threshold.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="PAIRS",
            help="Pairs of ids that somebody calls duplicates, to see which threshold tells them"
            " from others: a line for each, separated by a tab.",
        ),
    ] = None,
    picture: Picture = None,
    threshold: Threshold = None,
    containment: Containment = None,
    as_json: Json = False,
    config: Config = None,
    format_: FileFormat = None,
    encoding: Encoding = None,
    follow_links: FollowLinks = False,
    id_field: IdField = None,
    text_field: TextField = None,
) -> None:
    """Show what thresholds, bands and rows would find and cost on your documents.

    Compute the exact similarities of a sample, and apply the S-curves to them.
    """
    from worker.cli.tune import tune as run

    settings, reading = for_files(
        config,
        format_,
        encoding,
        follow_links=follow_links,
        similarity__threshold=threshold,
        similarity__containment=containment,
        documents__id_field=id_field,
        documents__text_fields=text_field or None,
    )
    run(
        settings,
        files,
        reading,
        sample=sample,
        compare=compare,
        labels=labels,
        picture=picture,
        as_json=as_json,
    )


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
    from worker.cli.boilerplate import boilerplate as run

    settings, reading = for_files(
        config,
        format_,
        encoding,
        follow_links=follow_links,
        similarity__threshold=threshold,
        documents__id_field=id_field,
        documents__text_fields=text_field or None,
    )
    run(settings, files, reading, share=share, least=least, sample=sample)
