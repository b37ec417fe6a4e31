"""Memory, time and disk of the groups that ``neardup serve`` keeps."""

from __future__ import annotations

import json
import tempfile

from bench.processes import Program
from bench.report import Figures, Target, show

MOST_MIB = 200.0


def run(*, quick: bool = False) -> list[Target]:
    """Measure, print the figures, and return the target."""
    groups = 50_000 if quick else 1_000_000
    with (
        tempfile.TemporaryDirectory(prefix="neardup-bench-") as folder,
        Program(["bench.group_store_parts", str(groups), folder]) as program,
    ):
        program.wait()
        found = json.loads(program.said())
    show(
        f"{groups:,} groups of 3 documents or so, {found['documents']:,} documents (synthetic)",
        [
            Figures("memory beyond that of the program, MiB", [found["bytes"] / 2**20]),
            Figures("disk, MiB", [found["disk"] / 2**20]),
            Figures("microseconds per document", [found["seconds"] / found["documents"] * 1e6]),
            Figures("the largest 100, ms", [1e3 * one for one in found["size"]], ",.1f"),
            Figures("the fastest growing 100, ms", [1e3 * one for one in found["growth"]], ",.1f"),
        ],
    )
    taken = found["bytes"] / 2**20
    what = f"memory of {groups:,} groups, MiB"
    return [Target(what, taken, MOST_MIB, at_least=False, form=".0f")]
