"""All commands and their options; each body is in a module of its own.

This module imports nothing heavy, so that ``--help`` answers at once.
"""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from worker import __version__
from worker.cli import (
    boilerplate_options,
    evaluate_options,
    explain_options,
    index_options,
    kafka_options,
    offline_options,
    query_options,
    tune_options,
)
from worker.cli.errors import reported

__all__ = ["app", "main"]

app = typer.Typer(
    name="neardup",
    help="Find near-duplicate documents in a stream, and publish each document exactly once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 -- typer's callback
    if wanted:
        typer.echo(f"neardup {__version__}")
        raise typer.Exit


offline_options.register(app)
evaluate_options.register(app)
tune_options.register(app)
boilerplate_options.register(app)
explain_options.register(app)
query_options.register(app)
kafka_options.register(app)
index_options.register(app)


@app.callback()
def _options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command."""
    del version  # Its callback has printed it.


def main() -> None:
    """Run the command line; an expected error is one line and an exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # A terminal may be less than UTF-8.
    with reported():
        app(prog_name="neardup")
    sys.exit(0)
