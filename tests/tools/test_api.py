"""The reference of the library is what its docstrings say, and every public name has one."""

from __future__ import annotations

import doctest
import re

import pytest

import lsh
from tools.api import paragraphs, reference


def test_every_public_name_has_its_section() -> None:
    sections = {line[3:] for line in reference().splitlines() if line.startswith("## ")}
    assert sections == set(lsh.__all__)


def test_every_public_method_says_what_it_does() -> None:
    for name in lsh.__all__:
        value = getattr(lsh, name)
        if isinstance(value, type):
            for method, member in vars(value).items():
                if not method.startswith("_") and (callable(member) or hasattr(member, "fget")):
                    assert member.__doc__, f"{name}.{method}"


DOCSTRING = """\
Return something.

one: what it is, and
    more of it.
two, three: others. four: the last.

>>> 1
1

Raises ValueError if not.
"""


def test_a_docstring_becomes_paragraphs_lists_and_code() -> None:
    assert list(paragraphs(DOCSTRING)) == [
        "Return something.",
        "- `one`: what it is, and\n  more of it.\n- `two`, `three`: others.\n- `four`: the last.",
        "```python\n>>> 1\n1\n```",
        "Raises ValueError if not.",
    ]


@pytest.mark.parametrize("name", ["Index.add_many", "Index.load", "Parameters.for_threshold"])
def test_methods_have_sections(name: str) -> None:
    assert f"\n### {name}\n" in reference()


def test_signatures_can_be_copied() -> None:
    page = reference()
    assert (
        "Index.query(text: str, *, containment: float | None = None, of: Literal['query', " in page
    )
    assert "of: Literal['query', 'document'] = 'query', slack: float = 2.0) -> list[Hit]" in page
    assert "seed: bytes = b'neardup'" in page


def test_examples_run() -> None:
    examples = re.findall(r"^```python\n(>>>.*?)^```$", reference(), re.MULTILINE | re.DOTALL)
    assert len(examples) >= 2
    for number, example in enumerate(examples):
        test = doctest.DocTestParser().get_doctest(example, {}, f"example {number}", None, None)
        assert doctest.DocTestRunner().run(test).failed == 0
