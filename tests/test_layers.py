"""Who may import whom: a pure core, stages without disks or brokers, tests by themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import lsh
import neardup
import worker

SHIPPED = {
    "lsh": Path(lsh.__file__).parent,
    "neardup": Path(neardup.__file__).parent,
    "worker": Path(worker.__file__).parent,
}
TESTS = Path(__file__).parent
BESIDE = {name: TESTS.with_name(name) for name in ("bench", "chaos", "localkafka", "tests")}
ROOTS = {**SHIPPED, **BESIDE}

BARRED_FROM_STAGES = {
    "confluent_kafka",
    "prometheus_client",
    "rocksdict",
    "threading",
    "time",
    "worker.bus.kafka",
    "worker.bus.memory",
    "worker.bus.shared",
    "worker.index",
}

COMPILED = {"lsh._core"}
"""Modules without a file in Python."""


@cache
def modules() -> Mapping[str, Path]:
    """Return the files of all modules by their names; a package is its ``__init__``."""
    found = {}
    for name, root in ROOTS.items():
        for path in root.rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join((name, *parts)).removesuffix(".__init__")] = path
    return found


def imported(module: str) -> frozenset[str]:
    """Return what a module imports, anywhere in it, with the packages that this loads."""
    names = named(module)
    return frozenset(names | {package for name in names for package in packages_of(name)})


@cache
def named(module: str) -> frozenset[str]:
    """Return the modules that a module names in its imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(modules()[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, f"{module} has a relative import"
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            # A package that hands on its modules isn't used itself.
            names |= full & (modules().keys() | COMPILED) or {node.module}
    return frozenset(names)


def packages_of(module: str) -> Iterator[str]:
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


def reached(start: str) -> dict[str, tuple[str, ...]]:
    """Return all that a module loads of ours and of others, each with a way to it."""
    ways: dict[str, tuple[str, ...]] = {start: (start,)}
    left = [start]
    while left:
        module = left.pop()
        for name in imported(module):
            if name not in ways:
                ways[name] = (*ways[module], name)
                if name in modules():
                    left.append(name)
    return ways


def part_of(module: str) -> str | None:
    """Return the package or module right below ``worker`` that a module belongs to."""
    parts = module.split(".")
    return parts[1] if parts[0] == "worker" and len(parts) > 1 else None


def imports_between_parts() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for module in modules():
        part = part_of(module)
        if part is not None:
            others = {part_of(name) for name in imported(module)} - {part, None}
            found.setdefault(part, set()).update(other for other in others if other is not None)
    return found


def a_cycle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the nodes that are left once all that depend on nothing left are taken away."""
    left = {node: set(others) for node, others in graph.items()}
    while free := [node for node, others in left.items() if not others & left.keys()]:
        for node in free:
            del left[node]
    return sorted(left)


def test_the_core_imports_nothing_of_the_worker() -> None:
    for module in modules():
        if module.partition(".")[0] == "lsh":
            assert not any(name.partition(".")[0] == "worker" for name in imported(module)), module


def test_stages_see_no_bus_clock_disk_or_thread() -> None:
    stages = [module for module in modules() if part_of(module) == "stages"]
    assert "worker.stages.index" in stages
    for stage in stages:
        ways = reached(stage)
        for barred in BARRED_FROM_STAGES & ways.keys():
            raise AssertionError(" imports ".join(ways[barred]))


def test_parts_of_the_worker_do_not_depend_on_one_another_in_circles() -> None:
    graph = imports_between_parts()
    assert a_cycle(graph) == []


def test_modules_do_not_depend_on_one_another_in_circles() -> None:
    """What is imported for types alone counts as well. A package counts only for its own code."""
    graph = {
        module: {name for name in named(module) if name in modules()} - {module}
        for module in modules()
    }
    assert a_cycle(graph) == []


def top(module: str) -> str:
    return module.partition(".")[0]


def test_nothing_imports_the_package_that_shows_both() -> None:
    for module in modules():
        if top(module) in {"lsh", "worker"}:
            assert "neardup" not in {top(name) for name in imported(module)}, module


def test_what_is_shipped_imports_nothing_beside_it() -> None:
    for module in modules():
        if top(module) in SHIPPED:
            assert not BESIDE.keys() & {top(name) for name in imported(module)}, module


def test_only_tests_and_the_harness_import_tests() -> None:
    """The fault harness stands on what tests share, and on no test."""
    for module in modules():
        found = {name for name in imported(module) if top(name) == "tests"} - {"tests"}
        if top(module) == "chaos":
            assert all(name.startswith("tests.support") for name in found), module
        elif top(module) != "tests":
            assert not found, module


def test_no_test_module_is_imported() -> None:
    """What several of them need is in a module beside them, or in `tests.support`."""
    for module in modules():
        tests = {name for name in imported(module) if name.rpartition(".")[2].startswith("test_")}
        assert not tests, module


def test_support_stands_on_the_oracle_alone() -> None:
    for module in modules():
        if module.startswith("tests.support"):
            others = {name for name in imported(module) if top(name) == "tests"} - {"tests"}
            assert all(name.startswith(("tests.support", "tests.oracle")) for name in others), (
                module
            )
