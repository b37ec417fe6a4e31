"""Groups of commands whose modules are imported when a command runs, or its help is shown."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter, Parameter


class Group(TyperGroup):
    """A group whose help shows no type of Python."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Return the options."""
        return _without_types(super().get_params(ctx))


class Command(TyperCommand):
    """A command whose help shows no type of Python."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Return the arguments and options."""
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
        app.command(self.name, cls=Command)(getattr(import_module(module), function))
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


def commands(
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
