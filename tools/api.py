"""The reference of `lsh`, from its docstrings; `make docs` puts it in."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from itertools import chain, pairwise
from pathlib import Path
from pprint import pformat
from types import FunctionType

import lsh

HEAD = """\
# The library, name by name

Everything here is imported from `lsh`. [The library](../how-to/library.md) shows how it is used.
Arrays are numpy's; `uint64[n, slots]` has n rows of so many slots.
"""
ARGUMENT = re.compile(r"(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*): (?P<what>.*)")
BETWEEN = re.compile(r"(?<=\.) (?=[a-z]\w*(?:, \w+)*: )")
FIRST = ("Index", "Hit", "SimilarPair", "Group")


def reference() -> str:
    """Return the page, as Markdown."""
    names = [*FIRST, *(name for name in sorted(lsh.__all__) if name not in FIRST)]
    constants = attribute_docs()
    parts = [HEAD]
    for name in names:
        value = getattr(lsh, name)
        if isinstance(value, type):
            parts += of_class(value)
        elif callable(value):
            parts += [f"## {name}", *of_function(name, value)]
        else:
            parts += [f"## {name}", f"```text\n{pformat(value)}\n```", *paragraphs(constants[name])]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def of_class(cls: type) -> Iterator[str]:
    """Yield the section of a class: itself, then its public methods and properties."""
    own = inspect.signature(cls)
    yield f"## {cls.__name__}"
    yield code(f"{cls.__name__}{shown(own)}")
    yield from paragraphs(cls.__doc__ or "")
    made = cls.__dict__.get("__init__")
    if isinstance(made, FunctionType) and made.__module__ == cls.__module__:
        yield from paragraphs(made.__doc__ or "")
    for name, member in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            yield f"### {cls.__name__}.{name}"
            yield from paragraphs(member.__doc__ or "")
        elif isinstance(member, (FunctionType, classmethod)) and member.__doc__:
            function = member.__func__ if isinstance(member, classmethod) else member
            yield f"### {cls.__name__}.{name}"
            yield from of_function(f"{cls.__name__}.{name}", function)


def of_function(name: str, function: Callable[..., object]) -> Iterator[str]:
    """Yield the signature of a function, and its docstring."""
    yield code(f"{name}{shown(inspect.signature(function))}")
    yield from paragraphs(function.__doc__ or "")


class Written:
    """A type as it is written, without quotes around it."""

    def __init__(self, annotation: object) -> None:
        """Take an annotation, which is a string unless there is none."""
        self._text = str(getattr(annotation, "__forward_arg__", annotation))

    def __repr__(self) -> str:
        """Return the type."""
        return self._text


def shown(signature: inspect.Signature) -> str:
    """Return a signature without `self` and without quotes around its types."""
    none = inspect.Parameter.empty
    kept = [
        one if one.annotation is none else one.replace(annotation=Written(one.annotation))
        for one in signature.parameters.values()
        if one.name not in {"self", "cls"}
    ]
    returned = signature.return_annotation
    returned = returned if returned in {none, None} else Written(returned)
    return str(signature.replace(parameters=kept, return_annotation=returned))


def code(text: str) -> str:
    """Return a block of Python."""
    return f"```python\n{text}\n```"


def paragraphs(docstring: str) -> Iterator[str]:
    """Yield the paragraphs of a docstring as Markdown; arguments become lists."""
    for paragraph in filter(None, inspect.cleandoc(docstring).split("\n\n")):
        lines = paragraph.splitlines()
        if lines[0].startswith(">>>"):
            yield code(paragraph)
        elif ARGUMENT.match(lines[0]):
            yield "\n".join(arguments(lines))
        else:
            yield paragraph


def arguments(lines: list[str]) -> Iterator[str]:
    """Yield a list of arguments; what continues one is indented, or doesn't begin with a name."""
    for line in chain.from_iterable(map(BETWEEN.split, lines)):
        if not line.startswith(" ") and (found := ARGUMENT.match(line)):
            names = ", ".join(f"`{name}`" for name in found["names"].split(", "))
            yield f"- {names}: {found['what']}"
        else:
            yield f"  {line.strip()}"


def attribute_docs() -> dict[str, str]:
    """Return the docstrings below the constants of all modules, by the names of these."""
    found = {}
    for path in sorted(Path(lsh.__file__).parent.glob("*.py*")):  # and those of the core's stub
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for node, after in pairwise(body):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            target = node.target if isinstance(node, ast.AnnAssign) else target
            if isinstance(target, ast.Name) and isinstance(after, ast.Expr):
                found[target.id] = ast.literal_eval(after.value)
    return found
