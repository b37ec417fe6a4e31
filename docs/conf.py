"""Sphinx makes the documentation of these pages: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tools import api, commands  # noqa: E402 -- found by the path above
from worker import __version__  # noqa: E402 -- the same

project = "neardup"
author = "the authors of neardup"
project_copyright = author
release = __version__

extensions = ["myst_parser", "sphinx_copybutton"]
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block"]
myst_fence_as_directive = ["mermaid"]
highlight_language = "none"
copybutton_prompt_text = "$ "
exclude_patterns = ["_static"]

html_theme = "furo"
html_title = f"neardup {release}"
html_static_path = ["_static"]
html_css_files = ["neardup.css"]
html_js_files = ["mermaid.tiny.js", "diagrams.js"]
html_show_copyright = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5c7a", "color-brand-content": "#0b5c7a"},
    "dark_css_variables": {"color-brand-primary": "#6cc3e0", "color-brand-content": "#6cc3e0"},
}

linkcheck_ignore = [r"https?://localhost"]
linkcheck_timeout = 20


class Mermaid(Directive):
    """A diagram as text, which the browser draws."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the text, for `_static/diagrams.js`."""
        text = nodes.Text("\n".join(self.content)).astext()
        escaped = text.replace("&", "&amp;").replace("<", "&lt;")
        return [nodes.raw("", f'<pre class="mermaid">{escaped}</pre>', format="html")]


def generate(_app: Sphinx) -> None:
    """Write the pages that are made from code and not kept, if they have changed."""
    for name, page in (("lsh", api.reference()), ("commands", commands.reference())):
        path = HERE / "reference" / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != page:
            path.write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Add what is here to Sphinx."""
    app.add_directive("mermaid", Mermaid)
    app.connect("builder-inited", generate)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
