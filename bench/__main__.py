"""``python -m bench [NAME…] [--quick]``: run the benchmarks, and judge their targets."""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

from bench.report import Target, console, facts, show_targets
from tests.kafka.jars import KafkaUnavailable

BENCHMARKS = {
    "fingerprint": "signatures per second on one core, next to datasketch",
    "kafka": "documents per second on Kafka, next to a plain copier and datasketch",
    "latency": "from record timestamp to readable verdict, at 1,000 documents a second",
    "memory": "a million documents through `neardup dedupe`: peak memory, and rate",
    "recovery": "from the restart of a killed worker to its next verdict",
    "replay": "one shard's log read again, and a snapshot restored",
    "start": "how long `neardup --help` and a worker's first verdict take",
    "wave": "bytes that a wave of near copies makes of each of its own",
    "accuracy": "recall and precision by similarity",
}


def main() -> None:
    """Run what was named, or all."""
    listed = "\n".join(f"  {name:12} {what}" for name, what in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Benchmarks; without names, all of them.",
        epilog=f"benchmarks:\n{listed}\n\nNEARDUP_BENCH_DATA=FOLDER names real documents."
        " NEARDUP_BENCH_INDEX=NUMBER says how many documents *recovery* and *replay*"
        " have in their index.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="some of those below")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all?")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    console.print(facts(), style="dim")
    targets: list[Target] = []
    for name in given.names or BENCHMARKS:
        console.rule(f"[bold]{name}")
        began = time.monotonic()
        try:
            targets += _run(name, quick=given.quick)
        except KafkaUnavailable as error:
            console.print(f"left out: {error}", style="yellow")
        console.print(f"{time.monotonic() - began:.0f} s", style="dim")
    show_targets(targets)


def _run(name: str, *, quick: bool) -> list[Target]:
    if name != "accuracy":
        measured: list[Target] = importlib.import_module(f"bench.{name}").run(quick=quick)
        return measured
    folder = os.environ.get("NEARDUP_BENCH_DATA")
    if quick or not folder or not (Path(folder) / "docs.jsonl.gz").is_file():
        console.print("left out: it wants docs.jsonl.gz in NEARDUP_BENCH_DATA, and minutes")
    else:  # It tells figures by similarity, and has no target of its own.
        subprocess.run([sys.executable, "-m", "bench.accuracy"], check=True)
    return []


if __name__ == "__main__":
    main()
