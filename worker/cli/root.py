"""All commands, and how ``--help`` shows them.

This module imports nothing heavy, so that ``--help`` answers at once. A command's own module is
imported when the command runs.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from importlib import import_module
from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from worker import __version__
from worker.cli.errors import reported
from worker.cli.options import KAFKA, OPERATE, WITHOUT_KAFKA

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter, Parameter

# Each command: its ``module:function`` in worker.cli, and the first line of its docstring, which a
# test compares.
COMMANDS = {
    WITHOUT_KAFKA: {
        "demo": ("demo:demo", "Filter bundled sample documents, and show the duplicates found."),
        "dedupe": (
            "dedupe:dedupe",
            "Judge the documents in files: unique, duplicate (and of what), or rejected (and why).",
        ),
        "evaluate": ("evaluate:evaluate", "Measure how right the filter is on your documents."),
        "tune": (
            "tune:tune",
            "Show what thresholds, bands and rows would find and cost on your documents.",
        ),
        "boilerplate": (
            "boilerplate:boilerplate",
            "List the lines that stand in many documents: footers, menus, cookie banners.",
        ),
        "explain": ("explain:explain", "Show why two documents are near duplicates, or are not."),
        "query": (
            "query:query",
            "Show what a text or a document would match, and why. Nothing is written.",
        ),
        "campaigns": (
            "campaigns:campaigns",
            "List the groups of documents that match one another: campaigns, reposts, templates.",
        ),
    },
    KAFKA: {
        "run": ("run:run", "Run a worker. Start more workers to scale out."),
        "serve": (
            "serve:serve",
            (
                "Answer over HTTP what a document would match. Writes nothing to Kafka but"
                " corrections."
            ),
        ),
        "feed": (
            "feed:feed",
            "Publish the documents in files: lines of JSON unchanged, and others as JSON.",
        ),
        "watch": (
            "watch:watch",
            "Show rates, verdicts, lag and the latest duplicates live; q quits.",
        ),
        "redrive": (
            "redrive:redrive",
            "Send rejected documents through the filter again, exactly once each.",
        ),
        "allow": ("allow:allow", "Allow texts: what is near to one is no duplicate from then on."),
        "forget": (
            "forget:forget",
            "Have the index forget documents, and say when nothing is left of them.",
        ),
        "skip": (
            "skip:skip",
            (
                "Have the workers reject a batch of documents that can't be unpacked, and go"
                " on after it."
            ),
        ),
        "reindex": (
            "reindex:reindex",
            "Change the shards and rules of the index of running workers, without downtime.",
        ),
    },
    OPERATE: {
        "init": (
            "topics:init",
            (
                "Set starting offsets and record the shared settings, for topics created by"
                " other tools."
            ),
        ),
    },
}
GROUPS = {
    "topics": (
        "Create or check the topics, or list the rights they need.",
        {
            "create": (
                "topics:create",
                "Create missing topics, check the others, and set the starting offsets.",
            ),
            "verify": (
                "topics:verify",
                (
                    "Check topics, their settings, and the groups' offsets; exit 2 if a worker"
                    " can't run."
                ),
            ),
            "acls": (
                "acls:acls",
                "Print what each command needs on a cluster with ACLs; doesn't connect.",
            ),
        },
    ),
    "config": (
        "Show or check the settings.",
        {
            "show": ("config:show", "Print the effective settings, with secrets as ****."),
            "check": (
                "config:check",
                (
                    "Print ok, or the first wrong setting (exit status 2); warnings go to"
                    " standard error."
                ),
            ),
        },
    ),
    "index": (
        "Inspect, verify and restore shards and their snapshots.",
        {
            "stats": (
                "index:stats",
                "Show the contents of the shards in a state directory, as of their last flush.",
            ),
            "verify": (
                "index_snapshots:verify",
                "Read all shards, and report damage (exit status 1). Stop the worker first.",
            ),
            "snapshots": ("index_snapshots:snapshots", "List the snapshots."),
            "snapshot": (
                "index_snapshots:snapshot",
                "Take snapshots of a stopped worker's shards. A running worker takes its own.",
            ),
            "restore": (
                "index_snapshots:restore",
                "Restore the shards that are missing from a stopped worker's state directory.",
            ),
        },
    ),
}


class _Group(TyperGroup):
    """A group whose help shows no type of Python."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        return _without_types(super().get_params(ctx))


class _Command(TyperCommand):
    """A command whose help shows no type of Python."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        return _without_types(super().get_params(ctx))

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Let the terminal break the lines of paragraphs."""
        paragraphs = cleandoc(self.help or "").split("\n\n")
        self.help = "\n\n".join(text.replace("\n", " ") for text in paragraphs)
        super().format_help(ctx, formatter)


class LazyCommand(TyperCommand):
    """A command of which only the name and the first line of its help are known.

    Attributes:
        target: ``module:function``, the command's declaration.
    """

    def __init__(self, name: str, target: str, about: str, panel: str | None = None) -> None:
        """Keep the command's declaration, its line in the group's help, and the panel there."""
        super().__init__(name, help=about, rich_help_panel=panel)
        self.target = target

    def load(self) -> TyperCommand:
        """Return the command; imports its module."""
        module, _, function = self.target.partition(":")
        app = typer.Typer(add_completion=False)
        app.command(self.name, cls=_Command)(
            getattr(import_module(f"worker.cli.{module}"), function)
        )
        command = typer.main.get_command(app)
        assert isinstance(command, TyperCommand)  # noqa: S101 -- for the types
        return command

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: Context | None = None,
        **extra: Any,  # noqa: ANN401 -- whatever the parser passes on
    ) -> Context:
        """Return a context of the command itself, with its parsed arguments."""
        return self.load().make_context(info_name, args, parent, **extra)


def _commands(
    declared: Mapping[str, tuple[str, str]], panel: str | None = None
) -> dict[str, TyperCommand]:
    """Return commands by name, given each one's ``module:function`` and first line of help."""
    return {name: LazyCommand(name, *facts, panel) for name, facts in declared.items()}


def _without_types(parameters: list[Parameter]) -> list[Parameter]:
    """Hide the types: a flag has none, and an argument's name says more."""
    for parameter in parameters:
        if isinstance(parameter, TyperArgument):
            parameter.display_type_rich = lambda ctx: None  # type: ignore[method-assign]  # noqa: ARG005
        elif getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class _Root(_Group):
    """The command ``neardup``."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 -- as typer passes them
        """Add the commands and the groups."""
        super().__init__(**attributes)
        for panel, declared in COMMANDS.items():
            self.commands.update(_commands(declared, panel))
        for name, (about, declared) in GROUPS.items():
            self.commands[name] = _Group(
                name=name,
                commands={**_commands(declared)},
                help=about,
                no_args_is_help=True,
                rich_help_panel=OPERATE,
            )


app = typer.Typer(
    name="neardup",
    cls=_Root,
    help="Find near-duplicate documents in a stream, and publish each document exactly once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:  # noqa: FBT001 -- typer's callback
    if requested:
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
