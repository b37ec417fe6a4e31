"""All commands, and how ``--help`` shows them.

This module imports nothing heavy, so that ``--help`` answers at once.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from worker import __version__
from worker.cli import (
    correcting_commands,
    files_commands,
    index_commands,
    kafka_commands,
    measuring_commands,
    operating_commands,
)
from worker.cli.errors import reported
from worker.cli.options import KAFKA, OPERATE, WITHOUT_KAFKA

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter, Parameter


def _without_types(parameters: list[Parameter]) -> list[Parameter]:
    """Show no type of Python: a flag has none, and an argument's name says more."""
    for one in parameters:
        if isinstance(one, TyperArgument):
            one.display_type_rich = lambda ctx: None  # type: ignore[method-assign]  # noqa: ARG005
        elif getattr(one, "is_flag", False):
            one.metavar = ""
    return parameters


class _Group(TyperGroup):
    def get_params(self, ctx: Context) -> list[Parameter]:
        return _without_types(super().get_params(ctx))


class _Command(TyperCommand):
    def get_params(self, ctx: Context) -> list[Parameter]:
        return _without_types(super().get_params(ctx))

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Let the terminal break the lines of paragraphs."""
        paragraphs = cleandoc(self.help or "").split("\n\n")
        self.help = "\n\n".join(one.replace("\n", " ") for one in paragraphs)
        super().format_help(ctx, formatter)


def _group(about: str, commands: Mapping[str, Callable[..., None]]) -> typer.Typer:
    group = typer.Typer(cls=_Group, help=about, no_args_is_help=True)
    for name, command in commands.items():
        group.command(name, cls=_Command)(command)
    return group


COMMANDS: Mapping[str, tuple[Callable[..., None], ...]] = {
    WITHOUT_KAFKA: (
        files_commands.demo,
        files_commands.dedupe,
        measuring_commands.evaluate,
        measuring_commands.tune,
        measuring_commands.boilerplate,
        files_commands.explain,
        files_commands.query,
        files_commands.campaigns,
    ),
    KAFKA: (
        kafka_commands.run,
        kafka_commands.serve,
        kafka_commands.feed,
        kafka_commands.watch,
        kafka_commands.redrive,
        correcting_commands.allow,
        correcting_commands.forget,
        kafka_commands.skip,
        kafka_commands.reindex,
    ),
    OPERATE: (operating_commands.init,),
}
GROUPS = {
    "topics": _group(
        "Create or check the topics, or list the rights they need.",
        {
            "create": operating_commands.topics_create,
            "verify": operating_commands.topics_verify,
            "acls": operating_commands.topics_acls,
        },
    ),
    "config": _group(
        "Show or check the settings.",
        {"show": operating_commands.config_show, "check": operating_commands.config_check},
    ),
    "index": _group(
        "Inspect, verify and restore shards and their snapshots.",
        {
            "stats": index_commands.stats,
            "verify": index_commands.verify,
            "snapshots": index_commands.snapshots,
            "snapshot": index_commands.snapshot,
            "restore": index_commands.restore,
        },
    ),
}
app = typer.Typer(
    name="neardup",
    cls=_Group,
    help="Find near-duplicate documents in a stream, and publish each document exactly once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for panel, commands in COMMANDS.items():
    for command in commands:
        app.command(cls=_Command, rich_help_panel=panel)(command)
for name, group in GROUPS.items():
    app.add_typer(group, name=name, rich_help_panel=OPERATE)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 -- typer's callback
    if wanted:
        typer.echo(f"neardup {__version__}")
        raise typer.Exit


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
