"""The commands and their options; what they do is in a module each.

Nothing heavy is imported here, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys

import typer

from worker.cli import index_options, kafka_options, offline_options
from worker.cli.errors import reported

__all__ = ["app", "main"]

app = typer.Typer(
    name="neardup",
    help="Find near-duplicate documents in a stream; publish each exactly once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

offline_options.register(app)
kafka_options.register(app)
index_options.register(app)


def main() -> None:
    """Run the command line; every foreseen error is one line and a status."""
    with reported():
        app()
    sys.exit(0)
