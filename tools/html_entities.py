"""Write the named character references of HTML, for the compiled core.

    python -m tools.html_entities > core/src/text/markup/entities.rs

They are those of the HTML standard, as Python's `html.entities` has them.
"""

from __future__ import annotations

import textwrap
from html.entities import html5

HEAD = """\
//! The named character references of HTML. This file is generated.
//!
//! ```text
//! python -m tools.html_entities > core/src/text/markup/entities.rs
//! ```

/// Names without the semicolon at their ends, ascending, and what they stand for.
#[rustfmt::skip]
pub static ENTITIES: &[(&str, &str)] = &["""
WIDTH = 96


def main() -> None:
    """Print the module."""
    print(HEAD)
    named = {name[:-1]: shown for name, shown in html5.items() if name.endswith(";")}
    # A space within an item would be where a line may end.
    items = [f'("{name}",\0{quoted(shown)}),' for name, shown in sorted(named.items())]
    show(items)
    print("\n/// Those that need no semicolon, ascending.")
    print("#[rustfmt::skip]\npub static WITHOUT_SEMICOLON: &[&str] = &[")
    show([f'"{name}",' for name in sorted(html5) if not name.endswith(";")])


def show(items: list[str]) -> None:
    """Print what is in a list, and its end."""
    for line in textwrap.wrap(" ".join(items), WIDTH, break_on_hyphens=False):
        print("    " + line.replace("\0", " "))
    print("];")


def quoted(text: str) -> str:
    """Return a literal of Rust."""
    return '"' + "".join(f"\\u{{{ord(char):X}}}" for char in text) + '"'


if __name__ == "__main__":
    main()
