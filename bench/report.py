"""The output of benchmarks: tables of medians and ranges, and whether the targets hold."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_PLAIN_WIDTH = 110
_LIBRARIES = ("confluent-kafka", "rocksdict", "numpy", "mmh3", "datasketch")

_own = Console()
console = _own if _own.is_terminal else Console(width=_PLAIN_WIDTH)


@dataclass(frozen=True, slots=True)
class Figures:
    """One quantity, measured several times; ``form`` is a format specification."""

    name: str
    values: Sequence[float]
    form: str = ",.0f"

    @property
    def median(self) -> float:
        """Return the median."""
        return statistics.median(self.values)


@dataclass(frozen=True, slots=True)
class Target:
    """A figure, and the limit that it must meet."""

    what: str
    value: float
    limit: float
    at_least: bool
    form: str = ".1f"

    @property
    def holds(self) -> bool:
        """Return whether the figure meets the limit."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def facts() -> str:
    """Return what the figures depend on: processor, load, versions."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    return (
        f"{cores} cores ({_processor()}), load {load}; Python {platform.python_version()},"
        f" {platform.system()} {platform.release()}; {libraries}"
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123 -- a file of the system
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def show(title: str, figures: Sequence[Figures], note: str = "") -> None:
    """Print a table with a row for each quantity."""
    console.print(f"\n[bold]{title}")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for column in ("median", "lowest", "highest", "runs"):
        table.add_column(column, justify="right")
    for one in figures:
        shown = (one.median, min(one.values), max(one.values))
        table.add_row(one.name, *(format(value, one.form) for value in shown), str(len(one.values)))
    console.print(table)
    if note:
        console.print(note, style="dim")


def show_targets(targets: Sequence[Target]) -> None:
    """Print each target with its figure, and whether it holds."""
    if not targets:
        return
    console.print("\n[bold]Targets")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for column in ("measured", "target", ""):
        table.add_column(column, justify="right")
    for one in targets:
        bound = ("≥ " if one.at_least else "≤ ") + format(one.limit, one.form)
        verdict = Text("holds", "green") if one.holds else Text("missed", "bold red")
        table.add_row(one.what, format(one.value, one.form), bound, verdict)
    console.print(table)
